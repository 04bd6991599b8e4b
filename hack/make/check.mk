# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Tests, checks, and what makes the checks pass.

# Where tests find the binaries they start.
export ESPALIER_BIN := $(CURDIR)/bin

# All that tests start, and all that checks run.
TESTED := build perf-tools tools

.PHONY: test
test: $(TESTED) ## run all that CI runs for a change: checks, unit and property tests, the core of the stories, the race detector; PARTS=units
	@hack/test.sh $(if $(PARTS),'$(PARTS)')

.PHONY: nightly
nightly: $(TESTED) ## run what takes too long for each change, hours: all stories at their whole length, each right taken away, the commands of the pages; PARTS=rights
	@hack/nightly.sh $(if $(PARTS),'$(PARTS)')

.PHONY: race
race: ## run under the race detector what many goroutines share, in a storm of changes; needs a C compiler; LASTING=1m
	@hack/race.sh $(LASTING)

.PHONY: evenness
evenness: build perf-tools ## place the same pods by the stock scheduler and by ours, case by case, and write docs/evenness.md, minutes
	@hack/evenness.sh

.PHONY: simulate
simulate: ## simulate several schedulers on the same nodes, and write docs/contention.md, a minute
	@cd test/simulate && go run . -docs ../../docs

.PHONY: e2e-kind
e2e-kind: bin/espalier-scheduler bin/espalier-controller bin/kubectl-espalier bin/kwok ## tell the stories on real kubelets, in a cluster of kind; needs Docker; KIND_IMAGE=..., RUN=Pull, KEEP=1
	@RUN='$(RUN)' KEEP='$(KEEP)' KIND_IMAGE='$(KIND_IMAGE)' hack/e2e-kind.sh

.PHONY: e2e-nightly
e2e-nightly: build perf-tools $(TOOLS)/promcheck ## tell all stories at their whole length, beside the stock scheduler too, an hour and a half: minutes of silence and of stillness, and all repetitions; RUN=Partition
	@$(if $(RUN),hack/stories.sh '$(RUN)' ./test/e2e)
	@hack/go-test.sh ./test/e2e -count=1 -timeout 4h $(if $(RUN),-run '$(RUN)') -args -whole -node-grace 50s

.PHONY: e2e-reliability
e2e-reliability: bin/espalier-scheduler bin/espalier-controller bin/devcluster ## take the leader, the API server and etcd away in the middle of 1,000 pods, and the controller in the middle of Moves, minutes; RUN=LeaderPaused
	@$(if $(RUN),hack/stories.sh '$(RUN)' ./test/reliability)
	@hack/go-test.sh ./test/reliability -count=1 -timeout 30m $(if $(RUN),-run '$(RUN)')

.PHONY: e2e-contention
e2e-contention: bin/espalier-scheduler bin/espalier-controller bin/devcluster perf-tools ## have several schedulers fill the same nodes, with the arbiter and without, as docs/several-schedulers.md has it, minutes; RUN=Three
	@$(if $(RUN),hack/stories.sh '$(RUN)' ./test/contention)
	@hack/go-test.sh ./test/contention -count=1 -timeout 1h $(if $(RUN),-run '$(RUN)')

.PHONY: e2e-upstream
e2e-upstream: bin/espalier-scheduler bin/devcluster ## run Kubernetes' own specs of scheduling with Espalier as the default scheduler, a quarter of an hour; RUN=Preemption
	@cd test/upstream && go test -v -count=1 -timeout 1h . $(if $(RUN),-ginkgo.focus='$(RUN)')

.PHONY: e2e-ecosystem
e2e-ecosystem: bin/espalier-scheduler bin/espalier-controller bin/devcluster bin/karpenter bin/descheduler ## tell what becomes of spreads beside Karpenter and the descheduler, half an hour; RUN=Karpenter
	@$(if $(RUN),hack/stories.sh '$(RUN)' ./test/ecosystem)
	@hack/go-test.sh ./test/ecosystem -count=1 -timeout 1h $(if $(RUN),-run '$(RUN)')

.PHONY: e2e-versions
e2e-versions: build perf-tools tools ## tell the stories on control planes of other versions of Kubernetes, hours; VERSIONS=v1.34.5
	@hack/versions.sh $(VERSIONS)

.PHONY: soak
soak: bin/espalier-scheduler bin/devcluster ## everything at once on devcluster with a random seed, then every workload doubles and must be even; DURATION=20m, SEED=7
	@hack/soak.sh '$(or $(DURATION),20m)' '$(SEED)'

.PHONY: fuzz
fuzz: ## run every fuzz target, 30 s each; FUZZTIME=5m for more
	@hack/fuzz.sh

SCALE ?= default
.PHONY: perf
perf: bin/espalier-scheduler bin/espalier-controller bin/devcluster perf-tools ## measure beside the stock scheduler, about two hours; SCALE=small for minutes, SCALE=huge, ONLY=Spread2,Drip, ROUNDS=5, PROFILE=1; CHECK=1 fails if a promise is missed
	@hack/go-build.sh _output/perf/perf ./test/perf
	@_output/perf/perf --scale='$(SCALE)' $(if $(ROUNDS),--rounds='$(ROUNDS)') $(if $(ONLY),--only='$(ONLY)') $(if $(CHECK),--check='$(CHECK)') $(if $(PROFILE),--profile='$(PROFILE)')

.PHONY: perf-kubectl
perf-kubectl: bin/kubectl-espalier bin/devcluster ## measure kubectl espalier in a cluster of 5,000 nodes and 50,000 pods, minutes; NODES=1000
	@go test -v -count=1 -timeout 30m ./test/kubectl -run '^TestLarge$$' -large='$(or $(NODES),5000)'

.PHONY: bench
bench: $(TOOLS)/benchstat ## compare the tree with SwarmKit's, pure; SCALE=small for a look, COUNT=6 for more rounds; CHECK=1 fails if a promise is missed
	@CHECK='$(CHECK)' hack/bench.sh

.PHONY: verify
verify: tools ## run every hack/verify-*.sh and see that they leave the tree as it was
	@hack/verify.sh

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## run the linters alone
	@hack/verify-lint.sh

.PHONY: fmt
fmt: $(TOOLS)/golangci-lint ## format Go files and order their imports
	@hack/update-format.sh

.PHONY: generate
generate: tools ## run every hack/update-*.sh: generated code, go.mod files, headers, format
	@for update in hack/update-*.sh; do echo "== $$update"; "$$update" || exit 1; done

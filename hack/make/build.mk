# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Binaries and tools. go build itself decides what is out of date, so binaries
# are phony; tools depend on the go.mod that pins them.

# Each binary and its package. Several at once are loaded once, and one count says how far they are.
SCHEDULER := bin/espalier-scheduler ./cmd/scheduler
CONTROLLER := bin/espalier-controller ./cmd/controller
PLUGIN := bin/kubectl-espalier ./cmd/kubectl-espalier
DEVCLUSTER := bin/devcluster ./cmd/devcluster
DEMO := bin/demo ./cmd/demo

.PHONY: build
build: ## build everything into bin/
	@hack/go-build.sh $(SCHEDULER) $(CONTROLLER) $(PLUGIN) $(DEVCLUSTER) $(DEMO)

# What the demo starts, and no more: it is what most people build first.
.PHONY: build-demo
build-demo:
	@hack/go-build.sh $(SCHEDULER) $(DEVCLUSTER) $(DEMO)

.PHONY: bin/espalier-scheduler bin/espalier-controller bin/kubectl-espalier bin/devcluster bin/kwok
bin/espalier-scheduler:
	@hack/go-build.sh $(SCHEDULER)
bin/espalier-controller:
	@hack/go-build.sh $(CONTROLLER)
bin/kubectl-espalier:
	@hack/go-build.sh $(PLUGIN)
bin/devcluster:
	@hack/go-build.sh $(DEVCLUSTER)
# For the nodes beside those of kind. Devcluster has KWOK in it.
bin/kwok:
	@hack/go-build.sh bin/kwok sigs.k8s.io/kwok/cmd/kwok

# The schedulers that ours is measured beside. The stock one is of the very version
# that ours is linked with.
.PHONY: perf-tools
perf-tools:
	@hack/go-build.sh _output/perf/kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler \
	  _output/perf/nullscheduler ./test/perf/nullscheduler _output/perf/nullwebhook ./test/perf/nullwebhook

# The tools are pinned in modules of their own, one for each set that must not
# bend the versions of another: golangci-lint is bound to releases of the very
# libraries that the generators share.
TOOLS := _output/tools
GENERATORS := $(addprefix $(TOOLS)/,conversion-gen deepcopy-gen defaulter-gen)

bin/karpenter: hack/tools/karpenter/go.mod hack/tools/karpenter/go.sum
	@hack/go-build.sh -C hack/tools/karpenter $@ sigs.k8s.io/karpenter/kwok

bin/descheduler: hack/tools/descheduler/go.mod hack/tools/descheduler/go.sum
	@hack/go-build.sh -C hack/tools/descheduler $@ sigs.k8s.io/descheduler/cmd/descheduler

$(TOOLS)/golangci-lint: hack/tools/golangci-lint/go.mod hack/tools/golangci-lint/go.sum
	@hack/go-build.sh -C hack/tools/golangci-lint $@ sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter

$(TOOLS)/benchstat: hack/tools/benchstat/go.mod hack/tools/benchstat/go.sum
	@hack/go-build.sh -C hack/tools/benchstat $@ golang.org/x/perf/cmd/benchstat

$(TOOLS)/controller-gen: hack/tools/kubernetes/go.mod hack/tools/kubernetes/go.sum
	@hack/go-build.sh -C hack/tools/kubernetes $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(TOOLS)/crd-ref-docs: hack/tools/reference/go.mod hack/tools/reference/go.sum
	@hack/go-build.sh -C hack/tools/reference $@ github.com/elastic/crd-ref-docs

$(GENERATORS): hack/tools/kubernetes/go.mod hack/tools/kubernetes/go.sum
	@hack/go-build.sh -C hack/tools/kubernetes $@ k8s.io/code-generator/cmd/$(@F)

$(TOOLS)/kind: hack/tools/kind/go.mod hack/tools/kind/go.sum
	@hack/go-build.sh -C hack/tools/kind $@ sigs.k8s.io/kind

$(TOOLS)/hugo: hack/tools/site/go.mod hack/tools/site/go.sum
	@hack/go-build.sh -C hack/tools/site $@ github.com/gohugoio/hugo

# What installs, and what is released.
$(TOOLS)/helm: hack/tools/install/go.mod hack/tools/install/go.sum
	@hack/go-build.sh -C hack/tools/install $@ helm.sh/helm/v4/cmd/helm

$(TOOLS)/kubectl: hack/tools/install/go.mod hack/tools/install/go.sum $(wildcard hack/tools/install/kubectl/*.go)
	@hack/go-build.sh -C hack/tools/install $@ ./kubectl

$(TOOLS)/image: hack/tools/release/go.mod hack/tools/release/go.sum $(wildcard hack/tools/release/*/*.go)
	@hack/go-build.sh -C hack/tools/release $@ ./$(@F)

$(TOOLS)/cyclonedx-gomod: hack/tools/release/go.mod hack/tools/release/go.sum
	@hack/go-build.sh -C hack/tools/release $@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

$(TOOLS)/govulncheck: hack/tools/release/go.mod hack/tools/release/go.sum
	@hack/go-build.sh -C hack/tools/release $@ golang.org/x/vuln/cmd/govulncheck

$(TOOLS)/promcheck: hack/tools/prometheus/go.mod hack/tools/prometheus/go.sum $(wildcard hack/tools/prometheus/promcheck/*.go)
	@hack/go-build.sh -C hack/tools/prometheus $@ ./promcheck

.PHONY: tools
tools: $(TOOLS)/golangci-lint $(TOOLS)/controller-gen $(TOOLS)/crd-ref-docs $(GENERATORS) $(TOOLS)/helm $(TOOLS)/kubectl $(TOOLS)/image $(TOOLS)/cyclonedx-gomod $(TOOLS)/govulncheck $(TOOLS)/promcheck $(TOOLS)/hugo ## build the tools that test, verify, fmt and generate use

.PHONY: site
site: $(TOOLS)/hugo ## make the site of the documentation, below _output/site
	@hack/site.sh

# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Binaries and tools. go build itself decides what is out of date, so binaries
# are phony; tools depend on the go.mod that pins them.

.PHONY: build
build: bin/espalier-scheduler bin/espalier-controller bin/kubectl-espalier bin/devcluster bin/demo bin/kwok ## build everything into bin/

.PHONY: bin/espalier-scheduler bin/espalier-controller bin/kubectl-espalier bin/devcluster bin/demo bin/kwok
bin/espalier-scheduler:
	@hack/go-build.sh $@ ./cmd/scheduler
bin/espalier-controller:
	@hack/go-build.sh $@ ./cmd/controller
bin/kubectl-espalier:
	@hack/go-build.sh $@ ./cmd/kubectl-espalier
bin/devcluster:
	@hack/go-build.sh $@ ./cmd/devcluster
bin/demo:
	@hack/go-build.sh $@ ./cmd/demo
bin/kwok:
	@hack/go-build.sh $@ sigs.k8s.io/kwok/cmd/kwok

# The schedulers that ours is measured beside. The stock one is of the very version
# that ours is linked with.
.PHONY: perf-tools
perf-tools:
	@hack/go-build.sh _output/perf/kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
	@hack/go-build.sh _output/perf/nullscheduler ./test/perf/nullscheduler
	@hack/go-build.sh _output/perf/nullwebhook ./test/perf/nullwebhook

# The tools are pinned in modules of their own, one for each set that must not
# bend the versions of another: golangci-lint is bound to releases of the very
# libraries that the generators share.
TOOLS := _output/tools
GENERATORS := $(addprefix $(TOOLS)/,conversion-gen deepcopy-gen defaulter-gen)

bin/karpenter: hack/tools/karpenter/go.mod hack/tools/karpenter/go.sum
	@hack/go-build.sh $@ sigs.k8s.io/karpenter/kwok hack/tools/karpenter

bin/descheduler: hack/tools/descheduler/go.mod hack/tools/descheduler/go.sum
	@hack/go-build.sh $@ sigs.k8s.io/descheduler/cmd/descheduler hack/tools/descheduler

$(TOOLS)/golangci-lint: hack/tools/golangci-lint/go.mod hack/tools/golangci-lint/go.sum
	@hack/go-build.sh $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint hack/tools/golangci-lint

$(TOOLS)/kube-api-linter: hack/tools/kube-api-linter/go.mod hack/tools/kube-api-linter/go.sum
	@hack/go-build.sh $@ sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter hack/tools/kube-api-linter

$(TOOLS)/benchstat: hack/tools/benchstat/go.mod hack/tools/benchstat/go.sum
	@hack/go-build.sh $@ golang.org/x/perf/cmd/benchstat hack/tools/benchstat

$(TOOLS)/controller-gen: hack/tools/kubernetes/go.mod hack/tools/kubernetes/go.sum
	@hack/go-build.sh $@ sigs.k8s.io/controller-tools/cmd/controller-gen hack/tools/kubernetes

$(TOOLS)/crd-ref-docs: hack/tools/reference/go.mod hack/tools/reference/go.sum
	@hack/go-build.sh $@ github.com/elastic/crd-ref-docs hack/tools/reference

$(GENERATORS): hack/tools/kubernetes/go.mod hack/tools/kubernetes/go.sum
	@hack/go-build.sh $@ k8s.io/code-generator/cmd/$(@F) hack/tools/kubernetes

$(TOOLS)/kind: hack/tools/kind/go.mod hack/tools/kind/go.sum
	@hack/go-build.sh $@ sigs.k8s.io/kind hack/tools/kind

$(TOOLS)/hugo: hack/tools/site/go.mod hack/tools/site/go.sum
	@hack/go-build.sh $@ github.com/gohugoio/hugo hack/tools/site

# What installs, and what is released.
$(TOOLS)/helm: hack/tools/install/go.mod hack/tools/install/go.sum
	@hack/go-build.sh $@ helm.sh/helm/v4/cmd/helm hack/tools/install

$(TOOLS)/kubectl: hack/tools/install/go.mod hack/tools/install/go.sum $(wildcard hack/tools/install/kubectl/*.go)
	@hack/go-build.sh $@ ./kubectl hack/tools/install

$(TOOLS)/image: hack/tools/release/go.mod hack/tools/release/go.sum $(wildcard hack/tools/release/*/*.go)
	@hack/go-build.sh $@ ./$(@F) hack/tools/release

$(TOOLS)/cyclonedx-gomod: hack/tools/release/go.mod hack/tools/release/go.sum
	@hack/go-build.sh $@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod hack/tools/release

$(TOOLS)/govulncheck: hack/tools/release/go.mod hack/tools/release/go.sum
	@hack/go-build.sh $@ golang.org/x/vuln/cmd/govulncheck hack/tools/release

$(TOOLS)/promcheck: hack/tools/prometheus/go.mod hack/tools/prometheus/go.sum $(wildcard hack/tools/prometheus/promcheck/*.go)
	@hack/go-build.sh $@ ./promcheck hack/tools/prometheus

.PHONY: tools
tools: $(TOOLS)/golangci-lint $(TOOLS)/kube-api-linter $(TOOLS)/controller-gen $(TOOLS)/crd-ref-docs $(GENERATORS) $(TOOLS)/helm $(TOOLS)/kubectl $(TOOLS)/image $(TOOLS)/cyclonedx-gomod $(TOOLS)/govulncheck $(TOOLS)/promcheck $(TOOLS)/hugo ## build the tools that test, verify, fmt and generate use

.PHONY: site
site: $(TOOLS)/hugo ## make the site of the documentation, below _output/site
	@hack/site.sh

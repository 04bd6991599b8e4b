# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Two commands are the front door: make demo, and make test. The rest is for
# people who change the project; make help lists it.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# One setting for every build and test, in every script: only then do they all
# share one build cache, and nobody compiles Kubernetes twice.
export CGO_ENABLED := 0

# One that is left over from elsewhere would have all tests run on another Kubernetes, and cd enter another clone.
unexport DEVCLUSTER_KUBERNETES
unexport CDPATH

include hack/make/build.mk
include hack/make/check.mk
include hack/make/install.mk

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build-demo ## show spreads on a local control plane; ends by itself
	@bin/demo $(DEMO_FLAGS)

.PHONY: demo-svg
demo-svg: build-demo ## record the demo into docs/demo.svg
	@bin/demo --record docs/demo.svg

.PHONY: clean
clean: ## remove bin/ and _output/, and no cache
	rm -rf bin _output

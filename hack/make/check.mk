# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Tests, checks, and what makes the checks pass.

# Where tests find the binaries they start.
export ESPALIER_BIN := $(CURDIR)/bin

.PHONY: test
test: build $(TOOLS)/helm $(TOOLS)/kubectl ## run all tests: unit, property, fuzz seeds, integration, e2e
	@hack/test.sh

.PHONY: fuzz
fuzz: ## run every fuzz target, 30 s each; FUZZTIME=5m for more
	@hack/fuzz.sh

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

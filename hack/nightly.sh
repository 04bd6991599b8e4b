#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs what takes too long for each change, one part after another: all stories at their whole length, those beside the stock scheduler
# among them; each right taken away; the commands of the pages. Binaries and tools must have been built: make nightly does that.
#
# usage: hack/nightly.sh [PATTERN]    PATTERN selects parts by their name

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
logs=$root/_output/nightly
# shellcheck source=hack/parts.sh
source hack/parts.sh

export ESPALIER_BIN=${ESPALIER_BIN:-$root/bin}

all_parts() {
  part rights hack/go-test.sh ./test/integration/rights -vet=off -count=1 -timeout 1h
  part pages hack/go-test.sh ./test/pages -vet=off -count=1 -timeout 1h
  part contention hack/go-test.sh ./test/contention -vet=off -count=1 -timeout 1h
  part reliability hack/go-test.sh ./test/reliability -vet=off -count=1 -timeout 1h
  part e2e hack/go-test.sh ./test/e2e -vet=off -count=1 -timeout 4h -whole -node-grace 50s
  part race races 1m
}

run_lanes "${1:-.}" all_parts

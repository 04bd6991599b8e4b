#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the checks and tests that a change has to pass, in lanes side by side: what waits for a control plane most of its time leaves the
# processors to compilers and linters. Prints a line for each part that ends, and what a part that fails has printed; the output of all
# parts is in _output/test. Binaries and tools must have been built: make test does that. What takes too long for each change is in
# hack/nightly.sh.
#
# usage: hack/test.sh [PATTERN]    PATTERN selects parts by their name

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
logs=$root/_output/test
# shellcheck source=hack/parts.sh
source hack/parts.sh

export ESPALIER_BIN=${ESPALIER_BIN:-$root/bin}

computing() {
  part checks hack/verify.sh
  part units units
  part race races
}

# The modules and the storm come after the stories, when the lane would else have ended long before the others.
stories() {
  part e2e hack/go-test.sh ./test/e2e -vet=off -count=1 -timeout 20m -core -node-grace 20s
  part contention hack/go-test.sh ./test/contention -vet=off -count=1 -timeout 20m -short
  part reliability hack/go-test.sh ./test/reliability -vet=off -count=1 -timeout 20m -short
  # The test cache does not look outside of the module, where the pages are, and SwarmKit draws lots, which no seed settles: -count=1.
  part parity in_module test/parity -count=1
  part simulate in_module test/simulate -count=1
  part release in_module hack/tools/release
  part storm go test -vet=off -v -count=1 -timeout 10m -skip '^TestStorm$' ./test/storm
}

suites() {
  part suites on_one_cluster "--feature-gates=GenericWorkload=true --runtime-config=scheduling.k8s.io/v1beta1=true" ./test/integration ./test/integration/refusals ./test/kubectl ./test/install
  part rights hack/go-test.sh ./test/integration/rights -vet=off -count=1 -timeout 20m -short
  part perf hack/go-test.sh ./test/perf/... -vet=off -count=1 -timeout 20m
}

# All that is random begins with one seed, so that a package that has not changed need not be tested again; make soak draws others. The
# linters have run go vet. WITHOUT is a package that cannot be built, as controller-runtime's fake client often cannot with a beta of Kubernetes:
# packages that need it, or whose tests do, are left out.
units() {
  local packages need
  packages=$(go list ./... | grep -v /test/)
  if [[ -n ${WITHOUT:-} ]]; then
    # shellcheck disable=SC2086 # one word a package
    need=$(go list -test -f "{{range .Deps}}{{if eq . \"$WITHOUT\"}}{{\$.ImportPath}}{{end}}{{end}}" $packages |
      sed -n 's/ .*//; s/\.test$//; /./p' | LC_ALL=C sort -u)
    if [[ -z $need ]]; then
      echo "WITHOUT=$WITHOUT: no package needs it: is it written as in an import?" >&2
      return 2
    fi
    printf 'left out, for %s:\n%s\n' "$WITHOUT" "$need"
    packages=$(grep -vxFf <(echo "$need") <<<"$packages" || true)
  fi
  # shellcheck disable=SC2086 # one word a package
  compile_tests $packages
  # shellcheck disable=SC2086
  go test -vet=off -timeout 10m $packages
}

in_module() {
  local module=$1
  shift
  cd "$module"
  compile_tests ./...
  go test -vet=off -timeout 10m "$@" ./...
}

run_lanes "${1:-.}" computing stories suites

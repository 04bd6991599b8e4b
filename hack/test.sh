#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs all tests, the quick ones first. Binaries must have been built: make test
# does that.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export CGO_ENABLED=0
export ESPALIER_BIN=${ESPALIER_BIN:-$root/bin}

started=$SECONDS
step() { printf '\n== %s (%d s so far)\n' "$1" $((SECONDS - started)); }

# All that is random begins with one seed, so that a package which has not changed need not be tried
# again. Other seeds are for make soak.
step "unit, property and fuzz seed tests"
packages=$(go list ./... | grep -v '/test/')
# shellcheck disable=SC2086 # one word a package
go test -timeout 10m $packages

# A module of its own, with -v to see the seed and what the clusters were like. SwarmKit draws lots,
# which no seed settles: -count=1.
step "test/parity"
(
  cd test/parity
  go test -v -count=1 -timeout 10m -run '^TestRandomClusters$' ./...
  go test -count=1 -timeout 10m -skip '^TestRandomClusters$' ./...
)

# The pages are outside of the module, where the test cache does not look: -count=1.
step "test/simulate"
(cd test/simulate && go test -count=1 -timeout 10m ./...)

step "hack/tools/release"
(cd hack/tools/release && go test -timeout 10m ./...)

# What it checks is outside of the module, where the test cache does not look: -count=1.
step "hack/tools/prometheus"
(cd hack/tools/prometheus && go test -count=1 -timeout 10m ./...)

# The storm beside it is for the race detector, see hack/race.sh.
step "test/storm, simulations"
go test -v -count=1 -timeout 10m -run '^TestSimulation' ./test/storm

# These start processes, which the test cache knows nothing about: -count=1. One
# package at a time, which shows each story as it ends, and how many there are.
for suite in test/integration test/install test/e2e test/contention test/kubectl test/pages test/perf; do
  step "$suite"
  packages=$(go list "./$suite/...")
  if [[ -z $packages ]]; then
    echo "hack/test.sh: no Go package below $suite" >&2
    exit 1
  fi
  for package in $packages; do
    hack/go-test.sh "$package" -count=1 -timeout 20m
  done
done

step "all tests passed"

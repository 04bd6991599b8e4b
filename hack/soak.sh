#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Tries everything random with a seed that nobody has chosen: all properties, the comparison with
# SwarmKit and the storm once, and then everything at once on a devcluster for as long as is asked.
# Binaries must have been built: make soak does that.
#
# usage: hack/soak.sh [DURATION] [SEED]

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

duration=${1:-20m}
seed=${2:-$(((RANDOM << 15 | RANDOM) + 1))}
if ! [[ $seed =~ ^[1-9][0-9]*$ ]]; then
  echo "hack/soak.sh: SEED=$seed: write a number above 0, or leave it out" >&2
  exit 2
fi
if ! [[ $duration =~ ^([0-9]+(\.[0-9]+)?[hms])+$ && $duration =~ [1-9] ]]; then
  echo "hack/soak.sh: DURATION=$duration: write a time such as 20m or 1h30m" >&2
  exit 2
fi
export ESPALIER_SEED=$seed
export ESPALIER_BIN=${ESPALIER_BIN:-$root/bin}
step() { printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; }
again() { echo "hack/soak.sh: to try the same again: make soak DURATION=$duration SEED=$seed" >&2; }
trap again ERR

echo "seed $seed: the properties once, which takes minutes, then everything at once for $duration"
step "properties"
packages=$(tree_files | tr '\0' '\n' | grep '_test\.go$' | grep -v '^test/parity/' | xargs grep -l '"pgregory.net/rapid"' | xargs -n1 dirname | LC_ALL=C sort -u | sed 's|^|./|')
# shellcheck disable=SC2086 # one word a package
go test -count=1 -timeout 30m $packages

step "test/parity"
(cd test/parity && go test -v -count=1 -timeout 10m -run '^TestRandomClusters$' .)

step "test/storm"
go test -v -count=1 -timeout 10m ./test/storm

step "test/soak, $duration"
go test -v -count=1 -timeout 0 ./test/soak -lasting="$duration"

step "the soak with seed $seed has passed"

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Decides the same batches by SwarmKit's scheduler and by the spread tree, in one
# run, and prints the medians and how many times ours goes into SwarmKit's.
#
# usage: [SCALE=small] [COUNT=3] [BENCHTIME=300ms] hack/bench.sh

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool benchstat
export SCALE=${SCALE:-}
raw=$root/_output/bench.txt
mkdir -p "$root/_output"

# Each round on its own, so that a busy minute falls on both in turn and not on one.
: >"$raw"
for ((round = 1; round <= ${COUNT:-3}; round++)); do
  echo "round $round of ${COUNT:-3}" >&2
  (cd test/parity && go test -run '^$' -bench '^(BenchmarkDecide|BenchmarkOne)$' \
    -benchtime "${BENCHTIME:-300ms}" -timeout 2h .) | tee -a "$raw" >&2
done

"$tools/benchstat" -col /by -row .fullname -filter '.unit:ns/placement' "$raw"
echo
echo "ns/placement, medians, and how many times ours goes into SwarmKit's:"
"$tools/benchstat" -col /by -row .fullname -format csv "$raw" 2>/dev/null | awk -F, '
  $2 ~ /^[0-9]/ && $1 != "geomean" { printf "%-46s %14.0f %14.0f %10.1f\n", $1, $2 * 1e9, $4 * 1e9, $2 / $4 }
'

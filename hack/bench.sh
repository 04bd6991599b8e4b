#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Decides the same batches by SwarmKit's scheduler and by the spread tree, in one
# run, and prints the medians and how many times ours goes into SwarmKit's.
#
# With CHECK=1 it fails if a promise of docs/performance.md is missed.
#
# usage: [SCALE=small] [COUNT=3] [BENCHTIME=300ms] [CHECK=1] hack/bench.sh

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
case ${SCALE:-} in
'' | default | small) ;;
*) echo "hack/bench.sh: SCALE=$SCALE: leave it out for all, or say small" >&2; exit 2 ;;
esac
if ! [[ ${COUNT:-3} =~ ^[1-9][0-9]*$ ]]; then
  echo "hack/bench.sh: COUNT=$COUNT: it is how many rounds to make, one at least" >&2
  exit 2
fi
case ${CHECK:-0} in
0 | 1) ;;
*) echo "hack/bench.sh: CHECK=$CHECK: say 1 to fail if a promise is missed, or 0" >&2; exit 2 ;;
esac
need_tool benchstat
export SCALE=${SCALE:-}
raw=$root/_output/bench.txt
mkdir -p "$root/_output"
rm -f "$raw.shared"

# Each round on its own, so that a busy minute falls on both in turn and not on one.
: >"$raw"
for ((round = 1; round <= ${COUNT:-3}; round++)); do
  echo "round $round of ${COUNT:-3}" >&2
  (cd test/parity && go test -run '^$' -bench '^(BenchmarkDecide|BenchmarkOne)$' \
    -benchtime "${BENCHTIME:-300ms}" -timeout 2h .) | tee -a "$raw" >&2
  (cd "$root" && go test -run '^$' -bench '^(BenchmarkRevisions|BenchmarkDeep)$' -benchmem \
    -benchtime "${BENCHTIME:-300ms}" ./pkg/placement/tree) | tee -a "$raw.shared" >&2
done

"$tools/benchstat" -col /by -row .fullname -filter '.unit:ns/placement' "$raw"
csv=$root/_output/bench.csv
"$tools/benchstat" -col /by -row .fullname -format csv "$raw" 2>/dev/null | grep -E '^(Decide|One)/' >"$csv"
echo
echo "ns/placement, medians, and how many times ours goes into SwarmKit's:"
awk -F, '{ printf "%-46s %14.0f %14.0f %10.1f\n", $1, $2 * 1e9, $4 * 1e9, $2 / $4 }' "$csv"
# What many revisions share, and what deep levels cost: ours alone, beside itself.
"$tools/benchstat" -row .fullname "$raw.shared"
shared=$root/_output/bench-shared.csv
"$tools/benchstat" -row .fullname -format csv "$raw.shared" 2>/dev/null >"$shared"
echo
echo "promises:"
awk -F, -v check="${CHECK:-}" '
  function judge(what, measured, sign, bound) {
    kept = sign == ">=" ? measured >= bound : measured <= bound
    printf "%-64s %8.1f %s %3g %s\n", what, measured, sign, bound, kept ? "kept" : "MISSED"
    if (!kept) missed = 1
    judged++
  }
  FILENAME ~ /shared/ {
    sub(/-[0-9]+$/, "", $1)
    if ($2 == "sec/op" || $2 == "B/op" || $2 == "allocs/op") unit = $2
    else if ($2 ~ /^[0-9]/) alone[unit "/" $1] = $2
    next
  }
  { sub(/-[0-9]+$/, "", $1); swarmkit[$1] = $2; ours[$1] = $4 }
  END {
    for (l = 0; l <= 2; l += 2) {
      for (n = 1000; n <= 10000; n *= 10) {
        row = "Decide/nodes=" n "/tasks=" n "/levels=" l
        if (row in ours) judge(row ": SwarmKit to ours", swarmkit[row] / ours[row], ">=", 2)
      }
      row = "One/nodes=10000/levels=" l
      if (row in ours) judge(row ": SwarmKit to ours", swarmkit[row] / ours[row], ">=", 50)
    }
    for (l = 0; l <= 4; l += 2) {
      small = "Decide/nodes=1000/tasks=1000/levels=" l
      large = "Decide/nodes=100000/tasks=100000/levels=" l
      if (large in ours) judge(large ": ours to 1,000 of each", ours[large] / ours[small], "<=", 3)
      small = "One/nodes=1000/levels=" l
      large = "One/nodes=100000/levels=" l
      if (large in ours) judge(large ": ours to 1,000 nodes", ours[large] / ours[small], "<=", 3)
    }
    judge("a placement among 10,000 revisions, to one alone", alone["sec/op/Revisions/nodes=5000/revisions=10000"] / alone["sec/op/Revisions/nodes=5000/revisions=1"], "<=", 1.5)
    judge("16 levels below a unique label: time to one level", alone["sec/op/Deep/nodes=5000/levels=16"] / alone["sec/op/Deep/nodes=5000/levels=1"], "<=", 2)
    judge("16 levels below a unique label: memory to one level", alone["B/op/Deep/nodes=5000/levels=16"] / alone["B/op/Deep/nodes=5000/levels=1"], "<=", 2)
    if (!judged) { print "nothing was measured that is promised"; exit 1 }
    exit check == "1" && missed
  }
' "$csv" "$shared"

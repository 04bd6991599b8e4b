#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Tells the stories of test/e2e about running pods at their whole length. In make test they are told in short: seconds of silence for minutes,
# and two repetitions for twenty. Prints a line for each story as it ends, and a total; all that is said goes to
# _output/e2e-slow.log. Binaries must have been built: make e2e-slow does that.
#
# usage: hack/e2e-slow.sh [PATTERN]

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export ESPALIER_BIN=${ESPALIER_BIN:-$root/bin}
log=$root/_output/e2e-slow.log
mkdir -p "$(dirname "$log")"
[[ -z ${1:-} ]] || hack/stories.sh "$1" ./test/e2e
pattern=${1:-^Test(Autoscaler|Backfill|DeploymentChanges|Disconnect|Drain|Move|NoRestart|Partition|Rebalance|Repair|Restart|RollingReplace|ScaleDown|Tenants)}
all=$(go test -list "${pattern%%/*}" ./test/e2e | grep -c '^Test')
echo "$all stories, all that they say is in $log"

# progress prints a line as soon as a story has ended, and for each minute in which one has waited for nothing to happen.
progress() {
  local line result name took n=0
  while IFS= read -r line; do
    case $line in
    '--- PASS: '* | '--- FAIL: '* | '--- SKIP: '*)
      read -r _ result name took <<<"$line"
      printf '[%2d of %d, %4d s] %s %s %s\n' $((++n)) "$all" "$SECONDS" "${result%:}" "$name" "$took"
      ;;
    *': nothing has been moved for '*) printf '[%2d of %d, %4d s] %s\n' "$n" "$all" "$SECONDS" "${line#*_test.go:*: }" ;;
    esac
  done
  printf '%d of %d stories in %d s\n' "$n" "$all" "$SECONDS"
}

status=0
SECONDS=0
go test -v -count=1 -timeout 2h ./test/e2e -run "$pattern" -whole 2>&1 | tee "$log" | progress || status=$?
if ((status != 0)); then
  grep -E '^ +[a-z_]+_test\.go:[0-9]+: ' "$log" | tail -n 20 >&2 || true
  echo "hack/e2e-slow.sh: failed, see $log" >&2
fi
exit "$status"

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Lists the known vulnerabilities of code that our binaries call. It warns and does not
# fail: most are mended by a release of Kubernetes, and a list that changes by itself
# must not break a build. Without the database there is nothing to list.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool govulncheck
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# 3 is govulncheck's word for "found some"; it asks the database before it reads any code.
timeout 300 "$tools/govulncheck" ./cmd/scheduler ./cmd/controller >"$log" 2>&1 || status=$?
case $status in
0) echo "no known vulnerability" ;;
3)
  echo "WARNING: known vulnerabilities; see SECURITY.md for what to do about them" >&2
  grep -E '^(Vulnerability #|    (Found|Fixed) in:)' "$log" >&2 || cat "$log" >&2
  ;;
124)
  echo "WARNING: not checked for known vulnerabilities: no answer within 300 s" >&2
  ;;
*)
  echo "WARNING: not checked for known vulnerabilities: $(tail -n 1 "$log")" >&2
  ;;
esac

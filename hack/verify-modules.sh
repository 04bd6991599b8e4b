#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that the go.mod and go.sum of every module say what its packages import.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

failed=0
for module in $(modules); do
  if ! (cd "$module" && go mod tidy -diff); then
    echo "$module/go.mod or go.sum is out of date: run hack/update-modules.sh" >&2
    failed=1
  fi
done
exit $failed

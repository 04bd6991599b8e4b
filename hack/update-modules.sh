#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Tidies the go.mod of every module, and gives it the versions of the project's own where both have the
# same dependency: see hack/modules.sh.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source hack/modules.sh

for module in $(modules); do
  echo "go mod tidy in $module"
  (cd "$module" && go mod tidy)
  # What a replacement requires may stray in its turn.
  while edits=$(strays "$module" | awk '{ print "-replace=" $1 "=" $1 "@" $3 }') && [[ -n $edits ]]; do
    # shellcheck disable=SC2086 # one word a replacement
    (cd "$module" && go mod edit $edits && go mod tidy)
  done
done

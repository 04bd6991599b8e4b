#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that the go.mod and go.sum of every module say what its packages import, and that all modules
# have the same version of what the project's own go.mod has as well, but for the exceptions of
# hack/modules.sh.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source hack/modules.sh

failed=0
for module in $(modules); do
  if ! (cd "$module" && go mod tidy -diff); then
    echo "$module/go.mod or go.sum is out of date: run hack/update-modules.sh" >&2
    failed=1
  fi
  while read -r dependency theirs ours; do
    echo "$module/go.mod builds $dependency $theirs, and go.mod $ours: what imports it is compiled twice; run hack/update-modules.sh, or name the exception in hack/modules.sh" >&2
    failed=1
  done < <(strays "$module")
done
exit $failed

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the pages of the CRDs and of the plugins' arguments from the comments of their types.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool crd-ref-docs
page=$(mktemp)
trap 'rm -f "$page"' EXIT
# write NAME FOLDER TITLE SENTENCE
write() {
  "$tools/crd-ref-docs" --source-path="$2" --config=hack/tools/reference/config.yaml --renderer=markdown --output-path="$page" --log-level=ERROR
  grep -q '^## [a-z]' "$page" # otherwise it has no types
  mkdir -p docs/reference
  {
    printf '# %s\n\n%s\n\n' "$3" "$4"
    # From the first package on, without runs of empty lines, and without a break wherever a comment has the end of a line.
    sed -E '1,/^## [a-z]/{/^## [a-z]/!d}; s#([^ ])(<br />)+#\1 #g' "$page" | cat -s
  } >"docs/reference/$1.md"
}
write policies apis/placement "Fields of the CRDs" "After reading this page you know every field of PlacementPolicy, ClusterPlacementPolicy, Move, Partition and Allocation. [Policies](../policies.md), [Moves](../moves.md) and [tenants](../tenants.md) explain them."
write arguments apis/config/v1 "Arguments of the plugins" "After reading this page you know every argument of Espalier's plugins, which a KubeSchedulerConfiguration has below \`pluginConfig\`."

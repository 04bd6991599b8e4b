#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that no file of the tree is larger than 1 MiB: a binary that is added by mistake stays in every clone.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

large=$(tree_files | xargs -0 sh -c 'find "$@" -size +1048576c' find)
if [[ -n $large ]]; then
  sed 's/$/ has more than 1 MiB: remove it, or have .gitignore name it/' <<<"$large" >&2
  exit 1
fi

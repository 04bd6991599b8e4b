#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs every hack/verify-*.sh, all of them even if one fails, and then sees that
# the tree is what it was before: a check that leaves something behind is broken.
# In CI, where the tree is a clean clone, it must be clean afterwards as well.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

state() { tree_files | xargs -0 cksum | LC_ALL=C sort -k 3; }

failed=()
before=$(state)
for check in hack/verify-*.sh; do
  started=$SECONDS
  echo "== $check"
  if "$check"; then
    echo "   ok, $((SECONDS - started)) s"
  else
    echo "   FAILED, $((SECONDS - started)) s"
    failed+=("$check")
  fi
done

if ! changed=$(diff <(echo "$before") <(state)); then
  echo "files that changed while the checks ran, < before and > after:" >&2
  awk '/^[<>]/ { print $1, $4 }' <<<"$changed" >&2
  failed+=("the tree is not what it was before")
fi
if [[ ${CI:-} == true ]] && dirty=$(git status --porcelain) && [[ -n $dirty ]]; then
  echo "git status, which must be empty in CI:" >&2
  echo "$dirty" >&2
  failed+=("the tree is not clean")
fi

if ((${#failed[@]})); then
  printf 'verify: FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "verify: all checks passed"

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs every fuzz target of the repository, one after the other, FUZZTIME each (30s).
# What a target fails on it leaves in testdata/fuzz beside it: commit that with the mend.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fuzztime=${FUZZTIME:-30s}

# targets: names each target as FOLDER FUNCTION.
targets() {
  tree_files | tr '\0' '\n' | grep '_test\.go$' | while IFS= read -r file; do
    sed -nE "s|^func (Fuzz[A-Za-z0-9_]*)\(.*|$(dirname "$file") \1|p" "$file"
  done | LC_ALL=C sort
}

list=$(targets)
if [[ -z $list ]]; then
  echo "hack/fuzz.sh: no fuzz target in the repository" >&2
  exit 1
fi
failed=()
while read -r folder target; do
  printf '\n== %s in %s, %s\n' "$target" "$folder" "$fuzztime"
  # From its own folder, so that it is built by its own module.
  (cd "$folder" && go test -run='^$' -fuzz="^$target\$" -fuzztime="$fuzztime" .) </dev/null || failed+=("$folder $target")
done <<<"$list"

if ((${#failed[@]})); then
  printf '\nhack/fuzz.sh: these fail:\n' >&2
  printf '  %s\n' "${failed[@]}" >&2
  exit 1
fi
printf '\n== %d fuzz targets passed\n' "$(wc -l <<<"$list")"

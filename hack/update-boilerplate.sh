#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Puts the header of hack/boilerplate on files that lack it; a first line that
# begins with #! stays first.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source hack/boilerplate/boilerplate.sh

headless | while IFS= read -r file; do
  echo "adding the header to $file"
  mended=$(mktemp)
  {
    if IFS= read -r first <"$file" && [[ $first == '#!'* ]]; then
      printf '%s\n' "$first"
      header_of "$file"
      tail -n +2 "$file"
    else
      header_of "$file"
      printf '\n'
      cat "$file"
    fi
  } >"$mended"
  # Not mv: that would lose the file's mode.
  cat "$mended" >"$file"
  rm -f "$mended"
done

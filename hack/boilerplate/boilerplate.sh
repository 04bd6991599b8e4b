# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# The header of source files; sourced by the pair update- and verify-boilerplate.

# header_of FILE: the header in the comments of the file's language.
header_of() {
  case $1 in
  *.go) cat hack/boilerplate/boilerplate.go.txt ;;
  *) sed 's|^//|#|' hack/boilerplate/boilerplate.go.txt ;;
  esac
}

# headless: names the source files without the header, one a line. Files below
# testdata are input to tests, and stay as they are.
headless() {
  local file
  tree_files | tr '\0' '\n' |
    grep -E '\.(go|sh|mk|ya?ml)$|(^|/)(Makefile|Dockerfile)$|^\.ci/run$' |
    grep -v '/testdata/' |
    while IFS= read -r file; do
      # Generated files begin with build tags.
      head -n 8 "$file" | grep -qF 'SPDX-License-Identifier: Apache-2.0' || printf '%s\n' "$file"
    done
}

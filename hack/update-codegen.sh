#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates deep copies, defaults and conversions of the plugins' arguments, for the packages whose doc.go
# asks for them by tag.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# generate TOOL KIND: runs one generator over all packages with its tag. Old files
# go first, or a package that lost its tag would keep them.
generate() {
  local tool=$1 kind=$2 packages
  need_tool "$tool"
  find apis/config -name "zz_generated.$kind.go" -delete
  packages=$(grep -rlE "^// \+k8s:$tool=" apis/config --include=doc.go | xargs -n 1 dirname | LC_ALL=C sort | sed 's|^|./|')
  # shellcheck disable=SC2086 # one word a package
  echo "$tool:" $packages
  # shellcheck disable=SC2086
  "$tools/$tool" --go-header-file hack/boilerplate/boilerplate.go.txt --output-file "zz_generated.$kind.go" $packages
}

generate deepcopy-gen deepcopy
generate defaulter-gen defaults
generate conversion-gen conversion

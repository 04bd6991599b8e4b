#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Tidies the go.mod of every module.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for module in $(modules); do
  echo "go mod tidy in $module"
  (cd "$module" && go mod tidy)
done

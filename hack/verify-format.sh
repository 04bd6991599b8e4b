#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that all Go files are formatted and their imports in order.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool golangci-lint
if ! "$tools/golangci-lint" fmt --diff; then
  echo "run make fmt" >&2
  exit 1
fi

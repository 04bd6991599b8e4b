#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that generated code is what the generators make of the types now.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for tool in deepcopy-gen defaulter-gen conversion-gen; do need_tool "$tool"; done
verify_by_update hack/update-codegen.sh

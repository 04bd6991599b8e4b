#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that the pages of the CRDs and arguments are what the generator makes of the types now.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool crd-ref-docs
verify_by_update hack/update-reference.sh

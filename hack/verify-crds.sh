#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that the CustomResourceDefinitions are what the generator makes of the types now.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool controller-gen
verify_by_update hack/update-crds.sh

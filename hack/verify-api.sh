#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Holds the kinds that we define to the conventions of Kubernetes' API, as its own linter knows them.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool golangci-lint
"$tools/golangci-lint" run --config .golangci-kal.yaml ./apis/placement/...

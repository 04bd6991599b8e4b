#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the linters of .golangci.yaml.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool golangci-lint
echo "linting (about 2 minutes the first time, seconds after that)"
"$tools/golangci-lint" run
# Modules of their own, which the first run does not enter.
for module in test/parity test/simulate test/upstream hack/tools/release hack/tools/install hack/tools/prometheus; do
  (cd "$module" && "$tools/golangci-lint" run)
done

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that every source file says whose it is and under which licence.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source hack/boilerplate/boilerplate.sh

missing=$(headless)
if [[ -n $missing ]]; then
  echo "no licence header in:" >&2
  echo "$missing" >&2
  echo "run hack/update-boilerplate.sh" >&2
  exit 1
fi

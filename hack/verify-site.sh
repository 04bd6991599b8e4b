#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the site of the documentation, and sees that its links and anchors lead somewhere, and that nothing of it comes from the network.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

hack/site.sh "$root/_output/verify/site"
compile_tests ./internal/pages
go test -vet=off -count=1 ./internal/pages -run '^TestSite' -site="$root/_output/verify/site"

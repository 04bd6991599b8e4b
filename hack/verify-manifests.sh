#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that chart and overlays say what the kustomize base says, that helm has no
# complaint about the chart, alone or with any of the values it is tested with, and that
# the alerts fire when they should.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

verify_by_update hack/update-manifests.sh

need_tool helm
chart=manifests/charts/espalier
for values in "$chart/values.yaml" test/install/testdata/values/*.yaml; do
  if ! complaints=$("$tools/helm" lint --strict --quiet --values "$values" "$chart" 2>&1); then
    echo "$complaints" >&2
    echo "helm lint refuses $chart with $values" >&2
    exit 1
  fi
done

# The test cache knows nothing of files outside of the module: -count=1.
(cd hack/tools/prometheus && compile_tests ./... && go test -vet=off -count=1 ./...)

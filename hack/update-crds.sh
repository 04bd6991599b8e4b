#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates the CustomResourceDefinitions, and the deep copies of their types, from
# the markers in apis/placement.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool controller-gen
# Old files go first, or a kind that was renamed would stay. The folder's
# kustomization is written by hand.
find apis/placement -name zz_generated.deepcopy.go -delete
find manifests/crds -name '*_*.yaml' -delete
header=$(mktemp)
trap 'rm -f "$header"' EXIT
sed 's|^//|#|' hack/boilerplate/boilerplate.go.txt >"$header"
"$tools/controller-gen" object:headerFile=hack/boilerplate/boilerplate.go.txt paths=./apis/placement/...
"$tools/controller-gen" crd:headerFile="$header" paths=./apis/placement/... output:crd:dir=manifests/crds

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

# What the generator knows of Kubernetes' own types lets through what cannot be read: amounts with an exponent of any size, with all of whose digits
# Kubernetes computes, and operators of selectors that there are not. A rule in CEL about the selectors of a list would cost more than the API server allows.
amount='^[+-]?([0-9]{1,32}([.][0-9]{0,32})?|[.][0-9]{1,32})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$'
for kind in allocations partitions; do
  file=manifests/crds/placement.espalier.dev_$kind.yaml
  awk -v amount="$amount" '
    /^ *pattern: .*numkMGTPE/ { sub(/pattern: .*/, "pattern: " amount) }
    /Valid operators are In, NotIn, Exists and DoesNotExist[.]$/ { operator = 1 }
    operator && /^ *type: string$/ {
      indent = $0
      sub(/type: string/, "", indent)
      printf "%senum:\n%s- In\n%s- NotIn\n%s- Exists\n%s- DoesNotExist\n", indent, indent, indent, indent, indent
      operator = 0
    }
    { print }
  ' "$file" >"$header"
  cat "$header" >"$file"
done

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Sees that each go.mod that builds with Kubernetes speaks of one version only: every staging module of
# the version that is required is replaced, each by its release, the code
# generators are of that release, and pages and image name the Go of go.mod.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source hack/kubernetes.sh

version=$(kubernetes_version)
staging=$(staging_version "$version")
names=$(staging_modules "$version")
want=$(awk -v v="$staging" '{ print $1, $1, v }' <<<"$names")

failed=0
for folder in $(kubernetes_modules); do
  gomod=$(cd "$folder" && go mod edit -print)
  have=$(sed 's/^replace //' <<<"$gomod" | awk '$2 == "=>" && $1 ~ /^k8s\.io\// { print $1, $3, $4 }' | LC_ALL=C sort)
  if ! difference=$(diff <(echo "$want") <(echo "$have")); then
    echo "$folder/go.mod does not replace the staging modules of Kubernetes $version, < wanted and > there:" >&2
    grep '^[<>]' <<<"$difference" >&2
    failed=1
  fi
  while read -r module required; do
    if [[ $module == k8s.io/kubernetes && $required != "$version" ]]; then
      echo "$folder/go.mod requires $module $required, and go.mod $version" >&2
      failed=1
    elif grep -qx "$module" <<<"$names" && [[ $required != "$staging" ]]; then
      echo "$folder/go.mod requires $module $required, and builds $staging" >&2
      failed=1
    fi
  done < <(awk '$1 ~ /^k8s\.io\// && $2 ~ /^v/ && $4 != "indirect" { print $1, $2 }' <<<"$gomod")
done
generators=$(cd hack/tools/kubernetes && go mod edit -print | awk '$1 == "k8s.io/code-generator" { print $2 }')
if [[ $generators != "$staging" ]]; then
  echo "hack/tools/kubernetes/go.mod has k8s.io/code-generator $generators, not $staging" >&2
  failed=1
fi
go=$(go mod edit -print | awk '$1 == "go" { print $2 }')
while read -r file; do
  said=$(grep -oE "$go_places_pattern" "$file" | sed -E "s/$go_places_pattern/\\2/" | sort -u || true)
  if [[ $said != "$(go_minor "$go")" ]]; then
    echo "$file says Go \"$said\", and go.mod $go" >&2
    failed=1
  fi
done < <(go_places)
if ((failed)); then
  echo "run hack/update-kubernetes.sh" >&2
fi
exit $failed

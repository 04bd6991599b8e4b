#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Moves this repository to another version of Kubernetes: the requirement, the
# replacement of every staging module, the code generators, and the version of Go
# that it takes. Without a version it lays the present one anew.
#
# usage: hack/update-kubernetes.sh [vX.Y.Z]

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source hack/kubernetes.sh

old=$(kubernetes_version)
new=${1:-$old}
staging=$(staging_version "$new")
echo "Kubernetes $old -> $new, staging modules -> $staging"
names=$(staging_modules "$new")
go=$(newer "$(go mod edit -print | awk '$1 == "go" { print $2 }')" "$(kubernetes_go "$new")")

# lay writes one go.mod, in the current folder.
lay() {
  # All replacements of k8s.io modules are laid anew: a module that this version no
  # longer has would keep its old one. By hand, because go mod edit would take the
  # block apart and lose its comment.
  local laid
  laid=$(mktemp)
  awk -v names="$names" -v version="$staging" '
    { print }
    /^replace \($/ {
      n = split(names, name, "\n")
      for (i = 1; i <= n; i++) printf "\t%s => %s %s\n", name[i], name[i], version
      while ((getline line) > 0) {
        if (line !~ /^\tk8s\.io\/[^ ]+ => /) print line
        if (line == ")") break
      }
    }
  ' go.mod >"$laid"
  cat "$laid" >go.mod
  rm "$laid"

  # Whatever version is required, the replacement is what is built: say the same in both.
  local edits=(-require="k8s.io/kubernetes@$new") required module
  required=$(go mod edit -print | awk '$1 ~ /^k8s\.io\// && $2 ~ /^v/ { print $1 }')
  for module in $names; do
    if grep -qx "$module" <<<"$required"; then
      edits+=(-require="$module@$staging")
    fi
  done
  go mod edit "${edits[@]}"
}
for folder in $(kubernetes_modules); do
  (cd "$folder" && lay)
done

# Every module that is built here is built by one Go, or a newer one. The workflows read it in go.mod.
for folder in $(modules); do
  (
    cd "$folder"
    has=$(go mod edit -print | awk '$1 == "go" { print $2 }')
    go mod edit -go="$(newer "$has" "$go")"
  )
done
while read -r file; do
  sed -i -E "s/$go_places_pattern/\\1$(go_minor "$go")/" "$file"
done < <(go_places)

generators=()
for tool in conversion-gen deepcopy-gen defaulter-gen; do
  generators+=("k8s.io/code-generator/cmd/$tool@$staging")
done
(cd hack/tools/kubernetes && go get -tool "${generators[@]}")

if [[ $new != "$old" ]]; then
  # kubectl, which tests start, is made of these modules without k8s.io/kubernetes.
  was=$(staging_version "$old")
  (cd hack/tools/install && go mod edit -print | awk -v was="$was" -v new="$staging" '$1 ~ /^k8s\.io\// && $2 == was { print $1 "@" new }' | xargs go get)
  hack/update-modules.sh
  echo "go.mod is on $new: now make generate, make test, and a look at the release notes"
fi

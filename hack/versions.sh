#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds control planes of other versions of Kubernetes. On each it tells all stories of the labels spread, moves and faults, and the core of the others, with
# the chart, the CRDs, the commands of kubectl espalier and several schedulers. Where each version is of the minor version after the one before, it also
# upgrades through them under load. The first build of a version takes a quarter of an hour. Binaries and tools must have been built: make e2e-versions does that.
#
# usage: hack/versions.sh [VERSION...]    VERSION is a release of Kubernetes, such as v1.34.5

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=hack/kubernetes.sh
source hack/kubernetes.sh
# shellcheck source=hack/unserved.sh
source hack/unserved.sh
logs=$root/_output/versions
# shellcheck source=hack/parts.sh
source hack/parts.sh

export ESPALIER_BIN=${ESPALIER_BIN:-$root/bin}
versions=("$@")
(($#)) || versions=(v1.34.5 v1.35.4 v1.36.3 v1.37.2 v1.38.0-beta.0)

# control_plane VERSION: builds kube-apiserver and kube-controller-manager of a version into _output/kubernetes, unless they are there. What they are
# built from is decided by the go.mod of k8s.io/kubernetes alone, so the module is made here.
control_plane() {
  local version=$1 folder=$root/_output/kubernetes/$1 module=$root/_output/kubernetes/module-$1 staging gomod set base=k8s.io/component-base/version
  [[ ! -x $folder/kube-controller-manager || ! -x $folder/kube-apiserver ]] || return 0
  staging=$(staging_version "$version")
  rm -rf "$module"
  mkdir -p "$module"
  (
    cd "$module"
    export GOTOOLCHAIN=auto # a version takes the Go that it wants
    go mod init control-plane 2>/dev/null
    go mod edit -require="k8s.io/kubernetes@$version"
    # Downloaded before its replacements are known, or nothing resolves.
    gomod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
    go mod edit -go="$(awk '$1 == "go" { print $2 }' "$gomod")" -tool=k8s.io/kubernetes/cmd/kube-apiserver -tool=k8s.io/kubernetes/cmd/kube-controller-manager
    for set in $(awk '$2 == "=>" && $3 ~ /^\.\/staging\// { print $1 }' "$gomod"); do
      go mod edit -replace="$set=$set@$staging"
    done
    stand_in "$staging" "$gomod"
    IFS=. read -r _ minor _ <<<"$version"
    compiling go build -mod=mod -buildvcs=false -ldflags "-s -w -X $base.gitVersion=$version -X $base.gitMajor=1 -X $base.gitMinor=$minor" -o "$folder.new/" \
      k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager
    rm -rf "$folder"
    mv "$folder.new" "$folder" # both or none: a build may be ended in between
  )
}

# pod_groups VERSION: prints the flags that have a version serve groups of pods, where it can.
pod_groups() {
  local minor
  IFS=. read -r _ minor _ <<<"$1"
  ((minor < 37)) || echo "--feature-gates=GenericWorkload=true --runtime-config=scheduling.k8s.io/v1beta1=true"
}

all_parts() {
  local version
  for version in "${versions[@]}"; do
    part "build-$version" control_plane "$version"
    export DEVCLUSTER_KUBERNETES=$root/_output/kubernetes/$version
    part "stories-$version" hack/go-test.sh ./test/e2e -vet=off -count=1 -timeout 1h -labels=spread,moves,faults
    part "core-$version" hack/go-test.sh ./test/e2e -vet=off -count=1 -timeout 20m -labels=tenants,lifetimes -core
    part "suites-$version" on_one_cluster "$(pod_groups "$version")" ./test/integration ./test/kubectl ./test/install
    part "contention-$version" hack/go-test.sh ./test/contention -vet=off -count=1 -timeout 20m -short
  done
  if upgradable; then part upgrade upgrade; fi
}

# upgradable: whether each version is of the minor version after the one before.
upgradable() {
  local version minor last=
  for version in "${versions[@]}"; do
    IFS=. read -r _ minor _ <<<"$version"
    [[ -z $last ]] || ((minor == last + 1)) || return 1
    last=$minor
  done
  ((${#versions[@]} > 1))
}

# upgrade: goes through the versions on one cluster.
upgrade() {
  local folders=("${versions[@]/#/$root/_output/kubernetes/}") to
  export DEVCLUSTER_KUBERNETES=$root/_output/kubernetes/upgrade
  rm -f "$DEVCLUSTER_KUBERNETES.new"
  ln -sfn "${folders[0]}" "$DEVCLUSTER_KUBERNETES"
  to=$(IFS=, && echo "${folders[*]:1}")
  hack/go-test.sh ./test/reliability -vet=off -count=1 -timeout 20m -run '^TestKubernetesIsUpgraded$' -lease 1m -upgrade "$to"
}

run_lanes . all_parts

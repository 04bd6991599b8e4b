# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# What a Kubernetes version asks of go.mod; sourced by the pair update- and
# verify-kubernetes.
#
# k8s.io/kubernetes vX.Y.Z is built from modules of its own repository, which its
# go.mod names as v0.0.0 and replaces by folders. Outside of that repository each
# has to be replaced by its release, v0.Y.Z, or nothing resolves.

# kubernetes_version: the version that is required now.
kubernetes_version() { go mod edit -print | awk '$1 == "k8s.io/kubernetes" { print $2 }'; }

# staging_version VERSION: v1.37.1 -> v0.37.1.
staging_version() {
  if [[ ! $1 =~ ^v1(\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?)$ ]]; then
    echo "\"$1\" is not a version of Kubernetes: write it as v1.37.1" >&2
    return 1
  fi
  echo "v0${BASH_REMATCH[1]}"
}

# staging_modules VERSION: names the modules that this version replaces.
staging_modules() {
  local gomod
  gomod=$(go list -m -f '{{.GoMod}}' "k8s.io/kubernetes@$1") || return 1
  awk '$2 == "=>" && $3 ~ /^\.\/staging\// { print $1 }' "$gomod" | LC_ALL=C sort
}

# kubernetes_modules names the folders of the modules that are built with Kubernetes itself.
kubernetes_modules() { printf '%s\n' . test/upstream; }

# kubernetes_go VERSION: the go line of this version's go.mod.
kubernetes_go() {
  local gomod
  gomod=$(go list -m -f '{{.GoMod}}' "k8s.io/kubernetes@$1") || return 1
  awk '$1 == "go" { print $2 }' "$gomod"
}

# newer VERSION VERSION: the newer one of two versions of Go.
newer() { printf '%s\n' "$@" | sort -V | tail -n 1; }

# go_minor VERSION: 1.26.4 -> 1.26.
go_minor() {
  if [[ ! $1 =~ ^1\.[0-9]+ ]]; then
    echo "\"$1\" is not a version of Go" >&2
    return 1
  fi
  echo "${BASH_REMATCH[0]}"
}

# go_places: names the files that say which minor version of Go it takes, as "Go 1.26" or "golang:1.26".
go_places() { printf '%s\n' Dockerfile README.md CONTRIBUTING.md docs/install.md docs/quick-start.md; }

# go_places_pattern is what they say it with, for sed -E and grep -E; the version is the last group.
# shellcheck disable=SC2034 # the scripts that source it use it
go_places_pattern='(\bGo |\bgolang:)(1\.[0-9]+)'

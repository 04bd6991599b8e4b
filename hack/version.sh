#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the linker flags that tell a binary what it is, or with --short the version
# alone. VERSION in the environment names it where there is no git to ask.
#
# usage: hack/version.sh [--short]
#
# Espalier's own version goes to main.version and to the user agent of its API
# clients. component-base keeps the version of Kubernetes, which it is built from:
# feature gates, hidden metrics and /version compare that number with Kubernetes
# releases, and would take v0.1.0 for a Kubernetes older than all of them.

set -euo pipefail
unset CDPATH # cd would print the folder that it has found
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${VERSION:-$(git describe --tags --match 'v*' --dirty 2>/dev/null || true)}
if [[ -z $version ]]; then
  commit=$(git describe --always --exclude '*' --dirty 2>/dev/null || echo unknown)
  version=v0.0.0-g$commit
fi
if [[ ${1:-} == --short ]]; then
  echo "$version"
  exit
fi

kubernetes=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' go.mod)
IFS=. read -r major minor _ <<<"${kubernetes#v}"
base=k8s.io/component-base/version
client=k8s.io/client-go/pkg/version
echo "-X main.version=$version" \
  "-X $base.gitVersion=$kubernetes -X $base.gitMajor=$major -X $base.gitMinor=$minor" \
  "-X $client.gitVersion=$version -X $client.gitCommit=${version##*-g}"

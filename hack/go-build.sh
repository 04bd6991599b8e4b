#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds one binary and says so while it lasts: go build is silent, and the first
# build of the Kubernetes parts takes minutes.
#
# usage: hack/go-build.sh OUTPUT PACKAGE [DIRECTORY OF THE MODULE]

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=$root/${1#"$root"/} package=$2 module=$root/${3:-}
export CGO_ENABLED=0

case $(basename "$output") in
espalier-scheduler) hint="the scheduler: about 2 minutes the first time" ;;
espalier-controller) hint="the controller: seconds, once the scheduler is built" ;;
devcluster) hint="etcd, kube-apiserver and controllers: about 5 minutes the first time" ;;
demo) hint="seconds, once the scheduler is built" ;;
kwok) hint="the nodes of devcluster: about 3 minutes the first time" ;;
kube-scheduler | nullscheduler | perf) hint="for the benchmark: seconds, once the scheduler is built" ;;
helm | kubectl) hint="what installs: about 3 minutes the first time" ;;
golangci-lint) hint="linters: about 2 minutes the first time" ;;
*) hint="a tool: about a minute the first time" ;;
esac
echo "building ${output#"$root"/} ($hint)"

# Only our own binaries carry our version.
ldflags="-s -w"
if [[ $module == "$root/" ]]; then
  ldflags+=" $("$root/hack/version.sh")"
fi

# -v names each package as it is compiled. Those names become a count; whatever
# else go build says, downloads and errors, passes as it is.
cd "$module"
go build -v -buildvcs=false -ldflags "$ldflags" -o "$output" "$package" 2>&1 | awk '
  /^[^ :#]+$/ { if (++n % 100 == 0) { print "  ... " n " packages compiled"; fflush() } next }
  { print; fflush() }
'
# A target that go build found up to date keeps its old time, and make would ask again.
touch "$output"

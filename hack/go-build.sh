#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds one binary and says so while it lasts: go build is silent, and the first
# build of the Kubernetes parts takes minutes.
#
# A tool that is pinned in a module of its own is built once for all clones of the repository: it is
# kept beside Go's build cache, by what it is made of. Go's own cache has the packages, but each clone
# would link a dozen large binaries anew. What was not used for a month is removed.
#
# usage: hack/go-build.sh OUTPUT PACKAGE [DIRECTORY OF THE MODULE]

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=$root/${1#"$root"/} package=$2 module=$root/${3:-}
export CGO_ENABLED=0

case $(basename "$output") in
espalier-scheduler) hint="the scheduler: about 2 minutes the first time" ;;
kubectl-espalier*) hint="the kubectl plugin: seconds, once the scheduler is built" ;;
espalier-controller) hint="the controller: seconds, once the scheduler is built" ;;
devcluster) hint="etcd, kube-apiserver and controllers: about 5 minutes the first time" ;;
demo) hint="seconds, once the scheduler is built" ;;
kwok) hint="the nodes of devcluster: about 3 minutes the first time" ;;
kube-scheduler | nullscheduler | nullwebhook | perf) hint="for the benchmark: seconds, once the scheduler is built" ;;
karpenter | descheduler) hint="neighbours of the stories: about 4 minutes the first time" ;;
helm | kubectl) hint="what installs: about 3 minutes the first time" ;;
golangci-lint | kube-api-linter) hint="linters: about 2 minutes the first time" ;;
*) hint="a tool: about a minute the first time" ;;
esac

# key: everything that a binary of the module is made of.
key() {
  echo "$package $(basename "$output")"
  go env GOVERSION GOOS GOARCH GOAMD64 GOARM64 GOFLAGS GOEXPERIMENT
  (cd "$module" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}
kept=
if [[ $module != "$root/" ]] && command -v sha256sum >/dev/null; then
  cache=$(go env GOCACHE)
  kept=${cache%/}-espalier-tools/$(key | sha256sum | cut -c 1-32)
  if [[ -x $kept ]]; then
    echo "taking ${output#"$root"/}, which was built before"
    mkdir -p "$(dirname "$output")"
    cp "$kept" "$output"
    touch "$kept" "$output"
    exit 0
  fi
fi
echo "building ${output#"$root"/} ($hint)"

# Only our own binaries carry our version.
ldflags="-s -w"
if [[ $module == "$root/" ]]; then
  ldflags+=" $("$root/hack/version.sh")"
fi

# -v names each package as it is compiled. Those names become a count, on a terminal with a bar. Packages that are in the build cache
# are not compiled, so the total is how many there are at most. Whatever else go build says, downloads and errors, passes as it is.
cd "$module"
all=$({ go list -deps "$package" 2>/dev/null || true; } | wc -l)
if [[ -t 1 ]]; then every=10 bar=1; else every=200 bar=; fi
go build -v -buildvcs=false -ldflags "$ldflags" -o "$output" "$package" 2>&1 | awk -v all="$all" -v every="$every" -v bar="$bar" '
  /^[^ :#]+$/ {
    if (++n % every) next
    text = n " of " (n > all ? n : all) " packages compiled at most"
    if (!bar) { print "  " text; fflush(); next }
    full = int(30 * n / (n > all ? n : all))
    printf "\r\033[K[%s%s] %s", substr("==============================", 1, full), substr("                              ", 1, 30 - full), text
    fflush()
    next
  }
  { if (bar) printf "\r\033[K"; print; fflush() }
  END { if (bar) printf "\r\033[K" }
'
# A target that go build found up to date keeps its old time, and make would ask again.
touch "$output"
if [[ -n $kept ]]; then
  mkdir -p "$(dirname "$kept")"
  find "$(dirname "$kept")" -type f -mtime +30 -delete
  # Whole or not at all: another clone may be looking for it.
  cp "$output" "$kept.$$"
  mv "$kept.$$" "$kept"
fi

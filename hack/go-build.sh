#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds binaries of one module, and says how far it is and how long it will take: go build is
# silent, and the first build of the Kubernetes parts takes minutes. Several at once are loaded once.
#
# A tool that is pinned in a module of its own is built once for all clones of the repository: it is
# kept beside Go's build cache, by what it is made of. Go's own cache has the packages, but each clone
# would link a dozen large binaries anew. What was not used for a month is removed.
#
# usage: hack/go-build.sh OUTPUT PACKAGE [OUTPUT PACKAGE...]
#        hack/go-build.sh -C MODULE OUTPUT PACKAGE

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module=
if [[ $1 == -C ]]; then
  module=$2
  shift 2
fi
outputs=() packages=()
while (($#)); do
  outputs+=("${1#"$root"/}")
  packages+=("$2")
  shift 2
done

# key: everything that the binary of the module is made of.
key() {
  echo "${packages[0]} $(basename "${outputs[0]}")"
  go env GOVERSION GOOS GOARCH GOAMD64 GOARM64 GOFLAGS GOEXPERIMENT
  (cd "$module" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}
kept=
if [[ -n $module ]] && command -v sha256sum >/dev/null; then
  cache=$(go env GOCACHE)
  kept=${cache%/}-espalier-tools/$(key | sha256sum | cut -c 1-32)
  if [[ -x $kept ]]; then
    echo "taking ${outputs[0]}, which was built before"
    mkdir -p "$(dirname "${outputs[0]}")"
    cp "$kept" "${outputs[0]}"
    touch "$kept" "${outputs[0]}"
    exit 0
  fi
fi
echo "building ${outputs[*]}"

# Only our own binaries carry our version.
ldflags="-s -w"
if [[ -z $module ]]; then
  ldflags+=" $(hack/version.sh)"
fi

# progress ALL shows what go build -v says, which is the name of each package as its turn comes, as a count with the time that is left:
# on a terminal as a bar, elsewhere as a line now and then. Whatever else it says, downloads and errors, passes as it is.
progress() {
  local all=$1 n=0 line text left full dots=============================== started=$SECONDS said=$SECONDS bar=
  if [[ -t 1 ]]; then bar=$'\r\033[K'; fi
  while IFS= read -r line; do
    if [[ $line == *[\ :#]* || -z $line ]]; then
      printf '%s%s\n' "$bar" "$line"
      continue
    fi
    # The main packages are beyond the count: nobody can tell whether they are in the build cache.
    ((++n < all)) || all=$n
    text="$n of $all packages"
    left=$(((SECONDS - started) * (all - n) / n))
    if ((n == all)); then
      text+=" are compiled, now they are linked"
    elif ((SECONDS - started < 5)); then
      text+=" are compiled" # too early to tell
    elif ((left >= 60)); then
      text+=", about $(((left + 59) / 60)) minutes left"
    else
      text+=", less than a minute left"
    fi
    if [[ -n $bar ]]; then
      full=$((30 * n / all))
      printf '%s[%-30s] %s' "$bar" "${dots:0:full}" "$text"
    elif ((SECONDS - said >= 20)); then
      printf '  %s\n' "$text"
      said=$SECONDS
    fi
  done
  printf '%s' "$bar"
}

# The time that is left is counted in packages that are not in the build cache.
(
  cd "./$module"
  # All of a module into one folder, each by the name that go build gives it. One for each version that is named: binaries of another one would be linked
  # anew each time.
  folder=$root/_output/build/$(go env GOOS)-$(go env GOARCH)${module:+-${module//\//-}}${VERSION:+-$VERSION}
  mkdir -p "$folder"
  all=$({ go list -deps -f '{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}' "${packages[@]}" 2> >(grep '^go: downloading' >&2) || true; } | wc -l)
  compiling go build -v -buildvcs=false -ldflags "$ldflags" -o "$folder/" "${packages[@]}" 2>&1 | progress "$all"
  for i in "${!outputs[@]}"; do
    mkdir -p "$(dirname "$root/${outputs[i]}")"
    ln -f "$folder/$(basename "${packages[i]}")$(go env GOEXE)" "$root/${outputs[i]}"
    # One that go build found up to date keeps its old time, and make would ask again.
    touch "$root/${outputs[i]}"
  done
)
if [[ -n $kept ]]; then
  mkdir -p "$(dirname "$kept")"
  find "$(dirname "$kept")" -type f -mtime +30 -delete
  # Whole or not at all: another clone may be looking for it.
  cp "${outputs[0]}" "$kept.$$"
  mv "$kept.$$" "$kept"
fi

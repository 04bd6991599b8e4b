#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes everything that a release consists of, in _output/release/VERSION: binaries,
# images, bills of materials, the plugin of kubectl with a manifest for krew, the chart,
# manifests, the site of the documentation, what changed, and checksums.
#
# ARCHITECTURES are those of the images, and PLUGIN_PLATFORMS those of the plugin, if not all.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for tool in helm kubectl image cyclonedx-gomod hugo; do need_tool "$tool"; done
version=$(hack/version.sh --short)
out=_output/release/$version
rm -rf "$out"
mkdir -p "$out"

# pack FOLDER ARCHIVE: packs what is in a folder, and removes it. The same files make the same archive.
pack() {
  (cd "$1" && find . -mindepth 1 -printf '%P\n' | LC_ALL=C sort) |
    tar --create --gzip --file "$2" --directory "$1" --owner=0 --group=0 --numeric-owner --mtime=@0 --no-recursion --files-from=-
  rm -r "$1"
}

for arch in ${ARCHITECTURES:-amd64 arm64}; do
  for name in scheduler controller; do
    binary=$out/linux-$arch/espalier-$name
    GOOS=linux GOARCH=$arch hack/go-build.sh "$binary" "./cmd/$name"
    # Without a serial number and a time the same binary has the same bill.
    "$tools/cyclonedx-gomod" bin -json -noserial -notimestamp -std -version "$version" -output "$out/espalier-$name-linux-$arch.cdx.json" "$binary"
    # Named as the chart and the manifests beside them ask, wherever whoever makes the release pushes images to.
    REGISTRY='' GOARCH=$arch IMAGES=$out hack/image.sh "$binary"
    mv "$binary" "$out/espalier-$name-linux-$arch"
  done
  rmdir "$out/linux-$arch"
done

# krew takes an archive for each platform, and a manifest that names them with their sums. It is sent to krew's index by hand.
url=${RELEASE_URL:-https://github.com/espalier-scheduler/espalier/releases/download/$version}
{
  sed "s/VERSION/$version/" hack/krew.yaml
  for platform in ${PLUGIN_PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}; do
    os=${platform%/*} arch=${platform#*/} bin=kubectl-espalier
    [[ $os != windows ]] || bin+=.exe
    plugin=$out/plugin-$os-$arch archive=kubectl-espalier-$os-$arch.tar.gz
    GOOS=$os GOARCH=$arch hack/go-build.sh "$plugin/$bin" ./cmd/kubectl-espalier >&2
    cp LICENSE hack/kubectl_complete-espalier "$plugin/"
    pack "$plugin" "$out/$archive"
    echo "  - selector: {matchLabels: {os: $os, arch: $arch}}"
    echo "    uri: $url/$archive"
    echo "    sha256: \"$(sha256sum "$out/$archive" | cut -d ' ' -f 1)\""
    echo "    bin: $bin"
  done
} >"$out/krew.yaml"

hack/site.sh "$out/site"
pack "$out/site" "$out/espalier-docs.tar.gz"

"$tools/helm" package manifests/charts/espalier --version "${version#v}" --app-version "$version" --destination "$out"

# The manifests name the images of this version, and nothing else is different. A tag has no
# plus, which a version may have.
for overlay in second-scheduler node-pool replace-default; do
  "$tools/kubectl" kustomize "manifests/overlays/$overlay" |
    sed -E "s#^( *image: (espalier-(scheduler|controller))):latest\$#\1:${version//+/_}#" >"$out/$overlay.yaml"
done
cp manifests/crds/*_*.yaml "$out/"

# Its section of the changelog. A pre-release has that of the version to come; and a version that has none, what is there for the next one, or
# the newest there is.
awk -v version="${version#v}" '
  BEGIN { base = version; sub(/[-+].*/, "", base) }
  /^## / { n++; own = index($0, "## [" version "]") == 1 || index($0, "## [" base "]") == 1; next }
  own { mine = mine $0 "\n" }
  n && !own && text[n] == "" && /^$/ { next }
  n { text[n] = text[n] $0 "\n" }
  END {
    if (mine == "") for (i = 1; i <= n && mine == ""; i++) mine = text[i]
    printf "## %s\n%s%s", version, mine ~ /^\n/ ? "" : "\n", mine
  }
' CHANGELOG.md >"$out/CHANGES.md"

sums=$(cd "$out" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum)
echo "$sums" >"$out/SHA256SUMS"
echo "$out:"
ls "$out"

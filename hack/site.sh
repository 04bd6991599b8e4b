#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the site of the documentation from the pages, which read well on their own: docs, README.md and those beside it. The site is files:
# open index.html, or serve the folder by anything. It needs no network to be made, and none to be read.
#
# usage: hack/site.sh [FOLDER], _output/site unless given

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool hugo
out=$(realpath --canonicalize-missing "${1:-$root/_output/site}") # hugo takes one for below its source
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
cp -r hack/site/. "$source/"
mkdir -p "$source/content/project" "$source/data" "$source/static"

# Where a page of the repository is in the site, hack/site/layouts/_partials/repo-path.html knows too.
cp README.md "$source/content/_index.md"
(cd docs && find . -name '*.md') | while read -r page; do
  mkdir -p "$source/content/$(dirname "$page")"
  cp "docs/$page" "$source/content/$page"
done
mv "$source/content/README.md" "$source/content/contents.md"
awk '{ for (i = 1; i < NF; i++) if ($i ~ /page:$/) { sub(/,$/, "", $(i + 1)); print $(i + 1) } }' docs/navigation.yaml | grep -v '^docs/' | while read -r page; do
  mkdir -p "$source/content/project/$(dirname "$page")"
  cp "$page" "$source/content/project/$page"
done
cp docs/*.svg "$source/static/"
cp docs/navigation.yaml "$source/data/"

rm -rf "$out"
"$tools/hugo" build --source "$source" --destination "$out" --quiet --noBuildLock --logLevel warn --panicOnWarning
echo "${out#"$root"/}/index.html is the site: $(find "$out" -name '*.html' | wc -l) pages"

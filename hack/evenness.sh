#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Has the stock scheduler and ours place the same pods on one control plane, case by case, and writes what came of it
# into docs/evenness.md and docs/evenness.svg. Binaries must have been built: make evenness does that.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

out=$root/_output/evenness page=docs/evenness.md
rm -rf "$out"
hack/go-test.sh ./test/e2e -run '^TestStock|^TestScaleDownUnequalZones$' -count=1 -timeout 20m -evenness="$out"
# The table is between the two lines that say so.
awk -v table="$out/evenness.md" '
  /^<!-- end of the table -->$/ { inside = 0 }
  !inside { print }
  /^<!-- begin of the table/ { inside = 1; while ((getline line < table) > 0) print line }
' "$page" >"$out/page.md"
cp "$out/page.md" "$page"
cp "$out/evenness.svg" docs/evenness.svg
echo "$page and docs/evenness.svg are written"

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails unless a pattern is in the name of a story in one of the packages: for go test no story at all
# is a success.
#
# usage: hack/stories.sh PATTERN PACKAGE...

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pattern=$1
shift
if [[ -z $(tests_of "$pattern" "$@") ]]; then
  echo "RUN=$pattern is in the name of no story of $*: \`go test -list . $*\` names them" >&2
  exit 1
fi

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs under the race detector what many goroutines share. The detector is C, so that
# nothing compiled for it is of use to any other build. make test leaves it out on a
# machine without a C compiler, unless it is CI.
#
# usage: hack/race.sh [DURATION OF THE STORM]    ends with 69 where no C compiler is found

set -euo pipefail
no_compiler=69 # EX_UNAVAILABLE of sysexits.h
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

compiler=$(go env CC)
# shellcheck disable=SC2086 # it may come with flags
if ! echo '#include <stdlib.h>' | $compiler -x c -fsyntax-only - 2>/dev/null; then
  echo "hack/race.sh: NOTHING IS CHECKED FOR RACES: the race detector needs a C compiler, and \"$compiler\" compiles nothing." >&2
  echo "Install one, with the headers of libc: apt-get install gcc libc6-dev, dnf install gcc glibc-devel, or apk add gcc musl-dev; or name one in CC." >&2
  exit $no_compiler
fi

export CGO_ENABLED=1
echo "compiling for the race detector (about 3 minutes the first time)"
compile_tests -race ./test/storm ./internal/{faultcache,policies,upstream} ./internal/controllers/{arbiter,move} ./pkg/plugins/spreadtree
go test -race -vet=off -v -count=1 -timeout 10m ./test/storm -run '^TestStorm$' -lasting="${1:-8s}"
go test -race -vet=off -count=1 -timeout 10m ./internal/faultcache ./internal/policies ./internal/controllers/arbiter
# Properties are for finding what is wrong, and need no detector for it: make test tries them.
go test -race -vet=off -count=1 -timeout 10m -skip '^TestProperty|^TestJournalSaysAllThatChanges$' ./pkg/plugins/spreadtree ./internal/upstream
go test -race -vet=off -count=1 -timeout 10m -run 'AtOnce$|HoldsUpNoOthers$' ./internal/controllers/move

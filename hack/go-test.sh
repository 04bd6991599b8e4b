#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of one package with go test -v and shows how far they are: after each that has ended, of how many that there are. On a
# terminal that is a bar below what they say.
#
# usage: hack/go-test.sh PACKAGE [FLAGS OF GO TEST...]

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
package=$1
shift
# With -run there are those that match. What is behind a slash is inside of a test.
pattern=.
previous=
for flag in "$@"; do
  case $previous in -run) pattern=$flag ;; esac
  case $flag in -run=*) pattern=${flag#-run=} ;; esac
  previous=$flag
done
# Counted in the source: for go test -list to run it the package would be linked once more, which takes as long as some tests.
files=$(go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}' "$package")
all=$(xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*testing\.T).*/\1/p' <<<"$files" | grep -cE "${pattern%%/*}" || true)
if [[ -t 1 ]]; then bar=1; else bar=; fi
compile_tests "$package"
go test -v "$package" "$@" 2>&1 | awk -v all="$all" -v bar="$bar" '
  function draw() {
    full = int(30 * n / (n > all ? n : all))
    printf "[%s%s] %d of %d", substr("==============================", 1, full), substr("                              ", 1, 30 - full), n, all
  }
  {
    if (bar) printf "\r\033[K"
    ended = /^--- (PASS|FAIL|SKIP): Test/
    if (ended) n++
    if (ended && !bar && all) print $0 " [" n " of " all "]"
    else print
    if (bar && all) draw()
    fflush()
  }
  END { if (bar) printf "\r\033[K" }
'

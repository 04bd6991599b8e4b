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
# With -run there are those that match.
pattern=.
previous=
for flag in "$@"; do
  case $previous in -run) pattern=$flag ;; esac
  case $flag in -run=*) pattern=${flag#-run=} ;; esac
  previous=$flag
done
all=$(tests_of "$pattern" "$package" | wc -l)
bar=
if [[ -t 1 ]]; then bar=$'\r\033[K'; fi

# shown prints what go test says as it comes, and of each test that has ended how many have. It ends when go test does, and not before by an
# interrupt: go test still has to say where the logs are.
shown() {
  trap '' INT TERM HUP
  local line n=0 none='' full dots==============================
  while IFS= read -r line || [[ -n $line ]]; do
    [[ $line != 'testing: warning: no tests to run' ]] || none=1
    if [[ $line =~ ^---\ (PASS|FAIL|SKIP):\ Test ]]; then
      ((++n < all)) || ((all == 0)) || all=$n
      if [[ -z $bar ]] && ((all > 0)); then line+=" [$n of $all]"; fi
    fi
    printf '%s%s\n' "$bar" "$line"
    if [[ -n $bar ]] && ((all > 0)); then
      full=$((30 * n / all))
      printf '[%-30s] %d of %d' "${dots:0:full}" "$n" "$all"
    fi
  done
  printf '%s' "$bar"
  if [[ -n $none ]]; then
    echo "hack/go-test.sh: no test of $package has a name that matches \"$pattern\"" >&2
    return 1
  fi
}

compile_tests "$package"
go test -v "$package" "$@" 2>&1 | shown

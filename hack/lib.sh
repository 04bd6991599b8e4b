# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Shared by the scripts beside it; sourced, not run. Leaves the caller in the root
# of the repository with $root, $tools and one set of Go settings.

unset CDPATH # cd would print the folder that it has found
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
export CGO_ENABLED=0
if [[ " $(go env GOFLAGS) " =~ \ --?(test\.)?(run|skip|list|short|bench)[=\ ] ]]; then
  echo "GOFLAGS=$(go env GOFLAGS) leaves out tests: unset it, or run go env -u GOFLAGS" >&2
  exit 2
fi

# compiling COMMAND...: runs a Go command that compiles and runs nothing. The compilers collect less garbage, which is a seventh of their
# time, within a gigabyte each. The environment is no part of what the build cache goes by.
compiling() { GOGC=800 GOMEMLIMIT=1GiB "$@"; }

# compile_tests PACKAGE...: compiles the tests of packages, with compiling, and links none. Go test compiles them by itself, but hands its
# environment to the tests.
compile_tests() { compiling go list -test -export -f '' "$@" >/dev/null; }

# tests_of PATTERN PACKAGE...: names the tests of packages that go test -run would run. They are read in the source: for go test -list a package
# is linked, which takes as long as some tests. What is behind a slash of the pattern is inside of a test.
tests_of() {
  local pattern=${1%%/*}
  shift
  go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}' "$@" | grep . | tr '\n' '\0' |
    xargs -0 sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*testing\.T).*/\1/p' | grep -E -e "$pattern" || true
}

# on_one_cluster FLAGS PACKAGE...: runs suites one after the other on one control plane. Flags are those of devcluster up beside its nodes, one word
# each.
on_one_cluster() {
  local flags=$1
  shift
  # shellcheck disable=SC2086 # one word a flag
  bin/devcluster up --nodes=12 --zones=3 --racks=2 $flags -- \
    bash -euo pipefail -c 'export ESPALIER_TEST_KUBECONFIG=$KUBECONFIG; status=0; for suite; do hack/go-test.sh "$suite" -vet=off -count=1 -timeout 20m || status=1; done; exit $status' suites "$@"
}

# A copy of the tree that is being verified uses the tools of the original.
tools=${ESPALIER_TOOLS:-$root/_output/tools}

# need_tool NAME: builds a pinned tool unless it is there and current.
need_tool() {
  if [[ -z ${ESPALIER_TOOLS:-} ]]; then
    make -s --no-print-directory "_output/tools/$1"
  fi
}

# tree_files: names the files of the tree, tracked or new, NUL after each. What
# .gitignore leaves out, and files that are deleted, are no part of it.
tree_files() {
  git ls-files -z --cached --others --exclude-standard --deduplicate |
    while IFS= read -r -d '' file; do
      [[ ! -f $file ]] || printf '%s\0' "$file"
    done
}

# modules: names the folder of every Go module of the tree.
modules() {
  tree_files | tr '\0' '\n' | grep -E '(^|/)go\.mod$' | xargs -n 1 dirname | LC_ALL=C sort
}

# verify_by_update UPDATE: runs an update script in a copy of the tree. Fails, and
# names the files, if they come out different. The tree itself is not touched: a
# check that repairs what it finds would hide it.
verify_by_update() {
  local update=$1 copy file changed
  copy=$root/_output/verify/$(basename "$update" .sh)
  rm -rf "$copy"
  mkdir -p "$copy"
  tree_files | tar -c -f - --null -T - | tar -x -f - -C "$copy"
  git -C "$copy" init -q
  if ! ESPALIER_TOOLS=$tools "$copy/$update" >"$copy.log" 2>&1; then
    cat "$copy.log" >&2
    echo "$update fails" >&2
    return 1
  fi
  changed=$(compare_trees "$root" "$copy")
  if [[ -n $changed ]]; then
    while IFS= read -r file; do
      echo "$file is out of date" >&2
      diff -u "$root/$file" "$copy/$file" 2>&1 | head -n 20 >&2 || true
    done <<<"$changed"
    echo "run $update and commit what it changes" >&2
    return 1
  fi
  rm -rf "$copy" "$copy.log"
}

# compare_trees A B: names the files that are not the same in two trees.
compare_trees() {
  local file
  {
    (cd "$1" && tree_files)
    (cd "$2" && tree_files)
  } | LC_ALL=C sort -zu | while IFS= read -r -d '' file; do
    cmp -s "$1/$file" "$2/$file" || printf '%s\n' "$file"
  done
}

# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# What the modules of the tree have in common; sourced by the pair update- and verify-modules.
#
# Go compiles a package once for all modules only if everything that it is built from has the same
# versions. So a module that has a dependency in common with the project's own go.mod takes the
# version from there, by a replace directive: a requirement can raise a version, and never lower it.

# apart: the modules that keep versions of their own, with what they keep, a pattern, and why. Their go.mod says so as well.
apart=(
  "hack/tools/golangci-lint *: its linters are written for one release of golang.org/x/tools, and nothing else builds with them"
  "hack/tools/install go.opentelemetry.io/*: tests of what helm imports need packages of a newer one"
  "hack/tools/prometheus go.opentelemetry.io/*: tests of what Prometheus imports need packages of a newer one"
  "test/parity go.etcd.io/raft/v3: SwarmKit's messages embed those of an older one"
)

# built_versions FOLDER: names the modules that the go.mod there requires, each with the version that is built.
built_versions() {
  (cd "$1" && go mod edit -print) | awk '
    { sub(/^(require|replace) /, "") }
    $2 == "=>" { if ($4 ~ /^v/) replaced[$1] = $4; next }
    $1 ~ /\./ && $2 ~ /^v[0-9]/ { required[$1] = $2 }
    END { for (m in required) print m, (m in replaced ? replaced[m] : required[m]) }
  ' | LC_ALL=C sort
}

# strays FOLDER: names the modules whose version there is not that of the project, with both.
strays() {
  local module theirs ours entry pattern
  LC_ALL=C join <(built_versions "$1") <(built_versions .) | while read -r module theirs ours; do
    [[ $theirs != "$ours" ]] || continue
    for entry in "${apart[@]}"; do
      pattern=${entry#* }
      # shellcheck disable=SC2053 # a pattern
      if [[ ${entry%% *} == "$1" && $module == ${pattern%%: *} ]]; then continue 2; fi
    done
    echo "$module $theirs $ours"
  done
}

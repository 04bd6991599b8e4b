#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# k8s.io/kubernetes v1.37.1, with Go 1.26: kube-scheduler itself imports client-go's fake clientset, which is for tests.
#
# pkg/scheduler/backend/queue/testing.go makes queues for tests of other packages. Its name does not end in _test.go, so that it is built into every
# program that has the queue: kube-scheduler, and each scheduler that is made of it. So is policy_test_context.go of the admission policies of
# k8s.io/apiserver, in kube-scheduler and kube-apiserver. With them come 59 packages of fakes.
#
# Seen: both lines below, for kube-scheduler and for kube-apiserver. The script fails when they differ. It takes seconds, and compiles nothing.

set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=v1.37.1
go mod init finding 2>/dev/null
go mod edit -go=1.26.0 -require="k8s.io/kubernetes@$version"
gomod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
for module in $(awk '$2 == "=>" && $3 ~ /^\.\/staging\// { print $1 }' "$gomod"); do
  go mod edit -replace="$module=$module@v0${version#v1}"
done

seen=$(for program in kube-scheduler kube-apiserver; do
  go list -mod=mod -deps -f '{{.ImportPath}}{{range .Imports}} {{.}}{{end}}' "k8s.io/kubernetes/cmd/$program" >"$program"
  echo "$program: $(cut -d ' ' -f 1 "$program" | grep -c '^k8s.io/client-go/.*/fake$') packages of fakes, for $(grep -E ' k8s.io/client-go/kubernetes/fake( |$)' "$program" | cut -d ' ' -f 1 | xargs)"
done)
echo "$seen"
want="kube-scheduler: 59 packages of fakes, for k8s.io/apiserver/pkg/admission/plugin/policy/generic k8s.io/kubernetes/pkg/scheduler/backend/queue
kube-apiserver: 59 packages of fakes, for k8s.io/apiserver/pkg/admission/plugin/policy/generic"
if [[ $seen != "$want" ]]; then
  echo "This is no longer so. It was: $want" >&2
  exit 1
fi

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for modules of a beta of Kubernetes that the module proxy does not serve, as a proxy that admits modules one by one may not. To be sourced.

# stand_in STAGING GOMOD: replaces such modules in the go.mod of the current folder, and says so. GOMOD is the go.mod of k8s.io/kubernetes. A module that is
# served is left alone.
stand_in() {
  local beta=$1 gomod=$2 merge=sigs.k8s.io/structured-merge-diff/v7 api=k8s.io/apiextensions-api old old_version=v0.37.2 version
  # A control plane compiles nothing of it: tests do.
  if lacks k8s.io/ktesting "$beta"; then
    empty_module k8s.io/ktesting
  fi
  # Until 1.38 its packages were in k8s.io/apiextensions-apiserver, which has kept the conversions.
  if lacks $api "$beta"; then
    empty_module $api -require="k8s.io/apimachinery@$beta" -require="k8s.io/client-go@$beta"
    old=$(go mod download -json "k8s.io/apiextensions-apiserver@$old_version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    mkdir -p $api/pkg/apis/apiextensions
    cp -r "$old/pkg/client" $api/pkg/
    cp -r "$old"/pkg/apis/apiextensions/v1{,beta1} $api/pkg/apis/apiextensions/
    chmod -R u+w $api
    find $api \( -name '*_test.go' -o -name conversion.go -o -name zz_generated.conversion.go \) -delete
    for version in v1 v1beta1; do # of its conversion.go
      printf 'package %s\n\nvar nullLiteral = []byte("null")\n' $version >$api/pkg/apis/apiextensions/$version/null.go
    done
    find $api -name '*.go' -exec sed -i \
      "s#\"k8s.io/apiextensions-apiserver/pkg/\(client\|apis/apiextensions/v1\)#\"$api/pkg/\1#; s#sigs.k8s.io/structured-merge-diff/v[0-9]*#$merge#" {} +
  fi
  if lacks $merge v7.0.1; then
    go mod edit -replace=$merge=$merge@v7.0.0
  fi
}

# lacks MODULE VERSION: whether the control plane wants a module that is not served.
lacks() {
  grep -q "$1 " "$gomod" || return 1
  ! go mod download "$1@$2" 2>/dev/null || return 1
  echo "$1 $2 is not served: an older version stands in for it, or none where only tests want it"
}

# empty_module MODULE [EDIT...]: makes a module without packages in a folder of its name, and has it replace the one that is not served.
empty_module() {
  mkdir -p "$1"
  printf 'module %s\n\n%s\n' "$1" "$(grep '^go ' go.mod)" >"$1/go.mod"
  (($# == 1)) || (cd "$1" && go mod edit "${@:2}")
  go mod edit -replace="$1=./$1"
}

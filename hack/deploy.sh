#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Installs this tree's chart into the cluster of the current kubeconfig, as release
# espalier in kube-system, with images of this tree's version; or removes it, and the
# kind with all policies. Values that were given before are kept, but for those of the images.
#
# usage: hack/deploy.sh up|down [flags of helm upgrade, for example --set scheduler.replicas=3]

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool helm
need_tool kubectl
release=espalier namespace=kube-system
action=${1:-}
shift || true
case $action in
up)
  version=$(hack/version.sh --short)
  tag=${version//+/_}
  # Helm installs kinds once and never again; those of this tree may be newer.
  "$tools/kubectl" apply --server-side --force-conflicts -f manifests/charts/espalier/crds
  # What an operator has set stays, the registry among it unless one is named. A digest of before
  # would win over this tree's tag.
  "$tools/helm" upgrade --install "$release" manifests/charts/espalier --namespace "$namespace" --skip-crds \
    --reset-then-reuse-values ${REGISTRY+--set imageRegistry="$REGISTRY"} \
    --set scheduler.image.tag="$tag",scheduler.image.digest= --set controller.image.tag="$tag",controller.image.digest= "$@"
  ;;
down)
  of_release="app.kubernetes.io/instance=$release,app.kubernetes.io/part-of=espalier"
  # The processes first, and until they are gone: they would make their Leases anew. Helm's
  # own --wait takes a Deployment that waits for its pods for one that cannot be deleted.
  "$tools/kubectl" delete deployment --namespace "$namespace" --cascade=foreground --wait \
    --selector "$of_release"
  # Each profile has written down what it knows of failing nodes. Where, is in the rights to do so,
  # which helm removes: so these go before it, lest one that is interrupted leaves them for good.
  "$tools/kubectl" get roles --all-namespaces --selector "$of_release" --output "jsonpath=\
{range .items[?(@.metadata.annotations.meta\.helm\.sh/release-namespace=='$namespace')]}\
{.metadata.namespace} {.rules[?(@.resources[0]=='configmaps')].resourceNames[*]}{'\n'}{end}" |
    while read -r where records; do
      # shellcheck disable=SC2086 # they are several
      [[ -z $records ]] || "$tools/kubectl" delete configmap --ignore-not-found --namespace "$where" $records
    done
  "$tools/helm" uninstall "$release" --namespace "$namespace" --ignore-not-found
  "$tools/kubectl" delete --ignore-not-found --wait -f manifests/charts/espalier/crds
  # The processes made these themselves as well, so helm does not know them.
  "$tools/kubectl" delete lease --ignore-not-found --namespace "$namespace" "$release-scheduler" "$release-controller"
  "$tools/kubectl" delete configmap --ignore-not-found --namespace "$namespace" "$release-scheduler-failures"
  ;;
*)
  echo "usage: hack/deploy.sh up|down, not \"$action\"" >&2
  exit 1
  ;;
esac

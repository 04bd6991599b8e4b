#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Installs this tree's chart into the cluster of the current kubeconfig, as release
# espalier in kube-system, with images of this tree's version; or removes it, and the
# kind with all policies. Values that were given before are kept, but for those of the images.
#
# usage: hack/deploy.sh up|down [flags of helm upgrade, for example --set scheduler.replicas=3]
# UNDEPLOY_TIMEOUT says how long down waits for the processes to end: 3m unless given.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool helm
need_tool kubectl
release=espalier namespace=kube-system
of_release="app.kubernetes.io/instance=$release,app.kubernetes.io/part-of=espalier"

# made RESOURCE [SELECTOR]: names what the processes make themselves, so that helm does not know it, as NAMESPACE NAME. Which that
# is says the right to it by its name, in the release's roles, and nothing else.
made() {
  "$tools/kubectl" get roles --all-namespaces --selector "$of_release${2:+,$2}" --output "jsonpath=\
{range .items[?(@.metadata.annotations.meta\.helm\.sh/release-namespace=='$namespace')]}\
{.metadata.namespace} {.rules[?(@.resources[0]=='$1')].resourceNames[*]}{'\n'}{end}" |
    awk '{ for (i = 2; i <= NF; i++) print $1, $i }' | LC_ALL=C sort
}

# records: names the records of failures. The controller may read those of other releases too, and they stay.
records() { made configmaps app.kubernetes.io/name=espalier-scheduler; }

# remove RESOURCE: removes what is named on stdin, as made names it.
remove() {
  while read -r where name; do
    [[ -n $name ]] || continue
    "$tools/kubectl" delete "$1" --ignore-not-found --namespace "$where" "$name"
  done
}

action=${1:-}
shift || true
case $action in
up)
  version=$(hack/version.sh --short)
  tag=${version//+/_}
  # Helm installs kinds once and never again; those of this tree may be newer.
  "$tools/kubectl" apply --server-side --force-conflicts -f manifests/charts/espalier/crds
  before=$(records)
  # What an operator has set stays, the registry among it unless one is named. A digest of before
  # would win over this tree's tag.
  "$tools/helm" upgrade --install "$release" manifests/charts/espalier --namespace "$namespace" --skip-crds \
    --reset-then-reuse-values ${REGISTRY+--set imageRegistry="$REGISTRY"} \
    --set scheduler.image.tag="$tag",scheduler.image.digest= --set controller.image.tag="$tag",controller.image.digest= "$@"
  # The records of profiles that are gone: later nobody knows of them. Nobody writes them anew, as the right has gone as well.
  after=$(records)
  LC_ALL=C comm -23 <(echo "$before") <(echo "$after") | remove configmap
  ;;
down)
  # Nobody but the controller ends a Move, and what removes it otherwise removes its pod.
  moves=
  if [[ -n $("$tools/kubectl" get crd moves.placement.espalier.dev --ignore-not-found --output name) ]]; then
    moves=$("$tools/kubectl" get moves --all-namespaces --output \
      'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.status.endedAt}{"\n"}{end}' | awk 'NF == 1 && n++ < 5')
  fi
  if [[ -n $moves ]]; then
    {
      echo "hack/deploy.sh: Moves have not ended, and nothing is removed: ${moves//$'\n'/, }"
      echo "Have no more of them made, as docs/install.md says under Remove, wait until they have ended, and run this again."
    } >&2
    exit 1
  fi
  # The processes first, and until they are gone: they would make their Leases anew. Helm's
  # own --wait takes a Deployment that waits for its pods for one that cannot be deleted.
  timeout=${UNDEPLOY_TIMEOUT:-3m}
  if ! "$tools/kubectl" delete deployment --namespace "$namespace" --cascade=foreground --wait --timeout "$timeout" \
    --selector "$of_release"; then
    {
      echo "hack/deploy.sh: the Deployments of release $release in $namespace are not gone after $timeout, and nothing else is removed."
      echo "A pod on a node that is lost holds them: see kubectl get pods --namespace $namespace --selector app.kubernetes.io/instance=$release,"
      echo "bring the node back or delete it, and run this again; UNDEPLOY_TIMEOUT=10m waits longer."
    } >&2
    exit 1
  fi
  # Helm removes the rights, which say what there is: so this goes before it, lest one that is interrupted leaves
  # it for good. The default scheduler's Lease, which ours may have stood by for, stays.
  records | remove configmap
  made leases | awk '$2 != "kube-scheduler"' | remove lease
  "$tools/helm" uninstall "$release" --namespace "$namespace" --ignore-not-found
  "$tools/kubectl" delete --ignore-not-found --wait -f manifests/charts/espalier/crds
  # Where helm alone has removed the release before.
  "$tools/kubectl" delete lease --ignore-not-found --namespace "$namespace" "$release-scheduler" "$release-controller"
  "$tools/kubectl" delete configmap --ignore-not-found --namespace "$namespace" "$release-scheduler-failures"
  ;;
*)
  echo "usage: hack/deploy.sh up|down, not \"$action\"" >&2
  exit 1
  ;;
esac

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes a cluster of real kubelets with kind, installs this tree into it as make deploy does,
# tells the stories of test/kubelet and test/e2e there, removes Espalier, sees that nothing
# is left of it, and deletes the cluster, also when something fails.
#
# Only the image of the nodes is pulled, and only if the engine does not have it. The nodes that
# stories of test/e2e make for themselves have no kubelets there either: KWOK plays them, beside
# the real ones, as a process of this machine.
#
# usage: hack/e2e-kind.sh, with in the environment
#   KIND_IMAGE  the image of the nodes, kind's own default unless given
#   CLUSTER     the cluster's name, espalier-e2e unless given
#   RUN         a pattern for the names of stories, all unless given
#   KEEP        not empty to leave the cluster, with Espalier, where it is
# Logs go to _output/e2e-kind.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cluster=${CLUSTER:-espalier-e2e}
logs=$root/_output/e2e-kind
story_label=e2e.espalier.dev/story
[[ -z ${RUN:-} ]] || hack/stories.sh "$RUN" ./test/kubelet ./test/e2e
for tool in kind helm kubectl image; do
  need_tool "$tool"
done
if ! docker info >/dev/null 2>&1; then
  echo "hack/e2e-kind.sh: no Docker engine answers: the nodes are containers of one, start it or set DOCKER_HOST" >&2
  exit 1
fi
if "$tools/kind" get clusters 2>/dev/null | grep -qx -- "$cluster"; then
  echo "hack/e2e-kind.sh: there is a cluster $cluster: delete it with _output/tools/kind delete cluster --name $cluster, or name another with CLUSTER" >&2
  exit 1
fi

step() { printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"; }

# everything: names all objects of the cluster, but for those that come and go by themselves, as Events
# and the Leases of nodes. Fails if there is a kind that it could not read: of that nobody knows what is left.
everything() {
  local kinds
  kinds=$("$tools/kubectl" api-resources --verbs=list -o name | grep -vE '^events(\.|$)' | paste -sd, -) &&
    "$tools/kubectl" get "$kinds" --all-namespaces --ignore-not-found \
      -o jsonpath='{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}' 2>"$work/complaints" |
      sed '/^Lease kube-node-lease\//d' | LC_ALL=C sort -u
}

# nothing_left: waits until there is nothing that was not there before. What belongs to a
# removed object is collected a moment later, and namespaces of stories take a while.
nothing_left() {
  local deadline=$((SECONDS + 120)) left
  while true; do
    # A kind that is just being removed may still be listed, and not be there to be read.
    if everything >"$work/after"; then
      left=$(comm -13 "$work/before" "$work/after")
      [[ -n $left ]] || return 0
    else
      left="what could not be read: $(cat "$work/complaints")"
    fi
    if ((SECONDS > deadline)); then
      printf 'hack/e2e-kind.sh: make undeploy has left\n%s\n' "$left" >&2
      return 1
    fi
    sleep 1
  done
}

work=$(mktemp -d)
kwok=
# finish: whatever has happened, what is known of it is kept and all else is removed.
finish() {
  local status=$?
  trap - EXIT INT TERM
  if [[ -n $kwok ]]; then
    kill "$kwok" 2>/dev/null || true
    wait "$kwok" 2>/dev/null || true
  fi
  if [[ -n ${KEEP:-} ]]; then
    cp "$KUBECONFIG" "$logs/kubeconfig" || true
    echo "the cluster is left: KUBECONFIG=$logs/kubeconfig; delete it with _output/tools/kind delete cluster --name $cluster"
  else
    "$tools/kind" delete cluster --quiet --name "$cluster" || status=1
  fi
  rm -rf "$work"
  ((status == 0)) || echo "hack/e2e-kind.sh: failed, logs are in $logs" >&2
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# keep_logs: the pods are gone before anybody can ask them.
keep_logs() {
  local component
  for component in scheduler controller; do
    "$tools/kubectl" logs --namespace kube-system --selector "app.kubernetes.io/name=espalier-$component" \
      --prefix --tail=-1 --ignore-errors >"$logs/$component.log" 2>&1 || true
    # A container that was restarted has another one, in which is why. Most were not.
    "$tools/kubectl" logs --namespace kube-system --selector "app.kubernetes.io/name=espalier-$component" \
      --prefix --tail=-1 --ignore-errors --previous >"$logs/$component.previous.log" 2>&1 || true
  done
}

# nothing_crashed: fails if a container of Espalier has ended. A scheduler or a controller that has lost
# its Lease, as on a machine that is busy, ends with status 1 and is started again, and nothing else may.
nothing_crashed() {
  local ended='.lastState.terminated.exitCode' ends='.state.terminated.exitCode' crashed
  "$tools/kubectl" get pods --namespace kube-system --selector 'app.kubernetes.io/name in (espalier-scheduler, espalier-controller)' \
    -o jsonpath="{range .items[*]}{.metadata.name}{range .status.containerStatuses[*]}|{.restartCount}|{$ended}|{$ends}{end}{\"\n\"}{end}" >"$work/containers"
  crashed=$(awk -F'|' '
    ($2 > 0 && $3 != 1) || ($4 != "" && $4 != 1) { print $1 ": status " ($4 != "" ? $4 : $3) ", " $2 " restarts" }
    END { if (NR == 0) print "there are no pods of Espalier" }
  ' "$work/containers")
  if [[ -n $crashed ]]; then
    printf 'hack/e2e-kind.sh: these did not run to the end, or ended with another status than 1:\n%s\n' "$crashed" >&2
    return 1
  fi
}

rm -rf "$logs"
mkdir -p "$logs"
export KUBECONFIG=$work/kubeconfig

step "images"
hack/go-build.sh _output/e2e-kind/espalier-e2e-workload ./test/kubelet/workload
REGISTRY='' IMAGES=$work hack/image.sh bin/espalier-scheduler bin/espalier-controller _output/e2e-kind/espalier-e2e-workload
version=$(hack/version.sh --short)
image=espalier-e2e-workload:${version//+/_}

step "cluster $cluster"
"$tools/kind" create cluster --name "$cluster" --config test/kubelet/kind.yaml --kubeconfig "$KUBECONFIG" --wait 5m ${KIND_IMAGE:+--image "$KIND_IMAGE"}
for archive in "$work"/*.tar; do
  "$tools/kind" load image-archive --name "$cluster" "$archive"
done
"$tools/kubectl" wait node --all --for=condition=Ready --timeout=3m
"$tools/kubectl" rollout status deployment/coredns --namespace kube-system --timeout=3m
everything >"$work/before"

step "make deploy"
REGISTRY='' make deploy DEPLOY_FLAGS='--wait --timeout 3m --values test/kubelet/values.yaml'

status=0
step "test/kubelet"
[[ -n ${RUN:-} && -z $(tests_of "$RUN" ./test/kubelet) ]] || hack/go-test.sh ./test/kubelet -count=1 -timeout 1h ${RUN:+-run "$RUN"} -kubeconfig "$KUBECONFIG" -image "$image" || status=1

step "test/e2e"
# What a node and a pod do, in KWOK's own words: all at once, but a Job's pod runs for as long as it says.
# And a Lease, as kubelets have it: a node of which nothing is heard for 50 s is taken for dead, and
# its pods are never called ready again.
stages=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease pod/fast/pod-ready pod/fast/pod-delete pod/general/pod-complete; do
  echo ---
  cat "$stages/$stage.yaml"
done >"$work/stages.yaml"
bin/kwok --kubeconfig "$KUBECONFIG" --config "$work/stages.yaml" --manage-all-nodes=false --manage-nodes-with-label-selector "$story_label" \
  --cidr=10.128.0.0/9 --node-ip=192.0.2.1 --node-lease-duration-seconds=40 --v=WARN >"$logs/kwok.log" 2>&1 &
kwok=$!
[[ -n ${RUN:-} && -z $(tests_of "$RUN" ./test/e2e) ]] || hack/go-test.sh ./test/e2e -count=1 -timeout 20m ${RUN:+-run "$RUN"} -kubeconfig "$KUBECONFIG" -scheduler=deployed -nodes=kwok || status=1
keep_logs
nothing_crashed || status=1
((status == 0)) || exit 1
[[ -z ${KEEP:-} ]] || exit 0

step "make undeploy"
make undeploy
nothing_left

step "all stories have ended well, and nothing is left"

#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes what the other ways to install share with the kustomize base, which is the
# single source: the chart's copies of the kinds, the profile, the rights and the alerts,
# because a chart cannot reach outside of its own folder; and the profiles of the overlays,
# because kustomize cannot reach inside of a configuration.

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

base=manifests/base/scheduler-config.yaml
chart=manifests/charts/espalier
overlays=manifests/overlays

rm -rf "$chart/crds" "$chart/files"
mkdir -p "$chart/crds" "$chart/files"
cp manifests/crds/*_*.yaml "$chart/crds/"
for file in scheduler-config serviceaccount rbac controller-rbac policies-rbac; do
  cp "manifests/base/$file.yaml" "$chart/files/"
done
cp "$overlays/leases/rbac.yaml" "$chart/files/jobs-rbac.yaml"
cp manifests/monitoring/{alerts.yaml,dashboard.json} "$chart/files/"
for file in annotations native-twins scheduler-name; do
  cp "manifests/admission/$file.yaml" "$chart/files/admission-$file.yaml"
done

# shipped NOTE: the shipped profile with another note in place of its first one, after
# the header. Without the comments above a field that an overlay changes.
shipped() {
  awk -v note="$1" -v changed="${2:-}" '
    NR > 3 && !noted { if (/^#/) next; printf "%s", note; noted = 1 }
    /^#/ && NR > 3 && changed != "" { held = held $0 "\n"; next }
    changed != "" && $0 == changed { held = "" }
    { printf "%s", held; held = ""; print }
  ' "$base"
}

{
  shipped "# Made by hack/update-manifests.sh: the shipped profile, and at its end the pool.
"
  cat <<'EOF'
  - name: NodeAffinity
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeAffinityArgs
      # Added to what each pod asks for itself.
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - key: espalier.dev/node-pool
              operator: In
              values: [espalier]
EOF
} >"$overlays/node-pool/scheduler-config.yaml"

shipped "# Made by hack/update-manifests.sh: the shipped profile, with leases.
" | sed 's/leases: Disabled/leases: AnnotationsAndDeadlines/' >"$overlays/leases/scheduler-config.yaml"

# The second profile says what the first does, and why is written there.
{
  shipped "# Made by hack/update-manifests.sh: the shipped profile, under its own name and, at the end, under that of
# the default scheduler. The Lease is that of kube-scheduler: only one of the two ever runs.
" "leaderElection:" | sed 's/resourceName: espalier-scheduler/resourceName: kube-scheduler/'
  sed -n '/^- schedulerName: /,$p' "$base" | sed -e '/^ *#/d' -e 's/^- schedulerName: .*/- schedulerName: default-scheduler/'
} >"$overlays/replace-default/scheduler-config.yaml"

# The order of allocations takes the place of the queue's, before all other plugins. Who makes way is asked before the preemption by
# priority, which goes on for pods of no allocation.
shipped "# Made by hack/update-manifests.sh: the shipped profile, with the pods of each Partition in the order of its Allocations.
" | awk '
  /^      - name: PreassignedFirst$/ { sub("PreassignedFirst", "AllocationOrder") }
  /^    multiPoint:$/ { all = 1 }
  { print }
  all && /^      enabled:$/ {
    print "      # Lets pods of allocations into the queue in their order, and keeps them on the nodes of their partition."
    print "      - name: AllocationOrder"
    all = 0
  }
  /^      - name: NodeName$/ { print "      - name: AllocationOrder" }
  /^      - name: DomainLimits$/ && seen++ == 1 {
    print "    # Who makes way for a pod is asked of the order first. DefaultPreemption, which comes after these, is for pods of no allocation."
    print "    postFilter:"
    print "      enabled:"
    print "      - name: DynamicResources"
    print "      - name: AllocationOrder"
    print "    podGroupPostFilter:"
    print "      enabled:"
    print "      - name: DynamicResources"
    print "      - name: AllocationOrder"
  }
' >"$overlays/tenants/scheduler-config.yaml"

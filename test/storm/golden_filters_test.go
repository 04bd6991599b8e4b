// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// filtered places pods that filters keep off some nodes, or off all.
func (g *goldenRun) filtered() {
	// Host ports.
	host := func(node string) func(*st.PodWrapper) { return on(corev1.LabelHostname, node) }
	g.place("a host port that is free", like("port-0", "port", "ports", host("n00")))
	g.place("a host port that is taken by a pod", like("port-1", "port", "ports", host("n00")))
	g.place("a host port that the node holds", like("port-2", "port", "ports", host("n11")))
	g.place("a host port, on a node whose own ports cannot be read", like("port-3", "port", "ports", host("n12")))
	g.place("no host port, on a node whose own ports cannot be read", like("port-4", "plain", "ports", host("n12")))
	g.place("a host port, on any of a few nodes", like("port-5", "other port", "ports", on(rack, "0")))
	// Platforms.
	g.place("a platform", like("platform-0", "arm", "platform"))
	g.place("two platforms", like("platform-1", "plain", "platform", annotated(clusterview.PlatformsAnnotation, "linux/amd64,linux/arm64")))
	g.place("a platform that no node has", like("platform-2", "plain", "platform", annotated(clusterview.PlatformsAnnotation, "windows/amd64")))
	g.place("malformed platforms", like("platform-3", "plain", "platform", annotated(clusterview.PlatformsAnnotation, "linux//arm64")))
	// Constraints.
	for i, text := range []string{"node.labels.disk==ssd,node.labels.zone!=a", "node.hostname==n04", "node.platform.arch==arm64", "node.labels.disk==tape", "node.ip==10.0.0.0/8", "node.labels.disk=ssd"} {
		g.place(fmt.Sprintf("constraints %q", text), like(fmt.Sprint("constraint-", i), "plain", "constraints", annotated(clusterview.ConstraintsAnnotation, text)))
	}
	// Limits.
	for i := range 3 {
		g.place("domain limits", like(fmt.Sprint("limit-", i), "plain", "limits", annotated(clusterview.DomainLimitsAnnotation, "zone=1,node.name=1")))
	}
	g.place("domain limits that are reached", like("limit-3", "plain", "limits", annotated(clusterview.DomainLimitsAnnotation, "zone=1,node.name=1")))
	g.place("malformed domain limits", like("limit-4", "plain", "limits", annotated(clusterview.DomainLimitsAnnotation, "zone=none")))
	// What is installed on nodes.
	g.installed()
	// Preferences.
	prefer := func(weight int32, key string, values ...string) func(*st.PodWrapper) {
		return func(p *st.PodWrapper) {
			p.Obj().Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}},
			}}}}
		}
	}
	for i := range 3 {
		g.place("preferred node affinity", like(fmt.Sprint("prefers-", i), "plain", "prefers", prefer(50, corev1.LabelHostname, "n08", "n19"), ordered))
	}
	g.place("a selector that no node has", like("lost-0", "plain", "lost", on("no.such/key", "x")))
	g.place("a selector that no node has, again", like("lost-1", "plain", "lost", on("no.such/key", "x")))
	g.place("larger than any node", like("giant-0", "plain", "giant", func(p *st.PodWrapper) { p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "100"}) }))
}

// installed places pods that need what is installed on some nodes.
func (g *goldenRun) installed() {
	const driver = "disks.example.com"
	g.add(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}})
	for _, node := range []string{"n01", "n02", "n08"} {
		g.add(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: node}}}})
	}
	g.add(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: driver})
	g.add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk-1", UID: "disk-1"}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName:       "local",
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "disk-1"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: "claim-1", UID: "claim-1"},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zone, Operator: corev1.NodeSelectorOpIn, Values: []string{"b", "c"}}},
		}}}},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}})
	g.add(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "claim-1", UID: "claim-1", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "disk-1", StorageClassName: new("local"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
	claims := func(name string) func(*st.PodWrapper) { return func(p *st.PodWrapper) { p.PVC(name) } }
	inline := func(driver string) func(*st.PodWrapper) {
		return func(p *st.PodWrapper) {
			p.Volume(corev1.Volume{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver}}})
		}
	}
	g.step("there are a driver, a class, a volume and a claim", func() {})
	for i := range 2 {
		g.place("an inline volume of a CSI driver", like(fmt.Sprint("inline-", i), "plain", "inline", inline(driver)))
	}
	g.place("an inline volume of a CSI driver that is nowhere", like("inline-2", "plain", "inline", inline("none.example.com")))
	g.place("a claim that is bound to a volume", like("claim-0", "plain", "claims", claims("claim-1")))
	g.place("a claim that is not there", like("claim-1", "plain", "claims", claims("claim-2")))
	g.place("a runtime handler", like("handler-0", "handled", "handler"))
	g.place("a runtime handler, on the node that lacks it", like("handler-1", "handled", "handler", on(corev1.LabelHostname, "n13")))
	g.place("a RuntimeClass that is not there", like("handler-2", "plain", "handler", func(p *st.PodWrapper) { p.Obj().Spec.RuntimeClassName = new("gone") }))
	g.add(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "virtual"}, Handler: "vm"})
	g.place("a runtime handler that no node has", like("handler-3", "plain", "handler", func(p *st.PodWrapper) { p.Obj().Spec.RuntimeClassName = new("virtual") }))
}

// governed places pods under policies.
func (g *goldenRun) governed() {
	selects := func(app string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	policy := func(name string, spec placementv1alpha1.PlacementPolicySpec) {
		g.step("PlacementPolicy "+name, func() {
			g.add(&placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}, Spec: spec})
		})
	}
	cluster := func(name string, spec placementv1alpha1.PlacementPolicySpec) {
		g.step("ClusterPlacementPolicy "+name, func() {
			g.add(&placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: placementv1alpha1.ClusterPlacementPolicySpec{
				NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}, PlacementPolicySpec: spec,
			}})
		})
	}
	over := func(keys ...placementv1alpha1.TopologyKey) (levels []placementv1alpha1.Level) {
		for _, key := range keys {
			levels = append(levels, placementv1alpha1.Level{TopologyKey: key})
		}
		return levels
	}
	policy("front", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("front"), Levels: over(rack)})
	g.place("under a policy", like("front-0", "plain", "front"))
	g.place("under a policy, which its annotation comes before", like("front-1", "spread", "front"))
	policy("front-too", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("front"), Levels: over(zone), Priority: -1})
	g.place("under the first of two policies", like("front-2", "plain", "front"))
	policy("stern", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("stern"), Mode: placementv1alpha1.ModeOverride, Levels: over(zone)})
	g.place("under a policy with Override, which comes before its annotation", like("stern-0", "pack", "stern"))
	policy("shares", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("shares"), Levels: []placementv1alpha1.Level{{
		TopologyKey: zone, Shares: []placementv1alpha1.ValueShare{{Value: "a", Share: 3}, {Value: "b", Share: 1}}, UnlistedShare: new(int64(1)),
	}}})
	for i := range 5 {
		g.place("under a policy with shares", like(fmt.Sprint("shares-", i), "plain", "shares"))
	}
	policy("allocatable", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("allocatable"), Levels: []placementv1alpha1.Level{{TopologyKey: rack, Share: placementv1alpha1.ShareAllocatable}}})
	for i := range 2 {
		g.place("under a policy with shares of what nodes have", like(fmt.Sprint("allocatable-", i), "plain", "allocatable"))
	}
	policy("packs", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("packs"), Levels: []placementv1alpha1.Level{
		{TopologyKey: zone, Strategy: placementv1alpha1.StrategyPack, NodesWithoutKey: placementv1alpha1.NodesWithoutKeyOwnDomain}, {TopologyKey: rack},
	}, ScaleDown: placementv1alpha1.ScaleDownAny})
	set := g.ofSet("packs", "1")
	for i := range 3 {
		g.place("under a policy that packs, without deletion costs", podOf(fmt.Sprint("packs-", i), "plain", "packs", shipped, set))
	}
	policy("limits", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("few"), DomainLimits: []placementv1alpha1.DomainLimit{{TopologyKey: zone, MaxPods: 1}}})
	for i := range 4 {
		g.place("under a policy with limits", like(fmt.Sprint("few-", i), "plain", "few"))
	}
	policy("unreadable", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("unreadable"), Levels: []placementv1alpha1.Level{{TopologyKey: zone, Strategy: "Stack"}}})
	g.place("under a policy that cannot be read", like("unreadable-0", "plain", "unreadable"))
	g.keep("under a policy that cannot be read, until that is mended", like("unreadable-1", "plain", "unreadable"))
	g.step("PlacementPolicy unreadable is mended", func() {
		change(g, policies, namespace, "unreadable", func(p *placementv1alpha1.PlacementPolicy) {
			p.Generation, p.Spec.Levels[0].Strategy = 2, placementv1alpha1.StrategySpread
		})
	})
	cluster("everywhere", placementv1alpha1.PlacementPolicySpec{Levels: over(rack, zone)})
	g.place("under a ClusterPlacementPolicy", like("anybody-0", "plain", "anybody"))
	g.place("under a policy of the namespace, which comes before that of the cluster", like("front-3", "plain", "front"))
	cluster("first", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("front"), Mode: placementv1alpha1.ModeOverride, Levels: over(corev1.LabelHostname)})
	g.place("under a ClusterPlacementPolicy with Override", like("front-4", "spread", "front"))
	g.step("the policies of the cluster are deleted", func() {
		for _, name := range []string{"everywhere", "first"} {
			must(g, g.server.store.Delete(placementv1alpha1.SchemeGroupVersion.WithResource(placementv1alpha1.ClusterPlacementPolicyResource), "", name))
		}
	})
	g.place("under no policy any more", like("anybody-1", "plain", "anybody"))
	policy("strict", placementv1alpha1.PlacementPolicySpec{PodSelector: selects("frail"), Faults: &placementv1alpha1.Faults{Threshold: new(int32(2)), WindowSeconds: new(int32(60))}})
}

// noRoom is what an arbiter answers to a binding to a node that is full.
func noRoom(b *corev1.Binding) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no room on " + b.Target.Name,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: clusterview.RefusedBinding}}},
	}}
}

// allow is what the API server answers as a rule.
func allow(*corev1.Binding) error { return nil }

// fail is what it answers when it cannot write.
func fail(*corev1.Binding) error { return errors.New("etcd is away") }

// rebound has nodes refuse bindings, as an arbiter does.
func (g *goldenRun) rebound() {
	set := g.ofSet("rebound", "1")
	first := ""
	g.refuse(func(b *corev1.Binding) error {
		if first == "" {
			first = b.Target.Name
		}
		if b.Target.Name == first {
			return noRoom(b)
		}
		return nil
	})
	g.place("the first node refuses it", podOf("rebound-0", "spread", "rebound", shipped, set))
	g.refuse(noRoom)
	g.keep("all nodes refuse it", podOf("rebound-1", "spread", "rebound", shipped, set))
	g.refuse(allow)
	g.wait(30*time.Second, "pod rebound-1 is tried again")
	g.refuse(noRoom)
	g.keep("all nodes refuse it, and it has a volume", like("claim-3", "plain", "claims", func(p *st.PodWrapper) { p.PVC("claim-1") }))
	g.refuse(allow)
	g.wait(30*time.Second, "pod claim-3 is tried again")
	g.refuse(fail)
	g.keep("the API server fails to bind it", podOf("rebound-2", "spread", "rebound", shipped, set))
	g.refuse(allow)
	g.wait(30*time.Second, "pod rebound-2 is tried again")
}

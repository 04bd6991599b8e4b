// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// What preemption adds: when no pod that is removed would help, and when no pod is of lower priority.
const (
	notHelpful = "Preemption is not helpful for scheduling"
	noVictims  = "No preemption victims found for incoming pod"
)

// refusal is a cluster, a pod that it has no place for, and what the pod is told.
type refusal struct {
	// row is the reason as docs/troubleshooting.md has it, up to what differs.
	row     string
	objects []runtime.Object
	pod     *st.PodWrapper
	// says is what all nodes are refused for, row if it is "". whole is the message, where it is more than that.
	says, whole string
	// victims says that the removal of pods would help.
	victims bool
}

// refusals has a row for each of our filters, and for the in-tree ones whose reasons are not exported or come first in the profile, in their order. What nodes have beyond the one defect tells that the filter before it has passed them.
var refusals = []refusal{
	{row: "no nodes available to schedule pods", pod: pod("p")},
	{row: "node(s) were unschedulable", objects: nodes("n", 3, cordoned, tainted, room("0")), pod: pod("p")},
	{row: "node(s) had untolerated taint(s)", objects: nodes("n", 3, tainted, room("0")), pod: pod("p")},
	{row: "Insufficient ", says: "Insufficient cpu", objects: join(nodes("n", 1, room("1")), running(func(*st.PodWrapper) {})), pod: pod("p"), victims: true},
	{
		row: "Insufficient ", says: "Insufficient cpu, 3 Insufficient example.com/apple, 3 Insufficient memory",
		objects: nodes("n", 3), pod: pod("p").Req(map[corev1.ResourceName]string{"cpu": "5", "memory": "9Gi", "example.com/apple": "2"}),
	},
	{
		// SwarmKit's scenario of one node that is too small beside two that are not ready, whose taint the node lifecycle controller gives.
		row: "Insufficient ", whole: "1 Insufficient example.com/apple, 1 Insufficient memory, 2 node(s) had untolerated taint(s)",
		objects: join(nodes("small", 1), nodes("unready", 2, unready)), pod: pod("p").Req(map[corev1.ResourceName]string{"memory": "9Gi", "example.com/apple": "2"}),
	},
	{
		row:     "Too many pods",
		objects: join(nodes("n", 1, func(n *st.NodeWrapper) { n.Capacity(map[corev1.ResourceName]string{"cpu": "4", "pods": "1"}) }), running(func(*st.PodWrapper) {})),
		pod:     pod("p"), victims: true,
	},
	{
		row:     "node(s) didn't have a CSI driver that the pod's volumes need",
		objects: nodes("n", 3, label("disk", "hdd")), pod: withInlineVolume(pod("p").NodeSelector(map[string]string{"disk": "ssd"})),
	},
	{
		row: "node(s) didn't match Pod's node affinity/selector", objects: nodes("n", 3),
		pod: pod("p").NodeSelector(map[string]string{"disk": "ssd"}).Annotation(clusterview.ConstraintsAnnotation, "node.labels.a==b"),
	},
	{
		row: "node(s) didn't satisfy plugin(s) [NodeAffinity]", whole: "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]",
		objects: join(nodes("full", 1, room("0")), nodes("n", 2)), pod: pinnedTo(pod("p"), "full-0"),
	},
	{row: "node(s) didn't satisfy plugin(s) [NodeAffinity]", objects: nodes("n", 2), pod: pinnedTo(pod("p"), "gone")},
	{
		row: "node(s) didn't match the pod's constraints", objects: nodes("n", 3),
		pod: pod("p").Annotation(clusterview.ConstraintsAnnotation, "node.labels.a==b").Annotation(clusterview.PlacementAnnotation, "spread=zone;nodesWithoutKey=Exclude"),
	},
	{
		row: "node(s) didn't have a property that the pod's placement requires", objects: nodes("n", 3),
		pod: pod("p").Annotation(clusterview.PlacementAnnotation, "spread=zone;nodesWithoutKey=Exclude").Annotation(clusterview.PlatformsAnnotation, "windows/amd64"),
	},
	{
		row: "node(s) didn't match the pod's platform", objects: join(nodes("n", 1), running(func(p *st.PodWrapper) { p.HostPort(80) })),
		pod: pod("p").Annotation(clusterview.PlatformsAnnotation, "windows/amd64").HostPort(80),
	},
	{
		row: "node(s) didn't have free host port ", says: "node(s) didn't have free host port 80/tcp",
		objects: join(nodes("n", 1), running(func(p *st.PodWrapper) { p.HostPort(80) })),
		pod:     pod("p").HostPort(80).Annotation(clusterview.DomainLimitsAnnotation, "zone=1"), victims: true,
	},
	{
		row:     "node(s) were in a domain with as many of the workload's pods as its domain limits allow",
		objects: join(nodes("n", 3, label("zone", "a")), running(func(p *st.PodWrapper) { web(p) })),
		pod:     web(pod("p")).Annotation(clusterview.DomainLimitsAnnotation, "zone=1"), victims: true,
	},
	{
		row: "node(s) didn't match pod topology spread constraints", whole: "1 node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints",
		objects: join(nodes("n", 2, label("zone", "a")), nodes("cordoned", 1, label("zone", "b"), cordoned), running(func(p *st.PodWrapper) { web(p) })),
		pod:     spreadHard(pod("p")), victims: true,
	},
	{row: "node(s) didn't match pod topology spread constraints (missing required label)", objects: nodes("n", 3), pod: spreadHard(pod("p"))},
	{row: "node(s) didn't match Pod's required features", objects: nodes("n", 3), pod: restartingAll(pod("p"))},
	{row: "cannot allocate all claims", objects: join(nodes("n", 2), []runtime.Object{gpu, device(nil)}), pod: claiming(pod("p"))},
	{
		row: "resourceclaim not available on the node", pod: claiming(pod("p")),
		objects: join(nodes("n", 2), []runtime.Object{gpu, device(&resourceapi.AllocationResult{
			NodeSelector: st.MakeNodeSelector().In(corev1.LabelHostname, []string{"elsewhere"}, st.NodeSelectorTypeMatchExpressions).Obj(),
		})}),
	},

	// What a pod asks for and nobody can read, or nobody has, is told before any node is asked.
	{
		row: "annotation espalier.dev/", objects: nodes("n", 3), pod: pod("p").Annotation(clusterview.PlacementAnnotation, "spread=zone,sprad=rack"),
		whole: `annotation espalier.dev/placement: level 2 "sprad=rack": unknown strategy "sprad": use spread=PROPERTY or pack=PROPERTY`,
	},
	{
		row: `runtimeClassName "NAME"`, objects: nodes("n", 3), pod: inClass(pod("p"), "gvisor"),
		whole: `runtimeClassName "gvisor": runtimeclass.node.k8s.io "gvisor" not found: create the RuntimeClass, or the pod anew without it`,
	},
	{row: "pod affinity terms conflict", objects: nodes("n", 3), pod: pinnedTo(pod("p"), "n-0", "n-1"), whole: "pod affinity terms conflict"},
	{row: "persistentvolumeclaim", objects: nodes("n", 3), pod: pod("p").PVC("data"), whole: `persistentvolumeclaim "data" not found`},
	{
		row: "pod has unbound immediate PersistentVolumeClaims", whole: "pod has unbound immediate PersistentVolumeClaims",
		objects: join(nodes("n", 2), unbound()), pod: pod("p").PVC("data"),
	},
	{
		row: "device class NAME does not exist", whole: "request req-1: device class gpu does not exist",
		objects: join(nodes("n", 2), []runtime.Object{device(nil)}), pod: claiming(pod("p")),
	},
}

var gpu = &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}

// device is a claim for a device of that class, which may have been allocated for another pod.
func device(allocated *resourceapi.AllocationResult) *resourceapi.ResourceClaim {
	c := st.MakeResourceClaim().Namespace(namespace).Name("one").Request("gpu").Obj()
	if allocated != nil {
		c.Status = resourceapi.ResourceClaimStatus{
			Allocation: allocated, ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "other", UID: "other"}},
		}
	}
	return c
}

func claiming(p *st.PodWrapper) *st.PodWrapper {
	return p.PodResourceClaims(corev1.PodResourceClaim{Name: "one", ResourceClaimName: new("one")})
}

// want is what the pod is told, up to what preemption adds.
func (r *refusal) want() string {
	n := 0
	for _, o := range r.objects {
		if _, is := o.(*corev1.Node); is {
			n++
		}
	}
	if n == 0 {
		return "Unschedulable: " + r.row
	}
	told := r.whole
	if told == "" {
		told = fmt.Sprint(n, " ", cmp.Or(r.says, r.row))
	}
	return fmt.Sprintf("Unschedulable: 0/%d nodes are available: %s. preemption: 0/%d nodes are available: ", n, told, n)
}

// The scheduler refuses a pod for each of these reasons, word for word.
func TestFilterRefuses(t *testing.T) {
	for i := range refusals {
		r := &refusals[i]
		t.Run(r.row, func(t *testing.T) {
			t.Parallel()
			c := start(t, r.objects...)
			c.create(r.pod.Obj())
			_, told := c.decisions()
			got, adds := told["p"], notHelpful
			if r.victims {
				adds = noVictims
			}
			if !strings.HasPrefix(got, r.want()) || len(r.objects) > 0 && !strings.Contains(got, adds) {
				t.Errorf("the pod was told\n%s\nwant\n%s… %s", got, r.want(), adds)
			}
		})
	}
}

// defects of a node, in the order in which the filters find them.
var defects = []struct {
	reason string
	change func(*st.NodeWrapper)
}{
	{"node(s) were unschedulable", cordoned},
	{"node(s) had untolerated taint(s)", tainted},
	{"Insufficient cpu", room("500m")},
	{"node(s) didn't match Pod's node affinity/selector", label("disk", "hdd")},
	{"node(s) didn't have a property that the pod's placement requires", func(n *st.NodeWrapper) { delete(n.Labels, corev1.LabelTopologyZone) }},
}

// TestCountsAreExact makes clusters at random, in which some nodes accept a pod and fill up with it, and the others have any of the defects
// at once. Each node must be counted once, for the first of its defects. SwarmKit forgets its counts whenever a node accepts.
func TestCountsAreExact(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			exact(t, rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // a test that must be repeatable
		})
	}
}

func exact(t *testing.T, r *rand.Rand) {
	t.Helper()
	open := 1 + r.IntN(3)
	all := nodes("open", open, label("disk", "ssd"), label(corev1.LabelTopologyZone, "a"), room("1"))
	counts := map[string]int{"Insufficient cpu": open} // once they are full
	for i := range 1 + r.IntN(12) {
		changes := []func(*st.NodeWrapper){label("disk", "ssd"), label(corev1.LabelTopologyZone, "a")}
		first := ""
		for _, d := range defects {
			if r.IntN(3) == 0 {
				changes = append(changes, d.change)
				if first == "" {
					first = d.reason
				}
			}
		}
		if first == "" {
			changes, first = append(changes, cordoned), defects[0].reason
		}
		counts[first]++
		all = append(all, nodes(fmt.Sprint("closed", i), 1, changes...)...)
	}
	c := start(t, all...)
	for i := range open + 1 + r.IntN(3) {
		c.create(pod(fmt.Sprint("p", i)).Label(clusterview.WorkloadLabel, "web").NodeSelector(map[string]string{"disk": "ssd"}).
			Annotation(clusterview.PlacementAnnotation, "spread="+corev1.LabelTopologyZone+";nodesWithoutKey=Exclude").Obj())
	}
	placed, refusals := c.decisions()
	if len(placed) != open || len(refusals) == 0 {
		t.Fatalf("placed on %v, refused %v; %d nodes are open", placed, refusals, open)
	}
	var parts []string
	for reason, n := range counts {
		parts = append(parts, fmt.Sprint(n, " ", reason))
	}
	slices.Sort(parts)
	want := fmt.Sprintf("Unschedulable: 0/%d nodes are available: %s. preemption: ", len(all), strings.Join(parts, ", "))
	for name, got := range refusals {
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s was told\n%s\nwant\n%s", name, got, want)
		}
	}
}

// on is the node of a pod, "" if it has none.
func (c *cluster) on(name string) string {
	c.Helper()
	p, err := c.client.CoreV1().Pods(namespace).Get(c.ctx, name, metav1.GetOptions{})
	must(c, err)
	return p.Spec.NodeName
}

// TestPreassignedTasks: two pods are pinned to n-0, and are confirmed before the
// first, which is older, is looked at. It goes where fewer are.
func TestVector_2_8_G1(t *testing.T) {
	t1, t2, t3 := web(pod("t1")), pinnedTo(web(pod("t2")), "n-0"), pinnedTo(web(pod("t3")), "n-0")
	t1.CreationTimestamp(metav1.Unix(1, 0))
	c := start(t, append(nodes("n", 2), t1.Obj(), t2.Obj(), t3.Obj())...)
	c.decisions()
	if c.on("t1") != "n-1" || c.on("t2") != "n-0" || c.on("t3") != "n-0" {
		t.Errorf("t1, t2 and t3 are on %q, %q and %q", c.on("t1"), c.on("t2"), c.on("t3"))
	}
}

// TestIgnoreTasks: pods that are pinned to n-0 and terminating take no room there.
func TestVector_2_8_G2(t *testing.T) {
	going := func(name string) runtime.Object { return pinnedTo(web(pod(name)), "n-0").Terminating().Obj() }
	c := start(t, append(nodes("n", 1, room("1")), web(pod("t1")).Obj(), going("t2"), going("t3"))...)
	placed, refusals := c.decisions()
	if !slices.Equal(placed, []string{"n-0"}) || len(refusals) != 0 || c.on("t1") != "n-0" {
		t.Errorf("placed on %v, refused %v", placed, refusals)
	}
}

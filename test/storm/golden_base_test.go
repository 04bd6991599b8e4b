// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	podgroupv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// furnishNodes makes a cluster of as many nodes, in the order of their names, and writes it down. On each runs something else, so that scores
// tell them apart.
func (g *goldenRun) furnishNodes(n int, how func(i int, n *corev1.Node)) {
	g.Helper()
	for i := range n {
		node := newNode(i, nodeName(i))
		node.Labels[corev1.LabelTopologyZone] = "zone-" + node.Labels[zone]
		node.Labels[order] = fmt.Sprint(i * 5 % nodes)
		node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("60")
		how(i, node)
		g.add(node)
		synctest.Wait()
		runs := st.MakePod().Namespace(metav1.NamespaceSystem).Name("system-" + node.Name).UID("system-" + node.Name).SchedulerName("another").
			Node(node.Name).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: fmt.Sprintf("%dm", 100*(1+i*7%24))}).Priority(1000).Phase(corev1.PodRunning).Obj()
		g.add(runs)
		synctest.Wait()
		fmt.Fprintln(&g.out, describeNode(node))
	}
	fmt.Fprintln(&g.out)
}

// order is a label of nodes by which they are in an order.
const order = "order"

// ordered has a pod prefer nodes in their order, a little beside what it prefers. Where a pod prefers anything kube-scheduler takes any of those
// that have the same score.
func ordered(p *st.PodWrapper) {
	is := p.Obj().Spec.Affinity
	if is == nil {
		is = &corev1.Affinity{}
		p.Obj().Spec.Affinity = is
	}
	if is.NodeAffinity == nil {
		is.NodeAffinity = &corev1.NodeAffinity{}
	}
	for i := range nodes {
		is.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(is.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: order, Operator: corev1.NodeSelectorOpGt, Values: []string{fmt.Sprint(i)}}}},
		})
	}
}

// baseNode has nodes of all sorts among those of a cluster.
func baseNode(i int, n *corev1.Node) {
	switch i {
	case 3:
		n.Spec.Unschedulable = true
	case 5:
		n.Spec.Taints = []corev1.Taint{{Key: "storm", Effect: corev1.TaintEffectNoSchedule}}
	case 6:
		n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}
	case 7:
		n.Status.Conditions[0].Status = corev1.ConditionFalse
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	case 9:
		delete(n.Labels, zone)
		delete(n.Labels, corev1.LabelTopologyZone)
	case 10:
		delete(n.Labels, rack)
	case 11:
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.ReservedHostPortsAnnotation, "8080/tcp,9000-9010/udp")
	case 12:
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.ReservedHostPortsAnnotation, "nonsense")
	case 13:
		n.Status.RuntimeHandlers = n.Status.RuntimeHandlers[:1]
	case 14, 16:
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"big:1"}, SizeBytes: 900 << 20}}
	case 15:
		n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("3")
	case 17:
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.ValidUntilAnnotation, "2000-01-01T01:00:00Z")
	case 18:
		n.Spec.Taints = []corev1.Taint{{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
}

// ofSet makes a ReplicaSet of a Deployment.
func (g *goldenRun) ofSet(app, revision string) *appsv1.ReplicaSet {
	g.Helper()
	set := replicaSet(app, app+"-"+revision, revision)
	g.add(set)
	synctest.Wait()
	return set
}

// owned gives a pod a controller of a kind.
func owned(p *corev1.Pod, apiVersion, kind, name string) *corev1.Pod {
	delete(p.Labels, clusterview.WorkloadLabel)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uidOf(kind, name), Controller: new(true)}}
	return p
}

// alone makes a pod one of no workload but itself.
func alone(p *corev1.Pod) *corev1.Pod {
	delete(p.Labels, clusterview.WorkloadLabel)
	return p
}

// like is a pod of a kind with something more, of a workload that its label names.
func like(name, kind, app string, how ...func(*st.PodWrapper)) *corev1.Pod {
	p := &st.PodWrapper{Pod: *podOf(name, kind, app, shipped, nil)}
	for _, h := range how {
		h(p)
	}
	return p.Obj()
}

// annotated gives a pod an annotation.
func annotated(key, value string) func(*st.PodWrapper) {
	return func(p *st.PodWrapper) { p.Annotation(key, value) }
}

// on leaves a pod the nodes with a label.
func on(key, value string) func(*st.PodWrapper) {
	return func(p *st.PodWrapper) { p.NodeSelector(map[string]string{key: value}) }
}

// pinned leaves a pod one node, by its name.
func pinned(node string) func(*st.PodWrapper) {
	return func(p *st.PodWrapper) {
		p.NodeAffinityIn(metav1.ObjectNameField, []string{node}, st.NodeSelectorTypeMatchFields)
	}
}

// base is the shipped profile, and beside it one without node hints.
func base(g *goldenRun) {
	g.add(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "sandboxed"}, Handler: "sandbox"})
	for _, name := range profiles {
		g.add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name + "-failures"}})
	}
	c := configuration(g.T)
	c.APIVersion = decode(g.T, "base/scheduler-config.yaml").APIVersion
	g.start(c, nil)
	g.furnishNodes(nodes, baseNode)
	g.begins()
	g.drawn(15)
	g.workloads()
	g.constrained()
	g.filtered()
	g.governed()
	g.failing()
	g.changing()
	g.rebound()
	g.idle()
}

// drawn places pods of each kind that the storm knows, of Deployments that are rolled over and lose pods meanwhile, as random numbers say.
func (g *goldenRun) drawn(more int) {
	r := rand.New(rand.NewPCG(20, 26))
	type app struct {
		name, kind, profile string
		revision, pods      int
		set                 *appsv1.ReplicaSet
	}
	var apps []*app
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, profile := range profiles {
			apps = append(apps, &app{name: fmt.Sprintf("%s-%s", kind, profile[len("espalier-"):][:6]), kind: kind, profile: profile})
		}
	}
	next := slices.Clone(apps)
	for range more {
		next = append(next, apps[2*r.IntN(len(apps)/2)]) // of the shipped profile
	}
	r.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
	var bound []string
	for _, a := range next {
		if a.set == nil || r.IntN(6) == 0 {
			a.revision++
			a.set = g.ofSet(a.name, fmt.Sprint(a.revision))
		}
		if len(bound) > 20 && r.IntN(6) == 0 {
			i := r.IntN(len(bound))
			g.step("pod "+bound[i]+" ends", func() { g.remove(namespace, bound[i]) })
			bound = slices.Delete(bound, i, i+1)
		}
		a.pods++
		name := fmt.Sprintf("%s-%d-%d", a.name, a.revision, a.pods)
		p := &st.PodWrapper{Pod: *podOf(name, a.kind, a.name, a.profile, a.set)}
		if kinds[a.kind].odd {
			ordered(p)
		}
		g.place(fmt.Sprintf("%s, of Deployment %s, revision %d", a.kind, a.name, a.revision), p.Obj())
		if _, err := g.server.store.Get(pods, namespace, name); err == nil {
			bound = append(bound, name)
		}
	}
}

// workloads places pods of owners of all kinds, and of none.
func (g *goldenRun) workloads() {
	g.add(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db", UID: uidOf("StatefulSet", "db")}})
	for i := range 5 {
		p := owned(like(fmt.Sprintf("db-%d", i), "plain", "db"), "apps/v1", "StatefulSet", "db")
		p.Labels[appsv1.PodIndexLabel], p.Labels[appsv1.ControllerRevisionHashLabelKey] = fmt.Sprint(i), "db-1"
		g.place("of StatefulSet db, by its index", p)
	}
	g.step("pods db-3 and db-4 end", func() { g.remove(namespace, "db-3"); g.remove(namespace, "db-4") })
	for i := range 3 {
		p := owned(like(fmt.Sprintf("db-%d", i+3), "spread", "db"), "apps/v1", "StatefulSet", "db")
		p.Labels[appsv1.PodIndexLabel], p.Labels[appsv1.ControllerRevisionHashLabelKey] = fmt.Sprint(i+3), "db-2"
		g.place("of StatefulSet db, of its next revision over two levels", p)
	}
	g.add(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sums", UID: uidOf("Job", "sums")}})
	for i := range 3 {
		g.place("of Job sums", owned(like(fmt.Sprint("sums-", i), "plain", "sums"), "batch/v1", "Job", "sums"))
	}
	g.place("bare", alone(like("bare-1", "plain", "bare")))
	g.place("bare", alone(like("bare-2", "plain", "bare")))
	for i, node := range []string{"n02", "n03", "n05", "n24"} {
		p := owned(like(fmt.Sprint("agent-", i), "plain", "agent", pinned(node)), "apps/v1", "DaemonSet", "agent")
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
		g.place("of DaemonSet agent, for node "+node, p)
	}
	g.place("pinned to a node, and of no DaemonSet", like("pinned-1", "spread", "pinned", pinned("n20")))
	g.place("left two nodes by their names", like("confined-1", "spread", "pinned", func(p *st.PodWrapper) {
		p.Obj().Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
		for _, node := range []string{"n19", "n22"} {
			terms := &p.Obj().Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			*terms = append(*terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}})
		}
	}))
	g.place("pinned to a node that another level leaves out", like("pinned-2", "excluding", "pinned", pinned("n10")))
	for i := range 4 {
		g.place("of the workload shop by its label, and of two Deployments", func() *corev1.Pod {
			app := []string{"cart", "till"}[i%2]
			p := podOf(fmt.Sprintf("%s-%d", app, i), "spread", app, shipped, replicaSet(app, app+"-1", "1"))
			p.Labels[clusterview.WorkloadLabel] = "shop"
			return p
		}())
	}
	for i := range 3 {
		p := alone(like(fmt.Sprint("ring-", i), "plain", "ring"))
		p.Labels[podgroupv1alpha1.PodGroupLabel] = "ring"
		g.place("of the PodGroup ring of scheduler-plugins", p)
	}
	g.add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "echo"}}})
	for i := range 4 {
		g.place("bare, and selected by a Service", alone(like(fmt.Sprint("echo-", i), "plain", "echo")))
	}
	old := g.ofSet("web", "1")
	for i := range 5 {
		g.place("of Deployment web", podOf(fmt.Sprint("web-1-", i), "plain", "web", shipped, old))
	}
	anew := g.ofSet("web", "2")
	for i := range 5 {
		g.place("of Deployment web, of the next revision in a rolling update", podOf(fmt.Sprint("web-2-", i), "plain", "web", shipped, anew))
		g.step(fmt.Sprintf("pod web-1-%d of the revision before ends", i), func() { g.remove(namespace, fmt.Sprint("web-1-", i)) })
	}
	g.changePod("web-2-1", func(p *corev1.Pod) { p.Annotations[corev1.PodDeletionCost] = "7" })
	g.place("of Deployment web, of which somebody else writes the deletion costs", podOf("web-2-5", "plain", "web", shipped, anew))
	g.batch("together: the pinned one comes before those of its age, and the urgent one before all",
		like("plain-1", "plain", "batch"), like("plain-2", "plain", "batch"),
		like("pinned-3", "plain", "batch", pinned("n21")), like("urgent-1", "urgent", "batch"))
}

// constrained places pods with topology spread constraints.
func (g *goldenRun) constrained() {
	soft := func(key string) func(*st.PodWrapper) {
		return func(p *st.PodWrapper) {
			p.SpreadConstraint(1, key, corev1.ScheduleAnyway, alike(p), nil, nil, nil, nil)
		}
	}
	hard := func(skew int, key string) func(*st.PodWrapper) {
		return func(p *st.PodWrapper) {
			p.SpreadConstraint(skew, key, corev1.DoNotSchedule, alike(p), nil, nil, nil, nil)
		}
	}
	for i := range 3 {
		g.place("ScheduleAnyway over two keys", like(fmt.Sprint("soft2-", i), "plain", "soft2", soft(rack), soft(zone)))
	}
	for i := range 3 {
		g.place("DoNotSchedule over two keys", like(fmt.Sprint("hard2-", i), "plain", "hard2", hard(1, zone), hard(1, corev1.LabelHostname)))
	}
	for i := range 4 {
		g.place("DoNotSchedule over one key, and ScheduleAnyway over another", like(fmt.Sprint("mixed-", i), "plain", "mixed", hard(1, rack), soft(zone)))
	}
	g.place("ScheduleAnyway, with much that means nothing here", like("loose-0", "plain", "loose", func(p *st.PodWrapper) {
		honor := corev1.NodeInclusionPolicyHonor
		p.SpreadConstraint(5, zone, corev1.ScheduleAnyway, alike(p), nil, &honor, &honor, nil)
		p.SpreadConstraint(1, rack, corev1.ScheduleAnyway, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}}, nil, nil, nil, nil)
	}))
	g.place("DoNotSchedule that no node keeps", like("hard3-0", "plain", "hard3", hard(1, "no.such/key")))
	g.place("ScheduleAnyway with the annotation, which comes first", like("both-0", "spread", "both", soft(rack)))
	g.place("levels of nodes' own properties", like("own-0", "plain", "own", annotated(clusterview.PlacementAnnotation, "spread=node.labels.disk,spread=node.name")))
	for _, text := range []string{"", "spread=", "stack=zone", "spread=zone,spread=zone", "spread=zone;weight.a=0"} {
		g.place(fmt.Sprintf("malformed placement %q", text), like("malformed-placement", "plain", "malformed", annotated(clusterview.PlacementAnnotation, text)))
	}
}

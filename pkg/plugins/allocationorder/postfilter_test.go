// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func priority(p string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[clusterview.AllocationPriorityAnnotation] = p }
}

// TV12 with the filters of the profile: the first eviction of the vector, and the second.
func TestVector_TV12_Evictions(t *testing.T) {
	apps := func(on ...string) *rig {
		r := newRig(t)
		r.allocation("a", 0)
		for _, n := range []string{"a", "b", "y", "z"} {
			r.node(n, 10)
		}
		for i, at := range on {
			r.pod(names("app", 4)[i], "a", int64(i+1), at, priority(names("", 5)[4-i]))
		}
		return r
	}
	r := apps("a", "y", "b", "z")
	first := r.pod("prio50", "a", 10, "", priority("50"))
	r.start().wantEvicted(first, "z", "app3")
	// It waits until that one is gone, and evicts no more.
	r.wantEvicted(first, "", "it waits until those that made way on node z are gone")

	r = apps("a", "y", "b", "a")
	r.pod("prio50", "a", 10, "z", priority("50"))
	second := r.pod("prio51", "a", 10, "", priority("51"))
	r.start().wantEvicted(second, "b", "app2")
}

// TV14: a pod on a node that is closed makes way for nobody.
func TestVector_TV14_ClosedNodes(t *testing.T) {
	r := newRig(t)
	r.allocation("a", 0)
	closed := r.node("large", 10)
	closed.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	r.node("small", 3)
	r.pod("a2", "a", 4, "large", priority("1"))
	a1 := r.pod("a1", "a", 4, "", priority("100"))
	r.start().wantEvicted(a1, "", "it would not fit if all pods after it went")
}

// TV26: pods of a partition run on its nodes only, and those of none anywhere.
func TestVector_TV26_Partitions(t *testing.T) {
	r := newRig(t)
	r.allocation("a", 0)
	r.allocation("fast", 0, func(s *placementv1alpha1.AllocationSpec) { s.Traits = map[string]string{"disk": "ssd"} })
	r.node("x1", 10)
	r.node("x2", 10, "disk=ssd")
	r.node("y1", 10, "pool=q")
	a, fast, none := r.pod("a", "a", 1, ""), r.pod("fast", "fast", 1, ""), r.pod("none", "none", 1, "")
	r.start()
	for pod, want := range map[*corev1.Pod]string{a: "x1 x2", fast: "x2", none: "x1 x2 y1"} {
		if fits, _, status := r.try(pod); strings.Join(fits, " ") != want {
			t.Errorf("%s fits on %q (%v), want %s", pod.Name, fits, status, want)
		}
	}
}

// A pod that comes before others has the last of them make way, however old and whatever their PriorityClass; and pods of no allocation
// are not touched.
func TestWhoMakesWay(t *testing.T) {
	r := newTeams(t, 4, 6)
	r.pod("other", "none", 2, "n")
	r.pod("dev1", "dev", 2, "n", func(p *corev1.Pod) { p.Spec.Priority = new(int32(1000)) })
	r.pod("dev2", "dev", 2, "n")
	prod := r.pod("prod", "prod", 2, "")
	r.start().wantEvicted(prod, "n", "dev2")
	if e := <-r.events.Events; !strings.Contains(e, "Preempted") || !strings.Contains(e, "makes way for pod ns/prod") || !strings.Contains(e, `position 3 of 3 in partition "p", allocation "dev"`) {
		t.Errorf("it is said %s", e)
	}
	late := r.pod("late", "dev", 2, "")
	r.start().wantEvicted(late, "", "nobody makes way: it would not fit if all pods after it went: position 4 of 4")
	large := r.pod("large", "prod", 5, "")
	r.start().wantEvicted(large, "", "it would not fit")
}

// A pod that waits beyond the maximum of its allocation, and one that stands by, make nobody of it the first to leave for another team.
func TestPodsThatAreNotToBeTriedMoveNobody(t *testing.T) {
	r := newRig(t)
	r.allocation("max", 4, func(s *placementv1alpha1.AllocationSpec) { s.MaxUtilizationPercent = new(int32(100)) })
	r.allocation("shards", 4, func(s *placementv1alpha1.AllocationSpec) {
		s.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "g", Count: new(int32(0))}}
	})
	r.allocation("dev", 0)
	r.node("n1", 4)
	r.node("n2", 2)
	r.pod("dev1", "dev", 2, "n2")
	r.pod("max1", "max", 2, "n1")
	r.pod("web1", "shards", 2, "n1")
	r.pod("never", "max", 5, "", priority("100"))
	r.pod("stands-by", "shards", 9, "", priority("100"), inGroup)
	dev2 := r.pod("dev2", "dev", 2, "", priority("100"))
	r.start().wantEvicted(dev2, "n2", "dev1")
}

// Nobody who waits for nothing has others go: Never is Never, and pods that are not in the order yet wait for it.
func TestWhoWaits(t *testing.T) {
	r := newTeams(t, 4, 2)
	r.pod("dev", "dev", 2, "n")
	never := r.pod("never", "prod", 2, "", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptNever) })
	r.start().wantEvicted(never, "", "its preemptionPolicy is Never")
	unknown := never.DeepCopy()
	unknown.Name, unknown.UID = "unknown", "unknown"
	r.wantEvicted(unknown, "", "its position is not known yet")
}

// A clock that jumps changes when pods were made and placed. Nobody makes way because of it: of equals those that run come first.
func TestAClockThatJumps(t *testing.T) {
	r := newRig(t).allocation("a", 4)
	r.node("n", 4)
	jumped := func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(begin.AddDate(100, 0, 0))
		p.Status.Conditions[0].LastTransitionTime = p.CreationTimestamp
	}
	r.pod("runs1", "a", 2, "n", jumped)
	r.pod("runs2", "a", 2, "n")
	waits := r.pod("waits", "a", 2, "", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(begin.AddDate(-50, 0, 0)) })
	r.start().wantEvicted(waits, "", "it would not fit if all pods after it went: position 3 of 3")
}

// A scheduler that has just started waits for the victims of the one before it.
func TestVictimsOfAFormerScheduler(t *testing.T) {
	r := newTeams(t, 4, 4)
	nominated := r.victimOn("n", 2)
	r.pod("dev2", "dev", 2, "n")
	prod := r.pod("prod", "prod", 2, "", nominated)
	r.start().wantEvicted(prod, "", "it waits until those that made way on node n are gone")
}

// A pod that is tried again before its victim is gone, and before its status shows what it is nominated for, keeps that, unless it was taken for
// another: the victim's replacement would have the room.
func TestPodsThatWaitKeepTheirPlace(t *testing.T) {
	r := newTeams(t, 4, 4)
	r.pod("dev", "dev", 4, "n")
	prod := r.pod("prod", "prod", 4, "")
	r.start().wantEvicted(prod, "n", "dev")
	tried := func() string {
		_, result, status := r.try(prod)
		if !strings.Contains(status.Message(), "it waits until") {
			t.Fatalf("got %v", status)
		}
		if result.Mode() == fwk.ModeNoop {
			return ""
		}
		return result.NominatedNodeName
	}
	if got := tried(); got != "n" {
		t.Errorf("it is nominated for %q, want n", got)
	}
	r.pl.takeNominations(t.Context(), []*corev1.Pod{prod}, nil)
	if got := tried(); got != "" {
		t.Errorf("it is nominated for %q, which was taken from it", got)
	}
}

// The place that others made is not taken by a pod that comes later, whatever its PriorityClass. Where there is room for both it is let in.
func TestNobodyTakesThePlaceThatOthersMade(t *testing.T) {
	r := newTeams(t, 4, 4)
	high := func(p *corev1.Pod) { p.Spec.Priority = new(int32(1000)) }
	prod := r.pod("prod", "prod", 3, "")
	again := r.pod("again", "dev", 2, "", high)
	small := r.pod("small", "dev", 1, "", high)
	none := r.pod("none", "none", 2, "", high)
	r.start()
	r.tenants.MadeWay(0, prod, "n", nil)
	r.nominate(prod, "n")
	fits := func(pod *corev1.Pod, want string) {
		t.Helper()
		if got, _, status := r.try(pod); strings.Join(got, " ") != want || want == "" && !strings.Contains(status.Message(), "nobody makes way") {
			t.Errorf("%s fits on %q: %v", pod.Name, got, status)
		}
	}
	fits(again, "")
	fits(small, "n")
	fits(prod, "n")
	fits(none, "n")
}

// nominate has a pod be nominated for a node, as the scheduler does when others make way there.
func (r *rig) nominate(pod *corev1.Pod, node string) {
	r.Helper()
	info, err := framework.NewPodInfo(pod)
	r.must(err)
	r.queue.Add(r.Context(), pod)
	r.queue.AddNominatedPod(r.logger(), info, &fwk.NominatingInfo{NominatedNodeName: node, NominatingMode: fwk.ModeOverride})
}

// victimOn has a pod of dev terminate on a node, for somebody who is nominated for it.
func (r *rig) victimOn(node string, cpu int64) (nominated func(*corev1.Pod)) {
	now := metav1.Now()
	r.pod("victim", "dev", cpu, node, func(p *corev1.Pod) {
		p.DeletionTimestamp, p.Finalizers = &now, []string{"x/y"}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler})
	})
	return func(p *corev1.Pod) { p.Status.NominatedNodeName = node }
}

// unreachable is the taint of a node that does not answer.
var unreachable = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}

// victimBeside has prod come before dev on two nodes of 4: a victim of dev terminates on the first, and dev2 runs on the other, "lives".
func (r *rig) victimBeside() (node *corev1.Node, nominated func(*corev1.Pod)) {
	r.allocation("prod", 4).allocation("dev", 0)
	node = r.node("dies", 4)
	r.node("lives", 4)
	nominated = r.victimOn("dies", 4)
	r.pod("dev2", "dev", 4, "lives")
	return node, nominated
}

// On a node that is closed meanwhile nobody is waited for: what terminates there may do so for ever. Others make way elsewhere.
func TestVictimsOfANodeThatDies(t *testing.T) {
	r := newRig(t)
	dies, nominated := r.victimBeside()
	prod := r.pod("prod", "prod", 4, "", nominated)
	r.start().wantEvicted(prod, "", "it waits until those that made way on node dies are gone, of which pod ns/victim is the first")
	dies.Spec.Taints = unreachable
	r.start().wantEvicted(prod, "lives", "dev2")
}

// If one of two cannot be evicted, the other one is waited for, and nobody else goes.
func TestEvictionsThatFail(t *testing.T) {
	r := newTeams(t, 4)
	for _, n := range []string{"n", "other"} {
		r.node(n, 4)
		r.pod(n+"1", "dev", 2, n)
		r.pod(n+"2", "dev", 2, n)
	}
	prod := r.pod("prod", "prod", 4, "")
	r.start()
	r.client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.DeleteAction).GetName() == "other1" && !asked(a), nil, errors.New("the API server is down")
	})
	if _, _, status := r.try(prod); status.Code() != fwk.Error || !strings.Contains(status.Message(), "evicting pod ns/other1: the API server is down") {
		t.Errorf("got %v", status)
	}
	r.wantEvicted(prod, "", "it waits until those that made way on node other are gone")
}

// A pod that the API server does not let go stays. Others do not make way beside it, time and again, for nothing.
func TestPodsThatAreNotLetGo(t *testing.T) {
	r := newTeams(t, 8)
	for _, n := range []string{"a", "b"} {
		r.node(n, 4)
		r.pod(n+"1", "dev", 2, n)
		r.pod(n+"2", "dev", 2, n)
	}
	prod, like := r.pod("prod", "prod", 4, ""), r.pod("like", "prod", 4, "")
	r.start()
	deny := func(name string) {
		r.client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return a.(clienttesting.DeleteAction).GetName() == name, nil, apierrors.NewForbidden(corev1.Resource("pods"), name, errors.New("it is protected"))
		})
	}
	deny("b1")
	if _, _, status := r.try(prod); status.Code() != fwk.Error || len(r.deleted()) > 0 {
		t.Errorf("got %v, and evicted are %q", status, r.deleted())
	}
	r.wantEvicted(like, "a", "a1", "a2")
	r.pl.noteUnevictable("a1", "p", apierrors.NewForbidden(corev1.Resource("pods"), "a1", errors.New("it is protected")))
	r.wantEvicted(prod, "", `it would not fit if all pods after it went that the API server lets go; it refuses 2: `)
	r.pl.noteUnevictable("a2", "p", errors.New("the API server is down"))
	if _, is := r.pl.unevictable["a2"]; is {
		t.Error("a pod stays because the API server was down")
	}
}

// What looks at more than one node holds while others make way: one who is in the way for it goes, though the capacity is elsewhere.
// Limits of domains do the same: TestTenantsLimits.
func TestAntiAffinityHolds(t *testing.T) {
	r := newTeams(t, 4)
	r.node("a", 5, "zone=left")
	r.node("b", 4, "zone=left")
	r.pod("full", "none", 4, "a")
	r.pod("other", "dev", 1, "b")
	r.pod("first", "dev", 1, "a", apart)
	second := r.pod("second", "prod", 2, "", apart)
	r.start().wantEvicted(second, "b", "first")
}

// apart keeps a pod out of the zones of others that are kept so.
func apart(p *corev1.Pod) {
	p.Labels["apart"] = "yes"
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"apart": "yes"}},
	}}}}
}

// One that was in the way from another node is waited for as well, and nobody goes in another zone meanwhile: unless its node does not answer.
func TestVictimsOnOtherNodes(t *testing.T) {
	r := newTeams(t, 4)
	nodes := make(map[string]*corev1.Node)
	for _, zone := range []string{"left", "right"} {
		nodes[zone] = r.node("full-"+zone, 5, "zone="+zone)
		r.node("free-"+zone, 4, "zone="+zone)
		r.pod("none-"+zone, "none", 4, "full-"+zone)
	}
	r.pod("first", "dev", 1, "full-left", apart)
	second := r.pod("second", "dev", 1, "full-right", apart)
	prod := r.pod("prod", "prod", 2, "", apart)
	r.start().wantEvicted(prod, "free-right", "second")
	waits := "it waits until those that made way on node full-right are gone, of which pod ns/second is the first"
	r.wantEvicted(prod, "", waits)
	second.DeletionTimestamp = new(metav1.Now())
	r.wantEvicted(prod, "", waits)
	nodes["right"].Spec.Taints = unreachable
	r.wantEvicted(prod, "free-left", "first")
}

// One of another namespace that is in the way by an anti-affinity, its own or the preemptor's, goes alone, and not those with whom it would fit elsewhere.
func TestAntiAffinityOfAnotherNamespace(t *testing.T) {
	everywhere := func(p *corev1.Pod) {
		apart(p)
		p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{}
	}
	label := func(p *corev1.Pod) { p.Labels["apart"] = "yes" }
	for name, is := range map[string]struct{ blocker, preemptor func(*corev1.Pod) }{"its own": {everywhere, label}, "the preemptor's": {label, everywhere}} {
		t.Run(name, func(t *testing.T) {
			r := newTeams(t, 4)
			r.node("full", 5, "zone=left")
			r.node("free", 4, "zone=left")
			r.node("other", 4, "zone=left")
			r.pod("none", "none", 4, "full")
			r.pod("early", "dev", 4, "other")
			r.pod("blocker", "dev", 1, "full", is.blocker, func(p *corev1.Pod) { p.Namespace = "far" })
			prod := r.pod("prod", "prod", 2, "", is.preemptor)
			r.start().wantEvicted(prod, "free", "blocker")
		})
	}
}

// ownedBy makes a pod one of an owner of some kind.
func ownedBy(version, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "r", UID: "r", Controller: new(true)}}
	}
}

// What was found out about a pod holds for the others of its owner that come after it, until something changes.
func TestHopelessPodsAreNotTriedAgain(t *testing.T) {
	r := newRig(t).allocation("a", 0)
	r.node("n", 2)
	owned, sort := ownedBy("apps/v1", "ReplicaSet"), ownedBy("example.com/v1", "Workflow")
	r.pod("runs", "a", 1, "n", priority("5"))
	first, second := r.pod("first", "a", 3, "", priority("9"), owned), r.pod("second", "a", 3, "", priority("9"), owned)
	third, fourth := r.pod("third", "a", 3, "", priority("9"), sort), r.pod("fourth", "a", 3, "", priority("9"), sort)
	r.start().wantEvicted(first, "", "it would not fit")
	r.wantEvicted(second, "", "a pod like it has just found nobody")
	// The pods of an operator may be of all sorts, so that nothing is known of one by another.
	r.wantEvicted(third, "", "it would not fit")
	r.wantEvicted(fourth, "", "it would not fit")
	r.tenants.Compute()
	r.wantEvicted(second, "", "it would not fit")
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// rig is a controller beside a partition p of the nodes with pool=p.
type rig struct {
	*controllertest.Rig
	*Controller
	// age makes each object younger than those before.
	age int
	// patches is how often a status was written.
	patches int
	// held are pods that a budget does not let go.
	held []string
}

func newRig(t *testing.T, objects ...func(*rig) client.Object) *rig {
	t.Helper()
	r := &rig{}
	b := controllertest.Builder(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				r.patches++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
			SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, with client.Object, opts ...client.SubResourceCreateOption) error {
				if slices.Contains(r.held, o.GetName()) {
					return apierrors.NewTooManyRequests("a budget holds it", 0)
				}
				return c.SubResource(sub).Create(ctx, o, with, opts...)
			},
		})
	for _, object := range objects {
		b.WithObjects(object(r))
	}
	r.Rig = controllertest.New(t, begin, b)
	r.Controller = &Controller{Client: r.Server, Events: r.Said, Clock: r.Time, Schedulers: []string{"espalier"}}
	return r
}

func (r *rig) meta(name string) metav1.ObjectMeta {
	r.age++
	return metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 2, CreationTimestamp: metav1.NewTime(begin.Add(time.Duration(r.age-1000) * time.Second))}
}

func partition(name, pool string) func(*rig) client.Object {
	return func(r *rig) client.Object {
		p := &placementv1alpha1.Partition{ObjectMeta: r.meta(name)}
		p.Spec.NodeSelector.MatchLabels = map[string]string{"pool": pool}
		return p
	}
}

func node(name, pool, cpu string) func(*rig) client.Object {
	return func(r *rig) client.Object {
		n := &corev1.Node{ObjectMeta: r.meta(name)}
		n.Labels = map[string]string{"pool": pool}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return n
	}
}

// team is an allocation of partition p that reserves some CPU and claims the pods of a team.
func team(name, cpu string, change ...func(*placementv1alpha1.AllocationSpec)) func(*rig) client.Object {
	return func(r *rig) client.Object {
		a := &placementv1alpha1.Allocation{ObjectMeta: r.meta(name)}
		a.Spec.Partition = "p"
		a.Spec.Assignments = []placementv1alpha1.Assignment{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}}}
		if cpu != "" {
			a.Spec.Reserved = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		for _, c := range change {
			c(&a.Spec)
		}
		return a
	}
}

// pod is one of a team that requests 2 CPUs, on a node unless that is "".
func pod(name, team, on string, change ...func(*corev1.Pod)) func(*rig) client.Object {
	return func(r *rig) client.Object {
		p := &corev1.Pod{ObjectMeta: r.meta(name)}
		p.Namespace, p.Labels, p.Annotations = "ns", map[string]string{"team": team}, map[string]string{}
		p.Spec.SchedulerName, p.Spec.NodeName = "espalier", on
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
		if on != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: p.CreationTimestamp}}
		}
		for _, c := range change {
			c(p)
		}
		return p
	}
}

// identity makes a pod one of group g.
func identity(id int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels[clusterview.IdentityGroupLabel] = "g"
		p.Annotations[clusterview.IdentityAnnotation] = fmt.Sprint(id)
	}
}

func (r *rig) mustLook() *rig {
	r.Helper()
	r.Must(r.look(r.Context()))
	return r
}

func (r *rig) allocation(name string) *placementv1alpha1.AllocationStatus {
	r.Helper()
	a := &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Get(a)
	return &a.Status
}

func (r *rig) partition(name string) *placementv1alpha1.PartitionStatus {
	r.Helper()
	p := &placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Get(p)
	return &p.Status
}

// pods are the names of all that there are.
func (r *rig) pods() string {
	r.Helper()
	var list corev1.PodList
	r.Must(r.Server.List(r.Context(), &list))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return strings.Join(names, " ")
}

// wantPods wants these pods to be left, by name.
func (r *rig) wantPods(want string) {
	r.Helper()
	if got := r.pods(); got != want {
		r.Errorf("of the pods there are %s, want %s", got, want)
	}
}

// wantCondition wants a condition with this reason, and a message with these parts.
func (r *rig) wantCondition(conditions []metav1.Condition, kind string, is bool, reason string, parts ...string) {
	r.Helper()
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || (c.Status == metav1.ConditionTrue) != is || c.Reason != reason || c.ObservedGeneration != 2 || !c.LastTransitionTime.Time.Equal(begin) {
		r.Errorf("got %+v, want %s %t for %s", c, kind, is, reason)
		return
	}
	placementtest.WantParts(r, c.Message, parts...)
}

func list(cpu string) string { return fmt.Sprint("cpu ", cpu) }

func brief(l corev1.ResourceList) string {
	q := l[corev1.ResourceCPU]
	return list(q.String())
}

// say are the numbers of an allocation.
func say(s *placementv1alpha1.AllocationStatus) string {
	var beyond []string
	for _, p := range s.Beyond {
		beyond = append(beyond, fmt.Sprint(p.Name, "@", p.Position))
	}
	next := "nobody"
	if s.Next != nil {
		next = fmt.Sprint(s.Next.Name, "@", s.Next.Position)
	}
	n := func(i *int32) string {
		if i == nil {
			return "-"
		}
		return fmt.Sprint(*i)
	}
	return fmt.Sprintf("%s, %s %%, runs %s, waits %s, within %s, at %s to %s, beyond %s, next %s", brief(s.Used), n(s.UtilizationPercent), n(s.RunningPods),
		n(s.WaitingPods), n(s.ReservedPods), n(s.FirstPosition), n(s.LastPosition), strings.Join(beyond, " "), next)
}

// recorder has each Event in a line that begins with the name of the pod.
type recorder struct{ lines []string }

func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	pod, err := meta.Accessor(regarding)
	if err != nil {
		panic(err)
	}
	r.lines = append(r.lines, fmt.Sprintf("%s %s %s %s", pod.GetName(), kind, reason, fmt.Sprintf(note, args...)))
}

// waits is a controller that has looked once, and what it says.
func waits(t *testing.T, objects ...func(*rig) client.Object) (*rig, *recorder) {
	t.Helper()
	r, said := newRig(t, slices.Concat([]func(*rig) client.Object{partition("p", "p"), node("n1", "p", "64")}, objects)...), &recorder{}
	r.Events = said
	r.wantSaid(said, 0)
	return r, said
}

// wantSaid looks when some more time has passed, and wants Events with just these beginnings.
func (r *rig) wantSaid(said *recorder, passed time.Duration, want ...string) {
	r.Helper()
	said.lines = nil
	r.Time.Step(passed)
	r.mustLook()
	if !slices.EqualFunc(said.lines, want, strings.HasPrefix) {
		r.Errorf("after %s it said\n%s\nwant\n%s", passed, strings.Join(said.lines, "\n"), strings.Join(want, "\n"))
	}
}

// change changes a pod.
func (r *rig) change(name string, change func(*corev1.Pod)) {
	r.Helper()
	controllertest.Change(r.Rig, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}, change)
}

// crowd are pods of a team that wait.
func crowd(team string, n int) (all []func(*rig) client.Object) {
	for i := range n {
		all = append(all, pod(fmt.Sprintf("%s-%02d", team, i), team, ""))
	}
	return all
}

func priority(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, clusterview.AllocationPriorityAnnotation, text)
	}
}

// Each pod that has waited for a while has an Event that names its allocation, why it waits, where it is, and what to do. Those that were tried
// have the scheduler's, and those with gates the API server's condition.
func TestWhyPodsWait(t *testing.T) {
	one := func(s *placementv1alpha1.AllocationSpec) {
		s.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "g", Count: new(int32(1))}}
	}
	r, said := waits(t, team("max", "2", capped), team("shards", "4", one), team("plain", "2"), team("odd", "2"),
		pod("m1", "max", "n1"), pod("m2", "max", "", tried("no room")), pod("s1", "shards", "n1", identity(0)), pod("s2", "shards", "", identity(-1)),
		pod("t1", "plain", "", tried("no room")), pod("t2", "plain", ""), pod("bad", "odd", "", priority("high")),
		pod("gated", "odd", "", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}} }))
	r.wantSaid(said, 5*time.Second)
	r.wantSaid(said, 5*time.Second,
		`t2 Normal WaitsForTurn it has not been tried yet: position 4 of 6 in partition "p", allocation "plain": those that wait before it are tried first, see kubectl espalier queue p; if there are none, see whether its scheduler runs`,
		`s2 Normal WaitsForIdentity identity group "g" has no identity left, all 1 are held: position 5 of 6 in partition "p", allocation "shards": it is next when one is free; a larger count of the group lets more run`,
		`m2 Normal AllocationAtMaximum allocation "max" has as many pods before it as its maxUtilizationPercent lets run: position 6 of 6 in partition "p", allocation "max": raise maxUtilizationPercent or what is reserved, or remove pods before this one`,
		`bad Warning NotInOrder it waits as a pod of allocation "odd": annotation espalier.dev/allocation-priority "high": write a number from 0 to 100`)
}

// One pod that must not be tried keeps its whole PodGroup from it. The others are told which one that is, and not to look for a scheduler.
func TestPodsOfAGroupWaitForEachOther(t *testing.T) {
	in := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }
	}
	r, said := waits(t, team("max", "2", capped), team("plain", "2"), pod("runs", "max", "n1"),
		pod("c", "max", "", in("capped")), pod("d", "plain", "", in("capped")), pod("none", "plain", ""),
		pod("e", "plain", "", in("odd")), pod("f", "plain", "", in("odd"), priority("high")), pod("g", "plain", "", in("odd"), priority("low")),
		pod("h", "plain", "", in("gated")), pod("i", "plain", "", in("gated"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}} }))
	told := func(pod, at, by string) string {
		return fmt.Sprintf(`%s Normal WaitsForGroup it has not been tried yet: position %s of 6 in partition "p", allocation "plain": a PodGroup is tried when all of its pods may be: see what its pod ns/%s waits for`, pod, at, by)
	}
	r.wantSaid(said, 10*time.Second, told("d", "2", "c"), "c Normal AllocationAtMaximum", "none Normal WaitsForTurn", told("e", "4", "f"), told("h", "5", "i"), "f Warning NotInOrder", "g Warning NotInOrder")
}

// A pod that waits for an instant has no Event, and neither has one that is gone: nothing is kept of it.
func TestInstants(t *testing.T) {
	r, said := waits(t, team("a", "2"), pod("placed", "a", ""), pod("gone", "a", ""), pod("stays", "a", ""))
	r.change("placed", func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
	r.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gone"}})
	r.wantSaid(said, 10*time.Second, "stays")
	if len(r.histories) != 1 {
		t.Errorf("it keeps what it said of %d pods", len(r.histories))
	}
}

// However many wait, so many are told at a look: the first of each allocation, in the order. So it is after a restart.
func TestSoManyAreToldAtOnce(t *testing.T) {
	r, said := waits(t, slices.Concat([]func(*rig) client.Object{team("big", "2"), team("small", "0"), pod("runs", "big", "n1")}, crowd("big", 2*maxTold), crowd("small", 2))...)
	told := func(from, to int) (all []string) {
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf("big-%02d", i))
		}
		return all
	}
	first := slices.Insert(told(0, maxTold-2), 1, "small-00")
	first = slices.Insert(first, 3, "small-01")
	r.wantSaid(said, 10*time.Second, first...)
	r.wantSaid(said, 5*time.Second, told(maxTold-2, 2*maxTold-2)...)
	r.wantSaid(said, 5*time.Second, told(2*maxTold-2, 2*maxTold)...)
	r.wantSaid(said, 5*time.Second)
	r.Controller = &Controller{Client: r.Client, Events: said, Clock: r.Clock, Schedulers: r.Schedulers}
	r.wantSaid(said, 0)
	r.wantSaid(said, 10*time.Second, first...)
}

// What was said is not said again as long as the API server keeps it, wherever the pod is in the order. Another reason is said, and another
// text of the same reason when client-go would not take it for the same Event.
func TestReasonsThatChange(t *testing.T) {
	r, said := waits(t, team("a", "2"), pod("first", "a", ""), pod("pod", "a", ""))
	r.wantSaid(said, 10*time.Second, "first Normal WaitsForTurn", "pod Normal WaitsForTurn")
	r.change("first", func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
	r.wantSaid(said, 10*time.Minute)
	r.change("pod", priority("one"))
	r.wantSaid(said, 0)
	r.wantSaid(said, 10*time.Second, `pod Warning NotInOrder it waits as a pod of allocation "a": annotation espalier.dev/allocation-priority "one"`)
	r.change("pod", priority("two"))
	r.wantSaid(said, time.Minute)
	r.wantSaid(said, time.Minute)
	r.wantSaid(said, 11*time.Minute, `pod Warning NotInOrder it waits as a pod of allocation "a": annotation espalier.dev/allocation-priority "two"`)
	r.wantSaid(said, 30*time.Minute)
	r.wantSaid(said, 30*time.Minute, `pod Warning NotInOrder`)
	r.change("pod", priority("3"))
	r.wantSaid(said, time.Minute)
	r.wantSaid(said, time.Minute, "pod Normal WaitsForTurn")
	r.change("pod", tried("no room"))
	r.wantSaid(said, time.Hour)
}

// docs/tenants.md has each of these Events with its type, and how many are written.
func TestTenantsPageHasTheEvents(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tenants.md")
	controllertest.Must(t, err)
	want := []string{fmt.Sprintf("\nEvery five seconds %d Events are written at most.", maxTold), "has for ten seconds"}
	for reason, kind := range map[string]string{
		reasonTurn: corev1.EventTypeNormal, reasonMaximum: corev1.EventTypeNormal, reasonIdentity: corev1.EventTypeNormal, reasonGroup: corev1.EventTypeNormal, reasonNotInOrder: corev1.EventTypeWarning,
	} {
		want = append(want, fmt.Sprintf("\n| %#q | %s |", reason, kind))
	}
	placementtest.WantParts(t, string(page), want...)
	if every != 5*time.Second || shortly != 10*time.Second {
		t.Errorf("it looks every %s, and waits %s", every, shortly)
	}
}

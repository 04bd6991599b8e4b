// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is a second of the vectors, which count from 0.
func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

func text(second int64) string { return at(second).Format(time.RFC3339) }

// cluster is a pod of a Deployment that asks for a new lease, on node a that is valid until 1000.
type cluster struct {
	*controllertest.Rig
	*Controller
}

func node(name string, end int64) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10"), corev1.ResourceCPU: resource.MustParse("4")}},
	}
	if end > 0 {
		n.Annotations = map[string]string{clusterview.ValidUntilAnnotation: text(end)}
	}
	return n
}

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: controllertest.Named("web-1-0"),
		Spec:       corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: "a", Containers: []corev1.Container{{Name: "web"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	p.Labels, p.OwnerReferences = map[string]string{"app": "web"}, controllertest.OwnedBy("ReplicaSet", "web-1")
	p.Annotations = map[string]string{clusterview.LeaseAnnotation: "50s", clusterview.LeaseExpiryAnnotation: text(60), clusterview.RenewLeaseAnnotation: "true"}
	for _, c := range change {
		c(p)
	}
	return p
}

func newCluster(t *testing.T, p *corev1.Pod, more ...client.Object) *cluster {
	t.Helper()
	deployment, set := controllertest.Deployment("web", 1, 1)
	objects := append([]client.Object{
		p, node("a", 1000), deployment, set, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "web"}}},
	}, more...)
	c := &cluster{Rig: controllertest.New(t, at(0), controllertest.Builder(t, objects...))}
	c.Controller = &Controller{Client: c.Server, API: c.Server, Events: c.Said, Clock: c.Time, Options: Options{
		Schedulers: []string{"espalier-scheduler"}, Namespaces: labels.Everything(), AtOnce: 5,
	}}
	return c
}

// lookAt looks at a second, and returns when the pod's lease ends, whether it still asks for another, and the Moves that there are.
func (c *cluster) lookAt(second int64) (expiry string, asking bool, moves []placementv1alpha1.Move) {
	c.Helper()
	c.Time.SetTime(at(second))
	c.Must(c.look(c.Context()))
	p := &corev1.Pod{ObjectMeta: controllertest.Named("web-1-0")}
	c.Get(p)
	_, asking = p.Annotations[clusterview.RenewLeaseAnnotation]
	return p.Annotations[clusterview.LeaseExpiryAnnotation], asking, c.Moves()
}

// Vector TV19 on objects: in place as long as the node lives long enough, then a Move, and where there is no other node neither.
func TestVector_TV19_Renewal(t *testing.T) {
	for name, tc := range map[string]struct {
		now    int64
		others []client.Object
		expiry string
		asking bool
		moves  int
	}{
		"at 200 the node lives long enough":    {200, nil, text(250), false, 0},
		"at 949 it does for the last time":     {949, nil, text(999), false, 0},
		"at 950 it ends with the lease":        {950, nil, text(60), true, 0},
		"at 975 another one does":              {975, []client.Object{node("b", 2000)}, text(60), true, 1},
		"and another one that has no end":      {975, []client.Object{node("b", 0)}, text(60), true, 1},
		"at 1975 there is nowhere to go":       {1975, []client.Object{node("b", 2000)}, text(60), true, 0},
		"the other one lives too short a time": {975, []client.Object{node("b", 1025)}, text(60), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod(), tc.others...)
			expiry, asking, moves := c.lookAt(tc.now)
			if expiry != tc.expiry || asking != tc.asking || len(moves) != tc.moves {
				t.Fatalf("the lease ends %s, it asks: %t, and there are %d Moves; want %s, %t and %d", expiry, asking, len(moves), tc.expiry, tc.asking, tc.moves)
			}
			if tc.moves > 0 {
				m := moves[0].Spec
				if m.Reason != placementv1alpha1.MoveLease || m.Pod.Name != "web-1-0" || m.Avoid == nil || *m.Avoid.Value != "a" {
					t.Errorf("the Move is %+v", m)
				}
			}
			said := c.Told()
			if kept := tc.asking && tc.moves == 0; kept != (len(said) == 1) {
				t.Errorf("it is told %q", said)
			}
			if _, _, again := c.lookAt(tc.now + 1); len(again) != len(moves) || len(c.Told()) > 0 {
				t.Errorf("a second later there are %d Moves, and it is told more", len(again))
			}
		})
	}
}

// What is said where a lease is not renewed.
func TestWhatIsSaid(t *testing.T) {
	cordoned, full, unready := node("b", 0), node("b", 0), node("b", 0)
	cordoned.Spec.Unschedulable = true
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("0")
	unready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	const nowhere = "its node a ends 1970-01-01T00:16:40Z, and no other node takes it and lives for 50s more"
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		others []client.Object
		want   string // "" for nothing
	}{
		"no other node":              {pod(), nil, nowhere},
		"one that is cordoned":       {pod(), []client.Object{cordoned}, nowhere},
		"one that is full":           {pod(), []client.Object{full}, nowhere},
		"one that is not ready":      {pod(), []client.Object{unready}, nowhere},
		"one that it does not allow": {pod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), []client.Object{node("b", 0)}, nowhere},
		"a StatefulSet's": {pod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "StatefulSet" }), []client.Object{node("b", 0)},
			"its node a does not live long enough, and only pods of Deployments that allow a surge are moved, without volumes that one node alone can have"},
		"under two budgets": {pod(), []client.Object{node("b", 0), controllertest.Budget("one", "", 0), controllertest.Budget("two", "", 0)},
			"its node a does not live long enough, and several disruption budgets select the pod, and Kubernetes evicts no such pod: one, two"},
		"that asks to be left there": {pod(func(p *corev1.Pod) { p.Annotations["karpenter.sh/do-not-disrupt"] = "true" }), []client.Object{node("b", 0)},
			"its node a does not live long enough, and the pod asks to be left there by the annotation karpenter.sh/do-not-disrupt: true"},
		"without a lease": {pod(func(p *corev1.Pod) { delete(p.Annotations, clusterview.LeaseAnnotation) }), nil,
			"it has none: write the annotation espalier.dev/lease"},
		"with a lease that cannot be read": {pod(func(p *corev1.Pod) { p.Annotations[clusterview.LeaseAnnotation] = "3d" }), nil,
			`annotation espalier.dev/lease: no duration "3d": use hours, minutes or seconds, such as 72h or 90m, and 0s for none`},
		"with another value": {pod(func(p *corev1.Pod) { p.Annotations[clusterview.RenewLeaseAnnotation] = "yes" }), nil,
			`annotation espalier.dev/renew-lease: unknown value "yes": use true, or remove it`},
		"of another scheduler":   {pod(func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }), nil, ""},
		"that has ended":         {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), nil, ""},
		"that does not ask":      {pod(func(p *corev1.Pod) { delete(p.Annotations, clusterview.RenewLeaseAnnotation) }), nil, ""},
		"on a node that is gone": {pod(func(p *corev1.Pod) { p.Spec.NodeName = "gone" }), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.pod, tc.others...)
			expiry, _, moves := c.lookAt(975)
			c.lookAt(976)
			if expiry != text(60) || len(moves) > 0 {
				t.Errorf("the lease ends %s, and there are %d Moves", expiry, len(moves))
			}
			want := "Warning LeaseNotRenewed The lease is not renewed: " + tc.want + "."
			if tc.want == "" {
				want = ""
			}
			if got := strings.Join(c.Told(), "\n"); got != want {
				t.Errorf("it is told\n%s, want\n%s", got, want)
			}
		})
	}
}

// A node whose end cannot be read does not live long enough.
func TestMalformedEnd(t *testing.T) {
	c := newCluster(t, pod())
	controllertest.Change(c.Rig, node("a", 0), func(n *corev1.Node) { n.Annotations[clusterview.ValidUntilAnnotation] = "tomorrow" })
	if expiry, asking, _ := c.lookAt(200); expiry != text(60) || !asking {
		t.Errorf("the lease ends %s, it asks: %t", expiry, asking)
	}
	if said := c.Told(); len(said) != 1 || !strings.Contains(said[0], `its node a has a malformed end: annotation espalier.dev/valid-until: no time "tomorrow"`) {
		t.Errorf("it is told %q", said)
	}
}

// Which nodes take a pod is a look at all of them: it is taken once in half a minute for one that no node takes, and never while none can be moved.
func TestAKeptPodRests(t *testing.T) {
	full := node("b", 0)
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("0")
	c := newCluster(t, pod(), full)
	evaluated := 0
	c.Client = interceptor.NewClient(c.Server, interceptor.Funcs{
		List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, is := into.(*corev1.NamespaceList); is && (&client.ListOptions{}).ApplyOptions(options).LabelSelector == nil {
				evaluated++ // filters need the namespaces
			}
			return to.List(ctx, into, options...)
		},
	})
	for _, look := range []struct {
		at           int64
		atOnce, want int
	}{{970, 0, 0}, {971, 5, 1}, {973, 5, 1}, {1000, 5, 1}, {1001, 5, 2}} {
		c.AtOnce = look.atOnce
		if c.lookAt(look.at); evaluated != look.want {
			t.Errorf("at %d filters were evaluated %d times, want %d", look.at, evaluated, look.want)
		}
	}
	if said := c.Told(); len(said) != 1 {
		t.Errorf("it is told %q", said)
	}
}

// Another reason is said when client-go writes it as an Event of its own: later, or of a pod that has changed.
func TestAnotherReason(t *testing.T) {
	c := newCluster(t, pod())
	for _, look := range []struct {
		at, end       int64
		changed, says bool
	}{{975, 1000, false, true}, {1006, 990, false, false}, {1754, 990, false, false}, {1755 + 30, 990, false, true}, {1820, 995, false, false}, {1860, 995, true, true}} {
		controllertest.Change(c.Rig, node("a", 0), func(n *corev1.Node) { n.Annotations[clusterview.ValidUntilAnnotation] = text(look.end) })
		if look.changed {
			controllertest.Change(c.Rig, pod(), func(p *corev1.Pod) { p.Annotations["example.com/changed"] = "yes" })
		}
		c.lookAt(look.at)
		if said := c.Told(); len(said) != 0 != look.says || look.says && !strings.Contains(said[0], "its node a ends "+text(look.end)) {
			t.Errorf("at %d it is told %q", look.at, said)
		}
	}
}

func partition(name string, change ...func(*placementv1alpha1.PartitionSpec)) *placementv1alpha1.Partition {
	p := &placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.NodeSelector.MatchLabels = map[string]string{"pool": name}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// allocation is one of partition p, which claims the pods of an app in the namespaces of a team.
func allocation(app, team string, traits map[string]string) *placementv1alpha1.Allocation {
	a := &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: app}}
	a.Spec.Partition, a.Spec.Traits = "p", traits
	a.Spec.Assignments = []placementv1alpha1.Assignment{{
		NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	return a
}

// b is a node that lives for ever, of a pool and with a disk.
func b(pool, disk string) *corev1.Node { return ofPool("b", pool, disk) }

func ofPool(name, pool, disk string) *corev1.Node {
	n := node(name, 0)
	n.Labels["pool"], n.Labels["disk"] = pool, disk
	return n
}

// A pod of an allocation goes where that allows it, and one of none everywhere, as the scheduler places them.
func TestNodesOfAllocations(t *testing.T) {
	of := allocation("web", "web", map[string]string{"disk": "ssd"})
	for name, tc := range map[string]struct {
		others     []client.Object
		off, moves bool
	}{
		"a node of its partition with its traits":    {[]client.Object{b("p", "ssd"), partition("p"), of}, false, true},
		"one of another partition":                   {[]client.Object{b("q", "ssd"), partition("p"), partition("q"), of}, false, false},
		"one of no partition":                        {[]client.Object{b("", "ssd"), partition("p"), of}, false, false},
		"one without its traits":                     {[]client.Object{b("p", "hdd"), partition("p"), of}, false, false},
		"one of its partition, after one of another": {[]client.Object{b("q", "ssd"), ofPool("c", "p", "ssd"), partition("p"), partition("q"), of}, false, true},
		"an allocation without a partition":          {[]client.Object{b("p", "ssd"), of}, false, false},
		"a partition not of its namespace": {[]client.Object{b("p", "ssd"), partition("p", func(s *placementv1alpha1.PartitionSpec) {
			s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "db"}}
		}), of}, false, false},
		"a partition with shorter leases": {[]client.Object{b("p", "ssd"), partition("p", func(s *placementv1alpha1.PartitionSpec) {
			s.MaxLeaseSeconds = new(int64(49))
		}), of}, false, false},
		"an allocation of other pods":          {[]client.Object{b("p", "ssd"), partition("p"), allocation("db", "web", nil)}, false, true},
		"an allocation of other namespaces":    {[]client.Object{b("p", "ssd"), partition("p"), allocation("web", "db", nil)}, false, true},
		"a scheduler that knows none of these": {[]client.Object{b("q", "hdd"), partition("p"), of}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod(), tc.others...)
			c.Allocations = !tc.off
			_, asking, moves := c.lookAt(975)
			if !asking || (len(moves) == 1) != tc.moves {
				t.Errorf("it asks: %t, and there are %d Moves", asking, len(moves))
			}
			said := c.Told()
			if tc.moves && len(said) > 0 || !tc.moves && (len(said) != 1 || !strings.Contains(said[0], "LeaseNotRenewed") || !strings.Contains(said[0], "no other node takes it")) {
				t.Errorf("it is told %q", said)
			}
		})
	}
}

// Where the kinds are not installed, or not yet, pods are of no allocation. Where they cannot be read nothing is known, and nothing is said.
func TestAllocationsThatAreNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		moves int
	}{
		"not installed": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: placementv1alpha1.SchemeGroupVersion.Group, Kind: "Partition"}}, 1},
		"not readable":  {errors.New("it is down"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod(), b("p", "ssd"))
			c.Allocations = true
			c.Client = interceptor.NewClient(c.Server, interceptor.Funcs{
				List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					if kind := into.GetObjectKind().GroupVersionKind().Kind; kind == "PartitionList" || kind == "AllocationList" {
						return tc.err
					}
					return to.List(ctx, into, options...)
				},
			})
			c.Time.SetTime(at(975))
			err := c.look(t.Context())
			if failed := tc.moves == 0; failed != (err != nil) || failed && !strings.Contains(err.Error(), "listing objects of kind Partition: it is down") {
				t.Errorf("it fails: %v", err)
			}
			if moves, said := c.Moves(), c.Told(); len(moves) != tc.moves || len(said) > 0 {
				t.Errorf("there are %d Moves, and it is told %q", len(moves), said)
			}
		})
	}
}

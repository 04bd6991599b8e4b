// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"fmt"
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

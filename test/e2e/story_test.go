// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	storyLabel = "e2e.espalier.dev/story"
	zoneLabel  = corev1.LabelTopologyZone
	rowLabel   = "example.com/row"
	rackLabel  = "example.com/rack"

	// timeout is how long anything that happens to one story may take on a busy machine.
	timeout = 90 * time.Second
)

var (
	byZone = evenness.Level{Name: zoneLabel}
	byRack = evenness.Level{Name: rackLabel}
)

// story is one test with nodes and a namespace of its own. Everything it makes carries its name, and is deleted when the test ends.
type story struct {
	testing.TB
	ctx    context.Context
	client kubernetes.Interface
	// name is unique in the cluster; ns is the namespace, of the same name.
	name, ns string
	// scheduler is the schedulerName of the story's pods.
	scheduler string
	levels    []evenness.Level
	// made counts the nodes made so far.
	made int
}

// begin starts a story that runs beside others, if the flags select its label. Levels are what its workloads are judged by.
func begin(t *testing.T, l label, levels ...evenness.Level) *story {
	t.Helper()
	selected(t, l)
	t.Parallel()
	name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(t.Name(), "Test"), "/", "-"))
	name = fmt.Sprintf("%s-%05x", name, rand.N(1<<20))
	s := &story{TB: t, ctx: t.Context(), client: world.client, name: name, ns: "e2e-" + name, scheduler: rig.SchedulerName, levels: levels}
	_, err := s.client.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}, metav1.CreateOptions{})
	s.must(err, "creating the story's namespace")
	t.Cleanup(s.end)
	return s
}

// end deletes what the story made. The namespace goes on its own; nobody waits for it.
func (s *story) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if s.Failed() {
		s.Logf("pods at the end:\n%s", s.pods(ctx))
	}
	if err := s.client.CoreV1().Namespaces().Delete(ctx, s.ns, metav1.DeleteOptions{}); err != nil {
		s.Errorf("deleting namespace %s: %v", s.ns, err)
	}
	if err := s.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: storyLabel + "=" + s.name}); err != nil {
		s.Errorf("deleting the nodes of %s: %v", s.name, err)
	}
}

// pods lists the story's pods for a person who reads a failure.
func (s *story) pods(ctx context.Context) string {
	list, err := s.client.CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, p := range list.Items {
		fmt.Fprintf(&b, "%s %s on %q", p.Name, p.Status.Phase, p.Spec.NodeName)
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
				fmt.Fprintf(&b, ": %s", c.Message)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *story) must(err error, doing string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// until polls: nil ends it, and when timeout is at its end the last error is the failure.
func (s *story) until(what string, check func() error) {
	s.Helper()
	s.untilWithin(timeout, what, check)
}

// untilWithin is until for what takes another time.
func (s *story) untilWithin(limit time.Duration, what string, check func() error) {
	s.Helper()
	err := rig.Poll(s.ctx, limit, 100*time.Millisecond, what, func() error {
		err := check()
		if err != nil && world.scheduler != nil && s.scheduler == rig.SchedulerName {
			select {
			case <-world.scheduler.Done():
				return rig.Never(world.scheduler.Err())
			default:
			}
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

// errorIf is an error if something is so, and nil if it is not: what a check returns at its end.
func errorIf(is bool, format string, args ...any) error {
	if is {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// settled waits until n pods of the app have nodes and run, and no others are left, and returns where they are.
func (s *story) settled(app string, n int) *rig.Observation {
	s.Helper()
	return s.observe("app="+app, n, isRunning)
}

// isRunning is what settled pods are.
func isRunning(p *corev1.Pod) error {
	return errorIf(p.Status.Phase != corev1.PodRunning, "pod %s on node %q is %s", p.Name, p.Spec.NodeName, p.Status.Phase)
}

// observe waits until n pods have nodes and pass the check, and no others are left.
func (s *story) observe(selector string, n int, check func(*corev1.Pod) error) *rig.Observation {
	s.Helper()
	return s.seen(fmt.Sprintf("%d pods with %s", n, selector), selector, func(o *rig.Observation) error {
		return o.Settled(n, check)
	})
}

// seen waits until the pods are as the check wants them, and returns where they are: of all nodes and pods of the cluster, which it reads last.
func (s *story) seen(what, selector string, check func(*rig.Observation) error) (o *rig.Observation) {
	s.Helper()
	w := rig.Workload{Namespace: s.ns, Selector: selector, Levels: s.levels}
	s.until(what, func() (err error) {
		for _, observe := range []func(context.Context, kubernetes.Interface, rig.Workload) (*rig.Observation, error){rig.ObservePods, rig.Observe} {
			if o, err = observe(s.ctx, s.client, w); err != nil {
				return err
			}
			if err := check(o); err != nil {
				return err
			}
		}
		return nil
	})
	return o
}

// even fails the story if any pod could have been placed better.
func (s *story) even(o *rig.Observation) {
	s.Helper()
	if findings := o.Check(); len(findings) > 0 {
		s.Errorf("not as even as it can be: %s\n%s", strings.Join(findings, "; "), o.Draw())
	}
}

// counts fails the story if the pods by value of the level are not the wanted ones, in whatever order.
func (s *story) counts(o *rig.Observation, level int, want ...int) {
	s.Helper()
	got := evenness.Counts(level, o.Nodes)
	if !slices.Equal(slices.Sorted(maps.Values(got)), slices.Sorted(slices.Values(want))) {
		s.Errorf("pods by %s are %v, want %v\n%s", s.levels[level].Name, got, want, o.Draw())
	}
}

// exactly fails the story if the pods by value of the level are not these.
func (s *story) exactly(o *rig.Observation, level int, want map[string]int) {
	s.Helper()
	got := evenness.Counts(level, o.Nodes)
	for value, n := range want {
		if got[value] != n {
			s.Errorf("%s %q has %d pods, want %d\n%s", s.levels[level].Name, value, got[value], n, o.Draw())
		}
	}
}

// gone says whether the error is that the object is not there any more.
func gone(err error) bool { return apierrors.IsNotFound(err) }

// What stories do with single objects. One of the cluster has no namespace, and the story's is not asked for.

// object is a pointer to an object of a kind.
type object[T any] interface {
	*T
	client.Object
}

// named is an object that has but a name, to be read, changed or deleted by it.
func named[T any, P object[T]](s *story, name string) P {
	o := P(new(T))
	o.SetNamespace(s.ns)
	o.SetName(name)
	return o
}

// title is what an object is called in messages.
func title(o client.Object) string { return reflect.TypeOf(o).Elem().Name() + " " + o.GetName() }

// make creates an object in the story's namespace.
func (s *story) make(o client.Object) {
	s.Helper()
	o.SetNamespace(s.ns)
	s.must(world.objects.Create(s.ctx, o), "creating "+title(o))
}

// create makes an object of the cluster that is deleted with the story. The first stories may come before its kind is served.
func (s *story) create(o client.Object) {
	s.Helper()
	s.until("creating "+title(o), func() error { return world.objects.Create(s.ctx, o) })
	s.Cleanup(func() {
		if err := world.objects.Delete(context.Background(), o); err != nil && !gone(err) {
			s.Errorf("deleting %s: %v", title(o), err)
		}
	})
}

// get reads an object.
func get[T any, P object[T]](s *story, name string) P {
	s.Helper()
	o := named[T, P](s, name)
	s.must(world.objects.Get(s.ctx, client.ObjectKeyFromObject(o), o), "reading "+title(o))
	return o
}

// becomes waits until an object is there and passes the check.
func becomes[T any, P object[T]](s *story, name, what string, check func(P) error) {
	s.Helper()
	s.until(what, func() error {
		o := named[T, P](s, name)
		if err := world.objects.Get(s.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return check(o)
	})
}

// goes waits until an object is not there any more.
func (s *story) goes(o client.Object) {
	s.Helper()
	s.until(title(o)+" to be gone", func() error {
		err := world.objects.Get(s.ctx, client.ObjectKeyFromObject(o), o)
		if gone(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is there"))
	})
}

// alter changes an object by a merge patch.
func (s *story) alter(o client.Object, format string, args ...any) {
	s.Helper()
	s.must(world.objects.Patch(s.ctx, o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))), "changing "+title(o))
}

// delete deletes an object, by its grace period or as the options say.
func (s *story) delete(o client.Object, options ...client.DeleteOption) {
	s.Helper()
	s.must(world.objects.Delete(s.ctx, o, options...), "deleting "+title(o))
}

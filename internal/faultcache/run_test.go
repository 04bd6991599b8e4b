// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
)

// start runs a cache over real informers, and returns what ends it: all that it has
// started must have ended with it. The scheduler's informers start late, as those of the
// framework do.
func start(t *testing.T, client *fake.Clientset, r *rig, late func()) (*Cache, func()) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := New(t.Context(), options(), Sources{
		Client: client, Informers: factory, Clock: clock.RealClock{}, Recorder: r,
		Policy: func(*corev1.Pod) *clusterview.Policy { return r.policy },
		Policies: func(context.Context) {
			if r.asked != nil {
				r.policy = r.asked()
			}
		},
	})
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	if late != nil {
		late()
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	return c, func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Error("something runs on")
		}
		factory.Shutdown()
		goleak.VerifyNone(t, before)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// A scheduler learns of failures from all its sources, writes them down, and the next
// one knows of them when it places its first pod.
func TestRun(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	r := &rig{TB: t}
	refused := pod("refused", "n1").Phase(corev1.PodFailed).Obj()
	refused.Status.Reason, refused.Status.StartTime = "OutOfcpu", &metav1.Time{Time: now}
	client := fake.NewClientset(st.MakeNode().Name("n1").Obj(), st.MakeNode().Name("n2").Obj(), pod("hangs", "n2").Obj(), refused)
	c, end := start(t, client, r, nil)
	c.Activate(t.Context())
	if _, err := client.CoreV1().Events("ns").Create(t.Context(), warning("hangs", "n2", "FailedCreatePodSandBox", now), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	failures := func(c *Cache, node string) int { return c.For(pod("p", "").Obj()).Record(web("1"), node).Unforgiven }
	eventually(t, "learning", func() bool { return failures(c, "n1") == 1 && failures(c, "n2") == 1 })
	eventually(t, "writing", func() bool {
		list, err := client.CoreV1().ConfigMaps("kube-system").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && strings.Contains(list.Items[0].Data[record.Key], "FailedCreatePodSandBox") &&
			strings.Contains(list.Items[0].Data[record.Key], "OutOfcpu")
	})
	end()

	for _, name := range []string{"refused", "hangs"} {
		must(t, client.CoreV1().Pods("ns").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	next, end := start(t, client, r, nil)
	defer end()
	next.Activate(t.Context())
	if a, b := failures(next, "n1"), failures(next, "n2"); a != 1 || b != 1 {
		t.Errorf("the next one knows of %d and %d failures", a, b)
	}
}

// The window of a policy holds for what ended before the policies were known.
func TestRegression_PodsBeforePolicies(t *testing.T) {
	refused := pod("refused", "n1").Phase(corev1.PodFailed).Obj()
	refused.Status.Reason, refused.Status.StartTime = "OutOfcpu", &metav1.Time{Time: time.Now().Add(-30 * time.Minute)}
	client := fake.NewClientset(st.MakeNode().Name("n1").Obj(), refused)
	r := &rig{TB: t, asked: func() *clusterview.Policy {
		return clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{Spec: placementv1alpha1.PlacementPolicySpec{
			Faults: &placementv1alpha1.Faults{WindowSeconds: new(int32(3600))},
		}})
	}}
	c, end := start(t, client, r, nil)
	defer end()
	c.Activate(t.Context())
	if got := c.For(pod("p", "").Obj()).Record(web("1"), "n1").Failures; got != 1 {
		t.Errorf("it knows of %d failures", got)
	}
}

// Warnings that there are before a scheduler starts are of pods that it has yet to read.
func TestRegression_WarningsBeforePods(t *testing.T) {
	client := fake.NewClientset(st.MakeNode().Name("n2").Obj(), pod("hangs", "n2").Obj(), warning("hangs", "n2", "FailedCreatePodSandBox", time.Now().Truncate(time.Second)))
	// It knows no field selectors, and would say that the pod has ended.
	client.PrependReactor("list", "pods", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		selector := a.(clientgotesting.ListAction).GetListRestrictions().Fields
		return selector != nil && !selector.Empty(), &corev1.PodList{}, nil
	})
	c, end := start(t, client, &rig{TB: t}, func() {
		eventually(t, "reading the pods that have ended", func() bool { return len(client.Actions()) > 0 })
		for _, a := range client.Actions() {
			if a.GetResource().Resource == "events" {
				t.Error("events are read before pods")
			}
		}
	})
	defer end()
	c.Activate(t.Context())
	if got := c.For(pod("p", "").Obj()).Record(web("1"), "n2").Unforgiven; got != 1 {
		t.Errorf("it knows of %d failures", got)
	}
}

// A scheduler that may not read events works, and asks no more than now and then.
func TestRunWithoutEvents(t *testing.T) {
	client := fake.NewClientset(st.MakeNode().Name("n1").Obj())
	forbidden := func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
	}
	client.PrependReactor("list", "events", forbidden)
	client.PrependWatchReactor("events", clientgotesting.DefaultWatchReactor(nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)))
	c, end := start(t, client, &rig{TB: t}, nil)
	defer end()
	select {
	case <-c.ready:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for events for ever")
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Cluster is as much of the framework as a plugin asks for that looks at a cluster's
// objects. It has no policies: there is no API server to have them.
type Cluster struct {
	fwk.Handle
	// Client makes and changes objects.
	Client *fake.Clientset
	// Events has those that plugins have written.
	Events *events.FakeRecorder

	informers informers.SharedInformerFactory
	woken     chan string // names of the pods given to Activate
}

// NewCluster is one with the objects. They can be seen when it is started.
func NewCluster(objects ...runtime.Object) *Cluster {
	client := fake.NewClientset(objects...)
	return &Cluster{
		Client: client, Events: events.NewFakeRecorder(100),
		informers: informers.NewSharedInformerFactory(client, 0), woken: make(chan string, 100),
	}
}

// SharedInformerFactory is the cluster's.
func (c *Cluster) SharedInformerFactory() informers.SharedInformerFactory { return c.informers }

// EventRecorder writes into Events.
func (c *Cluster) EventRecorder() events.EventRecorderLogger { return c.Events }

// KubeConfig is none.
func (c *Cluster) KubeConfig() *rest.Config { return nil }

// Activate notes who is woken.
func (c *Cluster) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for _, p := range pods {
		c.woken <- p.Name
	}
}

// Start returns when all is seen that plugins made so far watch.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	c.informers.Start(t.Context().Done())
	c.informers.WaitForCacheSync(t.Context().Done())
	t.Cleanup(c.informers.Shutdown)
}

// WantWoken updates a node in a way of which the framework has no event. It fails the
// test unless that wakes the pod and nobody else, and the pod fits from then on, also
// while the scheduler's cache still has the node as it was before.
func (c *Cluster) WantWoken(t testing.TB, pl NodeFilter, pod *corev1.Pod, before, after *corev1.Node) {
	t.Helper()
	if status := Filter(t, pl, pod, before); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Fatalf("before the node has changed: %v", status)
	}
	c.WantWokenBy(t, pod, func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Nodes().UpdateStatus(ctx, after, metav1.UpdateOptions{})
		return err
	})
	if status := Filter(t, pl, pod, before); !status.IsSuccess() {
		t.Errorf("it is awake, and refused for what the cache has of the node: %v", status)
	}
}

// WantWokenBy fails the test unless a change wakes the pod and nobody else.
func (c *Cluster) WantWokenBy(t testing.TB, pod *corev1.Pod, change func(context.Context, kubernetes.Interface) error) {
	t.Helper()
	if err := change(t.Context(), c.Client); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-c.woken:
		if name != pod.Name || len(c.woken) > 0 {
			t.Errorf("%q is woken, and %d more", name, len(c.woken))
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody is woken")
	}
}

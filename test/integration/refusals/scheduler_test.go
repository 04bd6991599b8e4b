// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

const (
	namespace     = "ns"
	schedulerName = "espalier-scheduler"
	// timeout bounds anything that a test waits for.
	timeout = 30 * time.Second
)

// cluster is a scheduler at work on objects that nothing but the test and itself changes.
type cluster struct {
	*testing.T
	ctx    context.Context
	client *fake.Clientset
}

// start starts the scheduler with the shipped profile. What is there before it is seen at once.
func start(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode(manifests.SchedulerConfig, nil, nil)
	must(t, err)
	cfg := obj.(*schedulerapi.KubeSchedulerConfiguration)
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Background()))
	c := &cluster{T: t, ctx: ctx, client: fake.NewClientset(objects...)}
	c.client.PrependReactor("create", "pods", c.bind)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.client.EventsV1()})
	factory := scheduler.NewInformerFactory(c.client, 0, nil)
	s, err := scheduler.New(ctx, c.client, factory, nil, profile.NewRecorderFactory(broadcaster),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins.Registry()),
	)
	must(t, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	must(t, s.WaitForHandlersSync(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		broadcaster.Shutdown()
		factory.Shutdown()
	})
	return c
}

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// bind does what the API server does with a binding. The clientset only keeps it.
func (c *cluster) bind(action clienttesting.Action) (handled bool, _ runtime.Object, _ error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := create.GetObject().(*corev1.Binding)
	obj, err := c.client.Tracker().Get(podsResource, action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*corev1.Pod).DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	return true, binding, c.client.Tracker().Update(podsResource, pod, pod.Namespace)
}

// create gives pods to the scheduler, one after the other.
func (c *cluster) create(pods ...*corev1.Pod) {
	c.Helper()
	for _, p := range pods {
		if _, err := c.client.CoreV1().Pods(namespace).Create(c.ctx, p, metav1.CreateOptions{}); err != nil {
			c.Fatal(err)
		}
	}
}

// decisions waits until every pod has a node or a refusal, and returns the nodes in
// order and the refusals: what their conditions say.
func (c *cluster) decisions() (nodes []string, refusals map[string]string) {
	c.Helper()
	err := wait.PollUntilContextTimeout(c.ctx, 2*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		nodes, refusals = nil, make(map[string]string)
		for i := range pods.Items {
			p := &pods.Items[i]
			if p.Spec.SchedulerName != schedulerName || p.DeletionTimestamp != nil {
				continue
			}
			if p.Spec.NodeName != "" {
				nodes = append(nodes, p.Spec.NodeName)
			} else if message := conditionOf(p); message != "" {
				refusals[p.Name] = message
			} else {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		c.Fatalf("waiting for every pod to be decided: %v; so far %v, %v", err, nodes, refusals)
	}
	slices.Sort(nodes)
	return nodes, refusals
}

func conditionOf(p *corev1.Pod) string {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("%s: %s", condition.Reason, condition.Message)
		}
	}
	return ""
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

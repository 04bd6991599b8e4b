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
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
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
		_, err := c.client.CoreV1().Pods(namespace).Create(c.ctx, p, metav1.CreateOptions{})
		must(c, err)
	}
}

// decisions waits until every pod has a node or a refusal, and returns the nodes in order and the refusals: what their conditions say.
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
var must = placementtest.Must

// driver is that of all volumes here.
const driver = "csi.example.com"

// nodes makes n nodes with room for ten pods and four processors, changed as told.
func nodes(name string, n int, change ...func(*st.NodeWrapper)) []runtime.Object {
	var list []runtime.Object
	for i := range n {
		node := st.MakeNode().Name(fmt.Sprintf("%s-%d", name, i)).Label(corev1.LabelHostname, fmt.Sprintf("%s-%d", name, i)).
			Capacity(map[corev1.ResourceName]string{"cpu": "4", "memory": "8Gi", "pods": "10"})
		for _, c := range change {
			c(node)
		}
		list = append(list, node.Obj())
	}
	return list
}

func join(lists ...[]runtime.Object) []runtime.Object { return slices.Concat(lists...) }

func label(key, value string) func(*st.NodeWrapper) {
	return func(n *st.NodeWrapper) { n.Label(key, value) }
}

func cordoned(n *st.NodeWrapper) { n.Unschedulable(true) }

func tainted(n *st.NodeWrapper) {
	n.Taints([]corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}})
}

func unready(n *st.NodeWrapper) {
	n.Taints([]corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}})
}

// room makes a node that has room for so many processors.
func room(cpu string) func(*st.NodeWrapper) {
	return func(n *st.NodeWrapper) {
		n.Capacity(map[corev1.ResourceName]string{"cpu": cpu, "memory": "8Gi", "pods": "10"})
	}
}

// pod asks for one processor.
func pod(name string) *st.PodWrapper {
	return st.MakePod().Namespace(namespace).Name(name).UID(name).SchedulerName(schedulerName).
		Req(map[corev1.ResourceName]string{"cpu": "1"})
}

// running is a pod on the node n-0.
func running(change func(*st.PodWrapper)) []runtime.Object {
	p := pod("r").Node("n-0")
	change(p)
	return []runtime.Object{p.Obj()}
}

func web(p *st.PodWrapper) *st.PodWrapper { return p.Label(clusterview.WorkloadLabel, "web") }

// spreadHard has pods of web differ by no more than one between zones.
func spreadHard(p *st.PodWrapper) *st.PodWrapper {
	return web(p).SpreadConstraint(1, "zone", corev1.DoNotSchedule, st.MakeLabelSelector().Label(clusterview.WorkloadLabel, "web").Obj(), nil, nil, nil, nil)
}

// restartingAll asks for a feature of the kubelet that no node says it has.
func restartingAll(p *st.PodWrapper) *st.PodWrapper {
	p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	return p
}

func inClass(p *st.PodWrapper, name string) *st.PodWrapper {
	p.Spec.RuntimeClassName = &name
	return p
}

func withInlineVolume(p *st.PodWrapper) *st.PodWrapper {
	return p.Volume(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver}}})
}

// pinnedTo gives a pod an affinity for a node by name; with several, none fits.
func pinnedTo(p *st.PodWrapper, names ...string) *st.PodWrapper {
	var fields []corev1.NodeSelectorRequirement
	for _, name := range names {
		fields = append(fields, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}})
	}
	return p.NodeAffinity(&corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: fields}},
	}})
}

// unbound is a claim named data whose volume is to be there before the pod is placed, and its class.
func unbound() []runtime.Object {
	class := "class"
	return []runtime.Object{
		st.MakeStorageClass().Name(class).VolumeBindingMode(storagev1.VolumeBindingImmediate).Provisioner(driver).Obj(),
		st.MakePersistentVolumeClaim().Namespace(namespace).Name("data").StorageClassName(&class).
			Resources(corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}).Obj(),
	}
}

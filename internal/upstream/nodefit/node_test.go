// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/upstream/nodefit"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

const gpu = corev1.ResourceName("example.com/gpu")

func quantities(of map[corev1.ResourceName]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, text := range of {
		list[name] = resource.MustParse(text)
	}
	return list
}

// cpu is a list of CPU alone.
func cpu(text string) corev1.ResourceList {
	return quantities(map[corev1.ResourceName]string{corev1.ResourceCPU: text})
}

// node has 4 CPUs, 8 GiB, and room for three pods.
func node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: corev1.NodeStatus{Allocatable: quantities(map[corev1.ResourceName]string{
			corev1.ResourceCPU: "4", corev1.ResourceMemory: "8Gi", corev1.ResourcePods: "3",
		})},
	}
}

// pod requests something in its one container.
func pod(name string, requests corev1.ResourceList, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func hostPort(number int32, protocol corev1.Protocol) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: number, Protocol: protocol}}
	}
}

// atAddress has the host port be one of an address.
func atAddress(ip string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostIP = ip }
}

func TestRefuses(t *testing.T) {
	sidecar := corev1.Container{Name: "s", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: cpu("1")}}
	// resized has been given less than it asks for by now.
	resized := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: cpu("1")}}
	}
	// deferred has been given 1 CPU as a whole, and asks for more. Its containers have not been started.
	deferred := func(p *corev1.Pod) {
		p.Status.AllocatedResources, p.Status.Resources = cpu("1"), &corev1.ResourceRequirements{Requests: cpu("1")}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonDeferred}}
	}
	for name, tc := range map[string]struct {
		there []*corev1.Pod
		pod   *corev1.Pod
		want  string // "" for room
	}{
		"room":             {[]*corev1.Pod{pod("a", cpu("3"))}, pod("p", cpu("1")), ""},
		"no CPU":           {[]*corev1.Pod{pod("a", cpu("3500m"))}, pod("p", cpu("1")), "of cpu the pod requests 1, and 500m of 4 are free"},
		"more than all":    {nil, pod("p", quantities(map[corev1.ResourceName]string{corev1.ResourceMemory: "9Gi"})), "of memory the pod requests 9Gi, and 8Gi of 8Gi are free"},
		"overcommitted":    {[]*corev1.Pod{pod("a", cpu("3")), pod("b", cpu("3"))}, pod("p", cpu("1")), "of cpu the pod requests 1, and 0 of 4 are free"},
		"asks for nothing": {[]*corev1.Pod{pod("a", cpu("3")), pod("b", cpu("3"))}, pod("p", nil), ""},
		"no slot":          {[]*corev1.Pod{pod("a", nil), pod("b", nil), pod("c", nil)}, pod("p", nil), "it may have 3 pods, and has 3"},
		"the same pod":     {[]*corev1.Pod{pod("a", cpu("3")), pod("a", cpu("2"))}, pod("p", cpu("2")), ""},
		"terminating pods count until they have ended": {
			[]*corev1.Pod{pod("a", cpu("4"), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) })}, pod("p", cpu("1")), "of cpu the pod requests 1, and 0 of 4 are free",
		},
		"static pods count": {
			[]*corev1.Pod{pod("a", cpu("4"), func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })}, pod("p", cpu("1")), "of cpu the pod requests 1, and 0 of 4 are free",
		},
		"overhead": {nil, pod("p", cpu("3"), func(p *corev1.Pod) { p.Spec.Overhead = cpu("2") }), "of cpu the pod requests 5, and 4 of 4 are free"},
		"an init container": {nil, pod("p", cpu("3"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu("3")}}}
		}), ""},
		"sidecars":                 {nil, pod("p", cpu("3500m"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar} }), "of cpu the pod requests 4500m, and 4 of 4 are free"},
		"resources of a whole pod": {nil, pod("p", cpu("1"), func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: cpu("5")} }), "of cpu the pod requests 5, and 4 of 4 are free"},
		"a resize that waits":      {[]*corev1.Pod{pod("a", cpu("4"), resized)}, pod("p", cpu("3")), ""},
		"a resize of a whole pod that waits": {[]*corev1.Pod{pod("a", nil, func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: cpu("4")}
			p.Status.AllocatedResources = cpu("1")
		})}, pod("p", cpu("3")), ""},
		"a resize that waits, of a container that is not started": {[]*corev1.Pod{pod("a", cpu("4"), deferred)}, pod("p", cpu("3")), ""},
		"what was given before it is counted":                     {[]*corev1.Pod{pod("a", cpu("4"), deferred)}, pod("p", cpu("3100m")), "of cpu the pod requests 3100m, and 3 of 4 are free"},
		"a resize that waits, and nobody says for what": {[]*corev1.Pod{pod("a", cpu("4"), func(p *corev1.Pod) {
			deferred(p)
			p.Status.Resources = nil
		})}, pod("p", cpu("3")), "of cpu the pod requests 3, and 0 of 4 are free"},
		"a resize down that is not done yet": {[]*corev1.Pod{pod("a", cpu("1"), func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: cpu("1"), Resources: &corev1.ResourceRequirements{Requests: cpu("3")}}}
		})}, pod("p", cpu("2")), "of cpu the pod requests 2, and 1 of 4 are free"},
		"for a critical pod others are evicted": {[]*corev1.Pod{pod("a", cpu("4"))}, pod("p", cpu("1"), func(p *corev1.Pod) { p.Spec.Priority = new(int32(2_000_000_000)) }), ""},
		"huge pages":                            {nil, pod("p", quantities(map[corev1.ResourceName]string{"hugepages-2Mi": "4Mi"})), "of hugepages-2Mi the pod requests 4Mi, and 0 of 0 are free"},
		"a resource that no node has":           {nil, pod("p", quantities(map[corev1.ResourceName]string{gpu: "1"})), ""},
		"a port that is taken": {
			[]*corev1.Pod{pod("a", nil, hostPort(80, corev1.ProtocolTCP))}, pod("p", nil, hostPort(80, corev1.ProtocolTCP)), "another pod has host port 80/tcp",
		},
		"a port on one address, and on all": {
			[]*corev1.Pod{pod("a", nil, hostPort(80, corev1.ProtocolTCP), atAddress("10.0.0.1"))}, pod("p", nil, hostPort(80, ""), atAddress("0.0.0.0")), "another pod has host port 80/tcp",
		},
		"a port on two addresses": {
			[]*corev1.Pod{pod("a", nil, hostPort(80, ""), atAddress("10.0.0.1"))}, pod("p", nil, hostPort(80, ""), atAddress("10.0.0.2")), "",
		},
		"another protocol": {[]*corev1.Pod{pod("a", nil, hostPort(80, corev1.ProtocolTCP))}, pod("p", nil, hostPort(80, corev1.ProtocolUDP)), ""},
		"a port that a critical pod wants": {
			[]*corev1.Pod{pod("a", nil, hostPort(80, ""))}, pod("p", nil, hostPort(80, ""), func(p *corev1.Pod) { p.Spec.Priority = new(int32(2_000_000_000)) }), "another pod has host port 80/tcp",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodefit.New()
			n.Set(node())
			for _, p := range tc.there {
				n.Add(p)
			}
			if got := strings.Join(n.Refuses(tc.pod), "; "); got != tc.want {
				t.Errorf("it is refused because %q, want %q", got, tc.want)
			}
		})
	}
}

// Devices that a claim has got are not counted again as a resource of the node, which may have others of that name.
func TestDevicesOfClaims(t *testing.T) {
	with := node()
	with.Status.Allocatable[gpu] = resource.MustParse("0")
	n := nodefit.New()
	n.Set(with)
	p := pod("p", quantities(map[corev1.ResourceName]string{gpu: "1"}))
	if n.Refuses(p) == nil {
		t.Error("a device that the node does not have is given away")
	}
	p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{RequestMappings: []corev1.ContainerExtendedResourceRequest{
		{ContainerName: "c", ResourceName: string(gpu), RequestName: "r"},
	}}
	if got := n.Refuses(p); got != nil {
		t.Errorf("a pod that has its device is refused: %v", got)
	}
}

func TestUnknown(t *testing.T) {
	n := nodefit.New()
	if !n.Empty() || n.Refuses(pod("p", cpu("100"))) != nil || n.Remove("p") {
		t.Error("a node of which nothing is known is not empty, or refuses a pod")
	}
	n.Add(pod("a", cpu("4")))
	n.Set(node())
	if n.Empty() || n.Refuses(pod("p", cpu("1"))) == nil {
		t.Error("what came before the node is not counted")
	}
	n.Set(nil)
	if n.Empty() || n.Refuses(pod("p", cpu("1"))) != nil {
		t.Error("a node that has gone refuses a pod")
	}
	if !n.Remove("a") || !n.Empty() {
		t.Error("something is left")
	}
}

// For pods that come and go, the answer is that of the function which a kubelet asks.
func TestRefusesAsAKubelet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := nodefit.New()
		n.Set(node())
		there := map[string]*corev1.Pod{}
		random := func(t *rapid.T, name string) *corev1.Pod {
			quantity := func(of string, choice ...string) string { return rapid.SampledFrom(choice).Draw(t, of) }
			list := func(of string) corev1.ResourceList {
				return quantities(map[corev1.ResourceName]string{
					corev1.ResourceCPU: quantity(of+" cpu", "0", "100m", "1", "2"), corev1.ResourceMemory: quantity(of+" memory", "0", "1Gi", "3Gi"),
				})
			}
			p := pod(name, list("request"))
			if rapid.Bool().Draw(t, "port") {
				hostPort(rapid.Int32Range(80, 82).Draw(t, "number"), corev1.ProtocolTCP)(p)
			}
			if rapid.Bool().Draw(t, "sidecar") {
				p.Spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: list("sidecar")}}}
			}
			if rapid.Bool().Draw(t, "overhead") {
				p.Spec.Overhead = list("overhead")
			}
			return p
		}
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "pod"))
			if rapid.Bool().Draw(t, "goes") {
				_, known := there[name]
				if n.Remove(types.UID(name)) != known {
					t.Fatalf("step %d: %s is there: %t", i, name, known)
				}
				delete(there, name)
				continue
			}
			there[name] = random(t, name)
			n.Add(there[name])
			var others []*corev1.Pod
			for _, p := range there {
				others = append(others, p)
			}
			info := framework.NewNodeInfo(others...)
			info.SetNode(node())
			asked := random(t, "asked")
			got, want := n.Refuses(asked), scheduler.AdmissionCheck(asked, info, true)
			if len(got) != len(want) {
				t.Fatalf("step %d: it is refused for %q; a kubelet is told %v", i, got, want)
			}
		}
	})
}

// reported is a pod of which its kubelet has said something: what it has given to its container or to all of them, what it cannot give, and
// devices that stand for room of the node.
func reported(t *rapid.T, name string) *corev1.Pod {
	draw := func(what string, of ...string) corev1.ResourceList { return cpu(rapid.SampledFrom(of).Draw(t, what)) }
	p := pod(name, draw("request", "0", "1", "2"))
	if rapid.Bool().Draw(t, "port") {
		hostPort(rapid.Int32Range(80, 81).Draw(t, "number"), corev1.ProtocolTCP)(p)
	}
	if rapid.Bool().Draw(t, "container") {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "c", AllocatedResources: draw("allocated", "0", "1", "3"), Resources: &corev1.ResourceRequirements{Requests: draw("actual", "1", "3")},
		}}
	}
	if rapid.Bool().Draw(t, "whole pod") {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: draw("request of the pod", "1", "2")}
		p.Status.AllocatedResources, p.Status.Resources = draw("allocated to the pod", "1", "3"), &corev1.ResourceRequirements{Requests: draw("actual of the pod", "1", "3")}
	}
	if rapid.Bool().Draw(t, "infeasible") {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	}
	if rapid.Bool().Draw(t, "devices") {
		p.Spec.Containers[0].Resources.Requests[gpu] = draw("GPUs", "1", "2")[corev1.ResourceCPU]
	}
	return p
}

// However many changes there are between two questions, the answer is that of a node that has only ever been as it is.
func TestChangesAreCountedWhenSomebodyAsks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, there := nodefit.New(), map[string]*corev1.Pod{}
		is := node()
		is.Status.Allocatable[gpu] = resource.MustParse("4")
		n.Set(is)
		name := func() string { return fmt.Sprint("p", rapid.IntRange(0, 3).Draw(t, "pod")) }
		t.Repeat(map[string]func(*rapid.T){
			"a pod": func(t *rapid.T) {
				p := reported(t, name())
				there[p.Name] = p
				n.Add(p)
			},
			"the same once more": func(*rapid.T) {
				if p := there[name()]; p != nil {
					n.Add(p.DeepCopy())
				}
			},
			"its kubelet says something else": func(t *rapid.T) {
				if p := there[name()].DeepCopy(); p != nil {
					p.Status = reported(t, p.Name).Status
					there[p.Name] = p
					n.Add(p)
				}
			},
			"gone": func(t *rapid.T) {
				gone := name()
				if _, known := there[gone]; n.Remove(types.UID(gone)) != known {
					t.Fatalf("%s was there: %t", gone, known)
				}
				delete(there, gone)
			},
			"the node": func(t *rapid.T) {
				is = is.DeepCopy()
				is.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(rapid.SampledFrom([]string{"2", "4", "8"}).Draw(t, "allocatable"))
				n.Set(nil)
				n.Set(is)
			},
			"a question": func(t *rapid.T) {
				fresh := nodefit.New()
				fresh.Set(is)
				for _, p := range there {
					fresh.Add(p)
				}
				asks := pod("asks", cpu("100"), hostPort(80, corev1.ProtocolTCP)) // what is free is in the reason
				asks.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("100")
				got, want := n.Refuses(asks), fresh.Refuses(asks)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("it is refused because %q, and by a node that has only ever been so because %q", got, want)
				}
			},
		})
	})
}

// A pod is said to have changed some times until it runs. Most of these changes leave its room as it is.
func TestAChangeIsNotComputedAtOnce(t *testing.T) {
	n, p := nodefit.New(), pod("a", cpu("1"))
	n.Set(node())
	n.Add(p)
	n.Refuses(pod("asks", cpu("1")))
	n.Add(p)
	if made := testing.AllocsPerRun(100, func() { n.Add(p) }); made > 1 {
		t.Errorf("with each change %v objects are made", made)
	}
}

// Who reads pods from a cache has their latest state in memory. An older one is not to be kept there as well, whether anybody asks or not.
func TestAnOlderStateIsNotKept(t *testing.T) {
	n := nodefit.New()
	n.Set(node())
	older := pod("a", cpu("1"))
	n.Add(older)
	n.Refuses(pod("asks", cpu("1")))
	kept := weak.Make(older)
	n.Add(pod("a", cpu("1")))
	older = nil //nolint:ineffassign,wastedassign // nobody else has it
	runtime.GC()
	if kept.Value() != nil {
		t.Error("it is in memory")
	}
	runtime.KeepAlive(n)
}

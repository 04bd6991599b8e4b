// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPlugin(t testing.TB, reserved ...string) *HostPorts {
	t.Helper()
	return plugintest.New[*HostPorts](t, New, &config.HostPortsArgs{Reserved: reserved}, plugintest.NewCluster())
}

// containerPorts reads ports in the notation of hostport.
func containerPorts(t testing.TB, texts ...string) (ports []corev1.ContainerPort) {
	t.Helper()
	for _, text := range texts {
		r, err := hostport.ParseRange(text)
		must(t, err)
		p := corev1.ContainerPort{ContainerPort: 80, HostPort: int32(r.First), Protocol: corev1.Protocol(strings.ToUpper(string(r.Protocol)))}
		if r.Address.IsValid() {
			p.HostIP = r.Address.String()
		}
		ports = append(ports, p)
	}
	return ports
}

// wanting is a pod with one container that has these host ports.
func wanting(t testing.TB, ports ...string) *st.PodWrapper {
	t.Helper()
	return st.MakePod().Namespace("ns").Name("p").UID("p").ContainerPort(containerPorts(t, ports...))
}

// keeping is a node with the annotation; "" is none.
func keeping(name, annotation string) *st.NodeWrapper {
	n := st.MakeNode().Name(name)
	if annotation != "" {
		n.Annotation(clusterview.ReservedHostPortsAnnotation, annotation)
	}
	return n
}

func TestNew(t *testing.T) {
	want := plugintest.WantArguments(t, Name, New, plugintest.NewCluster())
	want("no ports", &config.HostPortsArgs{})
	want("ports", &config.HostPortsArgs{Reserved: []string{"22/tcp", "8000-8010/udp"}})
	want("bad ports", &config.HostPortsArgs{Reserved: []string{"22/tcp", "53", "9/tpc"}}, "reserved[1]", `"53"`, "no protocol", "reserved[2]", `"tpc"`, "use tcp, udp or sctp")
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t)
	sign := func(pod *st.PodWrapper) string { return fmt.Sprint(plugintest.Sign(t, pl, pod)) }
	first := sign(wanting(t, "53/tcp", "80/tcp"))
	if again := sign(wanting(t, "80/tcp", "53/tcp")); again != first {
		t.Errorf("two pods with the same ports are signed %v and %v", first, again)
	}
	for _, other := range [][]string{nil, {"53/tcp"}, {"53/udp", "80/tcp"}, {"127.0.0.1:53/tcp", "80/tcp"}} {
		if got := sign(wanting(t, other...)); got == first {
			t.Errorf("pods with the ports %v and with 53/tcp and 80/tcp are both signed %v", other, got)
		}
	}
}

// Sidecars hold their ports as long as the pod runs; other init containers are over before its containers start.
func TestHostPortsOfAPod(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := wanting(t, "443/tcp", "80/tcp", "80/udp").Obj()
	pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: 9})
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Ports: containerPorts(t, "127.0.0.1:80/tcp")})
	pod.Spec.InitContainers = []corev1.Container{{Ports: containerPorts(t, "1/tcp")}, {Ports: containerPorts(t, "2/tcp", "80/tcp"), RestartPolicy: &always}}
	var got []string
	for _, p := range hostPorts(pod) {
		got = append(got, p.String())
	}
	if want := []string{"2/tcp", "80/tcp", "127.0.0.1:80/tcp", "80/udp", "443/tcp"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A bad annotation is told once for each time it is written, with the node, the bad
// part and what is allowed; kubelets update their nodes all the time.
func TestReport(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	log := logger.GetSink().(ktesting.Underlier).GetBuffer()
	r := reporter(logger)

	good, bad, worse := keeping("n1", "22/tcp").Obj(), keeping("n1", "22/tcp,53").Obj(), keeping("n1", "53/upd").Obj()
	r.OnAdd(good, true)
	r.OnUpdate(good, keeping("n1", "").Obj())
	r.OnDelete(bad)
	r.OnAdd("no node", false)
	r.OnUpdate("no node", bad)
	if log.String() != "" {
		t.Errorf("logged without a reason: %s", log)
	}

	r.OnAdd(bad, true)
	r.OnUpdate(bad, bad)
	r.OnUpdate(good, worse)
	r.OnUpdate(worse, worse)
	text := log.String()
	for _, want := range []string{
		"n1", clusterview.ReservedHostPortsAnnotation, `port 2 \"53\": no protocol in \"53\": write a port as 22/tcp`,
		`unknown protocol \"upd\": use tcp, udp or sctp`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %s:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "No pod with host ports"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, text)
	}
}

// must ends the test if there is an error.
var must = placementtest.Must

func TestHintAfterPodDelete(t *testing.T) {
	gone := func(obj any) plugintest.Change {
		return plugintest.Change{Event: framework.EventAssignedPodDelete, Before: obj}
	}
	on := func(ports ...string) *st.PodWrapper { return wanting(t, ports...).Name("gone").UID("gone").Node("n") }
	for _, tc := range []struct {
		name    string
		deleted *st.PodWrapper
		want    fwk.QueueingHint
	}{
		{"it held a port that is wanted", on("9/tcp", "80/tcp"), fwk.Queue},
		{"at an address", on("127.0.0.1:80/tcp"), fwk.Queue},
		{"it held others", on("80/udp", "81/tcp", "127.0.0.1:90/tcp"), fwk.QueueSkip},
		{"it held none", on(), fwk.QueueSkip},
		{"a node was kept free for it", wanting(t, "80/tcp").NominatedNodeName("n"), fwk.Queue},
		{"it had no node", wanting(t, "80/tcp"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := wanting(t, "80/tcp", "127.0.0.2:90/tcp").Obj()
			for _, obj := range []any{tc.deleted.Obj(), cache.DeletedFinalStateUnknown{Key: "ns/gone", Obj: tc.deleted.Obj()}} {
				plugintest.WantHint(t, newPlugin(t), pod, gone(obj), tc.want)
			}
			// What the profile reserves is not given back by any pod.
			plugintest.WantHint(t, newPlugin(t, "90/tcp"), pod, gone(tc.deleted.Obj()), fwk.QueueSkip)
		})
	}
}

func TestHintAfterNodeChange(t *testing.T) {
	keeps := func(annotation string) *corev1.Node { return keeping("n", annotation).Obj() }
	for _, tc := range []struct {
		name          string
		before, after *corev1.Node // no before: it comes
		want          fwk.QueueingHint
	}{
		{"a node comes", nil, keeps(""), fwk.Queue},
		{"a node comes that reserves others", nil, keeps("22/tcp,80/udp"), fwk.Queue},
		{"a node comes that reserves one", nil, keeps("80/tcp"), fwk.QueueSkip},
		{"a node comes that cannot be read", nil, keeps("80"), fwk.QueueSkip},
		{"the port is given up", keeps("22/tcp,80/tcp"), keeps("22/tcp"), fwk.Queue},
		{"it is given up at some addresses", keeps("80/tcp"), keeps("127.0.0.1:80/tcp"), fwk.QueueSkip},
		{"one of two is given up", keeps("80/tcp,443/tcp"), keeps("443/tcp"), fwk.QueueSkip},
		{"the annotation is mended", keeps("22"), keeps("22/tcp"), fwk.Queue},
		{"it is mended, and reserves the port", keeps("80"), keeps("80/tcp"), fwk.QueueSkip},
		{"another port is given up", keeps("22/tcp"), keeps(""), fwk.QueueSkip},
		{"the port is reserved", keeps(""), keeps("80/tcp"), fwk.QueueSkip},
		{"something else changes", keeps("80/tcp"), keeps("80/tcp"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod, change := wanting(t, "80/tcp", "443/tcp").Obj(), plugintest.NodeChange(fwk.UpdateNodeAnnotation, tc.before, tc.after)
			plugintest.WantHint(t, newPlugin(t), pod, change, tc.want)
			plugintest.WantHint(t, newPlugin(t, "443/tcp"), pod, change, fwk.QueueSkip) // it fits nowhere
		})
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

func newPlugin(t testing.TB, reserved ...string) *HostPorts {
	t.Helper()
	return plugintest.New[*HostPorts](t, New, &config.HostPortsArgs{Reserved: reserved}, plugintest.NewCluster())
}

// containerPorts reads ports in the notation of hostport.
func containerPorts(t testing.TB, texts ...string) (ports []corev1.ContainerPort) {
	t.Helper()
	for _, text := range texts {
		r, err := hostport.ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
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
	for _, tc := range []struct {
		name string
		args runtime.Object
		want []string // the error holds them all; none: there is no error
	}{
		{"no ports", &config.HostPortsArgs{}, nil},
		{"ports", &config.HostPortsArgs{Reserved: []string{"22/tcp", "8000-8010/udp"}}, nil},
		{"args of another plugin", &config.SpreadTreeArgs{}, []string{Name, "*config.HostPortsArgs", "*config.SpreadTreeArgs"}},
		{"no args", nil, []string{Name, "*config.HostPortsArgs", "<nil>"}},
		{"bad ports", &config.HostPortsArgs{Reserved: []string{"22/tcp", "53", "9/tpc"}},
			[]string{Name, "reserved[1]", `"53"`, "no protocol", "reserved[2]", `"tpc"`, "use tcp, udp or sctp"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pl, err := New(t.Context(), tc.args, plugintest.NewCluster())
			plugintest.WantNew(t, Name, pl, err, tc.want...)
		})
	}
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t)
	sign := func(pod *st.PodWrapper) string {
		t.Helper()
		fragments, status := pl.SignPod(t.Context(), pod.Obj())
		if !status.IsSuccess() || len(fragments) != 1 {
			t.Fatalf("signed as %v: %v", fragments, status)
		}
		return fmt.Sprint(fragments[0])
	}
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

// Sidecars hold their ports as long as the pod runs; other init containers are over
// before its containers start.
func TestHostPortsOfAPod(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := wanting(t, "443/tcp", "80/tcp", "80/udp").Obj()
	pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: 9})
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Ports: containerPorts(t, "127.0.0.1:80/tcp")})
	pod.Spec.InitContainers = []corev1.Container{
		{Ports: containerPorts(t, "1/tcp")},
		{Ports: containerPorts(t, "2/tcp", "80/tcp"), RestartPolicy: &always},
	}
	var got []string
	for _, p := range hostPorts(pod) {
		got = append(got, p.String())
	}
	if want := []string{"2/tcp", "80/tcp", "127.0.0.1:80/tcp", "80/udp", "443/tcp"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
)

func TestLimits(t *testing.T) {
	rack := []limit.Limit{{Property: level.Property{Label: "rack"}, Pods: 2}}
	host := []limit.Limit{{Property: level.Property{Label: "kubernetes.io/hostname"}, Pods: 1}}
	annotated := func(text string) *st.PodWrapper {
		return st.MakePod().Annotation(clusterview.DomainLimitsAnnotation, text)
	}
	for _, tc := range []struct {
		name           string
		pod            *st.PodWrapper
		defaults, want []limit.Limit
	}{
		{"nothing said", st.MakePod(), nil, nil},
		{"defaults", st.MakePod(), rack, rack},
		{"annotation", annotated("kubernetes.io/hostname=1"), nil, host},
		{"the annotation replaces the defaults as a whole", annotated("kubernetes.io/hostname=1"), rack, host},
	} {
		got, err := clusterview.Limits(tc.pod.Obj(), nil, tc.defaults)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if d := gocmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: want -, got +:\n%s", tc.name, d)
		}
	}
	for text, part := range map[string]string{"rack=two": `"two"`, "": "no limits in"} {
		pod := st.MakePod().Obj()
		pod.Annotations = map[string]string{clusterview.DomainLimitsAnnotation: text}
		got, err := clusterview.Limits(pod, nil, rack)
		if err == nil || got != nil || !strings.HasPrefix(err.Error(), "annotation espalier.dev/domain-limits: ") || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestAppendDomains(t *testing.T) {
	node := st.MakeNode().Name("n1").Label("rack", "r1").Label("empty", "").Obj()
	limits, err := limit.Parse("rack=1,empty=1,zone=1,node.name=1")
	must(t, err)
	want := []placement.Value{{Text: "r1"}, {}, {Missing: true}, {Text: "n1"}}
	plugintest.WantEqual(t, want, clusterview.AppendDomains(nil, node, limits))
}

func TestConstraintNode(t *testing.T) {
	node := st.MakeNode().Name("n1").UID("4711").Label(corev1.LabelHostname, "h1").
		Label(corev1.LabelOSStable, "linux").Label(corev1.LabelArchStable, "arm64").Obj()
	node.Status.NodeInfo.MachineID = "machine"
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "10.9.9.9"},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		{Type: corev1.NodeInternalDNS, Address: "h1.example.com"},
		{Type: corev1.NodeExternalIP, Address: "2001:db8::1"},
	}
	want := constraint.Node{ID: "4711", Name: "n1", Hostname: "h1", OS: "linux", Arch: "arm64", Labels: node.Labels, Addresses: []string{"10.0.0.1", "2001:db8::1"}}
	plugintest.WantEqual(t, want, clusterview.ConstraintNode(node))
	node.Labels["node-role.kubernetes.io/control-plane"] = ""
	if !clusterview.ConstraintNode(node).Manager {
		t.Error("a node of the control plane is no manager")
	}
}

func TestNodePlatform(t *testing.T) {
	node := st.MakeNode().Name("n").Label(corev1.LabelOSStable, "linux").Label(corev1.LabelArchStable, "arm64").Obj()
	node.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "windows", Architecture: "amd64"}
	if got := clusterview.NodePlatform(node); got != (platform.Platform{OS: "linux", Arch: "arm64"}) {
		t.Errorf("got %v", got)
	}
}

func TestHostPort(t *testing.T) {
	for _, tc := range []struct {
		port corev1.ContainerPort
		want string
	}{
		{corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolTCP}, "80/tcp"},
		{corev1.ContainerPort{HostPort: 80}, "80/tcp"},
		{corev1.ContainerPort{HostPort: 65535, ContainerPort: 80, Protocol: corev1.ProtocolUDP}, "65535/udp"},
		{corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolSCTP, HostIP: "127.0.0.1"}, "127.0.0.1:80/sctp"},
		{corev1.ContainerPort{HostPort: 80, HostIP: "0.0.0.0"}, "80/tcp"},
		{corev1.ContainerPort{HostPort: 80, HostIP: "::"}, "80/tcp"},
		{corev1.ContainerPort{HostPort: 80, HostIP: "0::1"}, "[::1]:80/tcp"},
		{corev1.ContainerPort{HostPort: 80, HostIP: "010.0.0.1"}, "80/tcp"},
	} {
		if got := clusterview.HostPort(tc.port).String(); got != tc.want {
			t.Errorf("%+v is %s, want %s", tc.port, got, tc.want)
		}
	}
}

func TestReservedHostPorts(t *testing.T) {
	const annotation = clusterview.ReservedHostPortsAnnotation
	for _, tc := range []struct {
		name      string
		node      *st.NodeWrapper
		want, err string
	}{
		{"no annotation", st.MakeNode().Name("n"), "", ""},
		{"an empty one", st.MakeNode().Name("n").Annotation(annotation, ""), "", ""},
		{"ports", st.MakeNode().Name("n").Annotation(annotation, "10250/tcp,22/tcp"), "22/tcp,10250/tcp", ""},
		{"malformed", st.MakeNode().Name("n").Annotation(annotation, "22/tcp,10250"), "",
			`annotation ` + annotation + `: port 2 "10250": no protocol in "10250": ` +
				`write a port as 22/tcp, 8000-8010/udp, 127.0.0.1:9100/tcp or [::1]:9100/tcp`},
	} {
		ports, err := clusterview.ReservedHostPorts(tc.node.Obj())
		if got := hostport.Format(ports); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: got the error %v\nwant %s", tc.name, err, tc.err)
		}
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

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
		name string
		node *st.NodeWrapper
		want string
		err  string
	}{
		{"no annotation", st.MakeNode().Name("n"), "", ""},
		{"an empty one", st.MakeNode().Name("n").Annotation(annotation, ""), "", ""},
		{"ports", st.MakeNode().Name("n").Annotation(annotation, "10250/tcp,22/tcp"), "22/tcp,10250/tcp", ""},
		{"malformed", st.MakeNode().Name("n").Annotation(annotation, "22/tcp,10250"), "",
			`annotation ` + annotation + `: port 2 "10250": no protocol in "10250": ` +
				`write a port as 22/tcp, 8000-8010/udp, 127.0.0.1:9100/tcp or [::1]:9100/tcp`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ports, err := clusterview.ReservedHostPorts(tc.node.Obj())
			if got := hostport.Format(ports); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("got the error %v\nwant %s", err, tc.err)
			}
		})
	}
}

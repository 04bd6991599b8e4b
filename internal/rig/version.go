// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-scheduler/espalier/internal/serverversion"
)

// The minor versions of Kubernetes that brought what some tests need: the feature gate of the fast path, policies that change objects, and
// groups of pods and conditions that say of the end of a node.
const (
	HintsSince     = 35
	MutatingSince  = 36
	PodGroupsSince = 37
	LifecycleSince = 37
)

// ServerVersion asks an API server for its minor version.
func ServerVersion(client kubernetes.Interface) (*version.Version, error) {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for the API server's version: %w", err)
	}
	if is := serverversion.Read(info); is != nil {
		return is, nil
	}
	return nil, fmt.Errorf("the API server says %q of its version", info.GitVersion)
}

// EmulatedVersion is the flag by which a kube-scheduler does as one of an older API server's version. Without it, it waits for ever for the kinds that
// such an API server has not. There is none beside an API server that is as new or newer: a kube-scheduler emulates older versions alone.
func EmulatedVersion(client kubernetes.Interface) (flags []string, err error) {
	server, err := ServerVersion(client)
	if err != nil || !server.LessThan(serverversion.Of(compatibility.DefaultBuildEffectiveVersion().BinaryVersion()).Built) {
		return nil, err
	}
	return []string{"--emulated-version=kube=" + server.String()}, nil
}

// Since skips a test of what an API server of before a minor version of Kubernetes does not have.
func Since(t interface {
	Helper()
	Fatal(args ...any)
	Skipf(format string, args ...any)
}, client kubernetes.Interface, minor uint, what string) {
	t.Helper()
	is, err := ServerVersion(client)
	if err != nil {
		t.Fatal(err)
	}
	if is.LessThan(version.MajorMinor(1, minor)) {
		t.Skipf("not in Kubernetes %s: %s", is, what)
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverversion says of which Kubernetes an API server is, and whether what is built from one minor version of Kubernetes runs with it.
package serverversion

import (
	"fmt"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const (
	// olderBy is by how many minor versions an API server may be older than what asks it. kube-scheduler emulates no more:
	// https://github.com/kubernetes/enhancements/tree/master/keps/sig-architecture/4330-compatibility-versions
	olderBy = 3
	// newerBy is by how many it may be newer: no more than one was tried.
	newerBy = 1
	// asks is how many connections are asked. Behind one address there may be several API servers, of two versions in the middle of an upgrade.
	asks = 5
)

// Asker asks API servers for their version. It is not safe for concurrent use.
type Asker struct {
	// Host is where the API server is, for messages.
	Host   string
	client *discovery.DiscoveryClient
	hangUp func()
}

// New returns an Asker of the API servers that a configuration reaches.
func New(config *rest.Config) (*Asker, error) {
	config = rest.CopyConfig(config)
	// A connection of HTTP/2 would be shared with all other clients of the process, and go to one API server for hours.
	config.NextProtos = []string{"http/1.1"}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("API server at %s: %w", config.Host, err)
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("API server at %s: %w", config.Host, err)
	}
	return &Asker{Host: config.Host, client: client, hangUp: func() { utilnet.CloseIdleConnectionsFor(transport.Transport) }}, nil
}

// One returns the version of one API server, by a connection of its own, and nil where it says nothing that is one. An API server that
// emulates another version is of that one.
func (a *Asker) One() (*version.Version, error) {
	defer a.hangUp()
	info, err := a.client.ServerVersion()
	if err != nil {
		return nil, err
	}
	return Read(info), nil
}

// Oldest returns the version of the oldest of the API servers that answer to the address, nil where none says it. An error is that of the
// first answer: an API server that goes away meanwhile is not the oldest for long.
func (a *Asker) Oldest() (*version.Version, error) {
	oldest, err := a.One()
	if err != nil {
		return nil, err
	}
	for range asks - 1 {
		if v, err := a.One(); err == nil && v != nil && (oldest == nil || v.LessThan(oldest)) {
			oldest = v
		}
	}
	return oldest, nil
}

// Read reads the minor version of an answer, such as 1.35 of "v1.35.4-eks-1" or of the minor version "35+". It returns nil where there is none.
func Read(info *apimachineryversion.Info) *version.Version {
	for _, text := range []string{info.EmulationMajor + "." + info.EmulationMinor, info.GitVersion, info.Major + "." + info.Minor} {
		if v, err := version.ParseGeneric(text); err == nil {
			return version.MajorMinor(v.Major(), v.Minor())
		}
	}
	return nil
}

// Range is with which versions of the API server a binary runs.
type Range struct{ Oldest, Built, Newest *version.Version }

// Of is the range of what is built from a version of Kubernetes.
func Of(built *version.Version) Range {
	built = version.MajorMinor(built.Major(), built.Minor())
	return Range{Oldest: built.SubtractMinor(olderBy), Built: built, Newest: built.AddMinor(newerBy)}
}

// Check refuses an API server whose version is out of the range.
func (r Range) Check(v *version.Version) error {
	switch {
	case v.LessThan(r.Oldest):
		return fmt.Errorf("it is of Kubernetes %s, which is too old for this release of Espalier, made for %s to %s: upgrade the cluster", v, r.Oldest, r.Newest)
	case r.Newest.LessThan(v):
		return fmt.Errorf("it is of Kubernetes %s, which is too new for this release of Espalier, made for %s to %s: install a newer release of Espalier", v, r.Oldest, r.Newest)
	}
	return nil
}

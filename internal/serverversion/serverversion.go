// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverversion says of which Kubernetes an API server is, and whether what is built from one minor version of Kubernetes runs with it.
package serverversion

import (
	"fmt"
	"net/http"
	"time"

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
	// othersFor is how much longer than the first answer the others may take.
	othersFor = time.Second
)

// Asker asks API servers for their version. It is safe for concurrent use.
type Asker struct {
	// Host is where the API server is, for messages.
	Host   string
	client *discovery.DiscoveryClient
}

// closing has each request go by a connection of its own, which may lead to another API server.
type closing struct{ http.RoundTripper }

func (c closing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Close = true
	return c.RoundTripper.RoundTrip(r)
}

// New returns an Asker of the API servers that a configuration reaches.
func New(config *rest.Config) (*Asker, error) {
	config = rest.CopyConfig(config)
	// A connection of HTTP/2 would be shared with all other clients of the process, and go to one API server for hours.
	config.NextProtos = []string{"http/1.1"}
	config.Wrap(func(below http.RoundTripper) http.RoundTripper { return closing{below} })
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("API server at %s: %w", config.Host, err)
	}
	return &Asker{Host: config.Host, client: client}, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (c closing) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// One returns the version of one API server, by a connection of its own, and nil where it says nothing that is one. An API server that
// emulates another version is of that one.
func (a *Asker) One() (*version.Version, error) {
	info, err := a.client.ServerVersion()
	if err != nil {
		return nil, err
	}
	return Read(info), nil
}

// Oldest returns the version of the oldest of the API servers that answer to the address, nil where none says it. All are asked at once, and those that
// answer count until a while after the first: in the middle of an upgrade there may be one behind the address that does not answer. The error is that of
// one of them, if none answers.
func (a *Asker) Oldest() (oldest *version.Version, err error) {
	type answer struct {
		version *version.Version
		err     error
	}
	answers := make(chan answer, asks)
	for range asks {
		go func() {
			v, err := a.One()
			answers <- answer{v, err}
		}()
	}
	var late <-chan time.Time
	for range asks {
		select {
		case is := <-answers:
			if is.err != nil {
				err = is.err
				continue
			}
			if late == nil {
				late = time.After(othersFor)
			}
			if is.version != nil && (oldest == nil || is.version.LessThan(oldest)) {
				oldest = is.version
			}
		case <-late:
			return oldest, nil
		}
	}
	if late != nil {
		err = nil
	}
	return oldest, err
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

// Text is what an answer says, so that Read reads the same version in it, as a GitVersion. An API server that emulates a version has that of another one.
func Text(info *apimachineryversion.Info) string {
	is, git := Read(info), Read(&apimachineryversion.Info{GitVersion: info.GitVersion})
	if is == nil || git != nil && is.EqualTo(git) {
		return info.GitVersion
	}
	return fmt.Sprintf("v%s (gitVersion %s)", is, info.GitVersion)
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
		return fmt.Errorf("it is of Kubernetes %s, which is too old for this release of Espalier, made for %s to %s, and no release is made for older ones: upgrade the cluster to %[2]s at least", v, r.Oldest, r.Newest)
	case r.Newest.LessThan(v):
		return fmt.Errorf("it is of Kubernetes %s, which is too new for this release of Espalier, made for %s to %s: install a newer release of Espalier", v, r.Oldest, r.Newest)
	}
	return nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// traffic is what the API server makes of the requests of a scheduler, and sees of it.
type traffic struct {
	// cycles are the times that the scheduler has asked for its next pod.
	cycles atomic.Int64
	// binding are the bindings that are under way.
	binding atomic.Int64
	// tried are the refused pods for which it was looked whether the next one is taken up while they are written down, beside those of which it was.
	tried, beside atomic.Int64

	mu sync.Mutex // guards what follows
	// fates draws what becomes of bindings, nil if all go well.
	fates *rand.Rand
	// held: bindings wait until it is closed. Nil for none.
	held chan struct{}
	// lost are the pods whose binding had no answer, asked those that somebody asked about.
	lost, asked sets.Set[string]
}

// Of so many bindings one is refused for want of room, one in a conflict, and one is made without an answer.
const (
	oneRefused  = 10
	oneConflict = 40
	oneLost     = 20
)

// errLost is what a client is told when the API server goes away in the middle.
var errLost = errors.New("connection reset by peer")

// fickle has bindings come to all that they may come to from now on, as random numbers say; with nil, all go well.
func (t *traffic) fickle(fates *rand.Rand) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fates = fates
}

// oneIn draws whether a binding is one of so many.
func (t *traffic) oneIn(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fates != nil && t.fates.IntN(n) == 0
}

// hold has bindings wait until it is let go.
func (t *traffic) hold() (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := make(chan struct{})
	t.held = held
	return func() { close(held) }
}

// bind plays what may become of a binding beside that it is made.
func (t *traffic) bind(b *corev1.Binding, bind func() error) error {
	t.binding.Add(1)
	defer t.binding.Add(-1)
	t.mu.Lock()
	held := t.held
	t.mu.Unlock()
	if held != nil {
		<-held
	}
	switch {
	case t.oneIn(oneRefused): // as the arbiter does
		return noRoom(b)
	case t.oneIn(oneConflict):
		return apierrors.NewConflict(pods.GroupResource(), b.Name, errors.New("it has changed"))
	case t.oneIn(oneLost):
		if err := bind(); err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lost.Insert(b.Name)
		return errLost
	}
	return bind()
}

// write looks whether the scheduler asks for its next pod before it is answered that a pod was refused. It is not looked at for ever: a scheduler
// that does not ask loses that time.
func (t *traffic) write(status []byte) {
	// That a pod is nominated, or no longer is, must be written before.
	if !bytes.Contains(status, []byte(`"reason":"`+corev1.PodReasonUnschedulable+`"`)) || bytes.Contains(status, []byte(`nominatedNodeName`)) {
		return
	}
	if before := t.cycles.Load(); t.tried.Add(1) <= 50 && within(100*time.Millisecond, func() bool { return t.cycles.Load() != before }) {
		t.beside.Add(1)
	}
}

// within waits for something, and reports whether it has come.
func within(bound time.Duration, come func() bool) bool {
	for begun := time.Now(); time.Since(begun) < bound; time.Sleep(time.Millisecond) {
		if come() {
			return true
		}
	}
	return false
}

// client is the server's client with other requests for pods. It says of itself what that says, as that it is no server that streams lists.
type client struct {
	*apiServer
	pods func(corev1client.PodInterface) corev1client.PodInterface
}

// CoreV1 is beside the others.
func (c client) CoreV1() corev1client.CoreV1Interface {
	return coreClient{c.apiServer.CoreV1(), c.pods}
}

type coreClient struct {
	corev1client.CoreV1Interface
	pods func(corev1client.PodInterface) corev1client.PodInterface
}

// Pods has the other requests.
func (c coreClient) Pods(namespace string) corev1client.PodInterface {
	return c.pods(c.CoreV1Interface.Pods(namespace))
}

// scheduling is the client of a scheduler. Its requests for pods go through traffic outside of the server, which answers one at a time.
func (s *apiServer) scheduling() kubernetes.Interface {
	return client{s, func(p corev1client.PodInterface) corev1client.PodInterface { return schedulingPods{p, &s.traffic} }}
}

type schedulingPods struct {
	corev1client.PodInterface
	*traffic
}

// Bind binds a pod, or does not.
func (p schedulingPods) Bind(ctx context.Context, b *corev1.Binding, o metav1.CreateOptions) error {
	return p.bind(b, func() error { return p.PodInterface.Bind(ctx, b, o) })
}

// Patch writes the status of a pod.
func (p schedulingPods) Patch(ctx context.Context, name string, by types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	p.write(data)
	return p.PodInterface.Patch(ctx, name, by, data, o, subresources...)
}

// asking is the client by which a scheduler asks what became of bindings.
func (s *apiServer) asking() kubernetes.Interface {
	return client{s, func(p corev1client.PodInterface) corev1client.PodInterface { return askingPods{p, &s.traffic} }}
}

type askingPods struct {
	corev1client.PodInterface
	*traffic
}

// Get asks about a pod.
func (p askingPods) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Pod, error) {
	p.mu.Lock()
	p.asked.Insert(name)
	p.mu.Unlock()
	return p.PodInterface.Get(ctx, name, o)
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// awaitFor bounds how long a pod holds up the scheduler at its start. What is slower
// refuses the pod, and takes it up again when the policies are known.
const awaitFor = 5 * time.Second

// lackOfRight is how long the API server forbids something until it is more than the start of an API server.
const lackOfRight = 30 * time.Second

// errUnread is why a pod is refused before anything is known of the policies that
// there are.
var errUnread = errors.New("PlacementPolicies have not been read yet: wait, or see whether the API server answers, and the scheduler's right to list and watch placementpolicies")

// Policies is what is known of the policies of a cluster.
type Policies struct {
	// waiting are woken without mu: the queue asks plugins, and they ask for policies.
	waiting *refusal.Waiting
	edits   *edits
	// answered is closed when the policies are known, or unreadable, for the first time.
	answered chan struct{}
	answer   sync.Once

	// forbiddenFor is how long the API server forbids policies to be read until it counts as the lack of a right.
	forbiddenFor time.Duration

	mu sync.RWMutex // guards err, forbiddenSince, byNamespace
	// err is why the policies are not known; nil if they are.
	err error
	// forbiddenSince is when the API server began to forbid that policies are read; zero if it did not the last time.
	forbiddenSince time.Time
	// byNamespace has the policies of a namespace in the order of Policy.Compare. The
	// slices are replaced, never written to.
	byNamespace map[string][]*clusterview.Policy
}

// shared has the policies of each scheduler of this process: one, outside of tests.
// The framework hands a plugin nothing else in which its profiles could meet.
var shared = struct {
	sync.Mutex // guards of
	of         map[informers.SharedInformerFactory]*Policies
}{of: make(map[informers.SharedInformerFactory]*Policies)}

// For returns the policies of the scheduler that the handle belongs to. The first
// call starts to watch them, until the context ends: the informers of a plugin
// that are not the framework's have no other beginning. A handle without an API
// server, as in a simulation, has no policies.
func For(ctx context.Context, handle fwk.Handle) (*Policies, error) {
	factory := handle.SharedInformerFactory()
	shared.Lock()
	defer shared.Unlock()
	if p, ok := shared.of[factory]; ok {
		return p, nil
	}
	config := handle.KubeConfig()
	if config == nil {
		return Fixed(), nil
	}
	server, err := newAPIServer(config)
	if err != nil {
		return nil, fmt.Errorf("a client for PlacementPolicies: %w", err)
	}
	p := newPolicies(refusal.WaitingOf(ctx, handle))
	shared.of[factory] = p
	context.AfterFunc(ctx, func() {
		shared.Lock()
		defer shared.Unlock()
		delete(shared.of, factory)
	})
	go p.watch(ctx, server)
	return p, nil
}

// Fixed are policies that never change, for simulations and tests.
func Fixed(policies ...*clusterview.Policy) *Policies {
	p := newPolicies(refusal.NewWaiting(nil, nil))
	p.err = nil
	for _, policy := range policies {
		p.byNamespace[policy.Namespace] = put(p.byNamespace[policy.Namespace], policy)
	}
	p.answer.Do(func() { close(p.answered) })
	return p
}

func newPolicies(pods *refusal.Waiting) *Policies {
	register()
	return &Policies{
		waiting: pods, edits: newEdits(), forbiddenFor: lackOfRight, answered: make(chan struct{}),
		err: errUnread, byNamespace: make(map[string][]*clusterview.Policy),
	}
}

// Governing returns the policy that governs a pod, nil for none. The error says why
// that is not known; such a pod must not be placed, and is woken when it is.
func (p *Policies) Governing(pod *corev1.Pod) (*clusterview.Policy, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.err != nil {
		return nil, p.err
	}
	return clusterview.Governing(p.byNamespace[pod.Namespace], pod), nil
}

// Placing returns the policy that a pod is placed by, nil for none. It is the one that
// governs it, but for pods whose controller chooses their nodes: no policy has a say in that,
// and what is not known of policies must not keep from a node what the node needs to be ready.
func (p *Policies) Placing(pod *corev1.Pod) (*clusterview.Policy, error) {
	if clusterview.Daemon(pod) {
		return nil, nil //nolint:nilnil // no policy is an answer
	}
	return p.Governing(pod)
}

// Wait returns when there is an answer, known or unreadable, or after a short time
// without one.
func (p *Policies) Wait(ctx context.Context) {
	select {
	case <-p.answered:
		return
	default:
	}
	timer := time.NewTimer(awaitFor)
	defer timer.Stop()
	select {
	case <-p.answered:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// cycleKey is where a cycle keeps the policy that its pod is placed by.
const cycleKey fwk.StateKey = "Espalier/Policy"

// placing is what came of Placing.
type placing struct {
	policy *clusterview.Policy
	err    error
}

// Clone returns the same: nobody alters it.
func (p *placing) Clone() fwk.StateData { return p }

// Await is Placing for a scheduling cycle, for all plugins alike: the first one that asks has it looked up. In the first
// moments of a scheduler it waits for an answer, for a short time, if the pod needs one.
func (p *Policies) Await(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*clusterview.Policy, error) {
	if data, err := state.Read(cycleKey); err == nil {
		if is, ok := data.(*placing); ok {
			return is.policy, is.err
		}
	}
	if !clusterview.Daemon(pod) {
		p.Wait(ctx)
	}
	policy, err := p.Placing(pod)
	state.Write(cycleKey, &placing{policy, err})
	return policy, err
}

// put adds a policy to those of its namespace, or replaces it.
func put(list []*clusterview.Policy, policy *clusterview.Policy) []*clusterview.Policy {
	list = append(drop(list, policy.Name), policy)
	slices.SortFunc(list, (*clusterview.Policy).Compare)
	return list
}

// drop removes a policy from those of its namespace.
func drop(list []*clusterview.Policy, name string) []*clusterview.Policy {
	return slices.DeleteFunc(slices.Clone(list), func(p *clusterview.Policy) bool { return p.Name == name })
}

// find returns a policy of a namespace by its name, nil if it is not there.
func find(list []*clusterview.Policy, name string) *clusterview.Policy {
	if i := slices.IndexFunc(list, func(p *clusterview.Policy) bool { return p.Name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

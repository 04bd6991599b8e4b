// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// awaitFor bounds how long a pod holds up the scheduler at its start. What is slower
// refuses the pod, and takes it up again when the policies are known.
const awaitFor = 5 * time.Second

// kind is one of the kinds of policies.
type kind int

const (
	ofNamespace kind = iota
	ofCluster
	kinds
)

// everywhere is where the policies of the cluster are in byNamespace.
const everywhere = ""

// resource is the kind's resource in URLs and rights.
func (k kind) resource() string {
	if k == ofCluster {
		return placementv1alpha1.ClusterPlacementPolicyResource
	}
	return placementv1alpha1.PlacementPolicyResource
}

// Policies is what is known of the policies of a cluster.
type Policies struct {
	// waiting are woken without mu: the queue asks plugins, and they ask for policies.
	waiting *refusal.Waiting
	edits   *edits
	// namespaces are those whose labels say which ClusterPlacementPolicies are for them. It is nil in a simulation, in
	// which namespaces have no labels.
	namespaces corelisters.NamespaceLister
	// of says whether the policies of each kind are known.
	of [kinds]*optionalkind.Kind

	mu sync.RWMutex // guards byNamespace
	// byNamespace has the policies of a namespace in the order of Policy.Compare, and at everywhere those of the cluster. The
	// slices are replaced, never written to.
	byNamespace map[string][]*clusterview.Policy

	merging sync.Mutex // guards effective; taken with mu, read or written
	// effective has those of a namespace and of the cluster that have a say in it, where there are any of the cluster. It is filled
	// with mu read, and emptied with mu written.
	effective map[string][]*clusterview.Policy
	// unknown are the namespaces that were asked for before they were known. It is guarded as effective is.
	unknown map[string]bool
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
	servers, err := optionalkind.APIServers(config, placementv1alpha1.SchemeGroupVersion, ofNamespace.resource(), ofCluster.resource())
	if err != nil {
		return nil, err
	}
	p := newPolicies(refusal.WaitingOf(ctx, handle))
	if err := p.watchNamespaces(factory.Core().V1().Namespaces()); err != nil {
		return nil, err
	}
	p.shareLocked(ctx, factory)
	context.AfterFunc(ctx, p.edits.stop)
	for k, server := range servers {
		go p.of[k].Watch(ctx, server)
	}
	return p, nil
}

// Fixed are policies that never change, for simulations and tests.
func Fixed(policies ...*clusterview.Policy) *Policies {
	p := newPolicies(refusal.NewWaiting(nil, nil))
	for _, policy := range policies {
		p.byNamespace[policy.Namespace] = put(p.byNamespace[policy.Namespace], policy)
	}
	for k := range kinds {
		p.of[k] = optionalkind.Known()
	}
	return p
}

func newPolicies(pods *refusal.Waiting) *Policies {
	register()
	p := &Policies{
		waiting: pods, edits: newEdits(),
		byNamespace: make(map[string][]*clusterview.Policy), effective: make(map[string][]*clusterview.Policy), unknown: make(map[string]bool),
	}
	for k := range kinds {
		p.of[k] = optionalkind.New("policies", k.resource(), p.handler(k))
	}
	return p
}

// Governing returns the policy that governs a pod, nil for none. The error says why
// that is not known; such a pod must not be placed, and is woken when it is.
func (p *Policies) Governing(pod *corev1.Pod) (*clusterview.Policy, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	list, err := p.in(pod.Namespace)
	return clusterview.Governing(list, pod), err
}

// in returns the policies that have a say in a namespace, in order. The caller holds mu.
func (p *Policies) in(namespace string) ([]*clusterview.Policy, error) {
	if err := p.err(); err != nil {
		return nil, err
	}
	if len(p.byNamespace[everywhere]) == 0 {
		return clusterview.Effective(nil, p.byNamespace[namespace], nil), nil
	}
	p.merging.Lock()
	defer p.merging.Unlock()
	if list, ok := p.effective[namespace]; ok {
		return list, nil
	}
	list, err := p.merge(p.byNamespace[everywhere], namespace)
	if err != nil {
		p.unknown[namespace] = true
		return nil, err
	}
	p.effective[namespace] = list
	return list, nil
}

// merge returns what in would if these were the policies of the cluster. The caller holds mu.
func (p *Policies) merge(cluster []*clusterview.Policy, namespace string) ([]*clusterview.Policy, error) {
	its, err := p.labelsOf(namespace)
	if err != nil {
		return nil, err
	}
	return clusterview.Effective(cluster, p.byNamespace[namespace], its), nil
}

// err says why the policies are not known, nil if all kinds are.
func (p *Policies) err() error {
	for _, of := range p.of {
		if err := of.Err(); err != nil {
			return err
		}
	}
	return nil
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

// Wait returns when there is an answer about each kind, known or unreadable, or after a short time
// without one.
func (p *Policies) Wait(ctx context.Context) {
	for i, of := range p.of {
		select {
		case <-of.Answered():
		default:
			await(ctx, p.of[i:])
			return
		}
	}
}

func await(ctx context.Context, all []*optionalkind.Kind) {
	ctx, cancel := context.WithTimeout(ctx, awaitFor)
	defer cancel()
	for _, of := range all {
		select {
		case <-of.Answered():
		case <-ctx.Done():
			return
		}
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
	list = drop(list, policy.Name)
	// Not sorted anew: a namespace may have thousands of them when a scheduler starts.
	at, _ := slices.BinarySearchFunc(list, policy, (*clusterview.Policy).Compare)
	return slices.Insert(list, at, policy)
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

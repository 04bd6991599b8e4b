// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/evenness"
)

// deed is one thing that an actor can do. It reports whether there was anything to do it to.
type deed func(context.Context) (done bool, err error)

// actor does one deed after the other. What it knows of the cluster nobody else changes.
type actor struct {
	*rand.Rand
	client kubernetes.Interface
	name   string
	deeds  map[string]deed

	mu   sync.Mutex // guards what follows
	done map[string]int
}

// newActor returns one whose random numbers are its own, so that what one does does not depend on how
// fast another is.
func newActor(name string, seed uint64) *actor {
	stream := fnv.New64()
	_, _ = stream.Write([]byte(name))
	return &actor{Rand: rand.New(rand.NewPCG(seed, stream.Sum64())), client: world.client, name: name, done: make(map[string]int)}
}

// act goes on until the context ends, or something cannot be done.
func (a *actor) act(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(a.deeds))
	for {
		name := names[a.IntN(len(names))]
		did, err := a.deeds[name](ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // terminated, which is no failure
		case err != nil:
			return fmt.Errorf("%s: %s: %w", a.name, name, err)
		case did:
			a.mu.Lock()
			a.done[name]++
			a.mu.Unlock()
		default:
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(100+a.IntN(500)) * time.Millisecond):
		}
	}
}

// tally is how often each deed was done, and how often all of them.
func (a *actor) tally() (each []string, all int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.deeds)) {
		each = append(each, fmt.Sprintf("%s %d", name, a.done[name]))
		all += a.done[name]
	}
	return each, all
}

// missing are the deeds that were never done.
func (a *actor) missing() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range a.deeds {
		if a.done[name] == 0 {
			names = append(names, name)
		}
	}
	return names
}

// devcluster runs a command of devcluster on the cluster.
func devcluster(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, world.devcluster, append(args, "--kubeconfig="+world.kubeconfig)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("devcluster %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// author is who writes policies, one for each workload that has no placement of its own.
type author struct {
	*actor
	policies dynamic.ResourceInterface
}

func newAuthor(seed uint64, client dynamic.Interface) *author {
	resource := placementv1alpha1.SchemeGroupVersion.WithResource(placementv1alpha1.PlacementPolicyResource)
	a := &author{actor: newActor("author", seed), policies: client.Resource(resource).Namespace(namespace)}
	a.deeds = map[string]deed{"write": a.write, "withdraw": a.withdraw}
	return a
}

// governed are the workloads that policies are for.
func governed() (some []workload) {
	for _, w := range workloads {
		if w.placement == "" {
			some = append(some, w)
		}
	}
	return some
}

func (a *author) anyGoverned() workload {
	some := governed()
	return some[a.IntN(len(some))]
}

// write makes a policy, or makes it another one.
func (a *author) write(ctx context.Context) (bool, error) {
	choices := [][]evenness.Level{{byZone}, {byRack}, {byZone, byRack}, {byRack, byZone}}
	return true, a.put(ctx, a.anyGoverned().name, choices[a.IntN(len(choices))])
}

func (a *author) withdraw(ctx context.Context) (bool, error) {
	err := a.policies.Delete(ctx, a.anyGoverned().name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, err
}

// put has a policy spread a workload over levels.
func (a *author) put(ctx context.Context, name string, levels []evenness.Level) error {
	var list []any
	for _, level := range levels {
		// As the annotations have it, by which the others are spread: what is to be even knows no last resort.
		list = append(list, map[string]any{"topologyKey": level.Name, "nodesWithoutKey": "OwnDomain"})
	}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": placementv1alpha1.SchemeGroupVersion.String(), "kind": "PlacementPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": name}}, "levels": list},
	}}
	_, err := a.policies.Apply(ctx, name, policy, metav1.ApplyOptions{FieldManager: "soak", Force: true})
	return err
}

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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/test/fixture"
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

// newActor returns one whose random numbers are its own, so that what one does does not depend on how fast another is.
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

const (
	namespace = "soak"

	placementAnnotation = "espalier.dev/placement"
	failAnnotation      = "devcluster.espalier.dev/fail"
	revisionAnnotation  = "soak.espalier.dev/revision"
)

var (
	byZone = evenness.Level{Name: zoneLabel}
	byRack = evenness.Level{Name: rackLabel}
)

// workload is a Deployment, and what it is to be even over when all is calm. Those without a
// placement of their own are governed by a policy of their name, if there is one.
type workload struct {
	name, placement string
	levels          []evenness.Level
}

var workloads = []workload{
	{"plain", "spread=node.name", nil},
	{"zones", "spread=" + zoneLabel, []evenness.Level{byZone}},
	{"racks", "spread=" + zoneLabel + ",spread=" + rackLabel, []evenness.Level{byZone, byRack}},
	{"shares", "spread=" + zoneLabel + ";weight.zone-a=60;weight.zone-b=20;weight.*=20", []evenness.Level{{Name: zoneLabel, Weights: map[string]int64{"zone-a": 60, "zone-b": 20, evenness.Others: 20}}}},
	{"packed", "pack=" + rackLabel, []evenness.Level{{Name: rackLabel, Pack: true}}},
	{"governed", "", []evenness.Level{byZone}},
	{"ruled", "", []evenness.Level{byZone, byRack}},
}

func (w *workload) deployment(replicas int32) *appsv1.Deployment {
	d := fixture.Deployment(w.name, replicas)
	if w.placement != "" {
		d.Spec.Template.Annotations = map[string]string{placementAnnotation: w.placement}
	}
	spec := &d.Spec.Template.Spec
	spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	// Pods on a node that has fallen silent are to be replaced while the soak lasts.
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5),
		})
	}
	return d
}

// releaser is who scales and releases.
type releaser struct {
	*actor
	revision int
}

func newReleaser(name string, seed uint64) *releaser {
	r := &releaser{actor: newActor(name, seed)}
	r.deeds = map[string]deed{"roll": r.roll, "scale": r.scale, "bad release": r.bad}
	return r
}

func (r *releaser) anyWorkload() *workload { return &workloads[r.IntN(len(workloads))] }

func (r *releaser) roll(ctx context.Context) (bool, error) {
	return true, r.release(ctx, r.anyWorkload(), "null")
}

// bad releases a version that fails on every node. The next release of the workload mends it.
func (r *releaser) bad(ctx context.Context) (bool, error) {
	return true, r.release(ctx, r.anyWorkload(), fmt.Sprintf("%q", r.one([]string{"crashloop", "error"})))
}

// release changes the template, and so the revision.
func (r *releaser) release(ctx context.Context, w *workload, failing string) error {
	r.revision++
	return r.patch(ctx, w, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q,%q:%s}}}}}`,
		revisionAnnotation, fmt.Sprintf("%s-%d", r.name, r.revision), failAnnotation, failing))
}

func (r *releaser) scale(ctx context.Context) (bool, error) {
	return true, r.to(ctx, r.anyWorkload(), 2+r.IntN(20))
}

func (r *releaser) to(ctx context.Context, w *workload, replicas int) error {
	return r.patch(ctx, w, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (r *releaser) patch(ctx context.Context, w *workload, patch string) error {
	_, err := r.client.AppsV1().Deployments(namespace).Patch(ctx, w.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// settled returns where a workload's pods are, once all of them run and are of the last revision.
func (w *workload) settled(ctx context.Context) (*rig.Observation, error) {
	d, err := world.client.AppsV1().Deployments(namespace).Get(ctx, w.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := rig.UpToDate(d); err != nil {
		return nil, err
	}
	want := *d.Spec.Replicas
	o, err := rig.Observe(ctx, world.client, rig.Workload{Namespace: namespace, Selector: "app=" + w.name, Levels: w.levels})
	if err != nil {
		return nil, err
	}
	if len(o.Pods) != int(want) || o.Pending > 0 || o.Leaving > 0 {
		return nil, fmt.Errorf("%d pods of %d, of them %d pending, and %d leaving", len(o.Pods), want, o.Pending, o.Leaving)
	}
	return o, nil
}

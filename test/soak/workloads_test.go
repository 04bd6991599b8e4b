// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/test/fixture"
)

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

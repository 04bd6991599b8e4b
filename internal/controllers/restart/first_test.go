// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// first wants a Move to evict its pod first, ends it, and has it be as old as it is by the clock.
func (r *rig) first(name string) *placementv1alpha1.Move {
	r.Helper()
	m := &placementv1alpha1.Move{}
	r.must(r.API.Get(r.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m))
	if !m.Spec.EvictsFirst() {
		r.Errorf("%s is %+v", name, m.Spec)
	}
	m.CreationTimestamp = metav1.NewTime(r.clock.Now())
	r.must(r.Client.Update(r.Context(), m))
	m.Status.Phase = placementv1alpha1.MoveDone
	r.must(r.Client.Status().Update(r.Context(), m))
	r.must(r.Client.Delete(r.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: m.Spec.Pod.Name}}))
	return m
}

func (r *rig) must(err error) {
	if err != nil {
		r.Helper()
		r.Fatal(err)
	}
}

// newStateful is a rig whose pods are of a StatefulSet.
func newStateful(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, options(), func(c *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) {
		c.Data["failures.json"] = strings.NewReplacer("Deployment.apps/web", "StatefulSet.apps/db", `"revision":"1"`, `"revision":"db-7"`).Replace(
			`{"version":1,"revisions":[{"workload":"ns/Deployment.apps/web","revision":"1","nodes":[],"family":"","regarding":{},"marked":["bad"]}]}`)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "db", Controller: new(true)}}
		p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "db-7"}
	})
	r.must(r.Client.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}}))
	return r
}

// A pod of a StatefulSet that fails where its node is faulty is evicted first, one at a time and with the delays that Deployments have.
func TestRestartsOfAStatefulSet(t *testing.T) {
	r := newStateful(t)
	r.after(29 * time.Second)
	r.after(time.Second, "web-1-0-web")
	r.after(time.Second, "web-1-0-web")
	if m := r.first("web-1-0-web"); m.Spec.StatefulSet.UID != "db" || m.OwnerReferences[0].Kind != "StatefulSet" {
		t.Errorf("it is %+v of %v", m.Spec, m.OwnerReferences)
	}
	r.after(28*time.Second, "web-1-0-web")
	r.after(time.Second, "web-1-0-web", "web-1-1-web")
}

// A pod of a Deployment that allows no surge is evicted first.
func TestRestartsWithoutASurge(t *testing.T) {
	r := newRig(t, options(), func(_ *corev1.ConfigMap, d *appsv1.Deployment, _ *corev1.Pod) {
		d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0))
	})
	r.after(time.Minute, "web-1-0")
	if m := r.first("web-1-0"); m.Spec.ReplicaSet.UID != "web-1" || m.OwnerReferences[0].UID != "web" {
		t.Errorf("it is %+v of %v", m.Spec, m.OwnerReferences)
	}
}

// A budget that wants each pod never lets one go that fails. No Move waits for it, as one of those that may be made at once. One that says so lets it go.
func TestNoRestartsThatABudgetNeverAllows(t *testing.T) {
	r := newStateful(t)
	r.budgets("one")
	r.after(time.Hour)
	b := &policyv1.PodDisruptionBudget{}
	r.must(r.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "one"}, b))
	b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	r.must(r.Client.Update(t.Context(), b))
	r.after(time.Second, "web-1-0-web")
}

// A pod on a node that does not answer is not evicted first: nobody could end it.
func TestNoRestartsOnANodeThatDoesNotAnswer(t *testing.T) {
	r := newStateful(t)
	node := &corev1.Node{}
	r.must(r.API.Get(t.Context(), client.ObjectKey{Name: "bad"}, node))
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	r.must(r.Client.Update(t.Context(), node))
	r.after(time.Hour)
	node.Spec.Taints = nil
	r.must(r.Client.Update(t.Context(), node))
	r.after(time.Minute, "web-1-0-web")
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// components are those of the manifests that have the controller change pods or nodes, each with its story and the flags that it takes.
var components = map[string]struct {
	name  string
	tell  story
	flags func(s *stage) []string
}{
	"move-drained": {"drains", drains, func(*stage) []string { return []string{"--move-drained=All"} }},
	"rebalance": {"rebalances", rebalances, func(s *stage) []string {
		return []string{
			"--rebalance=Enabled", "--rebalance-namespace-selector=kubernetes.io/metadata.name=" + s.name, "--rebalance-quiet=1s", "--rebalance-node-ready=0s", "--rebalance-pod-age=0s",
		}
	}},
	"restart-elsewhere": {"restarts", restarts, func(s *stage) []string {
		return []string{"--restart-elsewhere=Enabled", "--restart-delay=1s", "--failure-record-namespace=" + s.name}
	}},
	"keep-disconnected":     {"keeps", keeps, func(*stage) []string { return []string{"--keep-disconnected"} }},
	"repair-deletion-costs": {"repairs", repairs, func(*stage) []string { return []string{"--repair-deletion-costs=Repair", "--repair-quiet=0s"} }},
	"renew-leases": {"renews", renews, func(s *stage) []string {
		return []string{"--renew-leases", "--renew-namespace-selector=kubernetes.io/metadata.name=" + s.name}
	}},
	"stagger-ends": {"retires", retires, func(s *stage) []string { return []string{"--stagger-ends=" + ofStage + "=" + s.name} }},
	"node-claims":  {"claims", claims, func(*stage) []string { return []string{"--node-claims"} }},
}

// startMoving starts the controller for the Moves and NodeClaims of the stage alone. It would carry out those of others, with rights that they
// may lack.
func (s *stage) startMoving(args ...string) {
	s.Helper()
	s.proxy.only = s.name
	s.startController(args...)
}

// drains: a pod that a disruption budget keeps on a cordoned node is replaced before it is evicted, and one of a StatefulSet is evicted first.
func drains(s *stage) error {
	from, to := s.twoNodes()
	d := s.deploy("drained", 1)
	budgets := cluster.client.PolicyV1().PodDisruptionBudgets(s.name)
	b := made(s, budgets.Create, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "drained"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: d.set.Spec.Selector},
	})
	pod := d.runs(from, s.sharing("drained"))
	first := s.stateful("first").runs(from)
	s.patchNode(from, `{"spec":{"unschedulable":true}}`)
	if err := s.gone(first); err != nil {
		return err
	}
	return d.replaced(pod, to, func() {
		b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 1}
		_, err := budgets.UpdateStatus(s.Context(), b, metav1.UpdateOptions{})
		must(s, err)
	})
}

// rebalances: of two pods in one zone, one is replaced by another in the other zone. A Move that somebody has made is carried out too.
func rebalances(s *stage) error {
	from, to := s.twoNodes()
	if err := s.stateful("by-hand").movedByHand(from); err != nil {
		return err
	}
	d := s.deploy("uneven", 2)
	placed := func(cost string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"espalier.dev/placed-by": "defaults spread=topology.kubernetes.io/zone", corev1.PodDeletionCost: cost}
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{from, to}}}}},
			}}}
		}
	}
	d.runs(from, placed("-1"))
	pod := d.runs(from, placed("-2"))
	return d.replaced(pod, to, func() {})
}

// restarts: a pod that keeps failing on a node that is faulty for it is replaced on another one, and one of a StatefulSet is evicted first.
func restarts(s *stage) error {
	from, to := s.twoNodes()
	d := s.deploy("failing", 1)
	pod := d.runs(from, s.sharing("failing"), func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "failing", "pod-template-hash": "1"}
	})
	first := s.stateful("first").runs(from, func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "first", "controller-revision-hash": "1"}
	})
	for _, p := range []*corev1.Pod{pod, first} {
		s.status(p, `{"phase":"Running","conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}],
		"containerStatuses":[{"name":"c","image":"i","imageID":"i","restartCount":9,"ready":false,"started":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}`)
	}
	made(s, cluster.client.CoreV1().ConfigMaps(s.name).Create, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-failures"},
		Data: map[string]string{"failures.json": fmt.Sprintf(
			`{"version":1,"revisions":[{"workload":"%[1]s/Deployment.apps/failing","revision":"1","nodes":[],"family":"","regarding":{},"marked":[%[2]q]},
			{"workload":"%[1]s/StatefulSet.apps/first","revision":"1","nodes":[],"family":"","regarding":{},"marked":[%[2]q]}]}`, s.name, from)},
	})
	if err := s.gone(first); err != nil {
		return err
	}
	return d.replaced(pod, to, func() {})
}

// keeps: a pod on a node that does not answer is kept and replaced, and goes when the node is back. A Move that somebody has made is carried out too.
func keeps(s *stage) error {
	from, to := s.twoNodes()
	if err := s.stateful("by-hand").movedByHand(from); err != nil {
		return err
	}
	s.object("PlacementPolicy", "kept", map[string]any{"podSelector": map[string]any{}, "disconnect": map[string]any{"replaceAfterSeconds": int64(0), "keep": "Replacement"}})
	d := s.deploy("kept", 1)
	pod := d.runs(from, func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{
			Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
		}}
	})
	s.patchNode(from, `{"spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"`+now()+`"}]}}`)
	return d.replaced(pod, to, func() {
		s.patchNode(from, `{"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+now()+`"}]}}`, "status")
		s.patchNode(from, `{"spec":{"taints":null}}`)
		s.status(pod, `{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+now()+`"}]}`)
	})
}

// repairs: a pod whose number leaves a gap in its zone is given another one.
func repairs(s *stage) error {
	from, _ := s.twoNodes()
	d := s.deploy("gap", 2)
	for _, number := range []string{"1", "3"} {
		d.runs(from, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{
				"espalier.dev/placed-by": "defaults spread=topology.kubernetes.io/zone", corev1.PodDeletionCost: "-" + number, "espalier.dev/deletion-ordinal": number,
			}
		})
	}
	return s.wait("a pod to be given the number 2", func() error {
		pods, err := cluster.client.CoreV1().Pods(s.name).List(s.Context(), metav1.ListOptions{LabelSelector: "app=gap"})
		if err == nil && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Annotations["espalier.dev/deletion-ordinal"] == "2" }) {
			err = errors.New("none is")
		}
		return err
	})
}

// deployment is a Deployment with its ReplicaSet. No controllers are there: the test plays them, and the kubelets.
type deployment struct {
	*stage
	set *appsv1.ReplicaSet
}

// deploy makes a Deployment that is as its controller would leave it when it has all of its pods.
func (s *stage) deploy(name string, replicas int32) *deployment {
	s.Helper()
	ctx, apps, selected := s.Context(), cluster.client.AppsV1(), map[string]string{"app": name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selected}, Spec: s.pod("").Spec}
	revision := map[string]string{"deployment.kubernetes.io/revision": "1"}
	d := made(s, apps.Deployments(s.name).Create, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: revision},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selected}, Template: template},
	})
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas}
	_, err := apps.Deployments(s.name).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	must(s, err)
	set := made(s, apps.ReplicaSets(s.name).Create, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-1", Annotations: revision, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: d.Spec.Selector, Template: template},
	})
	return &deployment{s, set}
}

// runs makes a pod that runs on a node, and is ready.
func (d *deployment) runs(node string, change ...func(*corev1.Pod)) *corev1.Pod {
	d.Helper()
	return d.runsOf(d.set, "ReplicaSet", d.set.Spec.Template.Labels, node, change...)
}

// runsOf makes a pod of an owner that runs on a node, and is ready.
func (s *stage) runsOf(owner metav1.Object, kind string, labels map[string]string, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	s.Helper()
	pod := s.pod("")
	pod.GenerateName, pod.Labels = owner.GetName()+"-", labels
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))}
	pod.Spec.NodeName, pod.Spec.NodeSelector = node, nil
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0) // nobody ends it
	for _, c := range change {
		c(pod)
	}
	created := s.create(pod)
	s.status(created, `{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+now()+`"}]}`)
	return created
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// handedOver waits until a pod is a Move's.
func (s *stage) handedOver(pod *corev1.Pod) error {
	return sees(s, "pod "+pod.Name+" to be handed over", cluster.client.CoreV1().Pods(pod.Namespace).Get, pod.Name, func(now *corev1.Pod) bool {
		by := metav1.GetControllerOf(now)
		return by != nil && by.Kind == "Move"
	})
}

// gone waits until a pod is gone.
func (s *stage) gone(pod *corev1.Pod) error {
	return s.wait("pod "+pod.Name+" to be evicted", func() error {
		_, err := cluster.client.CoreV1().Pods(pod.Namespace).Get(s.Context(), pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// evicted waits until a pod is gone, and until the Deployment is told.
func (d *deployment) evicted(pod *corev1.Pod) error {
	if err := d.gone(pod); err != nil {
		return err
	}
	return d.told(metav1.GetControllerOf(d.set).Name, "PodMoved")
}

// forgotten waits until a Move that has ended long ago is gone.
func (s *stage) forgotten(pod *corev1.Pod) error {
	moves := s.resource("moves").Namespace(s.name)
	_, err := moves.Patch(s.Context(), pod.Name, mergePatch, []byte(`{"status":{"endedAt":"2026-01-01T00:00:00Z"}}`), metav1.PatchOptions{}, "status")
	must(s, err)
	return s.wait("the Move to be gone", func() error {
		is, err := moves.Get(s.Context(), pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("it is there, with the finalizers %v", finalizers(is)), err)
	})
}

func finalizers(of *unstructured.Unstructured) []string {
	if of == nil {
		return nil
	}
	return of.GetFinalizers()
}

// replaced goes on from a pod that is about to be moved to the end of the Move: another one runs elsewhere, and between does what must be
// before the pod is evicted.
func (d *deployment) replaced(pod *corev1.Pod, node string, between func()) error {
	if err := d.handedOver(pod); err != nil {
		return err
	}
	d.runs(node)
	between()
	if err := d.evicted(pod); err != nil {
		return err
	}
	return d.forgotten(pod)
}

// twoNodes makes two nodes in zones of their own.
func (s *stage) twoNodes() (from, to string) {
	s.Helper()
	from, to = s.name+"-from", s.name+"-to"
	for _, name := range []string{from, to} {
		s.node(name)
		s.patchNode(name, `{"metadata":{"labels":{"topology.kubernetes.io/zone":"`+name+`"}}}`)
	}
	return from, to
}

// patchNode changes a node, or one of its subresources.
func (s *stage) patchNode(name, patch string, subresources ...string) {
	s.Helper()
	_, err := cluster.client.CoreV1().Nodes().Patch(context.WithoutCancel(s.Context()), name, mergePatch, []byte(patch), metav1.PatchOptions{}, subresources...)
	must(s, err)
}

// statefulSet is a StatefulSet of one pod. The test plays its controller.
type statefulSet struct {
	*stage
	set *appsv1.StatefulSet
}

// stateful makes a StatefulSet that is as its controller would leave it when it has its pod.
func (s *stage) stateful(name string) *statefulSet {
	s.Helper()
	selected := map[string]string{"app": name}
	set := made(s, cluster.client.AppsV1().StatefulSets(s.name).Create, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: selected},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selected}, Spec: s.pod("").Spec},
		},
	})
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, CurrentRevision: "1", UpdateRevision: "1"}
	set, err := cluster.client.AppsV1().StatefulSets(s.name).UpdateStatus(s.Context(), set, metav1.UpdateOptions{})
	must(s, err)
	return &statefulSet{s, set}
}

// runs makes the pod, which is ready on a node.
func (s *statefulSet) runs(node string, change ...func(*corev1.Pod)) *corev1.Pod {
	s.Helper()
	return s.runsOf(s.set, "StatefulSet", s.set.Spec.Template.Labels, node, change...)
}

// movedByHand runs a pod on a node, makes a Move of it as somebody else does, and waits until the pod is gone. Whatever has Moves made, all are carried
// out.
func (s *statefulSet) movedByHand(node string) error {
	s.Helper()
	pod := s.runs(node)
	reference := func(o metav1.Object) map[string]any {
		return map[string]any{"name": o.GetName(), "uid": string(o.GetUID())}
	}
	s.object("Move", "by-hand", map[string]any{"pod": reference(pod), "statefulSet": reference(s.set), "evictFirst": true, "reason": "Lease"})
	return s.gone(pod)
}

// sharing makes a claim that pods of many nodes can have, and gives it to a pod: whether another one can be ready beside it is to be read there.
func (s *stage) sharing(name string) func(*corev1.Pod) {
	s.Helper()
	made(s, cluster.client.CoreV1().PersistentVolumeClaims(s.name).Create, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Resources: corev1.VolumeResourceRequirements{Requests: oneGigabyte},
		},
	})
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

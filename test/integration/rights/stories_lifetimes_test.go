// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

// ofStage is the label of the nodes of a stage that are given ends, and of its NodeClaims.
const ofStage = "stage"

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	nodeClaims  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
)

// renews: a pod that asks for its lease to be renewed is replaced on a node that lives long enough. A Move that somebody has made is carried out too.
func renews(s *stage) error {
	from, to := s.twoNodes()
	if err := s.stateful("by-hand").movedByHand(from); err != nil {
		return err
	}
	s.patchNode(from, `{"metadata":{"annotations":{"espalier.dev/valid-until":"`+time.Now().Add(30*time.Minute).UTC().Format(time.RFC3339)+`"}}}`)
	d := s.deploy("leased", 1)
	pod := d.runs(from, s.sharing("leased"), func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{"espalier.dev/lease": "1h", "espalier.dev/renew-lease": "true"}
	})
	return d.replaced(pod, to, func() {})
}

// retires: a node that has reached its end is cordoned, its pods are replaced or evicted, and a condition says that it waits for a reboot.
func retires(s *stage) error {
	from, to := s.twoNodes()
	end := now()
	s.patchNode(from, `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"`+end+`"}]}}`, "status")
	d := s.deploy("ending", 1)
	pod := d.runs(from, s.sharing("ending"))
	first := s.stateful("first").runs(from)
	s.patchNode(from, fmt.Sprintf(
		`{"metadata":{"labels":{%q:%q},"annotations":{"espalier.dev/valid-until":%q,"espalier.dev/valid-until-by":"Schedule %s"}}}`, ofStage, s.name, end, end))
	if err := s.gone(first); err != nil {
		return err
	}
	if err := d.replaced(pod, to, func() {}); err != nil {
		return err
	}
	return sees(s, "node "+from+" to wait for a reboot", cluster.client.CoreV1().Nodes().Get, from, func(n *corev1.Node) bool {
		return n.Spec.Unschedulable && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == "espalier.dev/RebootDue" && c.Status == corev1.ConditionTrue
		})
	})
}

// claims: the node of a NodeClaim is given its end, and of a NodeClaim that cannot be read an Event says so.
func claims(s *stage) error {
	s.defineNodeClaims()
	s.node(s.name)
	s.claim(s.name, s.name, "1h")
	if err := sees(s, "node "+s.name+" to have an end", cluster.client.CoreV1().Nodes().Get, s.name, func(n *corev1.Node) bool {
		return n.Annotations["espalier.dev/valid-until"] != ""
	}); err != nil {
		return err
	}
	bad := s.name + "-bad"
	s.claim(bad, bad, "soon")
	return s.wait("an Event about NodeClaim "+bad, func() error {
		list, err := cluster.client.EventsV1().Events("").List(s.Context(), metav1.ListOptions{FieldSelector: "reason=NodeEndUnreadable"})
		if err == nil && !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == bad }) {
			err = errors.New("there is none")
		}
		return err
	})
}

func (s *stage) dynamic(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	s.Helper()
	client, err := dynamic.NewForConfig(cluster.config)
	must(s, err)
	return client.Resource(resource)
}

// defineNodeClaims has the cluster know the kind.
func (s *stage) defineNodeClaims() {
	s.Helper()
	_, err := s.dynamic(definitions).Create(s.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": nodeClaims.GroupResource().String()},
		"spec": map[string]any{
			"group": nodeClaims.Group, "scope": "Cluster",
			"names": map[string]any{"kind": "NodeClaim", "listKind": "NodeClaimList", "singular": "nodeclaim", "plural": nodeClaims.Resource},
			"versions": []any{map[string]any{
				"name": nodeClaims.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) { // another stage has
		must(s, err)
	}
}

// claim makes a NodeClaim, as soon as the cluster knows the kind.
func (s *stage) claim(name, node, expireAfter string) {
	s.Helper()
	s.until("NodeClaim "+name, func() error {
		_, err := s.dynamic(nodeClaims).Apply(s.Context(), name, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": name, "labels": map[string]any{ofStage: s.name}},
			"spec": map[string]any{"expireAfter": expireAfter}, "status": map[string]any{"nodeName": node},
		}}, metav1.ApplyOptions{FieldManager: "test", Force: true})
		return err
	})
	s.Cleanup(func() {
		if err := s.dynamic(nodeClaims).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
}

// workload makes a ReplicaSet. No controller is there: its pods are made by owned.
func (s *stage) workload(namespace, name string) *appsv1.ReplicaSet {
	s.Helper()
	labels := map[string]string{"app": name}
	return made(s, cluster.client.AppsV1().ReplicaSets(namespace).Create, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s.pod("").Spec},
		},
	})
}

// owned makes a pod of the workload, and waits until it has a node.
func (s *stage) owned(set *appsv1.ReplicaSet, node string) (*corev1.Pod, error) {
	s.Helper()
	pod := s.pod("")
	pod.Namespace, pod.Name, pod.GenerateName, pod.Labels = set.Namespace, "", set.Name+"-", set.Spec.Template.Labels
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	created := s.create(pod)
	return created, s.bound(created)
}

const failed = `{"phase":"Failed","containerStatuses":[{"name":"c","image":"i","imageID":"i","restartCount":0,"ready":false,"started":false,"state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}`

// recorded waits until the record knows a failure of the workload.
func (s *stage) recorded(name string) error {
	return sees(s, "the failure of "+name+" in the record", cluster.client.CoreV1().ConfigMaps(s.name).Get, s.name+"-failures", func(now *corev1.ConfigMap) bool {
		return strings.Contains(fmt.Sprint(now.Data), name)
	})
}

// remembers: what fails is written down for the next scheduler.
func remembers(s *stage) error {
	pod, err := s.owned(s.workload(s.name, "failing"), s.name)
	if err != nil {
		return err
	}
	s.status(pod, failed)
	return s.recorded("failing")
}

// listens: what kubelets report by events alone is heard of.
func listens(s *stage) error {
	pod, err := s.owned(s.workload(s.name, "boxed"), s.name)
	if err != nil {
		return err
	}
	made(s, cluster.client.CoreV1().Events(s.name).Create, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "boxed-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         "FailedCreatePodSandBox", Message: "no network", Type: corev1.EventTypeWarning,
		Source: corev1.EventSource{Component: "kubelet", Host: s.name}, ReportingController: "kubelet",
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
	})
	return s.recorded("boxed")
}

// suspects: a node that workloads of two tenants fail on is named in the record, to be tainted.
func suspects(s *stage) error {
	bad, good := s.name+"-bad", s.name+"-good"
	s.node(bad)
	s.node(good)
	for _, namespace := range []string{s.name, s.name + "-b"} {
		set := s.workload(namespace, "tenant")
		for i, node := range []string{good, bad, bad} {
			pod, err := s.owned(set, node)
			if err != nil {
				return err
			}
			if i == 0 {
				now := time.Now().UTC().Format(time.RFC3339)
				s.status(pod, `{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+now+`"}]}`)
				continue
			}
			s.status(pod, failed)
		}
	}
	return sees(s, "the node to be named in the record", cluster.client.CoreV1().ConfigMaps(s.name).Get, s.name+"-failures", func(now *corev1.ConfigMap) bool {
		return strings.Contains(now.Data["failures.json"], `"suspects":["`+bad+`"]`)
	})
}

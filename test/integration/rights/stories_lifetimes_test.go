// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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
	return s.onNode(from, "that waits for a reboot", func(n *corev1.Node) error {
		due := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == "espalier.dev/RebootDue" && c.Status == corev1.ConditionTrue
		})
		if !due || !n.Spec.Unschedulable {
			return errors.New("it does not")
		}
		return nil
	})
}

// claims: the node of a NodeClaim is given its end, and of a NodeClaim that cannot be read an Event says so.
func claims(s *stage) error {
	s.defineNodeClaims()
	s.node(s.name)
	s.claim(s.name, s.name, "1h")
	if err := s.onNode(s.name, "with an end", func(n *corev1.Node) error {
		if n.Annotations["espalier.dev/valid-until"] == "" {
			return fmt.Errorf("it has %v", n.Annotations)
		}
		return nil
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
	s.must(err)
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
		s.must(err)
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

// onNode waits until a node is as the check wants it.
func (s *stage) onNode(name, what string, check func(*corev1.Node) error) error {
	s.Helper()
	return s.wait("node "+name+" "+what, func() error {
		n, err := cluster.client.CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return check(n)
	})
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// controllerNeeds are the stories of the controller's rights to do something. What it lists and
// watches it needs to write a status.
var controllerNeeds = map[string]need{
	"patch placementpolicies/status":        {"governs", governs, nil},
	"list placementpolicies":                {"governs", governs, []string{listing}},
	"patch clusterplacementpolicies/status": {"governs the cluster", governsCluster, nil},
	"list clusterplacementpolicies":         {"governs the cluster", governsCluster, []string{listing}},
	"list namespaces":                       {"governs", governs, []string{listing}},
	"list pods":                             {"governs", governs, []string{listing}},
	"create leases":                         {"elects", elects, nil},
	"get leases":                            {"elects", elects, nil},
	"update leases":                         {"elects", elects, nil},
	"create events":                         {"takes over", takesOver, nil},
	"get configmaps":                        {"taints", taints, nil},
	"list nodes":                            {"taints", taints, []string{listing}},
	"patch nodes":                           {"taints", taints, nil},
	"create tokenreviews":                   {"serves", serves, nil},
	"create subjectaccessreviews":           {"serves", serves, nil},
}

// startController starts the controller.
func (s *stage) startController(args ...string) {
	s.Helper()
	s.start(cluster.controller, append(args, "--kubeconfig="+s.path("kubeconfig"), "--scheduler-names="+s.name,
		"--leader-elect-resource-namespace="+s.name, "--leader-elect-resource-name="+s.name, "--health-probe-bind-address=0",
		"--metrics-bind-address=127.0.0.1:"+s.port)...)
}

// startTainting starts the controller with the flags of the component that taints.
func (s *stage) startTainting(args ...string) {
	s.Helper()
	s.startController(append(args, "--taint-suspects=NoSchedule", "--failure-record-namespace="+s.name)...)
}

// governs: the status of a policy says how many pods it governs.
func governs(s *stage) error {
	s.policy("all")
	s.create(s.pod("governed"))
	return s.statusOf(s.policies(), "all", "governedPods")
}

// governsCluster: and so does that of a policy of the cluster.
func governsCluster(s *stage) error {
	s.clusterPolicy()
	s.create(s.pod("governed-with-all"))
	return s.statusOf(s.clusterPolicies(), s.name, "governedPods")
}

// statusOf waits until the status of an object has a number other than 0.
func (s *stage) statusOf(objects dynamic.ResourceInterface, name, field string) error {
	s.Helper()
	return s.wait("the status of "+name, func() error {
		now, err := objects.Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n, _, _ := unstructured.NestedInt64(now.Object, "status", field); n == 0 {
			return fmt.Errorf("it is %v", now.Object["status"])
		}
		return nil
	})
}

// policies are those of the stage.
func (s *stage) policies() dynamic.ResourceInterface {
	s.Helper()
	return s.resource(placementv1alpha1.PlacementPolicyResource).Namespace(s.name)
}

// clusterPolicies are those of all stages.
func (s *stage) clusterPolicies() dynamic.ResourceInterface {
	s.Helper()
	return s.resource(placementv1alpha1.ClusterPlacementPolicyResource)
}

func (s *stage) resource(name string) dynamic.NamespaceableResourceInterface {
	s.Helper()
	client, err := dynamic.NewForConfig(cluster.config)
	s.must(err)
	return client.Resource(placementv1alpha1.SchemeGroupVersion.WithResource(name))
}

// object makes an object of a kind of ours, in the namespace of the stage. Those of kinds of the cluster are gone with the stage.
func (s *stage) object(kind, name string, spec map[string]any) {
	s.Helper()
	var objects dynamic.ResourceInterface
	namespaced := map[string]string{"PlacementPolicy": placementv1alpha1.PlacementPolicyResource, "Move": placementv1alpha1.MoveResource}[kind]
	if namespaced != "" {
		objects = s.resource(namespaced).Namespace(s.name)
	} else {
		objects = s.resource(map[string]string{
			"ClusterPlacementPolicy": placementv1alpha1.ClusterPlacementPolicyResource,
			"Partition":              placementv1alpha1.PartitionResource, "Allocation": placementv1alpha1.AllocationResource,
		}[kind])
		s.Cleanup(func() {
			if err := objects.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				s.Error(err)
			}
		})
	}
	_, err := objects.Create(s.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": placementv1alpha1.SchemeGroupVersion.String(), "kind": kind, "spec": spec,
		"metadata": map[string]any{"name": name, "labels": map[string]any{ofStage: s.name}},
	}}, metav1.CreateOptions{})
	s.must(err)
}

// zones are the levels of policies.
var zones = []any{map[string]any{"topologyKey": "topology.kubernetes.io/zone"}}

// clusterPolicy makes a policy of the cluster over zones for all pods of the stage, with the name of the stage.
func (s *stage) clusterPolicy() {
	s.Helper()
	s.object("ClusterPlacementPolicy", s.name, map[string]any{
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: s.name}}, "mode": "Override",
		"podSelector": map[string]any{}, "levels": zones,
	})
}

// policy makes a policy over zones for all pods of the stage.
func (s *stage) policy(name string) {
	s.Helper()
	s.object("PlacementPolicy", name, map[string]any{"podSelector": map[string]any{}, "levels": zones})
}

// taints: a node that a scheduler names in its record is tainted.
func taints(s *stage) error {
	bad := s.name + "-bad"
	s.node(bad)
	made(s, cluster.client.CoreV1().ConfigMaps(s.name).Create, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-failures"},
		Data:       map[string]string{"failures.json": `{"version":1,"suspects":["` + bad + `"],"revisions":[]}`},
	})
	return sees(s, "the node to be tainted", cluster.client.CoreV1().Nodes().Get, bad, func(now *corev1.Node) bool { return len(now.Spec.Taints) > 0 })
}

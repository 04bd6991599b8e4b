// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// controllerNeeds are the stories of the controller's rights to do something. What it lists and watches it needs to write a status.
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
	must(s, err)
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
	must(s, err)
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

// arbiterName names the webhook and the Service of the component. One stage at a time has them.
const arbiterName = "espalier-arbiter"

// elsewhere is an address that an EndpointSlice may have, as no loopback one is.
const elsewhere = "10.0.0.2"

// arbiterNeeds are the stories of what the component arbiter gives the controller, and serviceNeeds of what it does where the API server is told
// of a Service. Nobody here leads anybody through one.
var (
	arbiterNeeds = map[string]need{
		"get pods":                               {"reads", reads, nil},
		"list nodes":                             {"announces", announces, []string{listing}},
		"get validatingwebhookconfigurations":    {"announces", announces, nil},
		"update validatingwebhookconfigurations": {"announces", announces, nil},
	}
	serviceNeeds = map[string]need{
		"create endpointslices": {"routes", routes, nil},
		"get endpointslices":    {"routes anew", routesAnew, nil},
		"update endpointslices": {"routes anew", routesAnew, nil},
	}
)

func (s *stage) startArbiterByService(args ...string) {
	s.Helper()
	s.startArbiter(append(args, "--arbiter-service="+arbiterName, "--arbiter-address="+elsewhere)...)
}

// startArbiter starts the controller as an arbiter, of which the API server asks about the bindings of the stage.
func (s *stage) startArbiter(args ...string) {
	s.Helper()
	webhooks := cluster.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	made(s, webhooks.Create, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: arbiterName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "bindings.espalier.dev", AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: s.name, Name: arbiterName}},
			FailurePolicy:     ptr.To(admissionregistrationv1.Ignore),
			SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds:    ptr.To[int32](1),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.name}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
			}},
		}},
	})
	s.Cleanup(func() {
		if err := webhooks.Delete(context.Background(), arbiterName, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
	s.start(cluster.controller, append([]string{
		"--kubeconfig=" + s.path("kubeconfig"), "--scheduler-names=" + s.name, "--leader-elect-resource-namespace=" + s.name, "--leader-elect-resource-name=" + s.name,
		"--health-probe-bind-address=0", "--arbiter", "--arbiter-address=127.0.0.1", "--arbiter-port=" + s.port,
	}, args...)...)
}

// announces: the API server is told where the arbiter is, and whom to trust.
func announces(s *stage) error {
	return sees(s, "the API server to be told of the arbiter", cluster.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get, arbiterName, func(now *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
		return len(now.Webhooks[0].ClientConfig.CABundle) > 0
	})
}

// reads: a binding of a pod that no watch has shown is about a pod that is asked for.
func reads(s *stage) error {
	if err := announces(s); err != nil {
		return err
	}
	return s.wait("an answer about a pod that is not there", func() error {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "nobody"}, Target: corev1.ObjectReference{Kind: "Node", Name: s.name}}
		err := cluster.client.CoreV1().Pods(s.name).Bind(s.Context(), binding, metav1.CreateOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the answer is %w", err)
		}
		if !s.proxy.asked(question{"", "pods", "get"}) {
			return errors.New("the arbiter does not ask yet")
		}
		return nil
	})
}

// routes: the Service leads to the arbiter.
func routes(s *stage) error {
	return sees(s, "the Service to lead to the arbiter", cluster.client.DiscoveryV1().EndpointSlices(s.name).Get, arbiterName, func(now *discoveryv1.EndpointSlice) bool {
		return len(now.Endpoints) == 1 && slices.Equal(now.Endpoints[0].Addresses, []string{elsewhere})
	})
}

// routesAnew: and so it does again when somebody has had it lead elsewhere.
func routesAnew(s *stage) error {
	if err := routes(s); err != nil {
		return err
	}
	leads := cluster.client.DiscoveryV1().EndpointSlices(s.name)
	now, err := leads.Get(s.Context(), arbiterName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now.Endpoints[0].Addresses = []string{"10.0.0.1"}
	if _, err := leads.Update(s.Context(), now, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return routes(s)
}

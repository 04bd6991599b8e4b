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
	"k8s.io/utils/ptr"
)

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

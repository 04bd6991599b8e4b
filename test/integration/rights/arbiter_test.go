// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// arbiterName names the webhook and the Service of the component. One stage at a time has them.
const arbiterName = "espalier-arbiter"

const (
	// byService has the API server told of a Service. Nobody here leads anybody through one.
	byService = "--arbiter-service=" + arbiterName
	// elsewhere is an address that an EndpointSlice may have, as no loopback one is.
	elsewhere = "10.0.0.2"
)

// arbiterNeeds are the stories of what the component arbiter gives the controller.
var arbiterNeeds = map[string]need{
	"get pods":                               {"reads", reads, nil},
	"list nodes":                             {"announces", announces, []string{listing}},
	"get validatingwebhookconfigurations":    {"announces", announces, nil},
	"update validatingwebhookconfigurations": {"announces", announces, nil},
	"create endpointslices":                  {"routes", routes, []string{byService, "--arbiter-address=" + elsewhere}},
	"get endpointslices":                     {"routes anew", routesAnew, []string{byService, "--arbiter-address=" + elsewhere}},
	"update endpointslices":                  {"routes anew", routesAnew, []string{byService, "--arbiter-address=" + elsewhere}},
}

// startArbiter starts the controller as an arbiter, of which the API server asks about the bindings of the stage.
func (s *stage) startArbiter(args ...string) {
	s.Helper()
	webhooks := cluster.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := webhooks.Create(s.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
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
	}, metav1.CreateOptions{})
	s.must(err)
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
	return s.wait("the API server to be told of the arbiter", func() error {
		now, err := cluster.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(s.Context(), arbiterName, metav1.GetOptions{})
		if err == nil && len(now.Webhooks[0].ClientConfig.CABundle) == 0 {
			err = errors.New("it is not")
		}
		return err
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
	return s.wait("the Service to lead to the arbiter", func() error {
		now, err := cluster.client.DiscoveryV1().EndpointSlices(s.name).Get(s.Context(), arbiterName, metav1.GetOptions{})
		if err == nil && (len(now.Endpoints) != 1 || !slices.Equal(now.Endpoints[0].Addresses, []string{elsewhere})) {
			err = fmt.Errorf("it leads to %v", now.Endpoints)
		}
		return err
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

// arbiterRights are those of the component, and of the controller without it.
func arbiterRights(t *testing.T) (component, all []*unstructured.Unstructured) {
	t.Helper()
	component = roleObjects(t, "components/arbiter/rbac.yaml")
	return component, slices.Concat(roleObjects(t, "base/controller-rbac.yaml"), component)
}

// TestArbiterWithAllRights wants all stories to go as told, and nothing to be refused.
func TestArbiterWithAllRights(t *testing.T) {
	_, all := arbiterRights(t)
	for name, args := range map[string][]string{"by its address": nil, "by a Service": {byService, "--arbiter-address=" + elsewhere}, "listed": {listing}} {
		t.Run(name, func(t *testing.T) {
			s := build(t, all, rig.ControllerName, nil)
			s.startArbiter(args...)
			stories := []story{announces, reads}
			if slices.Contains(args, byService) {
				stories = []story{announces, routes, routesAnew}
			}
			for _, tell := range stories {
				if err := tell(s); err != nil {
					t.Fatal(err)
				}
			}
			if refused := s.proxy.refusals(); len(refused) > 0 {
				t.Errorf("the roles do not give what it asks for: %v", refused)
			}
		})
	}
}

// TestArbiterWithoutARight takes each right of the component away in turn, and wants its story to break.
func TestArbiterWithoutARight(t *testing.T) {
	component, all := arbiterRights(t)
	for _, r := range rightsIn(t, component) {
		n, ok := needOf(r, arbiterNeeds)
		if !ok {
			t.Errorf("no story needs the right %v: tell one that breaks without, or take it out of the role", r)
			continue
		}
		t.Run(strings.ReplaceAll(fmt.Sprintf("%v breaks %s", r, n.name), "/", "."), func(t *testing.T) {
			s := build(t, all, rig.ControllerName, &r)
			s.startArbiter(n.args...)
			s.breaks(n)
		})
	}
}

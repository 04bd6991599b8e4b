// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookOf is the configuration as the manifests have it.
func webhookOf() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "espalier-arbiter", UID: "w"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "bindings.espalier.dev", FailurePolicy: new(admissionregistrationv1.Ignore),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "kube-system", Name: "espalier-arbiter"}},
		}},
	}
}

func published(t *testing.T, api client.Client) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	var is admissionregistrationv1.ValidatingWebhookConfiguration
	if err := api.Get(t.Context(), client.ObjectKey{Name: "espalier-arbiter"}, &is); err != nil {
		t.Fatal(err)
	}
	return is.Webhooks[0]
}

func TestPublishByAddress(t *testing.T) {
	api := apiWith(t, webhookOf())
	p := &publisher{api: api, Options: Options{Webhook: "espalier-arbiter", Address: "127.0.0.1", Port: 1234}, path: "/bindings/X"}
	for range 2 {
		if err := p.publish(t.Context(), []byte("bundle")); err != nil {
			t.Fatal(err)
		}
		at := published(t, api).ClientConfig
		if at.URL == nil || *at.URL != "https://127.0.0.1:1234/bindings/X" || at.Service != nil || string(at.CABundle) != "bundle" {
			t.Errorf("the API server is told %+v", at)
		}
	}
	if err := p.withdraw(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPublishByService(t *testing.T) {
	api := apiWith(t, webhookOf())
	o := Options{Webhook: "espalier-arbiter", Service: "espalier-arbiter", Namespace: "kube-system", Address: "10.1.2.3", Port: 9443}
	leads := func(want ...string) {
		t.Helper()
		var slice discoveryv1.EndpointSlice
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "espalier-arbiter"}, &slice); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range slice.Endpoints {
			got = append(got, e.Addresses...)
		}
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] || slice.Labels[discoveryv1.LabelServiceName] != "espalier-arbiter" || *slice.Ports[0].Port != 9443 || slice.OwnerReferences[0].UID != "w" {
			t.Errorf("the Service leads to %v, want %v: %+v", got, want, slice)
		}
	}
	first := &publisher{api: api, Options: o, path: "/bindings/X"}
	if err := first.publish(t.Context(), []byte("one")); err != nil {
		t.Fatal(err)
	}
	at := published(t, api).ClientConfig
	if s := at.Service; s == nil || *s.Path != "/bindings/X" || *s.Port != 443 || s.Name != "espalier-arbiter" || string(at.CABundle) != "one" {
		t.Errorf("the API server is told %+v", at)
	}
	leads("10.1.2.3")
	if err := first.withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	leads()
	// The next leader takes its place.
	o.Address = "10.1.2.4"
	if err := (&publisher{api: api, Options: o, path: "/bindings/Y"}).publish(t.Context(), []byte("two")); err != nil {
		t.Fatal(err)
	}
	leads("10.1.2.4")
	// The one before it ends late, and takes nothing of that back.
	if err := first.withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	leads("10.1.2.4")
	if at := published(t, api).ClientConfig; *at.Service.Path != "/bindings/Y" || string(at.CABundle) != "two" {
		t.Errorf("the API server is told %+v", at)
	}
}

// Where the manifests are not installed the error says what is missing.
func TestPublishNothing(t *testing.T) {
	p := &publisher{api: apiWith(t), Options: Options{Webhook: "espalier-arbiter", Address: "127.0.0.1", Port: 1}, path: "/"}
	err := p.publish(t.Context(), nil)
	if want := "reading ValidatingWebhookConfiguration espalier-arbiter, which the manifests have: "; err == nil || err.Error()[:len(want)] != want {
		t.Errorf("it says %v", err)
	}
	empty := webhookOf()
	empty.Webhooks = nil
	p.api = apiWith(t, empty)
	if err, want := p.publish(t.Context(), nil), "ValidatingWebhookConfiguration espalier-arbiter has no webhook: apply the manifests again"; err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
}

func TestValidate(t *testing.T) {
	good := Options{Webhook: "w", Address: "::1", Port: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]Options{
		"no address": {Webhook: "w", Port: 1}, "a name": {Webhook: "w", Address: "localhost", Port: 1},
		"no port": {Webhook: "w", Address: "::1"}, "too high": {Webhook: "w", Address: "::1", Port: 65536}, "no webhook": {Address: "::1", Port: 1},
	} {
		if bad.Validate() == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

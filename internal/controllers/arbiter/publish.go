// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// publisher tells the API server where the arbiter is, and by which authority it knows it. Others may change what it says, as whoever
// upgrades the chart: so it is said again.
type publisher struct {
	// api reads from the API server and writes to it.
	api client.Client
	Options
	// path is where the webhook is served. It cannot be guessed: who asks in the API server's place could have nodes taken for full.
	path string
}

// publish tells the API server, if what it knows is something else.
func (p *publisher) publish(ctx context.Context, bundle []byte) error {
	is := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := p.api.Get(ctx, client.ObjectKey{Name: p.Webhook}, is); err != nil {
		return fmt.Errorf("reading ValidatingWebhookConfiguration %s, which the manifests have: %w", p.Webhook, err)
	}
	if p.Service != "" {
		if err := p.route(ctx, is); err != nil {
			return err
		}
	}
	if len(is.Webhooks) == 0 {
		// Somebody has taken it out. Nothing would be written, and nobody would hear that nothing is checked.
		return fmt.Errorf("ValidatingWebhookConfiguration %s has no webhook: apply the manifests again", p.Webhook)
	}
	want := is.DeepCopy()
	for i := range want.Webhooks {
		p.point(&want.Webhooks[i].ClientConfig, bundle)
	}
	if equality.Semantic.DeepEqual(is, want) {
		return nil
	}
	if err := p.api.Update(ctx, want); err != nil {
		return fmt.Errorf("writing ValidatingWebhookConfiguration %s: %w", p.Webhook, err)
	}
	return nil
}

// point has a webhook be called at the arbiter: by the Service, or by its address where there is none.
func (p *publisher) point(at *admissionregistrationv1.WebhookClientConfig, bundle []byte) {
	if !bytes.Equal(at.CABundle, bundle) {
		at.CABundle = bundle
	}
	if p.Service == "" {
		to := url.URL{Scheme: "https", Host: net.JoinHostPort(p.Address, strconv.Itoa(p.Port)), Path: p.path}
		at.URL, at.Service = new(to.String()), nil
		return
	}
	at.URL, at.Service = nil, &admissionregistrationv1.ServiceReference{Namespace: p.Namespace, Name: p.Service, Path: &p.path, Port: ptr.To[int32](servicePort)}
}

// servicePort is that of the Service in the manifests.
const servicePort = 443

// route has the Service lead to this process. A Service that selects pods was rejected: it would lead to those that stand by as well, whose ledger
// knows nothing. What leads there is removed together with the webhook.
func (p *publisher) route(ctx context.Context, webhook *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	is, err := p.slice(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	want := is.DeepCopy()
	want.Namespace, want.Name = p.Namespace, p.Service
	if want.Labels == nil {
		want.Labels = make(map[string]string)
	}
	want.Labels[discoveryv1.LabelServiceName], want.Labels[discoveryv1.LabelManagedBy] = p.Service, "espalier-controller"
	want.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: webhook.Name, UID: webhook.UID,
	}}
	want.AddressType = discoveryv1.AddressTypeIPv4
	if ip := net.ParseIP(p.Address); ip != nil && ip.To4() == nil {
		want.AddressType = discoveryv1.AddressTypeIPv6
	}
	want.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{p.Address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}
	want.Ports = []discoveryv1.EndpointPort{{Name: new(portName), Protocol: new(corev1.ProtocolTCP), Port: new(int32(p.Port))}}
	switch {
	case err != nil:
		err = p.api.Create(ctx, want)
	case equality.Semantic.DeepEqual(is, want):
		return nil
	default:
		err = p.api.Update(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("writing EndpointSlice %s/%s: %w", p.Namespace, p.Service, err)
	}
	return nil
}

// slice reads what the Service leads to.
func (p *publisher) slice(ctx context.Context) (*discoveryv1.EndpointSlice, error) {
	is := &discoveryv1.EndpointSlice{}
	if err := p.api.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Service}, is); err != nil {
		return is, fmt.Errorf("reading EndpointSlice %s/%s: %w", p.Namespace, p.Service, err)
	}
	return is, nil
}

// portName is that of the Service's port in the manifests.
const portName = "https"

// withdraw has the Service lead nowhere, so that the API server does not wait for a process that has ended. Where it leads to another
// one already, which has become the leader while this one was not heard of, it stays as it is.
func (p *publisher) withdraw(ctx context.Context) error {
	if p.Service == "" {
		return nil
	}
	is, err := p.slice(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(is.Endpoints, func(e discoveryv1.Endpoint) bool { return slices.Contains(e.Addresses, p.Address) }) {
		return nil
	}
	is.Endpoints = nil
	if err := p.api.Update(ctx, is); err != nil {
		return fmt.Errorf("writing EndpointSlice %s/%s: %w", p.Namespace, p.Service, err)
	}
	return nil
}

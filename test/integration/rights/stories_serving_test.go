// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// metrics asks for /metrics until it is served.
func (s *stage) metrics(token string, certificates ...tls.Certificate) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, //nolint:gosec // a self-signed certificate of this test's own child
	}}
	return s.wait("/metrics", func() error {
		request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "https://127.0.0.1:"+s.port+"/metrics", http.NoBody)
		s.must(err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		return nil
	})
}

// serves: whoever may read /metrics reads them, known by a token.
func serves(s *stage) error {
	ctx, name := s.Context(), s.name+"-reader"
	_, err := cluster.client.CoreV1().ServiceAccounts(s.name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	s.must(err)
	_, err = cluster.client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	s.must(err)
	_, err = cluster.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.name, Name: name}},
	}, metav1.CreateOptions{})
	s.must(err)
	token, err := cluster.client.CoreV1().ServiceAccounts(s.name).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	s.must(err)
	return s.metrics(token.Status.Token)
}

// recognizes: or by a certificate that the cluster's authority has signed.
func recognizes(s *stage) error {
	config := rest.CopyConfig(cluster.config)
	s.must(rest.LoadTLSFiles(config))
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	s.must(err)
	return s.metrics("", certificate)
}

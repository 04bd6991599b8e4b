// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

const (
	// SchedulerName is the profile, the service account and the Lease of the manifests.
	SchedulerName = "espalier-scheduler"
	// ControllerName is the controller's service account and Lease.
	ControllerName = "espalier-controller"
	// SchedulerNamespace is where the manifests put it.
	SchedulerNamespace = "kube-system"

	tokenSeconds = 2 * 60 * 60
)

// WriteSchedulerKubeconfig is WriteKubeconfig for the scheduler's service account.
func WriteSchedulerKubeconfig(ctx context.Context, config *rest.Config, client kubernetes.Interface, path string) error {
	return WriteKubeconfig(ctx, config, client, SchedulerName, path)
}

// WriteKubeconfig writes a kubeconfig that holds the token of a service account of
// the manifests, good for two hours, and nothing of the administrator's but the address.
// Were the scheduler run as an administrator, a right missing from the manifests
// would be missed in production only.
func WriteKubeconfig(ctx context.Context, config *rest.Config, client kubernetes.Interface, account, path string) error {
	return WriteKubeconfigIn(ctx, config, client, SchedulerNamespace, account, path)
}

// WriteKubeconfigIn is WriteKubeconfig for a service account of another namespace.
func WriteKubeconfigIn(ctx context.Context, config *rest.Config, client kubernetes.Interface, namespace, account, path string) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a token of service account %s/%s: %w", namespace, account, err)
	}
	// The authority may be given as bytes or as a file.
	withAuthority := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(withAuthority); err != nil {
		return fmt.Errorf("reading the cluster's certificate authority: %w", err)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: withAuthority.CAData, InsecureSkipTLSVerify: config.Insecure, TLSServerName: config.ServerName,
	}
	kubeconfig.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	kubeconfig.Contexts["default"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: account}
	kubeconfig.CurrentContext = "default"
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", account, err)
	}
	return nil
}

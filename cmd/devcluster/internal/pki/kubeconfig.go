// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig to path, which only its owner may read, for a client whose certificate ca has signed: admin, or one of
// the components. The certificates and the key are in the file and not beside it, because tests copy it to other folders.
func (p PKI) WriteKubeconfig(path, name, server string) error {
	contents := map[string][]byte{}
	for _, file := range []string{p.Cert("ca"), p.Cert(name), p.Key(name)} {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the certificates of %q for kubeconfig %s: %w", name, path, err)
		}
		contents[file] = data
	}
	const cluster = "devcluster"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server: server, CertificateAuthorityData: contents[p.Cert("ca")],
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: contents[p.Cert(name)], ClientKeyData: contents[p.Key(name)],
	}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	config.CurrentContext = cluster
	// Written beside and renamed: who waits for the cluster waits for this file, and must never read half of it.
	tmp := path + ".new"
	if err := clientcmd.WriteToFile(*config, tmp); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

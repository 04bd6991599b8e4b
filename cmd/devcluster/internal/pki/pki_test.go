// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var serviceIP = net.IPv4(10, 96, 0, 1)

func TestEveryIdentityIsVerifiedByItsCAOnly(t *testing.T) {
	p, err := Ensure(filepath.Join(t.TempDir(), "pki"), serviceIP)
	must(t, err)
	for _, id := range identities(serviceIP) {
		pair, err := tls.LoadX509KeyPair(p.Cert(id.name), p.Key(id.name))
		must(t, err)
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		must(t, err)
		for _, ca := range []string{"ca", "front-proxy-ca"} {
			roots := x509.NewCertPool()
			text, err := os.ReadFile(p.Cert(ca))
			must(t, err)
			roots.AppendCertsFromPEM(text)
			_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if (err == nil) != (ca == id.signer) {
				t.Errorf("%s under %s: %v", id.name, ca, err)
			}
		}
		if id.name == "apiserver" {
			for _, host := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1"} {
				if err := leaf.VerifyHostname(host); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestEnsureKeepsWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	read := func() string {
		p, err := Ensure(dir, serviceIP)
		must(t, err)
		text, err := os.ReadFile(p.Key("service-account"))
		must(t, err)
		return string(text)
	}
	// Left by a process that was killed while it wrote.
	must(t, os.MkdirAll(dir+".new", 0o700))
	if first, second := read(), read(); first != second {
		t.Error("the key changed: tokens of the first run would be refused")
	}
}

func TestKubeconfigStandsOnItsOwn(t *testing.T) {
	dir := t.TempDir()
	p, err := Ensure(filepath.Join(dir, "pki"), serviceIP)
	must(t, err)
	path := filepath.Join(dir, "kubeconfig")
	must(t, p.WriteKubeconfig(path, "admin", "https://127.0.0.1:1"))
	must(t, os.RemoveAll(filepath.Join(dir, "pki")))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	if config.Host != "https://127.0.0.1:1" || len(config.CertData) == 0 || len(config.CAData) == 0 {
		t.Errorf("config %+v", config)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

// must ends the test if there is an error.
var must = placementtest.Must

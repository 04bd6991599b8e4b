// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the keys and certificates of one local control plane.
//
// A PKI is either complete in its folder or not there at all: Ensure builds a
// new one beside the final place and renames it, so a control plane that was
// killed while it wrote its keys starts afresh instead of failing on half of them.
package pki

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// lifetime is long because the folder may be kept for months and nothing renews
// the certificates; they are good for one loopback address only.
const lifetime = 10 * 365 * 24 * time.Hour

// PKI is the folder of keys and certificates, PEM files all of them.
type PKI struct{ dir string }

// identity is one leaf certificate: who it is, and where it may serve.
type identity struct {
	name   string // file name without extension
	signer string // file name of the CA
	cn     string
	org    []string
	ips    []net.IP
	dns    []string
}

// identities lists every leaf. The front proxy has a CA of its own: with the
// client CA, any client certificate could pose as the aggregator and name its user.
func identities(serviceIP net.IP) []identity {
	return []identity{
		{
			name: "apiserver", signer: "ca", cn: "kube-apiserver",
			ips: []net.IP{net.IPv4(127, 0, 0, 1), serviceIP},
			dns: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
		},
		{name: "admin", signer: "ca", cn: "kubernetes-admin", org: []string{"system:masters"}},
		{name: "controllers", signer: "ca", cn: "system:kube-controller-manager", org: []string{"system:masters"}},
		{name: "kwok", signer: "ca", cn: "system:kwok", org: []string{"system:masters"}},
		{name: "front-proxy", signer: "front-proxy-ca", cn: "front-proxy-client"},
	}
}

// Ensure returns the PKI kept in dir and makes it first if dir does not exist.
// serviceIP is the address of the kubernetes service, which pods would dial.
func Ensure(dir string, serviceIP net.IP) (PKI, error) {
	if _, err := os.Stat(dir); err == nil {
		return PKI{dir}, nil
	}
	tmp := dir + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return PKI{}, fmt.Errorf("clearing %s: %w", tmp, err)
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return PKI{}, fmt.Errorf("making the folder of keys: %w", err)
	}
	if err := generate(PKI{tmp}, serviceIP); err != nil {
		return PKI{}, err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return PKI{}, fmt.Errorf("putting the keys in place: %w", err)
	}
	return PKI{dir}, nil
}

// Cert is the path of the certificate of name.
func (p PKI) Cert(name string) string { return filepath.Join(p.dir, name+".crt") }

// Key is the path of the private key of name.
func (p PKI) Key(name string) string { return filepath.Join(p.dir, name+".key") }

type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func generate(p PKI, serviceIP net.IP) error {
	cas := map[string]authority{}
	for _, name := range []string{"ca", "front-proxy-ca"} {
		cert, key, err := pkiutil.NewCertificateAuthority(p256(certutil.Config{CommonName: "devcluster-" + name}))
		if err == nil {
			err = pkiutil.WriteCertAndKey(p.dir, name, cert, key)
		}
		if err != nil {
			return fmt.Errorf("making the certificate authority %q: %w", name, err)
		}
		cas[name] = authority{cert, key}
	}
	for _, id := range identities(serviceIP) {
		if err := issue(p, cas[id.signer], id); err != nil {
			return fmt.Errorf("issuing the certificate of %q: %w", id.name, err)
		}
	}
	key, err := pkiutil.GeneratePrivateKey(kubeadmapi.EncryptionAlgorithmECDSAP256)
	if err == nil {
		err = pkiutil.WriteKey(p.dir, "service-account", key)
	}
	if err != nil {
		return fmt.Errorf("making the key of service accounts: %w", err)
	}
	return nil
}

func issue(p PKI, ca authority, id identity) error {
	usage := x509.ExtKeyUsageClientAuth
	if len(id.ips) > 0 {
		usage = x509.ExtKeyUsageServerAuth
	}
	cert, key, err := pkiutil.NewCertAndKey(ca.cert, ca.key, p256(certutil.Config{
		CommonName: id.cn, Organization: id.org, Usages: []x509.ExtKeyUsage{usage},
		AltNames: certutil.AltNames{IPs: id.ips, DNSNames: id.dns},
	}))
	if err != nil {
		return err
	}
	return pkiutil.WriteCertAndKey(p.dir, id.name, cert, key)
}

// p256 is what of every certificate is alike. RSA was tried: five keys cost a second of the start.
func p256(config certutil.Config) *pkiutil.CertConfig {
	now := time.Now()
	config.NotBefore = now.Add(-time.Minute) // of grace: in a container the clock may be set back at start
	return &pkiutil.CertConfig{Config: config, NotAfter: now.Add(lifetime), EncryptionAlgorithm: kubeadmapi.EncryptionAlgorithmECDSAP256}
}

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
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
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
		ca, err := newAuthority(p, name)
		if err != nil {
			return fmt.Errorf("making the certificate authority %q: %w", name, err)
		}
		cas[name] = ca
	}
	for _, id := range identities(serviceIP) {
		if err := issue(p, cas[id.signer], id); err != nil {
			return fmt.Errorf("issuing the certificate of %q: %w", id.name, err)
		}
	}
	_, err := newKey(p, "service-account")
	return err
}

func newAuthority(p PKI, name string) (authority, error) {
	key, err := newKey(p, name)
	if err != nil {
		return authority{}, err
	}
	template := newTemplate("devcluster-"+name, nil)
	template.IsCA = true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, err
	}
	return authority{cert, key}, writePEM(p.Cert(name), "CERTIFICATE", der)
}

func issue(p PKI, ca authority, id identity) error {
	key, err := newKey(p, id.name)
	if err != nil {
		return err
	}
	template := newTemplate(id.cn, id.org)
	template.IPAddresses, template.DNSNames = id.ips, id.dns
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(id.ips) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return err
	}
	return writePEM(p.Cert(id.name), "CERTIFICATE", der)
}

func newTemplate(cn string, org []string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail on any supported system
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: cn, Organization: org},
		// A minute of grace: in a container the clock may be set back at start.
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
}

// newKey writes a P-256 key. RSA was tried: five keys cost a second of the start.
func newKey(p PKI, name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(p.Key(name), "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

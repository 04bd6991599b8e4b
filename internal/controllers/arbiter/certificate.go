// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// lifetime is that of a certificate. Another one is made when a third of it is left, and always with the process.
	lifetime = 30 * 24 * time.Hour
	// early is by how much the clock of the API server may be behind.
	early = time.Hour
	// announced is for how long the API server knows the authority of a certificate before the certificate is used: it watches its configuration.
	announced = time.Minute
)

// certificates are those by which the API server knows the arbiter. They are in the memory of the process that serves and nowhere else: it
// is the only one that does, so that no Secret need be read or written, and no key leaves it.
type certificates struct {
	// host is by what name or address the API server calls.
	host string

	mu sync.Mutex // guards what follows
	// used is the one that is served. Next, if there is one, will be: from the time on that is in from, zero as long as the API server
	// does not know of it.
	used, next *certificate
	from       time.Time
}

type certificate struct {
	tls.Certificate
	// authority is what the API server is to trust, in PEM.
	authority []byte
	// until is by the clock of the wall, which somebody may set. It has nothing of how long the process has run.
	until time.Time
}

// due reports that another certificate is to take its place: it has not long to go, or has not begun to be valid, as where the clock has been
// set back.
func (c *certificate) due(now time.Time) bool {
	left := c.until.Sub(now)
	return left < lifetime/3 || left > lifetime+early
}

// newCertificates makes the first one.
func newCertificates(host string, now time.Time) (*certificates, error) {
	first, err := issue(host, now)
	if err != nil {
		return nil, err
	}
	return &certificates{host: host, used: first}, nil
}

// issue makes a certificate, which is its own authority and can sign no other. What makes such certificates elsewhere, as client-go does, makes
// them by RSA: a signature of it takes tens of times as long, and an API server that binds many pods at once opens a connection for many.
func issue(host string, now time.Time) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of a certificate: %w", err)
	}
	is := &x509.Certificate{
		Subject: pkix.Name{CommonName: "espalier-arbiter"}, NotBefore: now.Add(-early), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		is.IPAddresses = []net.IP{ip}
	} else {
		is.DNSNames = []string{host}
	}
	signed, err := x509.CreateCertificate(rand.Reader, is, is, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", host, err)
	}
	return &certificate{
		Certificate: tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key},
		authority:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		until:       is.NotAfter.Round(0),
	}, nil
}

// rotate makes the next certificate when it is time, and has it served when its authority has been known for long enough.
func (c *certificates) rotate(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.next == nil && c.used.due(now), c.next != nil && c.next.due(now):
		next, err := issue(c.host, now)
		if err != nil {
			return err
		}
		c.next, c.from = next, time.Time{}
	case c.next != nil && !c.from.IsZero() && !now.Before(c.from):
		c.used, c.next = c.next, nil
	}
	return nil
}

// known says that the API server has been told of the bundle.
func (c *certificates) known(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil && c.from.IsZero() {
		c.from = now.Add(announced)
	}
}

// bundle is what the API server is to trust: the authority of the certificate that is served, and that of the next one.
func (c *certificates) bundle() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		return c.used.authority
	}
	return bytes.Join([][]byte{c.used.authority, c.next.authority}, nil)
}

// get returns the certificate that is served.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &c.used.Certificate, nil
}

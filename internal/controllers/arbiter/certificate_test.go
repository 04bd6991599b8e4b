// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"
)

// trusts reports whether who has been given a bundle trusts, at some time, the certificate that is served.
func trusts(t *testing.T, c *certificates, bundle []byte, at time.Time) bool {
	t.Helper()
	served, err := c.get(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: c.host, Roots: roots, CurrentTime: at})
	return err == nil
}

// rotated are certificates of which the API server is told each time that they are looked at.
func rotated(t *testing.T, made time.Time, looks ...time.Time) *certificates {
	t.Helper()
	c, err := newCertificates("espalier-arbiter.kube-system.svc", made)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range looks {
		if err := c.rotate(at); err != nil {
			t.Fatal(err)
		}
		c.known(at)
	}
	return c
}

// Whoever sets the clock has another certificate be made. How long the process has run says nothing of it.
func TestClockIsSet(t *testing.T) {
	now := time.Now()
	for name, by := range map[string]time.Duration{"back": -2 * early, "far back": -2 * lifetime, "on": 2 * lifetime} {
		set := now.Add(by)
		for while, looks := range map[string][]time.Time{"there is one": nil, "another one is to be used soon": {now.Add(lifetime * 3 / 4)}} {
			c := rotated(t, now, append(looks, set, set.Add(announced))...)
			if at := set.Add(announced); !trusts(t, c, c.bundle(), at) {
				t.Errorf("the clock is set %s while %s, and what is served is not valid", name, while)
			}
			if c.used.until != c.used.until.Round(0) {
				t.Error("the end of a certificate goes by how long the process has run")
			}
		}
	}
}

// At every moment the API server trusts what is served by what it was told last.
func TestRotation(t *testing.T) {
	now := time.Now()
	c, err := newCertificates("espalier-arbiter.kube-system.svc", now)
	if err != nil {
		t.Fatal(err)
	}
	first := c.bundle()
	told := first
	day := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	rotate := func(at time.Time) {
		t.Helper()
		if err := c.rotate(at); err != nil {
			t.Fatal(err)
		}
		if !trusts(t, c, told, at) {
			t.Errorf("on day %d the API server does not trust the arbiter", int(at.Sub(now).Hours()/24))
		}
	}
	rotate(day(19))
	if !bytes.Equal(c.bundle(), first) {
		t.Error("another certificate is made though more than a third of the time is left")
	}
	rotate(day(21))
	if bytes.Equal(c.bundle(), first) {
		t.Fatal("no other certificate is made")
	}
	// The API server could not be told: the old one stays.
	rotate(day(22))
	told = c.bundle()
	c.known(day(22))
	rotate(day(22).Add(announced / 2))
	if !trusts(t, c, first, day(22)) {
		t.Error("the new one is used before the API server can know of it")
	}
	rotate(day(22).Add(announced))
	if trusts(t, c, first, day(22)) {
		t.Error("the new one is not used")
	}
	told = c.bundle()
	c.known(day(22).Add(announced))
	rotate(day(23))
	if bytes.Contains(told, first) {
		t.Error("the old authority is trusted for ever")
	}
}

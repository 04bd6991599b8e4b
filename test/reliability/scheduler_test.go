// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// standingBy is what a replica logs when it knows the cluster and asks for the Lease.
const standingBy = "Attempting to acquire leader lease"

// anotherLeads is what one logs that finds its Lease with another: that its fence was needed.
const anotherLeads = "Lost leader election to another replica"

// scheduler starts a replica, and returns when it stands by. When the story ends it is
// stopped, and must not have ended before unless the story had it end.
func (s *story) scheduler(name, kubeconfig string, perSecond int, args ...string) *rig.Process {
	s.Helper()
	p, err := rig.StartScheduler(rig.SchedulerOptions{
		Name: s.NS + "-" + name, Binary: world.scheduler, Kubeconfig: kubeconfig, Dir: world.dir,
		Args: append([]string{
			"--leader-elect=true", fmt.Sprintf("--leader-elect-lease-duration=%s", *leaseFlag),
			fmt.Sprintf("--leader-elect-renew-deadline=%s", *leaseFlag*2/3), fmt.Sprintf("--leader-elect-retry-period=%s", *leaseFlag*2/15),
			fmt.Sprintf("--kube-api-qps=%d", perSecond), "--kube-api-burst=20",
		}, args...),
	})
	s.Must(err, "starting scheduler "+name)
	s.Cleanup(func() {
		if slices.Contains(s.ended, p) {
			return
		}
		if err := p.StopCleanly(30 * time.Second); err != nil {
			s.Error(err)
		}
	})
	s.Until(name+" to stand by", func() error {
		select {
		case <-p.Done():
			s.Fatal(p.Err())
		default:
		}
		if text, err := os.ReadFile(p.Log); err != nil || !strings.Contains(string(text), standingBy) {
			return errors.Join(err, errors.New("it does not"))
		}
		return nil
	})
	return p
}

// pair starts a replica that leads and one that stands by.
func (s *story) pair(kubeconfig string, perSecond int) (leader, other *rig.Process, holder string) {
	s.Helper()
	leader = s.scheduler("first", kubeconfig, perSecond)
	holder = s.holder("")
	return leader, s.scheduler("second", world.kubeconfig, perSecond), holder
}

// exits waits until a replica has ended, with the given status.
func (s *story) exits(p *rig.Process, code int) {
	s.Helper()
	select {
	case <-p.Done():
		s.ended = append(s.ended, p)
		if got := p.ExitCode(); got != code {
			s.Errorf("%s ended with status %d, want %d; the end of its log:\n%s", p.Name, got, code, p.Tail(8))
		}
	case <-time.After(timeout):
		s.Errorf("%s has not ended after %s", p.Name, timeout)
	}
}

// says wants a message in the log of a replica.
func (s *story) says(p *rig.Process, message string) {
	s.Helper()
	text, err := os.ReadFile(p.Log)
	s.Must(err, "reading the log of "+p.Name)
	if !strings.Contains(string(text), message) {
		s.Errorf("%s has not logged the message %q; the end of its log:\n%s", p.Name, message, p.Tail(8))
	}
}

// bindings is how many requests to bind a pod the API server has answered.
type bindings struct {
	accepted, refused int // with a status of 201, and with 409
}

func (b bindings) since(earlier bindings) bindings {
	return bindings{b.accepted - earlier.accepted, b.refused - earlier.refused}
}

var bindingRequests = regexp.MustCompile(`(?m)^apiserver_request_total\{code="(\d+)",[^}]*subresource="binding",[^}]*\} (\S+)$`)

// countBindings reads the API server's own count, which survives its restart.
func (s *story) countBindings() (b bindings) {
	s.Helper()
	var text []byte
	s.Until("the metrics of the API server", func() (err error) {
		text, err = world.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(s.Ctx)
		return err
	})
	for _, m := range bindingRequests.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		s.Must(err, "reading "+m[0])
		switch m[1] {
		case "201":
			b.accepted += int(n)
		case "409":
			b.refused += int(n)
		}
	}
	return b
}

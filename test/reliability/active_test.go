// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// beginActive begins a story of replicas that are active at once, with so many workloads to divide.
func beginActive(t *testing.T, apps int) *story {
	s := begin(t)
	s.apps = nil
	for i := range apps {
		s.apps = append(s.apps, fmt.Sprint("app-", i))
	}
	applier, err := rig.NewApplier(world.config)
	s.Must(err, "applying manifests")
	s.Must(applier.Apply(s.Ctx, manifests.Files, "components/active-active/rbac.yaml", ""), "giving the rights of active replicas")
	return s
}

// active starts a replica that is to be active beside others.
func (s *story) active(name string, perSecond int) *rig.Process {
	s.Helper()
	return s.scheduler(name, world.kubeconfig, perSecond, "--active-active", "-v=2")
}

var (
	// seesReplicas is what a replica logs of itself and others, in one line; the last such line holds.
	seesReplicas = regexp.MustCompile(`"The replicas that place pods have changed" leases=\[([^\]]*)\] placing=(true|false)`)
	// hasBound is what it logs of a pod: its name is that of the Deployment and two hashes.
	hasBound = regexp.MustCompile(`"Successfully bound pod to node" pod="[^/"]+/((app-\d+)-[^"]+)"`)
)

func (s *story) log(p *rig.Process) string {
	s.Helper()
	text, err := os.ReadFile(p.Log)
	s.Must(err, "reading the log of "+p.Name)
	return string(text)
}

// untilActive waits until each of these replicas sees all of them, and places its share.
func (s *story) untilActive(all ...*rig.Process) {
	s.Helper()
	for _, p := range all {
		s.Until(p.Name+" to place its share", func() error {
			seen := seesReplicas.FindAllStringSubmatch(s.log(p), -1)
			if len(seen) == 0 {
				return errors.New("it sees nobody")
			}
			last := seen[len(seen)-1]
			if n := strings.Count(last[1], "espalier-scheduler-"); n != len(all) || last[2] != "true" {
				return fmt.Errorf("it sees %d replicas, and places: %s", n, last[2])
			}
			return nil
		})
	}
}

// bound is which pods a replica has bound, with their workloads.
func (s *story) bound(p *rig.Process) map[string]string {
	s.Helper()
	pods := map[string]string{}
	for _, m := range hasBound.FindAllStringSubmatch(s.log(p), -1) {
		pods[m[1]] = m[2]
	}
	return pods
}

// divided fails the story unless no pod was bound by two of these replicas, and each has bound some.
func (s *story) divided(all ...*rig.Process) (by []map[string]string) {
	s.Helper()
	who := map[string]string{}
	for _, p := range all {
		pods := s.bound(p)
		if len(pods) == 0 {
			s.Errorf("%s has bound no pod", p.Name)
		}
		for pod := range pods {
			if other, twice := who[pod]; twice {
				s.Errorf("pod %s was bound by %s and by %s", pod, other, p.Name)
			}
			who[pod] = p.Name
		}
		by = append(by, pods)
	}
	return by
}

// Two replicas place pods at the same time, and each workload is placed by one of them.
func TestTwoActiveReplicas(t *testing.T) {
	s := beginActive(t, 10)
	first, second := s.active("first", perSecond), s.active("second", perSecond)
	s.untilActive(first, second)
	s.load()
	s.now()
	s.allBound("nothing: two replicas are active")
	s.noneRefused()
	whose := map[string]int{}
	for i, pods := range s.divided(first, second) {
		for _, app := range pods {
			if of, known := whose[app]; known && of != i {
				s.Fatalf("pods of %s were bound by both replicas", app)
			}
			whose[app] = i
		}
	}
}

// One of two active replicas dies with pods decided and not bound. The other goes on with its own, and with those of the dead
// one when its Lease has run out.
func TestActiveReplicaKilled(t *testing.T) {
	s := beginActive(t, 10)
	first, second := s.active("first", perSecond), s.active("second", perSecond)
	s.untilActive(first, second)
	s.load()
	s.now()
	second.Kill()
	s.ended = append(s.ended, second)
	s.allBound("one of two active replicas is killed")
	s.noneRefused()
	s.divided(first, second)
}

// One of two active replicas stands still and wakes up when the other has its share: it has to find out before it does harm, and to end.
func TestActiveReplicaPaused(t *testing.T) {
	s := beginActive(t, 10)
	first, second := s.active("first", perSecond/4), s.active("second", perSecond/4)
	s.untilActive(first, second)
	s.load()
	s.now()
	s.Must(second.Pause(), "pausing a replica")
	s.untilActive(first)
	s.Must(second.Resume(), "waking it")
	s.exits(second, 1)
	s.allBound("one of two active replicas is paused, and wakes up")
	s.noneRefused()
	s.divided(first, second)
}

// A third replica joins two, and with pods to place for all of them a second one goes: the workloads that change hands end as even as the others.
func TestActiveReplicasComeAndGo(t *testing.T) {
	s := beginActive(t, 40) // some of each half are any replica's
	slowly := perSecond / 4 // there are to be pods to place when the second goes
	deploy := func(apps []string) {
		for _, app := range apps {
			s.deploy(app, int32(replicas/len(s.apps)))
		}
	}
	first, second := s.active("first", slowly), s.active("second", slowly)
	s.untilActive(first, second)
	deploy(s.apps[:20])
	s.untilBound(middle)
	third := s.active("third", slowly)
	// It has to wait until the bindings have ended that the others began without it, which are all of these pods: one that is decided waits for
	// its turn at the API server.
	s.untilActive(first, second, third)
	deploy(s.apps[20:])
	s.now()
	s.Must(second.Terminate(), "ending a replica")
	s.exits(second, 0)
	s.untilActive(first, third)
	s.allBound("a third active replica joins, and one is terminated")
	s.noneRefused()
	s.divided(first, second, third)
}

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

// The leader dies without a word, with pods decided and not bound. The other waits for the Lease to run out and goes on.
func TestLeaderKilled(t *testing.T) {
	s := begin(t)
	leader, _, holder := s.pair(world.kubeconfig, perSecond)
	s.load()
	s.now()
	leader.Kill()
	s.holder(holder)
	s.allBound("the leader is killed")
	s.noneRefused()
}

// The leader stands still and wakes up when another leads, in the belief that it is still
// the one. It has to find out before it does harm, and to end.
func TestLeaderPaused(t *testing.T) {
	s := begin(t)
	leader, _, holder := s.pair(world.kubeconfig, perSecond)
	s.load()
	s.now()
	s.Must(leader.Pause(), "pausing the leader")
	s.holder(holder)
	s.untilBound(s.before + (replicas-s.before)/2)
	s.Must(leader.Resume(), "waking the former leader")
	s.exits(leader, 1)
	s.allBound("the leader is paused, and wakes up as a former one")
	s.noneRefused() // were the fence not there, it would bind until the election tells it
	s.says(leader, anotherLeads)
}

// The leader loses its way to the API server. It has to give up before the other takes over, who waits for longer.
func TestLeaderCutOff(t *testing.T) {
	s := begin(t)
	server, err := url.Parse(world.config.Host)
	s.Must(err, "reading the API server's address")
	proxy, err := rig.StartProxy(s.Ctx, server.Host)
	s.Must(err, "starting a proxy")
	t.Cleanup(proxy.Stop)
	config := rest.CopyConfig(world.config)
	config.Host = "https://" + proxy.Address
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	s.Must(rig.WriteSchedulerKubeconfig(s.Ctx, config, world.client, kubeconfig), "writing a kubeconfig")

	leader, _, holder := s.pair(kubeconfig, perSecond)
	s.load()
	s.now()
	proxy.Cut()
	s.exits(leader, 1)
	s.holder(holder)
	s.says(leader, "Leaderelection lost")
	s.allBound("the leader is cut off from the API server")
	s.noneRefused()
}

// Both replicas are replaced under load as their Deployment does it: a new one stands by
// before an old one is terminated. Who leads hands the Lease on when it goes.
func TestRollingUpgrade(t *testing.T) {
	s := begin(t)
	slowly := perSecond / 2 // both are to be replaced while there are pods to place
	first, second, holder := s.pair(world.kubeconfig, slowly)
	s.load()
	s.untilBound(middle / 3)
	s.scheduler("third", world.kubeconfig, slowly)
	s.now()
	s.Must(first.Terminate(), "ending the first replica")
	s.exits(first, 0)
	s.holder(holder)
	s.scheduler("fourth", world.kubeconfig, slowly)
	s.untilBound(s.before + 1)
	s.Must(second.Terminate(), "ending the second replica")
	s.exits(second, 0)
	// Were the Lease not given back, it would have to run out.
	if gap := s.allBound("the scheduler is upgraded, one replica after the other"); gap >= *leaseFlag/2 {
		s.Errorf("no pod was bound for %s, and the Lease lasts for %s: it was not handed on", gap, *leaseFlag)
	}
	s.noneRefused()
}

// missed is how long nothing is bound at least while a part is away, many times what lies between two bindings otherwise.
const missed = 500 * time.Millisecond

// The only replica dies with pods decided and not bound. The one that takes its place knows nothing but what the API server has.
func TestOnlyReplicaKilled(t *testing.T) {
	s := begin(t)
	only := s.scheduler("only", world.kubeconfig, perSecond)
	holder := s.holder("")
	s.load()
	s.now()
	only.Kill()
	s.scheduler("again", world.kubeconfig, perSecond)
	s.holder(holder)
	s.allBound("the only replica is killed, and started again")
	s.noneRefused()
}

// The API server dies and comes back: some bindings were made whose answer nobody got.
func TestAPIServerRestarts(t *testing.T) {
	s := begin(t)
	leader := s.survives("kube-apiserver", "the API server restarts")
	// Who asks for a binding while nobody answers is told so at once.
	s.says(leader, "Plugin Failed")
}

// etcd dies and comes back: the API server is there and can store nothing. It asks again for
// seconds, so that bindings come late and need not fail.
func TestEtcdRestarts(t *testing.T) { begin(t).survives("etcd", "etcd restarts") }

// survives restarts a part of the control plane in the middle, and returns who led then.
func (s *story) survives(part, what string) (leader *rig.Process) {
	s.Helper()
	leader, _, _ = s.pair(world.kubeconfig, perSecond)
	s.load()
	s.now()
	s.Must(world.Restart(part, timeout), "restarting "+part)
	if gap := s.allBound(what); gap < missed {
		s.Errorf("the longest time without a binding was %s, less than %s: %s was not missed, and this told nothing", gap, missed, part)
	}
	// On a busy machine the part may have been away for longer than a leader may try to renew
	// its Lease. It ends then, and for no other reason.
	select {
	case <-leader.Done():
		s.exits(leader, 1)
		s.says(leader, "Leaderelection lost")
	default:
	}
	return leader
}

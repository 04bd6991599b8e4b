// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"errors"
	"flag"
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

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

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
	if !strings.Contains(s.log(p), message) {
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
	s.refusedAtMost(0)
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
	s.refusedAtMost(1) // were the fence not there, all bindings that wait for their turn
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
	s.refusedAtMost(0)
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
	s.refusedAtMost(0)
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
	s.refusedAtMost(0)
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

// upgradeFlag are the control planes of TestKubernetesIsUpgraded.
var upgradeFlag = flag.String("upgrade", "", "folders of control planes to upgrade to, one after the other, with commas between them; DEVCLUSTER_KUBERNETES is a symbolic link to the first control plane, and is led on")

// The control plane is upgraded by one minor version after the other while pods wait and are bound, in the order of kubeadm: the API server
// before the controllers. Both replicas of the scheduler go on, without a restart, as schedulers of the version that they found at their start.
func TestKubernetesIsUpgraded(t *testing.T) {
	if *upgradeFlag == "" {
		t.Skip("it takes control planes of several versions: make e2e-versions builds them and tells it")
	}
	if os.Getenv("DEVCLUSTER_KUBERNETES") == "" {
		t.Fatal("-upgrade goes with DEVCLUSTER_KUBERNETES, a symbolic link")
	}
	s := begin(t)
	folders := strings.Split(*upgradeFlag, ",")
	leader, _, _ := s.pair(world.kubeconfig, perSecond)
	s.apps = nil
	each := replicas / (len(folders) + 1)
	replicas = each * (len(folders) + 1)
	at := s.version()
	for i, folder := range folders {
		s.apps = append(s.apps, fmt.Sprint("app-", i))
		s.deploy(s.apps[i], int32(each))
		s.Until("the pods to be made and some of them to be bound", func() error {
			if pods, bound := s.seen.Bound(); pods < each*(i+1) || bound < each*i+each/4 {
				return fmt.Errorf("of %d pods %d are bound", pods, bound)
			}
			return nil
		})
		if _, bound := s.seen.Bound(); bound >= each*(i+1) {
			t.Fatalf("all pods were bound before the upgrade to %s, though bindings are limited to %d a second: this told nothing", folder, perSecond)
		}
		s.leadTo(folder)
		s.Must(world.Restart("kube-apiserver", timeout), "upgrading kube-apiserver")
		s.Must(world.Restart("kube-controller-manager", timeout), "upgrading kube-controller-manager")
		if now := s.version(); now.Minor() != at.Minor()+1 {
			t.Fatalf("with %s the API server went from %s to %s, want the next minor version", folder, at, now)
		}
		at = s.version()
		t.Logf("upgraded to %s", at)
		for _, finding := range s.even(each * (i + 1)) {
			t.Error(finding)
		}
	}
	s.apps = append(s.apps, "last")
	s.deploy("last", int32(each)) // by controllers of the last version
	for _, finding := range s.even(replicas) {
		t.Error(finding)
	}
	if pods, bound := s.seen.Bound(); pods != replicas || bound != replicas {
		t.Errorf("there were %d pods, %d of them bound, want %d of each: a pod was lost and replaced", pods, bound, replicas)
	}
	s.announcedOnce()
	// That both are still there is seen when the story ends them.
	s.says(leader, "The API server is of a newer version")
}

// leadTo leads the symbolic link that the devcluster takes its control plane from to another folder.
func (s *story) leadTo(folder string) {
	s.Helper()
	link := os.Getenv("DEVCLUSTER_KUBERNETES")
	s.Must(os.Symlink(folder, link+".new"), "making a symbolic link")
	s.Must(os.Rename(link+".new", link), "putting it in the place of the last")
}

// version asks the API server.
func (s *story) version() *version.Version {
	s.Helper()
	v, err := rig.ServerVersion(world.client)
	s.Must(err, "asking for the version")
	return v
}

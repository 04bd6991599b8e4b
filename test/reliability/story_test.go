// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/test/fixture"
)

const (
	// timeout bounds anything that a story waits for, the binding of all pods included.
	timeout = 3 * time.Minute

	rackLabel = "example.com/rack"
)

// replicas is how many pods each story places, and middle how many have nodes when
// something happens. perSecond is how many bindings a second the scheduler is allowed, so that there is a
// middle on any machine. The shipped limit would have a fast one be through in two seconds.
var replicas, middle, perSecond = 1000, 300, 100

// story is a namespace with one workload, or as many of the same size as it says, and the schedulers that place them.
type story struct {
	testing.TB
	fixture.Space
	apps []string // the workloads
	seen *rig.Bindings

	before   int       // pods that had nodes when it happened
	happened time.Time // when
	bindings bindings  // requests to bind, answered before the story
	answered bindings  // and in it, when allBound is through

	ended []*rig.Process // replicas that were to end by themselves, and have
}

// begin begins a story.
func begin(t *testing.T) *story {
	core.Begin(t)
	if testing.Short() {
		replicas, middle, perSecond = 400, 120, 30
	}
	name := "reliability-" + strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	s := &story{TB: t, Space: fixture.New(t.Context(), t, world.client, name, timeout, 10*time.Millisecond), apps: []string{"app"}}
	t.Cleanup(s.end)
	seen, stop, err := rig.WatchBindings(s.Ctx, world.client, s.NS)
	s.Must(err, "beginning to remember")
	s.seen = seen
	t.Cleanup(stop)
	s.bindings = s.countBindings()
	return s
}

// end waits until the story's pods are gone: they would keep the next one's waiting.
func (s *story) end() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.Ctx = ctx
	if err := world.client.CoreV1().Namespaces().Delete(ctx, s.NS, metav1.DeleteOptions{}); err != nil {
		s.Errorf("deleting namespace %s: %v", s.NS, err)
		return
	}
	// The namespace's own controller takes a minute for them on a busy machine.
	for _, app := range s.apps {
		err := world.client.AppsV1().Deployments(s.NS).Delete(ctx, app, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
		if err != nil && !apierrors.IsNotFound(err) {
			s.Errorf("deleting Deployment %s: %v", app, err)
		}
	}
	s.Until("the story's pods to be gone", func() error {
		if err := world.client.CoreV1().Pods(s.NS).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}); err != nil {
			return err
		}
		list, err := world.client.CoreV1().Pods(s.NS).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}

// load deploys the workloads.
func (s *story) load() {
	s.Helper()
	for _, app := range s.apps {
		s.deploy(app, int32(replicas/len(s.apps)))
	}
}

func (s *story) deploy(app string, pods int32) {
	s.Helper()
	d := fixture.Deployment(app, pods)
	d.Spec.Template.Annotations = map[string]string{"espalier.dev/placement": "spread=" + corev1.LabelTopologyZone + ",spread=" + rackLabel}
	d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	s.Deploy(d)
}

// untilBound waits until so many pods have nodes, and fails the story if all have: what
// is to happen in the middle would then happen at the end.
func (s *story) untilBound(n int) (bound int) {
	s.Helper()
	s.Until(fmt.Sprintf("%d bound pods", n), func() error {
		if _, bound = s.seen.Bound(); bound < n {
			return fmt.Errorf("%d are", bound)
		}
		return nil
	})
	if bound >= replicas {
		s.Fatalf("all pods were bound already, though bindings are limited to %d a second: this told nothing", perSecond)
	}
	return bound
}

// now remembers that it happens now, after middle pods. All of them must be there: what makes them
// makes more when the API server goes away in the middle of that, and takes some for lost.
func (s *story) now() {
	s.Helper()
	s.Until("all pods to be made", func() error {
		if pods, _ := s.seen.Bound(); pods < replicas {
			return fmt.Errorf("%d are", pods)
		}
		return nil
	})
	s.before = s.untilBound(middle)
	s.happened = time.Now()
}

// even waits until so many pods have nodes, and returns what could be placed better.
func (s *story) even(all int) (findings []string) {
	s.Helper()
	s.Until("all pods to have nodes", func() error {
		findings = nil
		for _, app := range s.apps {
			workload := rig.Workload{Namespace: s.NS, Selector: "app=" + app, Levels: []evenness.Level{{Name: corev1.LabelTopologyZone}, {Name: rackLabel}}}
			o, err := rig.Observe(s.Ctx, world.client, workload)
			if err != nil {
				return err
			}
			// Whether they run is no part of it: what plays the nodes does not try again when etcd is away as it says so.
			if pods, bound := s.seen.Bound(); o.Pending+o.Leaving > 0 || pods < all || bound < all {
				return fmt.Errorf("%d pods of %s, %d of them pending and %d leaving; %d were seen, and %d bound", len(o.Pods), app, o.Pending, o.Leaving, pods, bound)
			}
			for _, finding := range o.Check() {
				findings = append(findings, fmt.Sprintf("%s: %s\n%s", app, finding, o.Draw()))
			}
		}
		return nil
	})
	return findings
}

// announcedOnce fails the story if a pod was announced as scheduled more than once.
func (s *story) announcedOnce() {
	s.Helper()
	twice, err := rig.AnnouncedTwice(s.Ctx, world.client, s.NS, replicas, timeout)
	s.Must(err, "counting announcements")
	for _, pod := range twice {
		s.Error(pod)
	}
}

// allBound waits for the end, and fails the story unless every pod was bound once, none was made anew, and none could be placed better.
// What it measures becomes a row of the table; the longest time without a binding is returned.
func (s *story) allBound(what string) (gap time.Duration) {
	s.Helper()
	findings := s.even(replicas)
	gap = s.seen.LongestGap(s.happened)
	s.answered = s.countBindings().since(s.bindings)
	world.table = append(world.table, fmt.Sprintf("| %s | %d | %d | %.1f s | %.1f s | %d | %d |",
		what, s.before, replicas-s.before, gap.Seconds(), s.seen.Last().Sub(s.happened).Seconds(), s.answered.refused, len(findings)))
	s.Log(world.table[len(world.table)-1])
	if pods, bound := s.seen.Bound(); pods != replicas || bound != replicas {
		s.Errorf("there were %d pods, %d of them bound, want %d of each: a pod was lost and replaced", pods, bound, replicas)
	}
	// A count that sees nothing would find nothing wrong.
	if s.answered.accepted < replicas/2 || s.answered.accepted > replicas {
		s.Errorf("by its metrics the API server accepted %d bindings of %d pods, want one of each at most, and of half of them at least", s.answered.accepted, replicas)
	}
	s.announcedOnce()
	if len(findings) > 0 {
		s.Errorf("not as even as it can be: %s", strings.Join(findings, "; "))
	}
	return gap
}

// refusedAtMost fails the story if more bindings were refused, when allBound is through: whoever asked for them did not know where the pod was, or had no
// business to bind any more. It is for stories in which the API server stays: where it goes away, a request that failed is sent again at once. One is on its
// way through the client of a process that is paused, if it was just being sent.
func (s *story) refusedAtMost(n int) {
	s.Helper()
	if s.answered.refused > n {
		s.Errorf("the API server refused %d bindings of pods that had nodes", s.answered.refused)
	}
}

// holder waits until the Lease has a holder other than the given one.
func (s *story) holder(other string) (holder string) {
	s.Helper()
	s.Until("a new holder of the Lease", func() (err error) {
		holder, err = rig.Holder(s.Ctx, world.client, other)
		return err
	})
	return holder
}

// binFolder is where make build puts the binaries, seen from this folder.
const binFolder = "../../bin"

// leaseFlag is how long a silent leader keeps the Lease. The default is the shipped one; the
// renew deadline and the retry period are in proportion to it, as they are there.
var leaseFlag = flag.Duration("lease", 15*time.Second, "how long a silent leader keeps the Lease")

// core are the stories that are told with -short, of fewer pods. The leader that wakes up is replaced as one that is killed, and fenced off besides.
var core = &rig.Core{Names: []string{"TestLeaderPaused", "TestControllerKilledAfterEachCall"}, Whole: "make e2e-reliability"}

// world is the cluster that the stories share: 25 nodes, of which one zone has more than the others.
var world struct {
	*rig.Devcluster
	config *rest.Config
	client kubernetes.Interface
	// scheduler is the path of the binary, kubeconfig holds the token of its service account.
	scheduler, kubeconfig string
	// dir takes logs; it is kept if a story fails.
	dir string
	// table has a row for each story that has been told.
	table []string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "reliability", Bin: binFolder, Core: core, Args: func(string) []string {
		// While the API server is away no node can say that it is well. On a busy machine that
		// would cost it its pods, and the story is not about nodes.
		return []string{"--nodes=25", "--zones=3", "--racks=2", "--node-grace=10m"}
	}}.Main(m, func(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
		world.Devcluster, world.dir = d, dir
		return printTable, prepare(ctx)
	}))
}

// prepare applies what the manifests give the scheduler.
func prepare(ctx context.Context) (err error) {
	if world.scheduler, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return err
	}
	if world.config, world.client, err = rig.Client(world.Kubeconfig); err != nil {
		return err
	}
	world.kubeconfig = filepath.Join(world.dir, "scheduler.kubeconfig")
	_, err = rig.Establish(ctx, world.config, world.client, manifests.Files, world.kubeconfig)
	return err
}

// printTable prints the rows as docs/reliability.md has them.
func printTable() error {
	if len(world.table) == 0 {
		return nil
	}
	fmt.Printf("\nLease of %s, %d cores\n\n", *leaseFlag, runtime.NumCPU())
	fmt.Println("| what happens | bound before | after | longest time without a binding | all bound after | bindings refused | uneven |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	fmt.Println(strings.Join(world.table, "\n"))
	return nil
}

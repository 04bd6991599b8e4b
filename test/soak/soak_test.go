// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

const (
	// timeout is how long anything that is to come may take once all is calm.
	timeout = 3 * time.Minute
	// telling is how often it is told how far things are.
	telling = 15 * time.Second
	// enough is how long everything must happen for each deed to be done at least once.
	enough = 2 * time.Minute
)

// soak is everything that acts.
type soak struct {
	*testing.T
	operator  *operator
	releasers []*releaser
	author    *author
	actors    []*actor
}

func TestSoak(t *testing.T) {
	seed := placementtest.Seed()
	t.Logf("everything happens at once for %s; the same deeds again: make soak DURATION=%s SEED=%d", *lasting, *lasting, seed)
	client, err := dynamic.NewForConfig(world.config)
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{T: t, operator: newOperator(seed), author: newAuthor(seed, client)}
	s.releasers = []*releaser{newReleaser("releaser", seed), newReleaser("other releaser", seed)}
	s.actors = []*actor{s.operator.actor, s.author.actor, s.releasers[0].actor, s.releasers[1].actor}
	s.furnish()
	s.happen()
	s.calm()
	s.double()
	if err := world.scheduler.Unasked(); err != nil {
		t.Errorf("the scheduler has ended: %v", err)
	}
}

func (s *soak) must(err error, doing string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// furnish makes what is there before.
func (s *soak) furnish() {
	ctx := s.Context()
	_, err := world.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	s.must(err, "creating the namespace")
	for range (fewest + most) / 2 {
		_, err := s.operator.add(ctx)
		s.must(err, "creating a node")
	}
	for i := range workloads {
		_, err := world.client.AppsV1().Deployments(namespace).Create(ctx, workloads[i].deployment(6), metav1.CreateOptions{})
		s.must(err, "creating Deployment "+workloads[i].name)
	}
	s.until("the first pods", s.eachSettled)
}

// until waits for what is to come, and tells every now and then what it is.
func (s *soak) until(what string, check func(context.Context) error) {
	s.Helper()
	told := time.Now()
	err := rig.Poll(s.Context(), timeout, 200*time.Millisecond, what, func() error {
		err := check(s.Context())
		if ended := world.scheduler.Unasked(); ended != nil {
			return rig.Never(ended)
		}
		if err != nil && time.Since(told) > telling {
			told = time.Now()
			s.Logf("waiting for %s: %v", what, err)
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *soak) eachSettled(ctx context.Context) error {
	for i := range workloads {
		if _, err := workloads[i].settled(ctx); err != nil {
			return fmt.Errorf("%s: %w", workloads[i].name, err)
		}
	}
	return nil
}

// happen has all actors act at once.
func (s *soak) happen() {
	ctx, end := context.WithTimeout(s.Context(), *lasting)
	defer end()
	begun := time.Now()
	var all sync.WaitGroup
	failed := make(chan error, len(s.actors))
	for _, a := range s.actors {
		all.Go(func() {
			if err := a.act(ctx); err != nil {
				failed <- err
				end()
			}
		})
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(telling):
			if time.Since(begun) < *lasting {
				s.tell(begun)
			}
		}
	}
	all.Wait()
	s.tell(begun)
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	s.must(errors.Join(errs...), "acting")
	if *lasting < enough {
		return
	}
	for _, a := range s.actors {
		if never := a.missing(); len(never) > 0 {
			s.Errorf("%s never did %v in %s", a.name, never, *lasting)
		}
	}
}

// tell says what has happened so far.
func (s *soak) tell(begun time.Time) {
	var parts []string
	total := 0
	for _, a := range s.actors {
		each, all := a.tally()
		total += all
		parts = append(parts, a.name+": "+strings.Join(each, ", "))
	}
	s.Logf("%s of %s, %d deeds (%s)", min(time.Since(begun), *lasting).Round(time.Second), *lasting, total, strings.Join(parts, "; "))
}

// calm puts everything right and waits until it is. Each workload gets one more release: nothing is
// known against any node for it, and all of its pods are of one revision.
func (s *soak) calm() {
	ctx := s.Context()
	s.must(s.operator.mend(ctx), "mending nodes")
	for _, w := range governed() {
		s.must(s.author.put(ctx, w.name, w.levels), "writing policy "+w.name)
	}
	s.until("the nodes to be well", s.operator.ready)
	for i := range workloads {
		s.must(s.releasers[0].release(ctx, &workloads[i], "null"), "releasing "+workloads[i].name)
	}
	s.until("the last releases", s.eachSettled)
	s.Logf("all is calm: %d nodes", len(s.operator.nodes))
}

// double has each workload twice the pods, and wants none of the new ones where another place would have been more even.
func (s *soak) double() {
	ctx := s.Context()
	before := make([]map[string]int, len(workloads))
	for i := range workloads {
		o, err := workloads[i].settled(ctx)
		s.must(err, "counting "+workloads[i].name)
		before[i] = o.OnNodes()
	}
	for i := range workloads {
		pods := 0
		for _, n := range before[i] {
			pods += n
		}
		s.must(s.releasers[0].to(ctx, &workloads[i], 2*pods), "scaling "+workloads[i].name)
	}
	s.until("all workloads to double", s.eachSettled)
	pods, uneven := 0, 0
	for i := range workloads {
		o, err := workloads[i].settled(ctx)
		s.must(err, "counting "+workloads[i].name)
		pods += len(o.Pods)
		o.Fix(before[i])
		if findings := o.Check(); len(findings) > 0 {
			uneven++
			s.Errorf("%s is not as even as it can be: %s\n%s", workloads[i].name, strings.Join(findings, "; "), o.Draw())
		}
	}
	s.Logf("%d workloads have doubled to %d pods, %d of them are uneven", len(workloads), pods, uneven)
}

var lasting = flag.Duration("lasting", 30*time.Second, "how long everything happens at once")

// binFolder is where make build puts the binaries, seen from this folder.
const binFolder = "../../bin"

// world is the cluster. It is set up once and then only read.
var world struct {
	config     *rest.Config
	client     kubernetes.Interface
	kubeconfig string
	devcluster string
	scheduler  *rig.Process
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "soak", Bin: binFolder, Args: func(dir string) []string {
		// A node that falls silent is to be missed within the shortest soak. The logs of all parts are kept with those of a soak that fails.
		return []string{"--nodes=0", "--node-grace=20s", "--dir=" + filepath.Join(dir, "devcluster")}
	}}.Main(m, prepare))
}

// prepare starts the scheduler with the rights and the profile of the manifests.
func prepare(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
	world.kubeconfig = d.Kubeconfig
	if world.devcluster, err = rig.Binary("devcluster", binFolder); err != nil {
		return nil, err
	}
	if world.config, world.client, err = rig.Client(world.kubeconfig); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "scheduler.kubeconfig")
	if _, err := rig.Establish(ctx, world.config, world.client, manifests.Files, kubeconfig); err != nil {
		return nil, err
	}
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return nil, err
	}
	if world.scheduler, err = rig.StartScheduler(rig.SchedulerOptions{Binary: binary, Kubeconfig: kubeconfig, Dir: dir}); err != nil {
		return nil, err
	}
	return func() error { return world.scheduler.StopCleanly(15 * time.Second) }, nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var (
	lasting = flag.Duration("lasting", 3*time.Second, "how long the storm lasts")
	seed    = flag.Uint64("seed", 0, "what the actors' random numbers begin with; 0 for ESPALIER_SEED's")
)

// calming bounds what a scheduler may need to place what is left over, on a machine
// that has other work: seconds are enough.
const calming = 45 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	// What a scheduler says of pods that vanish in its hands is not news here.
	klog.SetLogger(logr.Discard())
	// The store panics where a watcher is so many changes behind.
	watch.DefaultChanSize = 20_000
	os.Exit(m.Run())
}

// must ends the test if there is an error.
var must = placementtest.Must

func TestStorm(t *testing.T) {
	from := *seed
	if from == 0 {
		from = placementtest.Seed()
	}
	t.Logf("to begin with the same random numbers: -seed=%d", from)
	before := goleak.IgnoreCurrent()
	server := newAPIServer()
	furnish(t, server)
	live := start(t, server, &sharing{members: []string{thisReplica}})
	live.yield(t)
	live.run()
	live.stall(t, server)
	done := live.weather(t, server, from)
	// Whoever asks what the scheduler thinks is counted as well.
	values := counters(t, counted...)
	server.collectGarbage(t)
	calm(t, live, server)
	live.end()
	server.close()
	goleak.VerifyNone(t, before)
	e := live.witness(t, server)
	e.values = values
	enough(t, done, e)
}

// furnish makes what is there before the storm.
func furnish(t *testing.T, server *apiServer) {
	t.Helper()
	ctx := t.Context()
	for i := range nodes {
		_, err := server.CoreV1().Nodes().Create(ctx, newNode(i, fmt.Sprint("node-", i)), metav1.CreateOptions{})
		must(t, err)
	}
	_, err := server.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "sandboxed"}, Handler: "sandbox"}, metav1.CreateOptions{})
	must(t, err)
	for _, name := range stormy {
		// The store applies to what is there and makes nothing.
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name + "-failures"}}
		_, err := server.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, record, metav1.CreateOptions{})
		must(t, err)
	}
}

// weather has all actors act at once, for as long as it lasts, and returns how often each did what.
func (r *running) weather(t *testing.T, server *apiServer, from uint64) map[string]*tally {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	done := make(map[string]*tally)
	var all sync.WaitGroup
	for name, deeds := range map[string]func(*actor) map[string]func(context.Context){
		"operator": (*actor).nodeDeeds, "cloud": (*actor).nodeDeeds,
		"web": (*actor).controllerDeeds, "db": (*actor).controllerDeeds,
		"person": (*actor).personDeeds, "author": (*actor).policyDeeds,
		"kubelet-1": (*actor).kubeletDeeds, "kubelet-2": (*actor).kubeletDeeds,
		"replica": func(a *actor) map[string]func(context.Context) { return a.replicaDeeds(r.of) },
	} {
		a := &actor{T: t, Rand: stream(from, name), server: server, name: name, pods: r.informers.Core().V1().Pods().Lister()}
		a.deeds = deeds(a)
		a.done = tallyOf(a.deeds)
		done[name] = a.done
		all.Go(func() { a.act(ctx) })
	}
	server.fickle(stream(from, "fates"))
	// A machine that is busy gets less done in the same time: it is given more.
	begun := time.Now()
	time.Sleep(*lasting)
	var few []string
	for time.Since(begun) < *lasting+calming {
		now := missing(done, r.witness(t, server))
		if len(now) == 0 {
			break
		}
		few = now
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("it lasted %v, at last for %q", time.Since(begun).Round(time.Millisecond), few)
	end()
	all.Wait()
	server.fickle(nil)
	if r.of.shared() {
		r.of.set(thisReplica)()
	}
	return done
}

// stream are the random numbers of one of many.
func stream(from uint64, name string) *rand.Rand {
	h := fnv.New64()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(from, h.Sum64()))
}

// calm asks whether the scheduler knows what there is, by one that starts now. That one is told of the same part, by whose name nodes that tie are ordered.
func calm(t *testing.T, live *running, server *apiServer) {
	t.Helper()
	fresh := start(t, server, &sharing{members: []string{thisReplica}})
	defer fresh.end()
	calms(t, live, fresh, server)
	// What is known of a few pods says nothing, and there may be room for no others.
	server.mend(t)
	calms(t, live, fresh, server)
	live.turn.Lock()
	defer live.turn.Unlock()
	compare(t, live, fresh, server)
}

// calms waits until each pod that fits is placed, and both schedulers know all nodes and what is on them: on a busy machine one may be behind.
func calms(t *testing.T, live, fresh *running, server *apiServer) {
	t.Helper()
	begun := time.Now()
	for still := 0; still < 2; time.Sleep(100 * time.Millisecond) {
		version := server.store.version.Load()
		left, unknown := fresh.couldBePlaced(t, server), live.unknown(t, server)+fresh.unknown(t, server)
		if still++; len(left) > 0 || unknown != "" || version != server.store.version.Load() {
			still = 0
		}
		if time.Since(begun) > calming {
			var stacks strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			t.Fatalf("%v after the storm these wait, and would fit: %q; it is not known what is where:\n%s\n%s", calming, left, unknown, stacks.String())
		}
	}
	t.Logf("it is calm after %v", time.Since(begun).Round(time.Millisecond))
}

// unknown is in what the nodes and their pods by the API server (-) differ from those by the scheduler (+).
func (r *running) unknown(t *testing.T, server *apiServer) string {
	t.Helper()
	there, known := make(map[string]string), make(map[string]string)
	for _, p := range server.allPods(t) {
		if p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			there[p.Spec.NodeName+"/"+p.Name] = p.ResourceVersion
		}
	}
	all, err := server.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range all.Items {
		there[all.Items[i].Name] = all.Items[i].ResourceVersion
	}
	for name, n := range r.Cache.Dump().Nodes {
		if n.Node() != nil {
			known[name] = n.Node().ResourceVersion
		}
		for _, p := range n.GetPods() {
			known[name+"/"+p.GetPod().Name] = p.GetPod().ResourceVersion
		}
	}
	return gocmp.Diff(there, known)
}

// mend makes some nodes as good as new, with room for more than there are pods.
func (s *apiServer) mend(t *testing.T) {
	t.Helper()
	for i := 0; i < nodes; i += 5 {
		n := newNode(i, fmt.Sprint("mended-", i))
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("200"), corev1.ResourceCPU: resource.MustParse("100")}
		err := s.CoreV1().Nodes().Delete(t.Context(), n.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		_, err = s.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		must(t, err)
	}
}

// couldBePlaced are the pods that wait although there is a node for them.
func (r *running) couldBePlaced(t *testing.T, server *apiServer) (left []string) {
	t.Helper()
	r.snapshot(t)
	for _, pod := range server.allPods(t) {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		if o := r.think(t, &pod, &heard{versions: make(map[uint64]bool)}); len(o.Scores) > 0 {
			left = append(left, fmt.Sprintf("%s, %s: %v", pod.Name, describe(&pod), o.best()))
		}
	}
	return left
}

// compare asks both schedulers about one more pod like each that there is, and about
// one of each kind.
func compare(t *testing.T, live, fresh *running, server *apiServer) {
	t.Helper()
	live.snapshot(t)
	fresh.snapshot(t)
	if assumed := live.Cache.Dump().AssumedPods; len(assumed) > 0 {
		t.Errorf("of these it is assumed still that they were bound: %v", assumed)
	}
	var asked, fit, refused int
	seen := make(map[string]bool)
	for _, pod := range slices.Concat(server.allPods(t), onePodOfEach()) {
		like := fmt.Sprint(pod.Spec.SchedulerName, pod.Labels, metav1.GetControllerOf(&pod), pod.Spec.Affinity)
		if live.Profiles[pod.Spec.SchedulerName] == nil || seen[like] {
			continue
		}
		seen[like] = true
		next := pod.DeepCopy()
		next.Name, next.UID, next.DeletionTimestamp = "next", "next", nil
		next.Spec.NodeName, next.Status = "", corev1.PodStatus{}
		asked++
		if o := agree(t, live, fresh, next); o != nil && o.Refused != "" {
			refused++
		} else if o != nil && len(o.Scores) > 0 {
			fit++
		}
	}
	t.Logf("of %d pods more, one like each, %d fit and %d are refused", asked, fit, refused)
	if fit < 20 || refused < len(stormy) {
		t.Errorf("that is too few to say anything")
	}
}

func onePodOfEach() (all []corev1.Pod) {
	for kind := range kinds {
		for _, scheduler := range stormy {
			all = append(all, *podOf("next", kind, "bare-"+kind, scheduler, nil))
		}
	}
	return all
}

// enough sees that it was a storm, by what was counted at its end.
func enough(t *testing.T, done map[string]*tally, e *evidence) {
	t.Helper()
	for name, deeds := range done {
		t.Logf("%s: %v", name, deeds.times)
	}
	bound, twice := e.server.bindings()
	t.Logf("%d pods were bound; %v", len(bound), e.values)
	if len(twice) > 0 {
		t.Errorf("these were bound twice: %q", twice)
	}
	for _, what := range missing(done, e) {
		t.Errorf("it was no storm: %s", what)
	}
}

// missing is what makes it no storm yet.
func missing(done map[string]*tally, e *evidence) (few []string) {
	for name, deeds := range done {
		for _, deed := range deeds.undone() {
			few = append(few, fmt.Sprintf("%s never did %q", name, deed))
		}
	}
	if bound, _ := e.server.bindings(); len(bound) < batch+100 {
		few = append(few, fmt.Sprintf("%d pods were bound, want %d", len(bound), batch+100))
	}
	if key := "espalier_failures_total{kind=OutOfcpu,profile=" + scored + "}"; e.values[key] == 0 {
		few = append(few, "nothing was counted by "+key)
	}
	return append(few, e.undone()...)
}

// counters are metrics of the process by name and labels.
func counters(t *testing.T, names ...string) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	eachMetric(t, "", func(name string, m *dto.Metric) {
		if base, _, _ := strings.Cut(name, "{"); slices.Contains(names, base) {
			values[name] = m.GetCounter().GetValue()
		}
	})
	return values
}

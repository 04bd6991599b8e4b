// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const shipped = "espalier-scheduler"

var (
	// sharedConfiguration is a profile of one of several schedulers, whose pods may have others make way.
	sharedConfiguration = strings.NewReplacer("{name: PreBinder}", "{name: PreBinder}, {name: Owner}", ", {name: DefaultPreemption}", "").Replace(loopConfiguration)
	// samplingConfiguration is a profile that samples one node, each in its turn.
	samplingConfiguration = strings.NewReplacer(
		"{name: PreBinder}", "{name: PreBinder}, {name: NodeSampling}",
		"  pluginConfig:", "  pluginConfig:\n  - {name: NodeSampling, args: {topologyKey: kubernetes.io/hostname, groupsBasisPoints: 1, strategy: RoundRobin}}",
	).Replace(loopConfiguration)
)

// TestOrder has, for each two wrappers of which one must be around the other, what goes wrong if it is not. Those that need not be named here do not
// care: see Adapt. That track comes before wrap, the compiler knows.
func TestOrder(t *testing.T) {
	for name, check := range map[string]func(*testing.T){
		"rebind around confirm":  rebindAroundConfirm,
		"pace around confirm":    paceAroundConfirm,
		"pace around failAsync":  paceAroundFailAsync,
		"rebind around pace":     rebindAroundPace,
		"announce around rebind": rebindAroundConfirm, // the event names the node where the pod is
		"wrap around rebind":     wrapAroundRebind,
		"wrap around countAll":   wrapAroundCountAll,
		"sample around countAll": sampleAroundCountAll,
		"sample around rebind":   sampleAroundRebind,
		"sample around wrap":     sampleAroundWrap,
		"share around confirm":   shareAroundConfirm,
		"share around rebind":    shareAroundRebind,
		"share around wrap":      shareAroundWrap,
	} {
		t.Run(name, check)
	}
}

// bubble runs a test with a clock of its own. A scheduler listens for a signal. With the first who does, Go begins to, which must not be in there.
func bubble(t *testing.T, test func(*testing.T)) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGUSR2)
	signal.Stop(heard)
	synctest.Test(t, test)
}

// once refuses the first binding of a pod, and says something of the second.
func once(of string, second error) func(pod, node string) error {
	refused := ""
	return func(pod, node string) error {
		switch {
		case pod != of:
			return nil
		case refused == "":
			refused = node
			return noRoom(node)
		}
		return second
	}
}

// A pod is bound to its second node, and the answer is lost. It is there, and not on the node of its cycle.
func rebindAroundConfirm(t *testing.T) {
	l := startLoop(t, 3, heights(0, 1)...)
	l.refuse(once("p", errAnswer))
	l.create(webPod("p"))
	l.said("p", "Scheduled", "Successfully assigned ns/p to n2")
	l.failed("p", 0)
	l.counts(map[string]int{"n1": 0, "n2": 1}, "n2")
}

// While nobody knows what became of as many bindings as may be under way, they are.
func paceAroundConfirm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, loopConfiguration, func(*Options) {}, heights(0)...)
		l.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errAway })
		l.refuse(func(string, string) error { return errAway })
		l.begin("unknown", "n1", most)
		if took := l.held(); took != atMost {
			t.Errorf("the next pod came after %s, want %s", took, atMost)
		}
	})
}

// So they are while they wait until it is written down that their pods were refused before.
func paceAroundFailAsync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, loopConfiguration, func(*Options) {}, heights(0)...)
		written := make(chan struct{})
		defer close(written)
		info := l.know(webPod("refused").Obj())
		l.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-written
			return true, info.Pod, nil
		})
		no := &framework.FitError{Pod: info.Pod, Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}}
		l.sched.FailureHandler(l.ctx, l.sched.Profiles[shipped], info, fwk.NewStatus(fwk.Unschedulable).WithError(no), nil, time.Now())
		l.begin("refused", "n1", most)
		if took := l.held(); took != atMost {
			t.Errorf("the next pod came after %s, want %s", took, atMost)
		}
	})
}

// A pod whose node refuses it gets another one while the scheduler waits for bindings, and not after.
func rebindAroundPace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, loopConfiguration, func(*Options) {}, append(heights(0, 1), webPod("p").Obj())...)
		l.cluster(2)
		refuse, end := make(chan struct{}), make(chan struct{})
		defer close(end)
		second := once("p", nil)
		l.refuse(func(pod, node string) error {
			if pod != "p" {
				<-end
				return errAway
			}
			<-refuse
			return second(pod, node)
		})
		l.held() // the scheduler decides about one
		state, p := l.place("p")
		go l.sched.Profiles[shipped].RunBindPlugins(l.ctx, state, p, p.Spec.NodeName)
		l.begin("hangs", "n1", most)
		next := make(chan time.Duration, 1)
		go func() { next <- l.held() }()
		synctest.Wait()
		close(refuse)
		synctest.Wait()
		held := len(next) == 0
		if nodes := l.tried("p", 1); !held || len(nodes) != 2 {
			t.Errorf("p is bound to %v while the scheduler waits, which it does: %t", nodes, held)
		}
		if took := <-next; took != atMost {
			t.Errorf("the next pod came after %s, want %s", took, atMost)
		}
	})
}

// The second node is proposed, as the first one was.
func wrapAroundRebind(t *testing.T) {
	l := startLoop(t, 3, heights(0, 1)...)
	used, unused := counted(t, hints, outcomeUsed), counted(t, hints, outcomeUnused)
	l.refuse(once("p", nil))
	l.create(webPod("p"))
	l.bound("p")
	if used, unused := counted(t, hints, outcomeUsed)-used, counted(t, hints, outcomeUnused)-unused; used != 2 || unused != 0 {
		t.Errorf("of the nodes that were proposed %v were taken and %v not, want 2 and 0", used, unused)
	}
}

// A node that a constraint with an empty selector refuses is not proposed.
func wrapAroundCountAll(t *testing.T) {
	l := startLoop(t, 3, append(heights(0, 1), other("first", "n1").Obj(), other("second", "n1").Obj())...)
	used, unused := counted(t, hints, outcomeUsed), counted(t, hints, outcomeUnused)
	l.create(amongAll(webPod("p")))
	node := l.bound("p")
	if used, unused := counted(t, hints, outcomeUsed)-used, counted(t, hints, outcomeUnused)-unused; node != "n2" || used != 1 || unused != 0 {
		t.Errorf("it is on %s, want n2; of the nodes that were proposed %v were taken and %v not, want 1 and 0", node, used, unused)
	}
}

// A sample is of nodes that do not refuse the pod by the pods that an empty selector counts.
func sampleAroundCountAll(t *testing.T) {
	l := newLoop(t, samplingConfiguration, func(*Options) {}, append(heights(0, 0, 0), other("first", "n1").Obj(), other("second", "n2").Obj())...)
	l.start()
	l.create(amongAll(webPod("p")).NodeAffinity(preferring("disk").NodeAffinity)) // there is no hint for it
	if node := l.bound("p"); node != "n3" {
		t.Errorf("it is on %s, want n3", node)
	}
	l.failed("p", 0)
}

// A sample is of nodes that have not refused the pod. Where there are none, all nodes are looked at.
func sampleAroundRebind(t *testing.T) {
	l := newLoop(t, samplingConfiguration, func(*Options) {}, heights(0, 0)...)
	l.start()
	preferring := func(name string) { // there is no hint for it
		l.create(webPod(name).NodeAffinity(preferring("disk").NodeAffinity))
	}
	l.refuse(func(pod, node string) error {
		if pod != "p" || node != "n1" {
			return nil
		}
		preferring("q") // the other node has its turn, so that the next is n1 again
		l.bound("q")
		return noRoom(node)
	})
	preferring("p")
	if p, q := l.bound("p"), l.bound("q"); p != "n2" || q != "n2" || len(l.tried("p", 2)) != 2 {
		t.Errorf("p is on %s, and q on %s", p, q)
	}
	l.failed("p", 0)
	if n, err := testutil.GetCounterMetricValue(samples.WithLabelValues(shipped, outcomeSampled)); err != nil || n == 0 {
		t.Errorf("%v samples were taken, %v", n, err)
	}
}

// A pod for which the best of all nodes is proposed is not decided about by a sample.
func sampleAroundWrap(t *testing.T) {
	l := newLoop(t, samplingConfiguration, func(*Options) {}, heights(3, 2, 1, 0)...)
	l.start()
	used, confined := counted(t, hints, outcomeUsed), counted(t, hints, outcomeConfined)
	l.create(webPod("p"))
	node := l.bound("p")
	if used, confined := counted(t, hints, outcomeUsed)-used, counted(t, hints, outcomeConfined)-confined; node != "n4" || used != 1 || confined != 0 {
		t.Errorf("p is on %s, want n4; %v proposals were taken, and %v pods had none because of a sample", node, used, confined)
	}
}

// newShared makes one of several schedulers, which does not run.
func newShared(t *testing.T, own ...string) *loop {
	l := newLoop(t, sharedConfiguration, func(o *Options) { o.Share = &Sharing{Plugin: "Owner"} }, heights(0, 1)...)
	l.owner.own = own
	return l
}

// Nothing is asked about a pod of another scheduler, which was not bound here.
func shareAroundConfirm(t *testing.T) {
	l := newShared(t)
	l.client.ClearActions()
	if status := l.sched.Profiles[shipped].RunBindPlugins(l.ctx, framework.NewCycleState(), webPod("p").Obj(), "n1"); !errors.Is(status.AsError(), errNotOurs) {
		t.Errorf("the pod is another's, and binding it says %v", status)
	}
	if asked := l.client.Actions(); len(asked) > 0 {
		t.Errorf("it is asked: %v", asked)
	}
}

// A pod is no other scheduler's to place until it is bound for good, whatever nodes refuse it.
func shareAroundRebind(t *testing.T) {
	l := newShared(t, "p")
	l.start()
	begun := make(chan int, 2)
	refuse := once("p", nil)
	l.refuse(func(pod, node string) error {
		begun <- l.owner.times
		return refuse(pod, node)
	})
	l.create(webPod("p"))
	l.bound("p")
	if first, second := <-begun, <-begun; first != 1 || second != 1 {
		t.Errorf("it was begun %d times at the first node, and %d by the second", first, second)
	}
}

// That nobody makes way for a pod of another scheduler says nothing about the next one that is alike.
func shareAroundWrap(t *testing.T) {
	l := newShared(t, "own")
	l.cluster(2)
	said := func(name string) string {
		f, state := l.sched.Profiles[shipped], framework.NewCycleState()
		info := l.know(webPod(name).Req(map[corev1.ResourceName]string{"cpu": "1000"}).Obj())
		_, err := l.sched.SchedulePod(l.ctx, f, state, info)
		var fit *framework.FitError
		if !errors.As(err, &fit) {
			t.Fatalf("%s fits on no node, and deciding it says %v", name, err)
		}
		_, status := f.RunPostFilterPlugins(l.ctx, state, info.Pod, fit.Diagnosis.NodeToStatus)
		return status.Message()
	}
	if words := said("lost"); words != errNotOurs.Error() {
		t.Errorf("of the other scheduler's it is said that %q", words)
	}
	if words := said("own"); !strings.HasPrefix(words, "preemption: ") {
		t.Errorf("of its own it is said that %q", words)
	}
}

// know has the informer know a pod.
func (l *loop) know(pod *corev1.Pod) *framework.QueuedPodInfo {
	l.Helper()
	must(l, l.informers.Core().V1().Pods().Informer().GetIndexer().Add(pod))
	info, err := framework.NewPodInfo(pod)
	must(l, err)
	return &framework.QueuedPodInfo{PodInfo: info}
}

// cluster has a scheduler that does not run know some nodes.
func (l *loop) cluster(nodes int) {
	l.Helper()
	for _, o := range heights(make([]int, nodes)...) {
		l.sched.Cache.AddNode(klog.FromContext(l.ctx), o.(*corev1.Node))
	}
	must(l, l.sched.Cache.UpdateSnapshot(klog.FromContext(l.ctx), l.sched.Profiles[shipped].SnapshotSharedLister().(*internalcache.Snapshot)))
}

// place has such a scheduler put a pod on a node.
func (l *loop) place(name string) (fwk.CycleState, *corev1.Pod) {
	l.Helper()
	state, f := framework.NewCycleState(), l.sched.Profiles[shipped]
	result, err := l.sched.SchedulePod(l.ctx, f, state, l.know(webPod(name).Obj()))
	must(l, err)
	pod := webPod(name).Node(result.SuggestedHost).Obj()
	must(l, l.sched.Cache.AssumePod(klog.FromContext(l.ctx), pod))
	must(l, f.RunReservePluginsReserve(l.ctx, state, pod, result.SuggestedHost).AsError())
	return state, pod
}

// begin begins with so many bindings of a pod, which are not waited for.
func (l *loop) begin(name, node string, bindings int) {
	for i := range bindings {
		pod := webPod(name).Obj()
		if name != "refused" {
			pod.Name, pod.UID = fmt.Sprint(name, "-", i), types.UID(fmt.Sprint(name, "-", i))
		}
		go l.sched.Profiles[shipped].RunBindPlugins(l.ctx, framework.NewCycleState(), pod, node)
	}
	synctest.Wait()
}

// held is how long a pod that is in the queue waits to be taken up.
func (l *loop) held() time.Duration {
	l.sched.SchedulingQueue.Add(l.ctx, webPod("next").Obj())
	begin := time.Now()
	if _, err := l.sched.NextEntity(klog.FromContext(l.ctx)); err != nil {
		l.Error(err)
	}
	l.sched.SchedulingQueue.Done("next")
	return time.Since(begin)
}

// Each change that Adapt makes is described in the page of what belongs upstream, by its file.
func TestAdaptIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/decisions/upstream-proposals.md")
	must(t, err)
	files, err := filepath.Glob("*.go")
	must(t, err)
	where, called := map[string]string{}, map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Recv != nil {
				continue
			}
			where[f.Name.Name] = name
			if f.Name.Name != "Adapt" {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if call, is := n.(*ast.CallExpr); is {
					if callee, is := call.Fun.(*ast.Ident); is {
						called[callee.Name] = true
					}
				}
				return true
			})
		}
	}
	described := 0
	for callee := range called {
		file, ours := where[callee]
		if !ours { // of the language
			continue
		}
		described++
		if !strings.Contains(string(page), "`"+file+"`") {
			t.Errorf("Adapt calls %s, and the page does not name %s", callee, file)
		}
	}
	if described < 15 {
		t.Errorf("Adapt calls %d functions of this package, want 15 at least", described)
	}
}

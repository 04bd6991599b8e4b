// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = placementtest.Must

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Command{Name: "child", Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(p.Kill)
	return p
}

// untilLogged waits until the child has said the word: only then does it listen.
func untilLogged(t *testing.T, p *Process, word string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(p.Tail(1), word); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not in the log", word)
		}
	}
}

// listening is a child that runs until it is asked to end, and does something then.
func listening(t *testing.T, asked string) *Process {
	t.Helper()
	p := shell(t, "trap '"+asked+"' INT; echo ready; while :; do sleep 0.05; done")
	untilLogged(t, p, "ready")
	return p
}

func TestProcessEndsByItself(t *testing.T) {
	p := shell(t, "echo first; echo broken >&2; exit 3")
	if err := p.Err().Error(); !strings.Contains(err, "child") || !strings.Contains(err, "exit status 3") || !strings.Contains(err, "broken") {
		t.Errorf("the error does not tell who ended how: %s", err)
	}
	if code := p.ExitCode(); code != 3 {
		t.Errorf("exit status %d, want 3", code)
	}
}

func TestProcessStops(t *testing.T) {
	polite := listening(t, "exit 0")
	if err := polite.Stop(20 * time.Second); err != nil || polite.ExitCode() != 0 {
		t.Errorf("stopping: %v, exit status %d", err, polite.ExitCode())
	}
	if err := polite.Unasked(); err != nil {
		t.Errorf("a process that was stopped is said to have ended by itself: %v", err)
	}
	deaf := listening(t, "")
	if err := deaf.Stop(200 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("a process that does not listen is stopped with %v", err)
	}
}

// TestRegression_CrashedIsNotStopped wants a process that ended before it was to, or ended
// badly when it was, not to pass for one that was stopped.
func TestRegression_CrashedIsNotStopped(t *testing.T) {
	crashed := shell(t, "echo panic >&2; exit 2")
	<-crashed.Done()
	for name, stop := range map[string]func(time.Duration) error{"Stop": crashed.Stop, "StopCleanly": crashed.StopCleanly} {
		if err := stop(20 * time.Second); err == nil || !strings.Contains(err.Error(), "child ended by itself: exit status 2") || !strings.Contains(err.Error(), "panic") {
			t.Errorf("%s of a process that crashed before: %v", name, err)
		}
	}
	if crashed.Unasked() == nil || crashed.Terminate() == nil || crashed.Unasked() == nil {
		t.Error("a process that crashed before is not said to have ended by itself, or no longer once it was too late to ask it")
	}

	clumsy := listening(t, "echo panic >&2; exit 2")
	if err := clumsy.Unasked(); err != nil {
		t.Errorf("a process that runs: %v", err)
	}
	if err := clumsy.StopCleanly(20 * time.Second); err == nil || !strings.Contains(err.Error(), "child was asked to end and did not end well: exit status 2") || !strings.Contains(err.Error(), "panic") {
		t.Errorf("stopping a process that panics on its way out: %v", err)
	}

	killed, young := shell(t, "while :; do sleep 0.05; done"), shell(t, "while :; do sleep 0.05; done")
	killed.Kill()
	for name, p := range map[string]*Process{"was killed": killed, "does not listen yet": young} {
		if err := p.StopCleanly(20 * time.Second); err != nil {
			t.Errorf("stopping what %s: %v", name, err)
		}
	}
	aborted := listening(t, "kill -ABRT $$")
	if err := aborted.StopCleanly(20 * time.Second); err == nil || !strings.Contains(err.Error(), "signal: aborted") {
		t.Errorf("stopping a process that another signal ends: %v", err)
	}
}

// TestRegression_CrashedDevcluster wants stories not to pass whose devcluster ended by itself.
func TestRegression_CrashedDevcluster(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(BinEnv, dir)
	script := "#!/bin/sh\ntrap 'exit 3' INT\necho kubeconfig: none\nread order\nexit 2\n"
	if err := os.WriteFile(filepath.Join(dir, "devcluster"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for want, end := range map[string]func(*Devcluster){
		"ended by itself: exit status 2": func(d *Devcluster) {
			if err := d.Restart("none", 20*time.Second); err == nil {
				t.Error("it has restarted something")
			}
		},
		"did not end well: exit status 3": func(*Devcluster) {},
	} {
		code, err := OnDevcluster(t.Context(), "test", "", t.TempDir(), nil, func(d *Devcluster) (int, error) {
			end(d)
			return 0, nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("stories told on it end with %d and %v, want an error that says %q", code, err, want)
		}
	}
}

func TestBinary(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(BinEnv, dir)
	if _, err := Binary("devcluster", "elsewhere"); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "devcluster")) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("a binary that is not there: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "devcluster"), nil, 0o600))
	if _, err := Binary("devcluster", ""); err == nil || !strings.Contains(err.Error(), "not a program") {
		t.Errorf("a file that is no program: %v", err)
	}
}

func TestDecode(t *testing.T) {
	files := fstest.MapFS{
		"two.yaml": {Data: []byte("# a comment\n---\napiVersion: v1\nkind: Pod\n---\n# nothing\n---\napiVersion: v1\nkind: Service\n")},
		"bad.yaml": {Data: []byte("apiVersion: v1\nkind: Pod\n---\n\tkind: [\n")},
	}
	objects, err := Decode(files, "two.yaml")
	if err != nil || len(objects) != 2 || objects[1].GetKind() != "Service" {
		t.Errorf("got %v, %v", objects, err)
	}
	if _, err := Decode(files, "bad.yaml"); err == nil || !strings.Contains(err.Error(), "bad.yaml, document 2") {
		t.Errorf("a broken file: %v", err)
	}
}

func node(name, zone string, cpu string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone, "for": "us"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse("10")}},
	}
}

func onNode(name, app, node, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{NodeName: node, NodeSelector: map[string]string{"for": "us"}, Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}},
		}},
	}
}

// TestObserve counts what counts, and knows how much more every node would have taken.
func TestObserve(t *testing.T) {
	cordoned, tainted, foreign := node("cordoned", "b", "4"), node("tainted", "b", "4"), node("foreign", "b", "4")
	cordoned.Spec.Unschedulable = true
	tainted.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	foreign.Labels["for"] = "them"
	ended, leaving := onNode("ended", "web", "big", "1"), onNode("leaving", "web", "big", "1")
	ended.Status.Phase = corev1.PodSucceeded
	now := metav1.Now()
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"x/y"}
	client := fake.NewClientset(node("big", "a", "8"), node("slots", "a", "64"), cordoned, tainted, foreign,
		onNode("w1", "web", "big", "1"), onNode("w2", "web", "cordoned", "1"), onNode("w3", "web", "", "1"), ended, leaving,
		onNode("other", "db", "big", "2"))
	o, err := Observe(t.Context(), client, Workload{Namespace: "ns", Selector: "app=web", Levels: []evenness.Level{{Name: "zone"}}})
	must(t, err)
	if len(o.Pods) != 3 || o.Pending != 1 || o.Leaving != 1 {
		t.Errorf("%d pods, %d pending, %d leaving; want 3, 1, 1", len(o.Pods), o.Pending, o.Leaving)
	}
	// big: 8 cpus less 2 of another workload and 1 of the pod that leaves.
	want := map[string]evenness.Node{"big": {Count: 1, Room: 5}, "slots": {Room: 10}, "cordoned": {Count: 1, Room: 1}, "tainted": {}}
	if len(o.Nodes) != len(want) {
		t.Errorf("%d nodes, want %d: %v", len(o.Nodes), len(want), o.Nodes)
	}
	for _, n := range o.Nodes {
		if w := want[n.Name]; n.Count != w.Count || n.Room != w.Room || n.Values[0] == "" {
			t.Errorf("%+v, want count %d and room %d", n, w.Count, w.Room)
		}
	}
	o.Fix(map[string]int{"big": 5})
	for _, n := range o.Nodes {
		if n.Name == "big" && n.Fixed != 1 {
			t.Errorf("%d of one pod are fixed", n.Fixed)
		}
	}
}

func TestPoll(t *testing.T) {
	bad, over := errors.New("not yet"), errors.New("over")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	for name, tc := range map[string]struct {
		ctx     context.Context
		timeout time.Duration
		answers []error // the last is the answer from then on
		asked   int     // at least
		is      error
		says    string
	}{
		"at once":        {t.Context(), time.Minute, []error{nil}, 1, nil, ""},
		"in the end":     {t.Context(), time.Minute, []error{bad, bad, nil}, 3, nil, ""},
		"out of timeout": {t.Context(), time.Millisecond, []error{bad}, 2, bad, "waited 1ms for rain"},
		"never":          {t.Context(), time.Minute, []error{bad, Never(over)}, 2, over, "waiting for rain: over"},
		"terminated":     {ended, time.Minute, []error{bad}, 1, over, "waiting for rain: over; the last was: not yet"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			err := Poll(tc.ctx, tc.timeout, time.Millisecond, "rain", func() error {
				asked++
				return tc.answers[min(asked, len(tc.answers))-1]
			})
			if !errors.Is(err, tc.is) || asked < tc.asked || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("asked %d times: %v", asked, err)
			}
		})
	}
}

// A pod is bound once, however often it is heard of, and one that is recreated is another pod.
func TestBindings(t *testing.T) {
	waiting := onNode("waiting", "web", "", "1")
	waiting.UID = "1"
	client := fake.NewClientset(waiting)
	b, stop, err := WatchBindings(t.Context(), client, "ns")
	must(t, err)
	defer stop()
	if pods, bound := b.Bound(); pods != 1 || bound != 0 || !b.Last().IsZero() {
		t.Errorf("%d pods, %d of them bound, the last at %s", pods, bound, b.Last())
	}
	since := time.Now()
	for _, uid := range []types.UID{"2", "2", "3"} {
		pod := onNode("web", "web", "a", "1")
		pod.UID = uid
		b.saw(pod)
	}
	if pods, bound := b.Bound(); pods != 3 || bound != 2 {
		t.Errorf("%d pods, %d of them bound, want 3 and 2", pods, bound)
	}
	if gap := b.LongestGap(since); gap > b.Last().Sub(since) || gap <= 0 {
		t.Errorf("without a binding for %s, want at most the %s until the last", gap, b.Last().Sub(since))
	}
	if gap := b.LongestGap(b.Last()); gap != 0 {
		t.Errorf("without a binding for %s after the last", gap)
	}
}

func TestAnnouncedTwice(t *testing.T) {
	said := func(name, uid, reason string, times int32) *eventsv1.Event {
		e := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Reason: reason,
			Regarding: corev1.ObjectReference{Name: "pod-" + uid, UID: types.UID(uid)},
		}
		if times > 1 {
			e.Series = &eventsv1.EventSeries{Count: times}
		}
		return e
	}
	client := fake.NewClientset(
		said("once", "1", "Scheduled", 1), said("refused", "1", "FailedScheduling", 7),
		said("one", "2", "Scheduled", 1), said("another", "2", "Scheduled", 1),
		said("series", "3", "Scheduled", 2),
	)
	twice, err := AnnouncedTwice(t.Context(), client, "ns", 7, time.Second)
	if want := []string{"pod pod-2 (2) was announced as scheduled 2 times", "pod pod-3 (3) was announced as scheduled 2 times"}; err != nil || !slices.Equal(twice, want) {
		t.Errorf("%q, %v, want %q", twice, err, want)
	}
	// Of pods that nobody announces nobody knows.
	if _, err := AnnouncedTwice(t.Context(), client, "ns", 8, time.Millisecond); err == nil || !strings.Contains(err.Error(), "half of 8 pods in ns: 3 are announced") {
		t.Errorf("with three of eight announced: %v", err)
	}
}

// hack/test.sh starts the devcluster that suites share as each of them would by itself: on_one_cluster of hack/lib.sh has the nodes, the
// caller the rest.
func TestSharedDevcluster(t *testing.T) {
	const nodes = 3
	for file, want := range map[string]string{
		"lib.sh":  "bin/devcluster up " + strings.Join(common[:nodes], " ") + " $flags -- ",
		"test.sh": `on_one_cluster "` + strings.Join(common[nodes:], " ") + `" `,
	} {
		script, err := os.ReadFile("../../hack/" + file)
		if err != nil || !strings.Contains(string(script), want) {
			t.Errorf("hack/%s does not have %q: %v", file, want, err)
		}
	}
}

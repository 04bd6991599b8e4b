// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	configv1 "github.com/espalier-scheduler/espalier/apis/config/v1"
	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
)

// start runs a cache over real informers, and returns what ends it: all that it has started must have ended with it. The scheduler's
// informers start late, as those of the framework do.
func start(t *testing.T, client *fake.Clientset, r *rig, late func()) (*Cache, func()) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := New(t.Context(), options(), Sources{
		Client: client, Informers: factory, Clock: clock.RealClock{}, Recorder: r,
		Policy: func(*corev1.Pod) *clusterview.Policy { return r.policy },
		Policies: func(context.Context) {
			if r.asked != nil {
				r.policy = r.asked()
			}
		},
	})
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	if late != nil {
		late()
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	return c, func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Error("something runs on")
		}
		factory.Shutdown()
		goleak.VerifyNone(t, before)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// A scheduler learns of failures from all its sources, writes them down, and the next one knows of them when it places its first pod.
func TestRun(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	r := &rig{TB: t}
	refused := pod("refused", "n1").Phase(corev1.PodFailed).Obj()
	refused.Status.Reason, refused.Status.StartTime = "OutOfcpu", &metav1.Time{Time: now}
	client := fake.NewClientset(st.MakeNode().Name("n1").Obj(), st.MakeNode().Name("n2").Obj(), pod("hangs", "n2").Obj(), refused)
	c, end := start(t, client, r, nil)
	c.Activate(t.Context())
	_, err := client.CoreV1().Events("ns").Create(t.Context(), warning("hangs", "n2", "FailedCreatePodSandBox", now), metav1.CreateOptions{})
	must(t, err)
	failures := func(c *Cache, node string) int { return c.For(pod("p", "").Obj()).Record(web("1"), node).Unforgiven }
	eventually(t, "learning", func() bool { return failures(c, "n1") == 1 && failures(c, "n2") == 1 })
	eventually(t, "writing", func() bool {
		list, err := client.CoreV1().ConfigMaps("kube-system").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && strings.Contains(list.Items[0].Data[record.Key], "FailedCreatePodSandBox") &&
			strings.Contains(list.Items[0].Data[record.Key], "OutOfcpu")
	})
	end()

	for _, name := range []string{"refused", "hangs"} {
		must(t, client.CoreV1().Pods("ns").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	next, end := start(t, client, r, nil)
	defer end()
	next.Activate(t.Context())
	if a, b := failures(next, "n1"), failures(next, "n2"); a != 1 || b != 1 {
		t.Errorf("the next one knows of %d and %d failures", a, b)
	}
}

// The window of a policy holds for what ended before the policies were known.
func TestRegression_PodsBeforePolicies(t *testing.T) {
	refused := pod("refused", "n1").Phase(corev1.PodFailed).Obj()
	refused.Status.Reason, refused.Status.StartTime = "OutOfcpu", &metav1.Time{Time: time.Now().Add(-30 * time.Minute)}
	client := fake.NewClientset(st.MakeNode().Name("n1").Obj(), refused)
	r := &rig{TB: t, asked: func() *clusterview.Policy {
		return clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{Spec: placementv1alpha1.PlacementPolicySpec{
			Faults: &placementv1alpha1.Faults{WindowSeconds: new(int32(3600))},
		}})
	}}
	c, end := start(t, client, r, nil)
	defer end()
	c.Activate(t.Context())
	if got := c.For(pod("p", "").Obj()).Record(web("1"), "n1").Failures; got != 1 {
		t.Errorf("it knows of %d failures", got)
	}
}

// Warnings that there are before a scheduler starts are of pods that it has yet to read.
func TestRegression_WarningsBeforePods(t *testing.T) {
	client := fake.NewClientset(st.MakeNode().Name("n2").Obj(), pod("hangs", "n2").Obj(), warning("hangs", "n2", "FailedCreatePodSandBox", time.Now().Truncate(time.Second)))
	// It knows no field selectors, and would say that the pod has ended.
	client.PrependReactor("list", "pods", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		selector := a.(clientgotesting.ListAction).GetListRestrictions().Fields
		return selector != nil && !selector.Empty(), &corev1.PodList{}, nil
	})
	c, end := start(t, client, &rig{TB: t}, func() {
		eventually(t, "reading the pods that have ended", func() bool { return len(client.Actions()) > 0 })
		for _, a := range client.Actions() {
			if a.GetResource().Resource == "events" {
				t.Error("events are read before pods")
			}
		}
	})
	defer end()
	c.Activate(t.Context())
	if got := c.For(pod("p", "").Obj()).Record(web("1"), "n2").Unforgiven; got != 1 {
		t.Errorf("it knows of %d failures", got)
	}
}

// A scheduler that may not read events works, and asks no more than now and then.
func TestRunWithoutEvents(t *testing.T) {
	client := fake.NewClientset(st.MakeNode().Name("n1").Obj())
	forbidden := func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
	}
	client.PrependReactor("list", "events", forbidden)
	client.PrependWatchReactor("events", clientgotesting.DefaultWatchReactor(nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)))
	c, end := start(t, client, &rig{TB: t}, nil)
	defer end()
	select {
	case <-c.ready:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for events for ever")
	}
}

// faultPolicy is a policy of namespace ns for the pods of a tier, made so many seconds ago.
func faultPolicy(tier string, threshold int32, ago time.Duration) *clusterview.Policy {
	return clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "of-" + tier, CreationTimestamp: metav1.Time{Time: noon.Add(-ago)}},
		Spec: placementv1alpha1.PlacementPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}},
			Faults:      &placementv1alpha1.Faults{Threshold: &threshold},
		},
	})
}

// Two policies govern pods of one revision, and four of them failed on a node: by the older policy the node is faulty.
func twoPolicies(t *testing.T) (r *rig, older, younger *corev1.Pod) {
	t.Helper()
	r = newRig(t, without(options()))
	r.policies = []*clusterview.Policy{faultPolicy("a", 3, time.Hour), faultPolicy("b", 5, time.Minute)}
	older, younger = pod("a", "n2").Label("tier", "a").Obj(), pod("b", "n3").Label("tier", "b").Obj()
	for i := range 4 {
		r.see(r.rejected(pod(fmt.Sprintf("failed-%d", i), "n1").Label("tier", "b")))
	}
	r.see(younger)
	r.see(older)
	return r, older, younger
}

// faulty wants the rule of the revision to have a threshold, whichever pod is looked at.
func (r *rig) faulty(threshold int, looks ...*corev1.Pod) {
	r.Helper()
	for i, p := range looks {
		if got := r.For(p).Rule().Threshold; got != threshold {
			r.Errorf("look %d, at %s: its threshold is %d, want %d", i, p.Name, got, threshold)
		}
		if got := len(r.ledger.Marks()) == 1; got != (threshold <= 4) {
			r.Errorf("look %d, at %s: the node is faulty: %t", i, p.Name, got)
		}
	}
}

// What is faulty does not depend on which pod was looked at last, and to look at one has nothing judged again.
func TestTheOldestPolicyGovernsARevision(t *testing.T) {
	r, older, younger := twoPolicies(t)
	without := pod("c", "n4").Obj() // no policy governs it
	looks := []*corev1.Pod{younger, older, without, younger}
	r.faulty(3, looks...)
	history := r.ledger.History()
	for range 3 {
		for _, p := range looks {
			r.see(p)
			r.faulty(3, p)
		}
	}
	if got := r.ledger.History(); got != history {
		t.Errorf("to look at pods has changed the ledger %d times", got-history)
	}
}

// An edit takes effect at the next look at any of the pods.
func TestAPolicyOfARevisionIsEdited(t *testing.T) {
	for name, tc := range map[string]struct {
		edited    []*clusterview.Policy
		threshold int
	}{
		"another threshold":        {[]*clusterview.Policy{faultPolicy("a", 5, time.Hour), faultPolicy("b", 5, time.Minute)}, 5},
		"the older one is gone":    {[]*clusterview.Policy{faultPolicy("b", 6, time.Minute)}, 6},
		"the younger one is gone":  {[]*clusterview.Policy{faultPolicy("a", 2, time.Hour)}, 2},
		"none is left":             {nil, 5},
		"it is made anew, younger": {[]*clusterview.Policy{faultPolicy("b", 6, time.Minute), faultPolicy("a", 3, time.Second)}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			for first := range 2 {
				r, older, younger := twoPolicies(t)
				looks := []*corev1.Pod{older, younger, pod("asking", "").Label("tier", "b").Obj()}
				r.faulty(3, looks...)
				r.policies = tc.edited
				if first == 1 {
					slices.Reverse(looks)
				}
				r.faulty(tc.threshold, looks...)
			}
		})
	}
}

// A policy that is older than the one that governs takes over when one of its own pods is looked at, and then for all.
func TestAnOlderPolicyTakesOver(t *testing.T) {
	r, older, younger := twoPolicies(t)
	r.faulty(3, older, younger)
	r.policies = slices.Insert(r.policies, 0, faultPolicy("b", 7, 2*time.Hour))
	r.faulty(7, younger, older, younger)
}

// TestOperations wants docs/operations.md to name every Event and metric, and every argument with its default.
func TestOperations(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	_, section, found := strings.Cut(string(page), "\n## Nodes on which")
	if !found {
		t.Fatal("it has no section about faulty nodes")
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(section, -1) {
		if !strings.HasPrefix(m[1], "--") { // of the controller, which holds them itself
			got = append(got, m[1])
		}
	}
	want := []string{ReasonFaulty, ReasonFaultyCleared, ReasonSuspect, ReasonSuspectCleared, ReasonRecordUnreadable}
	for _, metric := range []interface{ FQName() string }{faultyNodes, marksTotal, failuresTotal, suspectNodes, recordWritesTotal, sourceErrorsTotal} {
		want = append(want, metric.FQName())
	}
	defaults := arguments(t)
	for name, value := range defaults {
		want = append(want, name)
		// Durations are written shorter than Go prints them.
		row := "(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\| [^|]+ \\| `" + regexp.QuoteMeta(strings.TrimSuffix(value, "m0s")) + "m?` \\|"
		if !regexp.MustCompile(row).MatchString(section) {
			t.Errorf("%s is %s by default, and its row says something else", name, value)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("it has rows of\n%q, want\n%q", got, want)
	}
	for _, text := range []string{clusterview.FailuresForgivenAnnotation + "=", "delete configmap espalier-scheduler" + record.Suffix, clusterview.SuspectTaint} {
		if !strings.Contains(section, text) {
			t.Errorf("it does not say %q", text)
		}
	}
}

// arguments are those of the plugin with their defaults, by their paths.
func arguments(t *testing.T) map[string]string {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, configv1.AddToScheme(scheme))
	args := &configv1.FaultyNodeArgs{}
	scheme.Default(args)
	text, err := yaml.Marshal(args)
	must(t, err)
	var tree map[string]any
	must(t, yaml.Unmarshal(text, &tree))
	all := make(map[string]string)
	var walk func(path string, value any)
	walk = func(path string, value any) {
		if below, ok := value.(map[string]any); ok {
			for key, value := range below {
				walk(strings.TrimPrefix(path+"."+key, "."), value)
			}
			return
		}
		all[path] = fmt.Sprint(value)
	}
	walk("", tree)
	return all
}

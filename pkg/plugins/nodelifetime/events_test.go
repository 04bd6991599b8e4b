// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodelifetime"
)

func TestHintAfterPodUpdate(t *testing.T) {
	hints := plugintest.NewHints(t, newPlugin(t, at(noon)))
	hints.AfterPodUpdate("mended", leased("3d"), leased("72h").Label("a", "b"), fwk.Queue)
	hints.AfterPodUpdate("shorter", leased("72h"), leased("71h").Label("a", "b"), fwk.Queue)
	hints.AfterPodUpdate("taken away", leased("72h"), leased("").Label("a", "b"), fwk.Queue)
	hints.AfterPodUpdate("longer", leased("72h"), leased("73h").Label("a", "b"), fwk.QueueSkip)
	hints.AfterPodUpdate("the same in others", leased("72h"), leased("4320m").Label("a", "b"), fwk.QueueSkip)
	hints.AfterPodUpdate("changed and still bad", leased("3d"), leased("4d").Label("a", "b"), fwk.QueueSkip)
	hints.AfterPodUpdate("something else", leased("72h"), leased("72h").Label("a", "b"), fwk.QueueSkip)
}

func TestHintAfterNodeChange(t *testing.T) {
	const lease = "72h"
	short, long, longer := ending("n", in(time.Hour)), ending("n", in(73*time.Hour)), ending("n", in(74*time.Hour))
	odd, ever := ending("n", "tomorrow"), ending("n", "")
	hints := plugintest.NewHints(t, newPlugin(t, at(noon)))
	hints.AfterNodeChange("a node comes that lives long enough", leased(lease), fwk.UpdateNodeAnnotation, nil, long, fwk.Queue)
	hints.AfterNodeChange("one that does not", leased(lease), fwk.UpdateNodeAnnotation, nil, short, fwk.QueueSkip)
	hints.AfterNodeChange("one whose end cannot be read", leased(lease), fwk.UpdateNodeAnnotation, nil, odd, fwk.QueueSkip)
	hints.AfterNodeChange("one without an end", leased(lease), fwk.UpdateNodeAnnotation, nil, ever, fwk.Queue)
	hints.AfterNodeChange("a node is given a later end", leased(lease), fwk.UpdateNodeAnnotation, short, long, fwk.Queue)
	hints.AfterNodeChange("its end is taken away", leased(lease), fwk.UpdateNodeAnnotation, short, ever, fwk.Queue)
	hints.AfterNodeChange("its end is mended", leased(lease), fwk.UpdateNodeAnnotation, odd, long, fwk.Queue)
	hints.AfterNodeChange("it lived long enough before", leased(lease), fwk.UpdateNodeAnnotation, long, longer, fwk.QueueSkip)
	hints.AfterNodeChange("it is given an end", leased(lease), fwk.UpdateNodeAnnotation, ever, long, fwk.QueueSkip)
	hints.AfterNodeChange("an earlier one", leased(lease), fwk.UpdateNodeAnnotation, long, short, fwk.QueueSkip)
	hints.AfterNodeChange("no node mends a lease", leased("3d"), fwk.UpdateNodeAnnotation, nil, ever, fwk.QueueSkip)
}

// of is a pod of a Job.
func of(job string) *st.PodWrapper {
	p := st.MakePod().Namespace("ns").Name("of-" + job).UID("of-" + job)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: "u", Controller: new(true)}}
	return p
}

func jobFor(name string, seconds int64) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u"}, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: &seconds}}
}

// A pod without a lease has the deadline of its own, or else that of its Job. One whose Job is not known yet waits for it.
func TestDeadlines(t *testing.T) {
	const hour = 60 * 60
	cluster := plugintest.NewCluster(jobFor("long", 3*hour), jobFor("endless", 1<<62),
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "none"}}, of("late").Obj(), of("long").Obj())
	pl := plugintest.New[*nodelifetime.NodeLifetime](t, nodelifetime.By(at(noon).Now),
		&config.NodeLifetimeArgs{Leases: config.LeasesAnnotationsAndDeadlines}, cluster)
	cluster.Start(t)
	node := ending("n", in(2*time.Hour))
	own := of("long").Obj()
	own.Spec.ActiveDeadlineSeconds = new(int64(hour))
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want fwk.Code
	}{
		"that of the Job":           {of("long").Obj(), fwk.UnschedulableAndUnresolvable},
		"its own":                   {own, fwk.Success},
		"an annotation before both": {of("long").Annotation("espalier.dev/lease", "1h").Obj(), fwk.Success},
		"none that it says":         {of("long").Annotation("espalier.dev/lease", "0s").Obj(), fwk.Skip},
		"one that has no end":       {of("endless").Obj(), fwk.UnschedulableAndUnresolvable},
		"a Job without":             {of("none").Obj(), fwk.Skip},
		"a Job that is not known":   {of("late").Obj(), fwk.UnschedulableAndUnresolvable},
		"a pod of something else":   {st.MakePod().Namespace("ns").Name("p").Obj(), fwk.Skip},
	} {
		if status := plugintest.Filter(t, pl, tc.pod, node); status.Code() != tc.want {
			t.Errorf("%s: %v", name, status)
		}
	}
	plugintest.WantRefusal(t, plugintest.Filter(t, pl, of("late").Obj(), node),
		`the pod's Job "late" is not known yet, and with it for how long the pod may run`)

	cluster.WantWokenBy(t, of("late").Obj(), func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.BatchV1().Jobs("ns").Create(ctx, jobFor("late", hour), metav1.CreateOptions{})
		return err
	})
	if status := plugintest.Filter(t, pl, of("late").Obj(), node); !status.IsSuccess() {
		t.Errorf("its Job is known, and it is refused: %v", status)
	}
	cluster.WantWokenBy(t, of("long").Obj(), func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.BatchV1().Jobs("ns").Update(ctx, jobFor("long", hour), metav1.UpdateOptions{})
		return err
	})
	if status := plugintest.Filter(t, pl, of("long").Obj(), node); !status.IsSuccess() {
		t.Errorf("its Job has another deadline, and it is refused: %v", status)
	}
}

// A pod's own deadline may be set or lowered while it waits, and it is tried again for that.
func TestHintAfterDeadline(t *testing.T) {
	deadline := func(seconds int64) *corev1.Pod {
		p := st.MakePod().Namespace("ns").Name("p").UID("p").Obj()
		p.Spec.ActiveDeadlineSeconds = &seconds
		return p
	}
	long, short := deadline(3600), deadline(60)
	for leases, want := range map[config.Leases]fwk.QueueingHint{config.LeasesAnnotationsAndDeadlines: fwk.Queue, config.LeasesAnnotations: fwk.QueueSkip} {
		pl := plugintest.New[*nodelifetime.NodeLifetime](t, nodelifetime.New, &config.NodeLifetimeArgs{Leases: leases}, plugintest.NewCluster())
		plugintest.WantHint(t, pl, long, plugintest.PodUpdate(long, short), want)
		plugintest.WantHint(t, pl, short, plugintest.PodUpdate(short, short), fwk.QueueSkip)
	}
}

// An end that cannot be read is said on its node, and once.
func TestUnreadableEnds(t *testing.T) {
	cluster := plugintest.NewCluster(ending("good", in(time.Hour)), ending("ever", ""), ending("odd", "tomorrow"))
	plugintest.New[*nodelifetime.NodeLifetime](t, nodelifetime.New, &config.NodeLifetimeArgs{Leases: config.LeasesAnnotations}, cluster)
	cluster.Start(t)
	const want = `Warning NodeEndUnreadable annotation espalier.dev/valid-until: no time "tomorrow": write it as 2026-01-31T12:00:00Z. ` +
		"No pod with a lease is placed on the node until it is mended."
	if got := <-cluster.Events.Events; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	labelled := ending("odd", "tomorrow")
	labelled.Labels = map[string]string{"a": "b"}
	worse := ending("good", strings.Repeat("x", 5000))
	for _, n := range []*corev1.Node{labelled, worse} {
		if _, err := cluster.Client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-cluster.Events.Events; !strings.Contains(got, "no time \"xxx") || len(got) > 500 || len(cluster.Events.Events) > 0 {
		t.Errorf("got %s, and %d more", got, len(cluster.Events.Events))
	}
}

// noon is when the tests begin.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// at is a time of a clock that a test sets.
func at(now time.Time) *clocktesting.FakePassiveClock { return clocktesting.NewFakePassiveClock(now) }

// newPlugin has leases of annotations, by a clock.
func newPlugin(t testing.TB, clock *clocktesting.FakePassiveClock) *nodelifetime.NodeLifetime {
	t.Helper()
	return plugintest.New[*nodelifetime.NodeLifetime](t, nodelifetime.By(clock.Now), &config.NodeLifetimeArgs{Leases: config.LeasesAnnotations}, plugintest.NewCluster())
}

// leased is a pod with a lease; "" is none.
func leased(lease string) *st.PodWrapper {
	return plugintest.Asking(clusterview.LeaseAnnotation, lease)
}

// ending is a node with an end; "" is none.
func ending(name, end string) *corev1.Node {
	n := st.MakeNode().Name(name)
	if end != "" {
		n.Annotation(clusterview.ValidUntilAnnotation, end)
	}
	return n.Obj()
}

// in is a time of RFC 3339, so long after noon.
func in(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }

func TestNew(t *testing.T) {
	want := plugintest.WantArguments(t, nodelifetime.Name, nodelifetime.New, plugintest.NewCluster())
	want("nothing is a lease", &config.NodeLifetimeArgs{Leases: config.LeasesDisabled})
	want("annotations", &config.NodeLifetimeArgs{Leases: config.LeasesAnnotations})
	want("deadlines as well", &config.NodeLifetimeArgs{Leases: config.LeasesAnnotationsAndDeadlines})
	want("bad args", &config.NodeLifetimeArgs{Leases: "All"}, "leases", `"All"`, `"Annotations"`)
}

// Where nothing is a lease no pod is filtered, and nothing is watched.
func TestDisabledExtendsNothing(t *testing.T) {
	pl, err := nodelifetime.New(t.Context(), &config.NodeLifetimeArgs{Leases: config.LeasesDisabled}, nil) // which nobody asks for anything
	if err != nil {
		t.Fatal(err)
	}
	switch pl.(type) {
	case fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.ReservePlugin:
		t.Errorf("it has a PreFilter, a Filter or a Reserve: %T", pl)
	}
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t, at(noon))
	sign := func(lease string) any { return plugintest.Sign(t, pl, leased(lease)) }
	if sign("72h") == sign("73h") || sign("72h") == sign("") {
		t.Error("pods with other leases are signed alike")
	}
	if sign("72h") != sign(" 4320m ") || sign("0s") != sign("") {
		t.Error("the same lease in other words is signed otherwise")
	}
	plugintest.WantUnsigned(t, pl, leased("3d")) // it cannot be read
}

// Vector TV18 on annotations: a server is valid until 200, and leases are of 50.
func TestVector_TV18_Filter(t *testing.T) {
	clock := at(time.Unix(0, 0))
	pl, server := newPlugin(t, clock), ending("server", time.Unix(200, 0).UTC().Format(time.RFC3339))
	for now, fits := range map[int64]bool{100: true, 149: true, 150: false, 190: false, 250: false} {
		clock.SetTime(time.Unix(now, 0))
		if status := plugintest.Filter(t, pl, leased("50s").Obj(), server); status.IsSuccess() != fits {
			t.Errorf("at %d: %v", now, status)
		}
	}
}

func TestFilter(t *testing.T) {
	nodes := []*corev1.Node{
		ending("day", in(24*time.Hour)), ending("hour", in(time.Hour)), ending("over", in(-time.Hour)), ending("ever", ""), ending("odd", "tomorrow"),
	}
	for name, tc := range map[string]struct{ lease, want string }{
		"a lease of an hour":       {"59m59s", "day hour ever"},
		"of an hour to the second": {"1h", "day ever"},
		"longer than a day":        {"72h", "ever"},
		"as long as there is":      {"2562047h", "ever"},
		"with nanoseconds":         {"1ns", "day hour ever"},
	} {
		t.Run(name, func(t *testing.T) {
			var fit []string
			status, each := plugintest.FilterEach(t, newPlugin(t, at(noon)), leased(tc.lease).Obj(), nodes...)
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			for i, status := range each {
				want := nodelifetime.ErrReasonEnds
				if nodes[i].Name == "odd" {
					want = nodelifetime.ErrReasonMalformed
				}
				switch {
				case status.IsSuccess():
					fit = append(fit, nodes[i].Name)
				case status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != want:
					t.Errorf("%s: %v", nodes[i].Name, status)
				}
			}
			if got := strings.Join(fit, " "); got != tc.want {
				t.Errorf("fits %q, want %q", got, tc.want)
			}
		})
	}
}

// Pods of others are none of its concern, whatever stands on nodes.
func TestPodsWithoutALease(t *testing.T) {
	resized := leased("72h").Node("hour").Obj()
	for name, pod := range map[string]*corev1.Pod{"without": leased("").Obj(), "with none": leased("0s").Obj(), "to be resized": resized} {
		if status := plugintest.Filter(t, newPlugin(t, at(noon)), pod, ending("odd", "tomorrow")); status.Code() != fwk.Skip {
			t.Errorf("%s: %v", name, status)
		}
	}
}

// The whole of what a user reads.
func TestMalformed(t *testing.T) {
	pl := newPlugin(t, at(noon))
	for lease, want := range map[string]string{
		"3d":  `annotation espalier.dev/lease: no duration "3d": use hours, minutes or seconds, such as 72h or 90m, and 0s for none`,
		"-1h": `annotation espalier.dev/lease: negative duration "-1h": use hours, minutes or seconds, such as 72h or 90m, and 0s for none`,
	} {
		plugintest.WantRefusal(t, plugintest.Filter(t, pl, leased(lease).Obj(), nil), want)
	}
	plugintest.WantNoExtensions(t, pl)
}

func TestMessage(t *testing.T) {
	got := plugintest.Message(t, newPlugin(t, at(noon)), leased("72h").Obj(),
		ending("n1", in(time.Hour)), ending("n2", in(-time.Hour)), ending("n3", "tomorrow"))
	const want = "0/3 nodes are available: 1 node(s) had a malformed annotation espalier.dev/valid-until, 2 node(s) ended before the pod's lease would."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t, at(noon)), leased("1h").Obj())
}

// A decision knows one moment: the lease that a pod is bound with begins when its nodes are looked at, however long that takes.
func TestReserve(t *testing.T) {
	clock := at(noon.Add(500 * time.Millisecond))
	pl, cycle := newPlugin(t, clock), framework.NewCycleState()
	if _, status := pl.PreFilter(t.Context(), cycle, leased("72h").Obj(), nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	clock.SetTime(noon.Add(time.Hour))
	if status := pl.Reserve(t.Context(), cycle, leased("72h").Obj(), "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if got := clusterview.ReadBinding(cycle)[clusterview.LeaseExpiryAnnotation]; got != in(72*time.Hour) {
		t.Errorf("the lease ends %s, want %s", got, in(72*time.Hour))
	}
	without := framework.NewCycleState()
	if status := pl.Reserve(t.Context(), without, leased("").Obj(), "n"); !status.IsSuccess() || clusterview.ReadBinding(without) != nil {
		t.Errorf("a pod without a lease is bound with %v, %v", clusterview.ReadBinding(without), status)
	}
}

// What is remembered of one lease is remembered until the clock is put back.
func TestAClockThatIsPutBack(t *testing.T) {
	clock := at(noon)
	pl := newPlugin(t, clock)
	lease := func(text string) clusterview.Needs {
		t.Helper()
		cycle := framework.NewCycleState()
		if _, status := pl.PreFilter(t.Context(), cycle, leased(text).Obj(), nil); !status.IsSuccess() {
			t.Fatal(status)
		}
		return clusterview.AddedNeeds(cycle)
	}
	first := lease("72h")
	clock.SetTime(noon.Add(time.Hour))
	if later := lease("72h"); later != first || first == lease("73h") {
		t.Errorf("the leases are %q and %q an hour later", first, later)
	}
	clock.SetTime(noon)
	if back := lease("72h"); back == first {
		t.Error("what was refused by a clock that was fast is believed")
	} else if again := lease("72h"); again != back {
		t.Errorf("the lease is %q, and then %q", back, again)
	}
}

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

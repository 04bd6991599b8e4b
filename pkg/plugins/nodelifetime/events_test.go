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
	"k8s.io/apimachinery/pkg/runtime"
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
	for name, tc := range map[string]struct {
		before, after string
		want          fwk.QueueingHint
	}{
		"mended":                {"3d", "72h", fwk.Queue},
		"shorter":               {"72h", "71h", fwk.Queue},
		"taken away":            {"72h", "", fwk.Queue},
		"longer":                {"72h", "73h", fwk.QueueSkip},
		"the same in others":    {"72h", "4320m", fwk.QueueSkip},
		"changed and still bad": {"3d", "4d", fwk.QueueSkip},
		"something else":        {"72h", "72h", fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			change := plugintest.PodUpdate(leased(tc.before).Obj(), leased(tc.after).Label("a", "b").Obj())
			plugintest.WantHint(t, newPlugin(t, at(noon)), leased(tc.before).Obj(), change, tc.want)
		})
	}
}

func TestHintAfterNodeChange(t *testing.T) {
	const lease = "72h"
	short, long, longer := ending("n", in(time.Hour)), ending("n", in(73*time.Hour)), ending("n", in(74*time.Hour))
	odd, ever := ending("n", "tomorrow"), ending("n", "")
	for name, tc := range map[string]struct {
		lease         string
		before, after *corev1.Node
		want          fwk.QueueingHint
	}{
		"a node comes that lives long enough": {lease, nil, long, fwk.Queue},
		"one that does not":                   {lease, nil, short, fwk.QueueSkip},
		"one whose end cannot be read":        {lease, nil, odd, fwk.QueueSkip},
		"one without an end":                  {lease, nil, ever, fwk.Queue},
		"a node is given a later end":         {lease, short, long, fwk.Queue},
		"its end is taken away":               {lease, short, ever, fwk.Queue},
		"its end is mended":                   {lease, odd, long, fwk.Queue},
		"it lived long enough before":         {lease, long, longer, fwk.QueueSkip},
		"it is given an end":                  {lease, ever, long, fwk.QueueSkip},
		"an earlier one":                      {lease, long, short, fwk.QueueSkip},
		"no node mends a lease":               {"3d", nil, ever, fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			change := plugintest.NodeChange(fwk.UpdateNodeAnnotation, tc.before, tc.after)
			plugintest.WantHint(t, newPlugin(t, at(noon)), leased(tc.lease).Obj(), change, tc.want)
		})
	}
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
	p := st.MakePod().Namespace("ns").Name("p").UID("p")
	if lease != "" {
		p.Annotation(clusterview.LeaseAnnotation, lease)
	}
	return p
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
	for name, tc := range map[string]struct {
		args runtime.Object
		want []string // the error holds them all; none: there is no error
	}{
		"nothing is a lease":     {&config.NodeLifetimeArgs{Leases: config.LeasesDisabled}, nil},
		"annotations":            {&config.NodeLifetimeArgs{Leases: config.LeasesAnnotations}, nil},
		"deadlines as well":      {&config.NodeLifetimeArgs{Leases: config.LeasesAnnotationsAndDeadlines}, nil},
		"args of another plugin": {&config.HostPortsArgs{}, []string{nodelifetime.Name, "*config.NodeLifetimeArgs", "*config.HostPortsArgs"}},
		"no args":                {nil, []string{nodelifetime.Name, "*config.NodeLifetimeArgs", "<nil>"}},
		"bad args":               {&config.NodeLifetimeArgs{Leases: "All"}, []string{nodelifetime.Name, "leases", `"All"`, `"Annotations"`}},
	} {
		t.Run(name, func(t *testing.T) {
			pl, err := nodelifetime.New(t.Context(), tc.args, plugintest.NewCluster())
			plugintest.WantNew(t, nodelifetime.Name, pl, err, tc.want...)
		})
	}
}

// Where nothing is a lease no pod is filtered, and nothing is watched.
func TestDisabledExtendsNothing(t *testing.T) {
	pl, err := nodelifetime.New(t.Context(), &config.NodeLifetimeArgs{Leases: config.LeasesDisabled}, nil) // which nobody asks for anything
	if err != nil {
		t.Fatal(err)
	}
	if _, is := pl.(fwk.PreFilterPlugin); is {
		t.Error("it has a PreFilter")
	}
	if _, is := pl.(fwk.FilterPlugin); is {
		t.Error("it has a Filter")
	}
	if _, is := pl.(fwk.ReservePlugin); is {
		t.Error("it has a Reserve")
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

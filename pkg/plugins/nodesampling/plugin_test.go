// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesampling

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func node(name, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
}

var args = config.NodeSamplingArgs{TopologyKey: "zone", GroupsBasisPoints: 10000, NodesBasisPoints: 5000, Strategy: config.SamplingRoundRobin, TimeoutMilliseconds: 100}

// started is a plugin over a cluster of two zones with four nodes each.
func started(t *testing.T, args config.NodeSamplingArgs) (*NodeSampling, *fake.Clientset) {
	t.Helper()
	var nodes []runtime.Object
	for i := range 8 {
		nodes = append(nodes, node(fmt.Sprint("n", i), fmt.Sprint("z", i%2)))
	}
	c := plugintest.NewCluster(nodes...)
	pl := plugintest.New[*NodeSampling](t, New, &args, c)
	c.Start(t)
	return pl, c.Client
}

func everywhere(string) bool { return true }

// A sample has nodes of each zone that fit, and goes on where the last one ended.
func TestSample(t *testing.T) {
	pl, client := started(t, args)
	for _, want := range [][]string{{"n0", "n2", "n1", "n3"}, {"n4", "n6", "n5", "n7"}} {
		if got := pl.Sample(everywhere); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if got := pl.Sample(func(node string) bool { return node == "n6" }); !slices.Equal(got, []string{"n6"}) {
		t.Errorf("of the one node that fits: %v", got)
	}
	// Nodes that go are not drawn any more, and zones that come are.
	for _, name := range []string{"n0", "n2", "n4", "n6"} {
		if err := client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.CoreV1().Nodes().Update(t.Context(), node("n1", "new"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for got := pl.Sample(everywhere); len(got) != 2 || !slices.Contains(got, "n1"); got = pl.Sample(everywhere) {
		if time.Now().After(deadline) {
			t.Fatalf("the sample is %v, want n1 and one of its former zone", got)
		}
		time.Sleep(time.Millisecond)
	}
}

// When time is up, what was found is the sample.
func TestSampleInTime(t *testing.T) {
	pl, _ := started(t, args)
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	pl.clock = now
	asked := 0
	got := pl.Sample(func(node string) bool {
		asked++
		now.Step(60 * time.Millisecond)
		return node == "n0"
	})
	// The first draw of the first zone takes too long, and nothing is drawn after it.
	if !slices.Equal(got, []string{"n0"}) || asked != 2 {
		t.Errorf("the sample is %v, after %d nodes were asked about", got, asked)
	}
}

func TestArgs(t *testing.T) {
	wrong := args
	wrong.Strategy = "Best"
	plugintest.WantArguments(t, Name, New, nil)("wrong args", &wrong, "strategy")
}

func TestLetsEveryPodIn(t *testing.T) {
	pl, _ := started(t, args)
	events, err := pl.EventsToRegister(t.Context())
	if status := pl.PreEnqueue(t.Context(), &corev1.Pod{}); !status.IsSuccess() || len(events) > 0 || err != nil || pl.Name() != Name {
		t.Errorf("%v, %v, %v", status, events, err)
	}
}

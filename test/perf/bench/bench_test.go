// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/test/perf/judge"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

const before = `# TYPE scheduler_scheduling_algorithm_duration_seconds histogram
scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.001"} 0
scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.002"} 0
scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.004"} 0
scheduler_scheduling_algorithm_duration_seconds_bucket{le="+Inf"} 1
scheduler_scheduling_algorithm_duration_seconds_sum 0.5
scheduler_scheduling_algorithm_duration_seconds_count 1
`

const after = `# TYPE scheduler_scheduling_algorithm_duration_seconds histogram
scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.001"} 0
scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.002"} 2
scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.004"} 4
scheduler_scheduling_algorithm_duration_seconds_bucket{le="+Inf"} 5
scheduler_scheduling_algorithm_duration_seconds_sum 0.510
scheduler_scheduling_algorithm_duration_seconds_count 5
`

// The pod that warmed the scheduler up, the slowest of all, does not count.
func TestAlgorithmBetweenReadings(t *testing.T) {
	text := before
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	defer server.Close()
	read := func() (*dto.Histogram, error) {
		families, err := scrape(t.Context(), server.URL)
		must(t, err)
		return algorithmIn(families, judge.Ours)
	}
	first, err := read()
	must(t, err)
	text = after
	second, err := read()
	must(t, err)
	got := algorithmBetween(first, second)
	if got.Count != 4 || math.Abs(got.Mean-2.5) > 1e-9 || math.Abs(got.P50-2) > 1e-9 || got.P99 <= 3.9 || got.P99 > 4 {
		t.Errorf("got %+v, want four pods, a mean of 2.5 ms, half of them in 2 ms and all in 4", got)
	}
	if got := algorithmBetween(second, second); got != (judge.Algorithm{}) {
		t.Errorf("no pods come to %+v", got)
	}
	text = "# nothing\n"
	if _, err := read(); err == nil || !strings.Contains(err.Error(), algorithmMetric) {
		t.Errorf("without the metric: %v", err)
	}
}

func TestMisplacedByGroup(t *testing.T) {
	row := func(name string) load.Workload {
		rows, err := load.Choose(load.Workloads(24), []string{name})
		must(t, err)
		return rows[0]
	}
	pod := func(group int, node *corev1.Node) corev1.Pod {
		p := corev1.Pod{}
		p.Labels = map[string]string{load.AppLabel: load.GroupName(group)}
		p.Spec.NodeName = node.Name
		return p
	}
	w := row("Spread4")
	nodes := w.MakeNodes()
	// Nodes 0 and 2 are of one region and two zones, node 1 of the other region.
	got, err := misplaced(w, nodes, []corev1.Pod{pod(0, nodes[0]), pod(0, nodes[1]), pod(1, nodes[0]), pod(1, nodes[2])})
	want := []judge.Misplaced{{Level: corev1.LabelTopologyRegion, Pods: 1}, {Level: corev1.LabelTopologyZone}, {Level: load.RackLabel}, {Level: judge.NodeLevel}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	w = row("Unschedulable")
	if _, err := misplaced(w, nodes, []corev1.Pod{pod(1, nodes[0])}); err == nil || !strings.Contains(err.Error(), load.GroupName(1)) {
		t.Errorf("a pod that fits nowhere is on a node: %v", err)
	}
	// Outside of the pool that is admitted nothing is even.
	w = row("Selective")
	last := nodes[len(nodes)-1]
	got, err = misplaced(w, nodes, []corev1.Pod{pod(0, last)})
	if err != nil || (judge.Run{Misplaced: got}).MisplacedPods() != 1 {
		t.Errorf("a pod on a node of another pool: %v, %v", got, err)
	}
}

// A node that is full, or takes one pod of a group only, is no place for another.
func TestMisplacedByRoom(t *testing.T) {
	// The nodes have 4, 8, 64 and again 4 CPUs, six of each, and a pod of group 2 requests 3.
	filled := func(of4, of8, of64, more int) (on []int) {
		for i, count := range []int{of4, of8, of64, of4} {
			for node := range 6 {
				on = append(on, slices.Repeat([]int{6*i + node}, count)...)
			}
		}
		return append(on, slices.Repeat([]int{0}, more)...)
	}
	for name, tc := range map[string]struct {
		workload load.Workload
		// on are the numbers of the nodes that the pods are on.
		on   []int
		want int
	}{
		"one on each host, and another":               {load.Workload{}, filled(1, 1, 1, 1), 0},
		"another on a host that takes one":            {load.Workload{Apart: true}, filled(1, 1, 1, 1), 1},
		"another on a host with a limit":              {load.Workload{Limited: true}, filled(1, 1, 1, 1), 1},
		"more on the large, which have room":          {load.Workload{Mixed: true}, filled(1, 2, 3, 0), 0},
		"more on the large, where all have room":      {load.Workload{}, filled(1, 2, 3, 0), 6},
		"more on the large, while others have room":   {load.Workload{Mixed: true}, filled(1, 1, 3, 0), 6},
		"much more on the large, and nowhere is room": {load.Workload{Mixed: true}, filled(1, 2, 20, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			const group = 2
			w := tc.workload
			w.Nodes, w.Groups, w.PerGroup = 24, group+1, 1
			nodes := w.MakeNodes()
			var pods []corev1.Pod
			for _, node := range tc.on {
				pod := w.MakePod(group, "", load.ReplicaSet(group))
				pod.Spec.NodeName = nodes[node].Name
				pods = append(pods, *pod)
			}
			got, err := misplaced(w, nodes, pods)
			if err != nil || (judge.Run{Misplaced: got}).MisplacedPods() != tc.want {
				t.Errorf("got %v, %v, want %d misplaced", got, err, tc.want)
			}
		})
	}
}

// Of pods that are not there none is misplaced.
func TestAllPodsAreJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		workload load.Workload
		missing  int
		fails    bool
	}{
		"all":                     {load.Workload{Groups: 2, PerGroup: 3}, 0, false},
		"one less":                {load.Workload{Groups: 2, PerGroup: 3}, 1, true},
		"none":                    {load.Workload{Groups: 2, PerGroup: 3}, 6, true},
		"those that fit":          {load.Workload{Groups: 2, PerGroup: 3, Misfits: true}, 3, false},
		"fewer than those":        {load.Workload{Groups: 2, PerGroup: 3, Misfits: true}, 4, true},
		"what is left of a churn": {load.Workload{Groups: 2, PerGroup: 3, Churn: true}, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			pods := make([]corev1.Pod, tc.workload.Pods())
			for i := range pods[tc.missing:] {
				pods[i].Spec.NodeName = "node"
			}
			if err := complete(tc.workload, pods); (err != nil) != tc.fails {
				t.Errorf("the error is %v, want one: %t", err, tc.fails)
			}
		})
	}
}

// Each of these rows is the shipped configuration, but for one word.
func TestRowsSwitchOneThing(t *testing.T) {
	for want, workload := range map[string]load.Workload{
		"decisionRecord: Disabled": {Unrecorded: true},
		"scaleDown: Any":           {ScaleDownAny: true},
		"scheduledEvents: false":   {Unannounced: true}, // as YAML reads Off
	} {
		dir := t.TempDir()
		if _, err := (Candidate{Name: judge.Ours}).args("/the/kubeconfig", dir, "1234", workload); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(dir + "/ours.yaml")
		must(t, err)
		others := 0
		for _, other := range []string{"decisionRecord: Enabled", "scaleDown: Even", "scheduledEvents: All"} {
			others += strings.Count(string(content), other)
		}
		if !strings.Contains(string(content), want) || others != 2 {
			t.Errorf("for %s, ours is configured by\n%s", want, content)
		}
	}
}

func TestCandidatesDifferInTheirProfilesOnly(t *testing.T) {
	candidates := []Candidate{{Name: judge.Ours, tenants: true}}
	for _, name := range judge.Schedulers {
		candidates = append(candidates, Candidate{Name: name})
	}
	for _, c := range candidates {
		name := c.Name
		dir := t.TempDir()
		args, err := c.args("/the/kubeconfig", dir, "1234", load.Workload{})
		must(t, err)
		if !slices.Contains(args, "--secure-port=1234") {
			t.Errorf("%s is started with %v", name, args)
		}
		if name == judge.Ours && !c.tenants {
			if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--config") }) {
				t.Errorf("ours does not run the shipped profile: %v", args)
			}
			continue
		}
		content, err := os.ReadFile(dir + "/" + name + ".yaml")
		must(t, err)
		var config struct {
			ClientConnection struct {
				Kubeconfig string
				QPS, Burst int
			}
			LeaderElection struct{ ResourceName string }
			Profiles       []struct{ SchedulerName string }
		}
		must(t, yaml.Unmarshal(content, &config))
		if config.ClientConnection.QPS != QPS || config.ClientConnection.Kubeconfig != "/the/kubeconfig" || config.Profiles[0].SchedulerName != c.profile() ||
			config.LeaderElection.ResourceName != leaseName || strings.Contains(string(content), "AllocationOrder") != c.tenants {
			t.Errorf("%s is configured by\n%s", name, content)
		}
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

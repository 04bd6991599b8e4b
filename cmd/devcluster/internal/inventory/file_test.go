// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// must ends the test if there is an error.
var must = placementtest.Must

const listFromACluster = `
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: alpha
    uid: 0a1b
    resourceVersion: "77"
    creationTimestamp: "2026-01-01T00:00:00Z"
    labels: {topology.kubernetes.io/zone: z1, example.com/rack: r1}
    annotations: {node.alpha.kubernetes.io/ttl: "0", example.com/keep: "yes"}
  spec:
    podCIDR: 10.1.0.0/24
    unschedulable: true
    taints:
    - {key: node.kubernetes.io/not-ready, effect: NoExecute}
    - {key: example.com/gpu, value: "1", effect: NoSchedule}
  status:
    capacity: {cpu: "8", memory: 16Gi, pods: "20", example.com/gpu: "2"}
    allocatable: {cpu: 7500m, memory: 15Gi, pods: "20", example.com/gpu: "2"}
    conditions:
    - {type: Ready, status: "False"}
    nodeInfo: {architecture: arm64, operatingSystem: linux, machineID: abc}
`

func TestReadAdoptsANodeOfAnotherCluster(t *testing.T) {
	nodes, err := Read(strings.NewReader(listFromACluster))
	must(t, err)
	if len(nodes) != 1 {
		t.Fatalf("%d nodes", len(nodes))
	}
	node := nodes[0]
	if node.Name != "alpha" || node.UID != "" || node.ResourceVersion != "" || !node.CreationTimestamp.IsZero() {
		t.Errorf("identity was not dropped: %+v", node.ObjectMeta)
	}
	if node.Labels["example.com/rack"] != "r1" || node.Labels[corev1.LabelHostname] != "alpha" {
		t.Errorf("labels %v", node.Labels)
	}
	if len(node.Annotations) != 1 || node.Annotations["example.com/keep"] != "yes" {
		t.Errorf("annotations %v", node.Annotations)
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "example.com/gpu" || !node.Spec.Unschedulable || node.Spec.PodCIDR != "" {
		t.Errorf("spec %+v", node.Spec)
	}
	if got := node.Status.Allocatable.Cpu().MilliValue(); got != 7500 || len(node.Status.Conditions) != 0 {
		t.Errorf("status %+v", node.Status)
	}
	gpus := node.Status.Capacity["example.com/gpu"]
	if info := node.Status.NodeInfo; gpus.Value() != 2 || info.Architecture != "arm64" || info.MachineID != "" {
		t.Errorf("status %+v", node.Status)
	}
}

func TestReadTakesStreams(t *testing.T) {
	for name, text := range map[string]string{
		"yaml documents": "# two\n---\nkind: Node\nmetadata: {name: a}\n---\n---\nkind: Node\nmetadata: {name: b}\n",
		"node list":      "kind: NodeList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n",
		"json stream":    "\n {\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}{\"kind\":\"Node\",\"metadata\":{\"name\":\"b\"}}\n",
		"json list":      `{"kind":"List","items":[{"kind":"Node","metadata":{"name":"a"}},{"kind":"Node","metadata":{"name":"b"}}]}`,
	} {
		nodes, err := Read(strings.NewReader(text))
		if err != nil || len(nodes) != 2 || nodes[0].Name != "a" || nodes[1].Name != "b" {
			t.Errorf("%s: %d nodes, error %v", name, len(nodes), err)
		}
	}
}

func TestReadNamesDocumentAndField(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "holds no nodes",
		"kind: Pod":                         `document 1: kind: "Pod"`,
		"kind: Node\nmetadata: {}":          "document 1: metadata.name",
		"kind: Node\nmetadata: [":           "document 1: not YAML",
		"kind: Node\nmetadata: {name: A_B}": `document 1: metadata.name: "A_B"`,
		"kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: a}":                       `document 2: metadata.name: node "a" is already in document 1`,
		"kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: b, labels: {x: [1]}}":     "document 2: metadata.labels",
		"kind: List\nitems:\n- {kind: Node, metadata: {name: a}}\n- {kind: Pod, metadata: {name: b}}": `document 1: items[1].kind: "Pod" is not Node`,
		"kind: Node\nmetadata: {name: a}\nspec: {taints: [{key: k, effect: Never}]}":                  `document 1: spec.taints[0].effect: "Never"`,
		"kind: Node\nmetadata: {name: a, labels: {x: \"a b\"}}":                                       `document 1: metadata.labels[x]: value "a b"`,
		"kind: Node\nmetadata: {name: a}\nstatus: {capacity: {memory: 5, cpu: lots}}":                 `document 1: status.capacity[cpu]: "lots"`,
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}} {\"kind\":":                                "document 2: ",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want one line that begins with %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{listFromACluster, "kind: Node\nmetadata: {name: a}", `{"kind":"NodeList","items":[{}]}`, "---\n---\n", "{", "\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := Read(strings.NewReader(text))
		if (err == nil) != (len(nodes) > 0) {
			t.Errorf("%d nodes and error %v", len(nodes), err)
		}
	})
}

func grid(nodes, zones, racks int) Grid {
	return Grid{Nodes: nodes, Zones: zones, Racks: racks, CPU: "32", Memory: "256Gi", Pods: "110"}
}

func TestGridIsEvenAtEveryLevel(t *testing.T) {
	for _, g := range []Grid{grid(24, 3, 2), grid(25, 3, 2), grid(7, 3, 5), grid(1, 1, 1), grid(200, 30, 3)} {
		nodes, err := g.Generate()
		if err != nil {
			t.Fatalf("%+v: %v", g, err)
		}
		if len(nodes) != g.Nodes {
			t.Fatalf("%+v: %d nodes", g, len(nodes))
		}
		zones, racks := map[string]int{}, map[string]map[string]int{}
		names, addresses := map[string]bool{}, map[string]bool{}
		for _, node := range nodes {
			zone, rack := node.Labels[corev1.LabelTopologyZone], node.Labels[RackLabel]
			if !strings.HasPrefix(rack, zone+"-rack-") {
				t.Errorf("rack %q is not named after its zone %q", rack, zone)
			}
			zones[zone]++
			if racks[zone] == nil {
				racks[zone] = map[string]int{}
			}
			racks[zone][rack]++
			names[node.Name], addresses[node.Status.Addresses[0].Address] = true, true
		}
		if len(names) != g.Nodes || len(addresses) != g.Nodes {
			t.Errorf("%+v: %d names and %d addresses", g, len(names), len(addresses))
		}
		even(t, zones, min(g.Zones, g.Nodes))
		for zone, counts := range racks {
			even(t, counts, min(g.Racks, zones[zone]))
		}
	}
}

func even(t *testing.T, counts map[string]int, branches int) {
	t.Helper()
	if len(counts) != branches {
		t.Errorf("%d branches, want %d: %v", len(counts), branches, counts)
	}
	values := slices.Collect(maps.Values(counts))
	if slices.Max(values)-slices.Min(values) > 1 {
		t.Errorf("uneven: %v", counts)
	}
}

func TestGridNode(t *testing.T) {
	nodes, err := grid(24, 3, 2).Generate()
	must(t, err)
	node := nodes[4] // the second of zone-b, so in its second rack
	want := map[string]string{
		"kubernetes.io/hostname":        "node-004",
		"topology.kubernetes.io/region": "region-1",
		"topology.kubernetes.io/zone":   "zone-b",
		"example.com/rack":              "zone-b-rack-2",
		"kubernetes.io/os":              "linux",
		"kubernetes.io/arch":            "amd64",
	}
	if node.Name != "node-004" || !maps.Equal(node.Labels, want) {
		t.Errorf("node %q has labels %v", node.Name, node.Labels)
	}
	for _, room := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		if room.Cpu().String() != "32" || room.Memory().String() != "256Gi" || room.Pods().String() != "110" {
			t.Errorf("room %v", room)
		}
	}
}

func TestGridRefusesNonsense(t *testing.T) {
	badCPU := grid(1, 1, 1)
	badCPU.CPU = "many"
	for want, g := range map[string]Grid{
		"--nodes=-1": grid(-1, 1, 1), "--zones=0": grid(1, 0, 1), "--racks=0": grid(1, 1, 0), `--node-cpu="many"`: badCPU,
	} {
		if _, err := g.Generate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: error %v, want one that begins with %s", g, err, want)
		}
	}
}

func TestLetters(t *testing.T) {
	for i, want := range map[int]string{0: "a", 25: "z", 26: "aa", 27: "ab", 51: "az", 52: "ba"} {
		if got := letters(i); got != want {
			t.Errorf("letters(%d) = %q, want %q", i, got, want)
		}
	}
}

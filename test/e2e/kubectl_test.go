// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
)

// kubectl runs kubectl espalier as a user would, and reads its JSON into an answer, nil for none. It returns what is printed.
func (s *story) kubectl(answer any, args ...string) string {
	s.Helper()
	binary, err := rig.Binary("kubectl-espalier", binFolder)
	s.must(err, "finding kubectl-espalier")
	args = append(args, "--kubeconfig", world.kubeconfig, "-n", s.ns)
	if answer != nil {
		args = append(args, "-o", "json")
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(s.ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		s.Fatalf("kubectl espalier %s: %v: %s", strings.Join(args, " "), err, said.String())
	}
	if answer != nil {
		s.must(json.Unmarshal(out.Bytes(), answer), "reading what kubectl espalier prints")
	}
	return out.String()
}

// drawings is what a command that goes on has printed so far.
type drawings struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *drawings) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *drawings) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// A tree that is watched is drawn again when pods have come, and ends well when it is interrupted.
func TestKubectlEspalierWatches(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(2, 50, zone("zone-a"))
	s.deploy("app", 2, "")
	s.settled("app", 2)
	binary, err := rig.Binary("kubectl-espalier", binFolder)
	s.must(err, "finding kubectl-espalier")
	cmd := exec.CommandContext(s.ctx, binary, "tree", "deployment/app", "--watch", "--kubeconfig", world.kubeconfig, "-n", s.ns)
	var out drawings
	cmd.Stdout, cmd.Stderr = &out, &out
	s.must(cmd.Start(), "starting kubectl espalier")
	all := regexp.MustCompile(`(?m)^all +([0-9]+) `)
	shows := func(pods string) {
		s.Helper()
		s.until("a tree of "+pods+" pods", func() error {
			drawn := all.FindAllStringSubmatch(out.String(), -1)
			if len(drawn) == 0 || drawn[len(drawn)-1][1] != pods {
				return fmt.Errorf("it is drawn\n%s", out.String())
			}
			return nil
		})
	}
	shows("2")
	s.scale("app", 5)
	shows("5")
	s.must(cmd.Process.Signal(os.Interrupt), "interrupting kubectl espalier")
	s.must(cmd.Wait(), "waiting for kubectl espalier to end")
}

// What kubectl espalier simulates is what the scheduler does then; and what it shows of that is so.
func TestKubectlEspalier(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(4, 50, zone("zone-a"))
	s.nodes(2, 5, zone("zone-b"))
	s.nodes(1, 50, zone("zone-c"))
	replicas := int32(32)
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: s.ns}}
	d.Spec = appsv1.DeploymentSpec{Replicas: &replicas, Selector: selects("app"), Template: s.template("app", "spread="+zoneLabel)}
	text, err := yaml.Marshal(d)
	s.must(err, "writing the manifest")
	manifest := filepath.Join(t.TempDir(), "app.yaml")
	s.must(os.WriteFile(manifest, text, 0o600), "writing the manifest")

	var simulated inspect.Simulation
	s.kubectl(&simulated, "simulate", "-f", manifest)
	would := make(map[string]int)
	for _, p := range simulated.Pods {
		if p.Why == inspect.WhyManifest {
			would[p.Node]++
		}
	}
	_, err = s.client.AppsV1().Deployments(s.ns).Create(s.ctx, d, metav1.CreateOptions{})
	s.must(err, "creating the Deployment")
	o := s.settled("app", int(replicas))
	s.even(o)
	are := make(map[string]int)
	for i := range o.Pods {
		are[o.Pods[i].Spec.NodeName]++
	}
	for node := range would {
		if are[node] != would[node] {
			s.Errorf("node %s has %d pods, and %d were simulated", node, are[node], would[node])
		}
	}
	if len(are) != len(would) {
		s.Errorf("pods are on %v, and were simulated on %v", are, would)
	}

	var tree inspect.Tree
	s.kubectl(&tree, "tree", "deployment/app")
	for _, zone := range tree.All.Below {
		for _, node := range zone.Below {
			if int(node.Pods) != are[node.Name] {
				s.Errorf("the tree shows %d pods on %s, and there are %d", node.Pods, node.Name, are[node.Name])
			}
		}
	}
	if int(tree.All.Pods) != int(replicas) || len(tree.Misplaced) == 0 || tree.Misplaced[0].Pods != 0 {
		s.Errorf("the tree shows %d pods, misplaced %v", tree.All.Pods, tree.Misplaced)
	}
	zoneOf := make(map[string]string)
	for i := range o.Nodes {
		zoneOf[o.Nodes[i].Name] = o.Nodes[i].Values[0]
	}
	for i := range o.Pods {
		p := &o.Pods[i]
		d, err := decision.Parse(p.Annotations[clusterview.DecisionAnnotation])
		s.must(err, "reading how a node was chosen")
		on := map[string]string{decision.Node: p.Spec.NodeName, "zone": zoneOf[p.Spec.NodeName]}
		if len(d.Steps) == 0 {
			s.Errorf("pod %s was bound with %s", p.Name, d.String())
		}
		for _, step := range d.Steps {
			if step.Chosen.Name != on[step.Level] {
				s.Errorf("pod %s is on %s, and was bound with %s", p.Name, p.Spec.NodeName, d.String())
			}
		}
	}
	for i := range o.Pods[:3] {
		p := &o.Pods[i]
		var e inspect.Explanation
		s.kubectl(&e, "explain", "pod/"+p.Name)
		if len(e.Path) != 2 || e.Node != p.Spec.NodeName || e.Path[1].Chosen.Name != p.Spec.NodeName || e.PlacedBy == "" || e.Decision == nil {
			s.Errorf("of pod %s on %s it is said %+v", p.Name, p.Spec.NodeName, e)
		}
	}
	var b inspect.Balance
	s.kubectl(&b, "balance")
	if len(b.Workloads) != 1 || b.Workloads[0].Misplaced != 0 || b.Workloads[0].Pods != replicas {
		s.Errorf("the balance is %+v", b.Workloads)
	}
	if text := s.kubectl(nil, "lint", "-f", manifest); !strings.Contains(text, "Each value of "+zoneLabel) {
		s.Errorf("lint prints %s", text)
	}
	var over inspect.Tree
	s.kubectl(&over, "tree", "deployment/app", "--levels", "kubernetes.io/hostname")
	if len(over.Levels) != 1 || over.Levels[0] != "spread=kubernetes.io/hostname" || int(over.All.Pods) != int(replicas) || over.All.Below[0].Level != "node" {
		s.Errorf("over hosts there are levels %q, and %d pods", over.Levels, over.All.Pods)
	}
	if text := s.kubectl(nil, "moves"); text == "" {
		s.Error("moves prints nothing")
	}
	if text := s.kubectl(nil, "faults"); text == "" {
		s.Error("faults prints nothing")
	}
	cluster := filepath.Join(t.TempDir(), "cluster.json")
	s.kubectl(nil, "snapshot", "--file", cluster)
	var again inspect.Tree
	s.kubectl(&again, "tree", "deployment/app", "--snapshot", cluster)
	if again.All.Pods != tree.All.Pods || again.PlacedBy != tree.PlacedBy {
		s.Errorf("by the snapshot it is %+v", again)
	}
}

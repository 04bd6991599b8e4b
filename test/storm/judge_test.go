// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// opinion is what a scheduler thinks of a pod.
type opinion struct {
	// Refused is why no node is looked at, "" if they are.
	Refused string
	// Scores are the tree's, of the nodes that fit.
	Scores map[string]int64
	hint   string
}

// best are the nodes that the tree puts first.
func (o *opinion) best() (names []string) {
	for name, score := range o.Scores {
		if score == fwk.MaxScore {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// heard are faults that note whether they change while they are asked about.
type heard struct {
	clusterview.Faults
	of       clusterview.Identity
	versions map[uint64]bool
}

// Changed is that of the faults.
func (h *heard) Changed(of clusterview.Identity, since uint64) (nodes []string, anew bool, version uint64) {
	nodes, anew, version = h.Faults.Changed(of, since)
	h.of = of
	h.versions[version] = true
	return nodes, anew, version
}

// same reports that they have not changed.
func (h *heard) same() bool {
	if h.Faults != nil && len(h.versions) > 0 {
		h.Changed(h.of, 0)
	}
	return len(h.versions) <= 1
}

// think leads a pod through a cycle up to its scores, and asks for the hint on the way. What is known of
// failures depends on who was there when they happened, so that it is told to whoever was not.
func (r *running) think(t *testing.T, pod *corev1.Pod, faults *heard) *opinion {
	t.Helper()
	ctx := klog.NewContext(context.Background(), klog.FromContext(r.ctx))
	p, state := r.Profiles[pod.Spec.SchedulerName], framework.NewCycleState()
	result, status, _ := p.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			t.Errorf("PreFilter of %s: %v", pod.Name, status)
		}
		if status.Plugin() == "" {
			// No plugin has said so: that no node fits was known, and who has not been here before finds it out.
			return &opinion{Scores: make(map[string]int64)}
		}
		return &opinion{Refused: status.Message()}
	}
	told := faults.Faults != nil
	if faults.Faults == nil {
		own, err := clusterview.ReadFaults(state)
		must(t, err)
		faults.Faults = own
	}
	if faults.Faults != nil {
		clusterview.WriteFaults(state, faults)
	}
	o := &opinion{Scores: make(map[string]int64), hint: p.GetNodeHint(ctx, pod, nil, state, 1)}
	if told {
		o.hint = "" // it was asked for in PreFilter, by what this one knows of failures itself
	}
	all, err := p.SnapshotSharedLister().NodeInfos().List()
	must(t, err)
	var fit []fwk.NodeInfo
	for _, n := range all {
		if !result.AllNodes() && !result.NodeNames.Has(n.Node().Name) {
			continue
		}
		if p.RunFilterPluginsWithNominatedPods(ctx, state, pod, n).IsSuccess() {
			fit = append(fit, n)
		}
	}
	if len(fit) == 0 {
		return o
	}
	if s := p.RunPreScorePlugins(ctx, state, pod, fit); !s.IsSuccess() {
		t.Fatalf("PreScore of %s: %v", pod.Name, s)
	}
	scores, s := p.RunScorePlugins(ctx, state, pod, fit)
	if !s.IsSuccess() {
		t.Fatalf("Score of %s: %v", pod.Name, s)
	}
	for _, n := range scores {
		for _, by := range n.Scores {
			if by.Name == spreadtree.Name {
				o.Scores[n.Name] = by.Score / treeWeight
			}
		}
	}
	return o
}

// treeWeight is that of SpreadTree in the shipped profile.
const treeWeight = 10000

// agree compares what two schedulers think of a pod that would come now. It returns the
// opinion of the second, nil if what is known of failures went on changing.
func agree(t *testing.T, live, fresh *running, pod *corev1.Pod) *opinion {
	t.Helper()
	for range 100 {
		faults := &heard{versions: make(map[uint64]bool)}
		of, anew := live.think(t, pod, faults), fresh.think(t, pod, faults)
		if pod.Spec.SchedulerName == sampling {
			of.Scores, anew.Scores = onlyWhether(of.Scores), onlyWhether(anew.Scores)
		}
		if !faults.same() {
			continue
		}
		if diff := gocmp.Diff(anew, of, gocmp.FilterPath(func(p gocmp.Path) bool { return p.Last().String() == ".hint" }, gocmp.Ignore())); diff != "" {
			t.Errorf("of %s of profile %s the scheduler thinks otherwise than one that starts now (-anew +storm):\n%s", describe(pod), pod.Spec.SchedulerName, diff)
		}
		if pod.Spec.SchedulerName == sampling {
			return anew
		}
		hints := map[string]string{"the scheduler": of.hint}
		if faults.Faults == nil {
			hints["one that starts now"] = anew.hint
		}
		for who, node := range hints {
			if node != "" && !slices.Contains(anew.best(), node) {
				t.Errorf("%s proposes %s for %s of profile %s, best are %q", who, node, describe(pod), pod.Spec.SchedulerName, anew.best())
			}
			if hinted(pod) && !fresh.preferred(t, pod) && (node == "") != (len(anew.Scores) == 0) {
				t.Errorf("%s proposes %q for %s of profile %s, where %d nodes fit", who, node, describe(pod), pod.Spec.SchedulerName, len(anew.Scores))
			}
		}
		return anew
	}
	t.Errorf("what is known of failures of %s never stands still", pod.Name)
	return nil
}

// onlyWhether leaves of scores whether there are any: each scheduler draws a sample of its own.
func onlyWhether(scores map[string]int64) map[string]int64 {
	if len(scores) == 0 {
		return scores
	}
	return map[string]int64{"some node": fwk.MaxScore}
}

func describe(pod *corev1.Pod) string {
	return fmt.Sprintf("a pod %q of %s %v", pod.Labels[kindLabel], pod.Labels["app"], slices.Sorted(maps.Keys(pod.Annotations)))
}

// preferred reports that pods that run have preferences about a pod: scores decide between the nodes that are equals for it then.
func (r *running) preferred(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	pods, err := r.informers.Core().V1().Pods().Lister().Pods(pod.Namespace).List(labels.SelectorFromSet(labels.Set{"app": pod.Labels["app"]}))
	must(t, err)
	return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Spec.Affinity != nil && p.Spec.Affinity.PodAffinity != nil
	})
}

// hinted reports that a pod has a node hint whenever it fits anywhere, as far as only the pod itself decides.
func hinted(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName != scored && !kinds[pod.Labels[kindLabel]].odd && pod.Spec.Affinity == nil
}

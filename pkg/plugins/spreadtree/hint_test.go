// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
)

// filters answer no for refused, and write down the questions.
type filters struct {
	*rig
	refused, asked []string
	err            error
}

func (f *filters) fits(node string) *fwk.Status {
	f.asked = append(f.asked, node)
	if f.err != nil {
		return fwk.AsStatus(f.err)
	}
	return statusIf(!slices.Contains(f.refused, node))
}

// hint takes the snapshot of a cycle, and returns what is proposed and who was asked about.
func (f *filters) hint(pod *corev1.Pod, lasting bool) (node, asked string) {
	f.Helper()
	f.feasible()
	f.asked = nil
	node, _, err := f.pl.Hint(f.ctx, framework.NewCycleState(), pod, lasting, f.fits)
	if err != nil {
		f.Fatal(err)
	}
	slices.Sort(f.asked)
	return node, strings.Join(f.asked, " ")
}

// want holds a proposal against what it should be.
func (f *filters) want(pod *corev1.Pod, lasting bool, node, asked string) {
	f.Helper()
	if gotNode, gotAsked := f.hint(pod, lasting); gotNode != node || gotAsked != asked {
		f.Errorf("proposed %q after asking about %q, want %q and %q\n%s", gotNode, gotAsked, node, asked, f.shown(pod))
	}
}

// twoZones has two nodes in each of the zones a and b, and b has a pod more. The first node of a is refused.
func twoZones(t *testing.T) (f *filters, pod *corev1.Pod) {
	r := newRig(t.Context(), t, args()).zoned("a1", "a2", "b1", "b2")
	r.runs("b1", "2", 1)
	return &filters{rig: r, refused: []string{"a1"}}, webPod("p", "spread=zone").Obj()
}

func TestHintRemembers(t *testing.T) {
	f, pod := twoZones(t)
	f.want(pod, true, "a2", "a1 a2")
	f.want(pod, true, "a2", "a2") // what is proposed has been asked about in this cycle
	f.want(webPod("q", "spread=zone").Obj(), true, "a2", "a2")
	f.join("a3", "zone=a")
	f.want(pod, true, "a2", "a2")

	f.runs("a2", "2", 1)
	f.want(pod, true, "a3", "a3") // zones that tie are not asked about
	f.want(pod, true, "a3", "a3")
	f.refused = nil
	f.want(pod, true, "a3", "a3")
	f.runs("a1", "1", 1)
	f.runs("a3", "1", 1)
	f.want(pod, true, "b2", "b2")
	f.runs("b2", "1", 2)
	f.want(pod, true, "a1", "a1")
}

func TestHintForgets(t *testing.T) {
	for name, change := range map[string]func(f *filters) (pod *corev1.Pod, lasting bool){
		"answers that do not last": func(*filters) (*corev1.Pod, bool) { return webPod("p", "spread=zone").Obj(), false },
		"for a pod with other needs": func(*filters) (*corev1.Pod, bool) {
			return webPod("p", "spread=zone").NodeSelector(map[string]string{"disk": "ssd"}).Obj(), true
		},
		"that are counted anew": func(f *filters) (*corev1.Pod, bool) {
			f.pl.trees.reset()
			return webPod("p", "spread=zone").Obj(), true
		},
		"after a change of the node": func(f *filters) (*corev1.Pod, bool) {
			node := f.join("a1", "zone=a")
			f.cache.UpdateNode(f.logger, node, labelled("a1", "zone=a", "disk=ssd").Obj())
			return webPod("p", "spread=zone").Obj(), true
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, pod := twoZones(t)
			f.want(pod, true, "a2", "a1 a2")
			next, lasting := change(f)
			f.refused = nil
			f.want(next, lasting, "a1", "a1")
		})
	}
}

// What a node has said to such needs it need not say again, whatever came in between and whoever asks.
func TestHintKeepsAnswersByNeeds(t *testing.T) {
	for name, between := range map[string]func(f *filters) (pod *corev1.Pod){
		"a pod with other needs": func(f *filters) *corev1.Pod {
			f.hint(webPod("q", "spread=zone").HostPort(80).Obj(), true)
			return webPod("p", "spread=zone").Obj()
		},
		"answers that did not last": func(f *filters) *corev1.Pod {
			f.hint(webPod("q", "spread=zone").Obj(), false)
			return webPod("p", "spread=zone").Obj()
		},
		"a look at some of the nodes": func(f *filters) *corev1.Pod {
			f.rank(webPod("q", "spread=zone").Obj(), framework.NewCycleState(), "b1", "b2")
			return webPod("p", "spread=zone").Obj()
		},
		"another workload": func(f *filters) *corev1.Pod {
			f.refused = append(f.refused, "b2")
			return ofWorkload("api", "q", "spread=zone").Obj()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, pod := twoZones(t)
			f.want(pod, true, "a2", "a1 a2")
			next := between(f)
			f.asked, f.refused = nil, f.refused[1:]
			if node, asked := f.hint(next, true); node != "a2" && node != "b2" || strings.Contains(asked, "a1") {
				t.Errorf("proposed %s after asking about %s", node, asked)
			}
		})
	}
}

// Nobody waits with a nomination until the filters have answered: one may end meanwhile, as
// its pod is deleted, or begin. What they said holds no longer than the nomination either way.
func TestRegression_HintWhileANominationEndsOrBegins(t *testing.T) {
	beside := map[string]bool{"a1": true}
	for name, tc := range map[string]struct {
		before, meanwhile map[string]bool
		prefetch          feasibility.Prefetch
		want              string
	}{
		"it ends":                      {beside, nil, feasibility.UsualPrefetch, "a2"},
		"it begins":                    {nil, beside, feasibility.UsualPrefetch, "a2"},
		"it ends, all asked at once":   {beside, nil, feasibility.Prefetch{ParallelFrom: 1, After: -1}, "a2"},
		"it begins, all asked at once": {nil, beside, feasibility.Prefetch{ParallelFrom: 1, After: -1}, "a2"},
	} {
		t.Run(name, func(t *testing.T) {
			f, pod := twoZones(t)
			f.pl.prefetch = tc.prefetch
			f.nominate(tc.before)
			f.feasible()
			node, _, err := f.pl.Hint(f.ctx, framework.NewCycleState(), pod, true, func(node string) *fwk.Status {
				if node != "a1" {
					return nil
				}
				before := f.pl.nominated(node)
				f.nominate(tc.meanwhile)
				return statusIf(!before && !f.pl.nominated(node))
			})
			if f.must(err); node != tc.want {
				t.Errorf("got %q, want %s", node, tc.want)
			}
			f.nominate(nil)
			f.pl.prefetch, f.refused = feasibility.UsualPrefetch, nil
			if node, _ := f.hint(pod, true); node != "a1" {
				t.Errorf("got %q when nobody is nominated, want a1", node)
			}
		})
	}
}

// That a node was allowed is not believed in the next cycle.
func TestHintIsNeverStale(t *testing.T) {
	f, pod := twoZones(t)
	f.want(pod, true, "a2", "a1 a2")
	f.refused = []string{"a1", "a2"}
	f.want(pod, true, "b2", "a2 b2")
	f.want(pod, true, "b2", "b2")
}

func TestHintOfNothing(t *testing.T) {
	f, pod := twoZones(t)
	f.refused = []string{"a1", "a2", "b1", "b2"}
	f.want(pod, true, "", "a1 a2 b1 b2")
	f.want(pod, true, "", "")
	f.refused = nil
	f.want(pod, true, "", "")
	f.runs("b1", "1", 1)
	f.want(pod, true, "b1", "b1")
}

// That no node fits is said of pods with the same needs, and of what the full path would say
// of them: not where levels leave nodes out, or answers do not last, or somebody might have to go.
func TestRefusal(t *testing.T) {
	f, pod := twoZones(t)
	f.refused = []string{"a1", "a2", "b1", "b2"}
	refusal := func(pod *corev1.Pod, lasting bool) *clusterview.Refusal {
		f.feasible()
		node, is, err := f.pl.Hint(f.ctx, framework.NewCycleState(), pod, lasting, f.fits)
		if f.must(err); node != "" {
			t.Errorf("%s is proposed", node)
		}
		return is
	}
	want := "4 refused by the test"
	if is := refusal(pod, true); is == nil || is.Message != want || !slices.Equal(is.Plugins, []string{"Test"}) || is.Preemption != nil {
		t.Fatalf("got %+v", is)
	}
	refusal(pod, true).Learn(refused)
	if is := refusal(ofWorkload("api", "q", "pack=zone").Obj(), true); is == nil || is.Message != want || is.Preemption != refused {
		t.Errorf("of another workload with the same needs: %+v", is)
	}
	if is := refusal(webPod("p", "spread=zone;nodesWithoutKey=Exclude").Obj(), true); is != nil {
		t.Errorf("where a level leaves nodes out: %+v", is)
	}
	if is := refusal(pod, false); is != nil {
		t.Errorf("where answers do not last: %+v", is)
	}
	if is := refusal(webPod("p", "spread=zone").Priority(1).Obj(), true); is != nil {
		t.Errorf("of a pod of higher priority than one that runs: %+v", is)
	}
	if is := refusal(webPod("p", "spread=zone").Priority(1).PreemptionPolicy(corev1.PreemptNever).Obj(), true); is == nil || is.Preemption != nil {
		t.Errorf("of one that preempts no pod: %+v", is)
	}
	f.join("c1", "zone=c")
	f.refused = append(f.refused, "c1")
	if is := refusal(pod, true); is == nil || is.Message != "5 refused by the test" || is.Preemption != nil {
		t.Errorf("with a node more: %+v", is)
	}
}

// After a filter that could not answer, nothing is taken for an answer.
func TestHintAfterAnError(t *testing.T) {
	f, pod := twoZones(t)
	f.err = errors.New("no answer")
	f.feasible()
	if node, _, err := f.pl.Hint(f.ctx, framework.NewCycleState(), pod, true, f.fits); node != "" || !errors.Is(err, f.err) || len(f.asked) != 1 {
		t.Errorf("got %q, %v after asking about %q", node, err, f.asked)
	}
	f.err, f.refused = nil, nil
	f.want(pod, true, "a1", "a1")
}

func TestHintWithoutReadableLevels(t *testing.T) {
	f, _ := twoZones(t)
	_, _, err := f.pl.Hint(f.ctx, framework.NewCycleState(), webPod("p", "spread").Obj(), true, f.fits)
	if err == nil || !strings.Contains(err.Error(), clusterview.PlacementAnnotation) {
		t.Errorf("got %v", err)
	}
}

// Scores decide between nodes that are equals to the tree: of what a pod prefers, of what is preferred about it, and of what it claims. No
// filter is asked for its sake.
func TestHintLeavesEqualsToScores(t *testing.T) {
	f, pod := twoZones(t)
	f.must(factory.Storage().V1().StorageClasses().Informer().GetIndexer().Add(&storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: volume.NotSupportedProvisioner,
	}))
	f.must(factory.Core().V1().PersistentVolumeClaims().Informer().GetIndexer().Add(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("local")},
	}))
	f.must(f.cache.AddPod(f.logger, st.MakePod().Namespace(pod.Namespace).Name("calm").UID("calm").Node("a1").
		PodAntiAffinityExists("noise", "zone", st.PodAntiAffinityWithPreferredReq).Obj()))
	for name, is := range map[string]*st.PodWrapper{
		"one that prefers":      webPod("p", "spread=zone").PodAffinityExists("app", "zone", st.PodAffinityWithPreferredReq),
		"one that is preferred": webPod("p", "spread=zone").Label("noise", "loud"),
		"one that claims":       webPod("p", "spread=zone").PVC("data"),
	} {
		f.feasible()
		f.asked = nil
		node, _, err := f.pl.Hint(f.ctx, framework.NewCycleState(), is.Obj(), true, f.fits)
		if node != "" || !errors.Is(err, clusterview.ErrPrefers) || len(f.asked) > 0 {
			t.Errorf("%s: got %q, %v after asking about %q", name, node, err, f.asked)
		}
	}
	if node, asked := f.hint(pod, true); node == "" || asked == "" {
		t.Errorf("one of which nothing is preferred: got %q after asking about %q", node, asked)
	}
}

func TestPlaces(t *testing.T) {
	r := newRig(t.Context(), t, args())
	if !r.pl.Places(webPod("p", "").Obj()) || r.pl.Places(webPod("p", "").OwnerReference("ds", daemonSet).Obj()) || !r.pl.Hints() {
		t.Error("it places what it spreads, and nothing else")
	}
}

// nominate has pods nominated for these nodes and no others.
func (r *rig) nominate(nodes map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nominated = make(map[string][]fwk.PodInfo)
	for node, is := range nodes {
		if is {
			r.nominated[node] = []fwk.PodInfo{nil}
		}
	}
}

// nominatePod has one more pod nominated for a node.
func (r *rig) nominatePod(node string, pod *corev1.Pod) {
	info, err := framework.NewPodInfo(pod)
	r.must(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nominated == nil {
		r.nominated = make(map[string][]fwk.PodInfo)
	}
	r.nominated[node] = append(r.nominated[node], info)
}

func (h *handle) NominatedPodsForNode(node string) []fwk.PodInfo {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.nominated[node]
}

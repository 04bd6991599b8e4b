// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPlugin(t *testing.T, defaults ...config.Level) *preferences.Preferences {
	t.Helper()
	return plugintest.New[*preferences.Preferences](t, preferences.New, &config.PreferencesArgs{DefaultLevels: defaults}, plugintest.NewCluster())
}

// byZone are default levels that no pod of these tests asks for itself.
var byZone = config.Level{Strategy: config.StrategySpread, TopologyKey: "zone", NodesWithoutKey: config.NodesWithoutKeyOwnDomain}

var daemonSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}

// asking is a pod with an annotation; "" is none.
func asking(annotation string) *st.PodWrapper {
	return plugintest.Asking(clusterview.PlacementAnnotation, annotation).Label("app", "web")
}

func TestNew(t *testing.T) {
	bad := config.Level{Strategy: "Sprd", TopologyKey: "node.id", NodesWithoutKey: config.NodesWithoutKeyOwnDomain}
	want := plugintest.WantArguments(t, preferences.Name, preferences.New, plugintest.NewCluster())
	want("no levels", &config.PreferencesArgs{})
	want("levels", &config.PreferencesArgs{DefaultLevels: []config.Level{byZone}})
	want("bad levels", &config.PreferencesArgs{DefaultLevels: []config.Level{bad}}, "defaultLevels[0].strategy", `"Sprd"`, "defaultLevels[0].topologyKey", `"node.id"`)
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t, byZone)
	plain := plugintest.Sign(t, pl, asking(""))
	if again := plugintest.Sign(t, pl, asking("").Name("q").UID("q")); again != plain {
		t.Errorf("two pods that ask for the same are signed %v and %v", plain, again)
	}
	if same := plugintest.Sign(t, pl, asking("spread=node.labels.zone")); same != plain {
		t.Errorf("the same levels in other words are signed %v and %v", plain, same)
	}
	if excluding := plugintest.Sign(t, pl, asking("spread=zone;nodesWithoutKey=Exclude")); excluding == plain {
		t.Errorf("pods with other levels are both signed %v", plain)
	}
	a := plugintest.Sign(t, pl, asking("spread=zone;nodesWithoutKey=Exclude").OwnerReference("ds", daemonSet))
	b := plugintest.Sign(t, pl, asking("spread=rack").OwnerReference("ds", daemonSet))
	if a != b {
		t.Errorf("pods of a DaemonSet, which are not restricted, are signed %v and %v", a, b)
	}
	plugintest.WantUnsigned(t, pl, asking("sprd=zone")) // it cannot be read
}

func TestPreFilter(t *testing.T) {
	alone, racks := newPlugin(t, byZone), under(t, placementv1alpha1.Level{TopologyKey: "rack", Strategy: "Pack", NodesWithoutKey: "Exclude"})
	web := st.MakeLabelSelector().Label("app", "web").Obj()
	for _, tc := range []struct {
		name   string
		pl     *preferences.Preferences
		pod    *st.PodWrapper
		code   fwk.Code
		levels string
	}{
		{"defaults", alone, asking(""), fwk.Skip, "spread=zone"},
		{"defaults, of a DaemonSet", alone, asking("").OwnerReference("ds", daemonSet), fwk.Skip, ""},
		{"annotation", alone, asking("pack=rack"), fwk.Skip, "pack=rack"},
		{"constraint", alone, asking("").SpreadConstraint(1, "host", corev1.ScheduleAnyway, web, nil, nil, nil, nil), fwk.Skip, "spread=host;nodesWithoutKey=LastResort"},
		{"a level that leaves nodes out", alone, asking("spread=rack;nodesWithoutKey=Exclude"), fwk.Success, "spread=rack;nodesWithoutKey=Exclude"},
		{"the same, pinned to a node", alone, asking("spread=rack;nodesWithoutKey=Exclude").NodeAffinityIn("metadata.name", []string{"n1"}, st.NodeSelectorTypeMatchFields), fwk.Success, "spread=rack;nodesWithoutKey=Exclude"},
		{"the same, of a DaemonSet", alone, asking("spread=rack;nodesWithoutKey=Exclude").OwnerReference("ds", daemonSet), fwk.Skip, "spread=rack;nodesWithoutKey=Exclude"},
		{"a pod that a policy selects", racks, asking(""), fwk.Success, "pack=rack;nodesWithoutKey=Exclude"},
		{"one that it does not select", racks, asking("").Label("app", "db"), fwk.Skip, "spread=zone"},
		{"annotation before a policy", racks, asking("spread=host"), fwk.Skip, "spread=host"},
		{"constraints before a policy", racks, asking("").SpreadConstraint(1, "host", corev1.ScheduleAnyway, web, nil, nil, nil, nil), fwk.Skip, "spread=host;nodesWithoutKey=LastResort"},
		{"a DaemonSet's pod that a policy selects", racks, asking("").OwnerReference("ds", daemonSet), fwk.Skip, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := framework.NewCycleState()
			result, status := tc.pl.PreFilter(t.Context(), state, tc.pod.Obj(), nil)
			if result != nil || status.Code() != tc.code {
				t.Errorf("got %v, %v, want %v", result, status, tc.code)
			}
			// They are there after a Skip as well: it is Filter that is skipped.
			if levels, found, err := clusterview.ReadLevels(state); !found || err != nil || level.Format(levels.List) != tc.levels {
				t.Errorf("the cycle has the levels %q (found: %t, %v), want %q", level.Format(levels.List), found, err, tc.levels)
			}
		})
	}
}

func TestPreFilterRefusesWhatItCannotRead(t *testing.T) {
	pl := newPlugin(t, byZone)
	for _, tc := range []struct {
		name string
		pl   *preferences.Preferences
		pod  *st.PodWrapper
		want []string // the message holds them all
	}{
		{"annotation", pl, asking("spread=zone,sprd=rack"), []string{clusterview.PlacementAnnotation, `level 2 "sprd=rack"`, `"sprd"`, "use spread=PROPERTY or pack=PROPERTY"}},
		{"annotation of a DaemonSet's pod", pl, asking("spread=node.id").OwnerReference("ds", daemonSet), []string{`"node.id"`, "use node.name"}},
		{"policy", under(t, placementv1alpha1.Level{TopologyKey: "node.id"}), asking(""),
			[]string{`PlacementPolicy "racks"`, "spec.levels[0].topologyKey", `"node.id"`, "use the key of a node label"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := framework.NewCycleState()
			result, status := tc.pl.PreFilter(t.Context(), state, tc.pod.Obj(), nil)
			if result != nil || status.Code() != fwk.UnschedulableAndUnresolvable {
				t.Fatalf("got %v, %v", result, status)
			}
			placementtest.WantParts(t, status.Message(), tc.want...)
			if _, found, _ := clusterview.ReadLevels(state); found {
				t.Error("levels were left for the cycle")
			}
		})
	}
	plugintest.WantNoExtensions(t, pl)
}

func TestFilter(t *testing.T) {
	pl := newPlugin(t, byZone)
	for _, tc := range []struct {
		annotation string
		node       *st.NodeWrapper
		want       fwk.Code
	}{
		{"spread=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("rack", "1"), fwk.Success},
		{"spread=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("rack", ""), fwk.Success},
		{"spread=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("zone", "a"), fwk.UnschedulableAndUnresolvable},
		{"spread=zone,pack=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("rack", "1"), fwk.Success},
		{"spread=zone;nodesWithoutKey=Exclude,spread=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("rack", "1"), fwk.UnschedulableAndUnresolvable},
		{"spread=node.name;nodesWithoutKey=Exclude", st.MakeNode().Name("n"), fwk.Success},
	} {
		t.Run(tc.annotation, func(t *testing.T) {
			status := plugintest.Filter(t, pl, asking(tc.annotation).Obj(), tc.node.Obj())
			if status.Code() != tc.want {
				t.Fatalf("got %v, want %v", status, tc.want)
			}
			if !status.IsSuccess() && status.Message() != preferences.ErrReasonMissing {
				t.Errorf("the reason is %q", status.Message())
			}
		})
	}
	if !strings.HasPrefix(preferences.ErrReasonMissing, "node(s) ") {
		t.Errorf("the reason %q does not read after a number of nodes", preferences.ErrReasonMissing)
	}
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t), asking("").Obj())
}

func TestHintAfterPodUpdate(t *testing.T) {
	web := st.MakeLabelSelector().Label("app", "web").Obj()
	constrained := func(app string) *st.PodWrapper {
		return asking("").Label("app", app).SpreadConstraint(1, "zone", corev1.ScheduleAnyway, web, nil, nil, nil, nil)
	}
	hints := plugintest.NewHints(t, newPlugin(t))
	hints.AfterPodUpdate("annotation mended", asking("sprd=zone"), asking("spread=zone"), fwk.Queue)
	hints.AfterPodUpdate("annotation taken away", asking("sprd=zone"), asking(""), fwk.Queue)
	// An empty annotation is refused, and reads like none where only values are compared.
	hints.AfterPodUpdate("empty annotation taken away", asking("").Annotation(clusterview.PlacementAnnotation, ""), asking(""), fwk.Queue)
	hints.AfterPodUpdate("annotation changed, still bad", asking("sprd=zone"), asking("sprd=rack"), fwk.QueueSkip)
	hints.AfterPodUpdate("annotation no longer leaves nodes out", asking("spread=rack;nodesWithoutKey=Exclude"), asking("spread=rack"), fwk.Queue)
	hints.AfterPodUpdate("label changed", constrained("db"), constrained("web"), fwk.Queue)
	hints.AfterPodUpdate("label changed, annotation bad", asking("sprd=zone"), asking("sprd=zone").Label("x", "y"), fwk.QueueSkip)
	hints.AfterPodUpdate("something else changed", asking("spread=rack;nodesWithoutKey=Exclude"), asking("spread=rack;nodesWithoutKey=Exclude").Annotation("other", "x").Toleration("t"), fwk.QueueSkip)
	hints.AfterPodUpdate("nothing changed", asking("sprd=zone"), asking("sprd=zone"), fwk.QueueSkip)
}

func TestHintAfterNodeChange(t *testing.T) {
	bare, racked := st.MakeNode().Name("n").Obj(), st.MakeNode().Name("n").Label("rack", "1").Obj()
	more := st.MakeNode().Name("n").Label("rack", "1").Label("x", "y").Obj()
	hints := plugintest.NewHints(t, newPlugin(t))
	hints.AfterNodeChange("a node with the property comes", asking("spread=rack;nodesWithoutKey=Exclude"), fwk.UpdateNodeLabel, nil, racked, fwk.Queue)
	hints.AfterNodeChange("a node without it comes", asking("spread=rack;nodesWithoutKey=Exclude"), fwk.UpdateNodeLabel, nil, bare, fwk.QueueSkip)
	hints.AfterNodeChange("a node is given it", asking("spread=rack;nodesWithoutKey=Exclude"), fwk.UpdateNodeLabel, bare, racked, fwk.Queue)
	hints.AfterNodeChange("a node has had it", asking("spread=rack;nodesWithoutKey=Exclude"), fwk.UpdateNodeLabel, racked, more, fwk.QueueSkip)
	hints.AfterNodeChange("a node loses it", asking("spread=rack;nodesWithoutKey=Exclude"), fwk.UpdateNodeLabel, racked, bare, fwk.QueueSkip)
	hints.AfterNodeChange("one of two properties", asking("spread=rack;nodesWithoutKey=Exclude,spread=zone;nodesWithoutKey=Exclude"), fwk.UpdateNodeLabel, bare, racked, fwk.QueueSkip)
	hints.AfterNodeChange("no node mends an annotation", asking("sprd=rack"), fwk.UpdateNodeLabel, nil, racked, fwk.QueueSkip)
}

// under is a plugin in a cluster with one policy, for the pods with app=web.
func under(t *testing.T, levels ...placementv1alpha1.Level) *preferences.Preferences {
	t.Helper()
	pl := newPlugin(t, byZone)
	pl.Under(policies.Fixed(clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "racks"},
		Spec:       placementv1alpha1.PlacementPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Levels: levels},
	})))
	return pl
}

// A DaemonSet's pod is not placed by policies: one that cannot be read does not block it, only its own annotation does.
func TestRegression_UnreadablePolicyOfADaemonSetsPod(t *testing.T) {
	pl := under(t, placementv1alpha1.Level{TopologyKey: "node.id"})
	pod, bad := asking("").OwnerReference("ds", daemonSet).Obj(), asking("spread=node.id").OwnerReference("ds", daemonSet).Obj()
	if _, status := pl.PreFilter(t.Context(), framework.NewCycleState(), pod, nil); !status.IsSkip() {
		t.Errorf("PreFilter says %v", status)
	}
	if _, status := pl.SignPod(t.Context(), pod); !status.IsSuccess() {
		t.Errorf("SignPod says %v", status)
	}
	plugintest.WantHint(t, pl, pod, plugintest.PodUpdate(bad, pod), fwk.Queue) // its annotation is taken away
	if _, status := pl.PreFilter(t.Context(), framework.NewCycleState(), bad, nil); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("its own annotation cannot be read: %v", status)
	}
}

func TestSignPodUnderAPolicy(t *testing.T) {
	byRack := placementv1alpha1.Level{TopologyKey: "rack"}
	pl := under(t, byRack)
	if web, db := plugintest.Sign(t, pl, asking("")), plugintest.Sign(t, pl, asking("").Label("app", "db")); web == db {
		t.Errorf("a pod under a policy and one that is not are both signed %v", web)
	}
	plugintest.WantUnsigned(t, under(t, placementv1alpha1.Level{TopologyKey: "node.id"}), asking("")) // its policy cannot be read
}

// A pod is given the label that a policy selects, or loses it.
func TestHintAfterALabelThatAPolicySelects(t *testing.T) {
	pl := under(t, placementv1alpha1.Level{TopologyKey: "node.id"})
	selected, free := asking("").Obj(), asking("").Label("app", "db").Obj()
	plugintest.WantHint(t, pl, free, plugintest.PodUpdate(selected, free), fwk.Queue)         // it leaves a policy that cannot be read
	plugintest.WantHint(t, pl, selected, plugintest.PodUpdate(free, selected), fwk.QueueSkip) // it comes under it
	hints := plugintest.NewHints(t, under(t, placementv1alpha1.Level{TopologyKey: "rack", NodesWithoutKey: "Exclude"}))
	hints.AfterNodeChange("a node with the policy's property comes", asking(""), fwk.Add, nil, st.MakeNode().Name("n").Label("rack", "1").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node without it comes", asking(""), fwk.Add, nil, st.MakeNode().Name("n").Obj(), fwk.QueueSkip)
}

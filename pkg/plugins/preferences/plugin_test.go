// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
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
	p := st.MakePod().Namespace("ns").Name("p").UID("p").Label("app", "web")
	if annotation != "" {
		p.Annotation(clusterview.PlacementAnnotation, annotation)
	}
	return p
}

func TestNew(t *testing.T) {
	bad := config.Level{Strategy: "Sprd", TopologyKey: "node.id", NodesWithoutKey: config.NodesWithoutKeyOwnDomain}
	for _, tc := range []struct {
		name string
		args runtime.Object
		want []string // the error holds them all; none: there is no error
	}{
		{"no levels", &config.PreferencesArgs{}, nil},
		{"levels", &config.PreferencesArgs{DefaultLevels: []config.Level{byZone}}, nil},
		{"args of another plugin", &config.SpreadTreeArgs{}, []string{preferences.Name, "*config.PreferencesArgs", "*config.SpreadTreeArgs"}},
		{"no args", nil, []string{preferences.Name, "*config.PreferencesArgs", "<nil>"}},
		{"bad levels", &config.PreferencesArgs{DefaultLevels: []config.Level{bad}},
			[]string{preferences.Name, "defaultLevels[0].strategy", `"Sprd"`, "defaultLevels[0].topologyKey", `"node.id"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pl, err := preferences.New(t.Context(), tc.args, plugintest.NewCluster())
			plugintest.WantNew(t, preferences.Name, pl, err, tc.want...)
		})
	}
}

func fragment(t *testing.T, pl *preferences.Preferences, pod *corev1.Pod) any {
	t.Helper()
	fragments, status := pl.SignPod(context.Background(), pod)
	if !status.IsSuccess() || len(fragments) != 1 {
		t.Fatalf("signed as %v: %v", fragments, status)
	}
	return fragments[0]
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t, byZone)
	plain := fragment(t, pl, asking("").Obj())
	if again := fragment(t, pl, asking("").Name("q").UID("q").Obj()); again != plain {
		t.Errorf("two pods that ask for the same are signed %v and %v", plain, again)
	}
	if same := fragment(t, pl, asking("spread=node.labels.zone").Obj()); same != plain {
		t.Errorf("the same levels in other words are signed %v and %v", plain, same)
	}
	if excluding := fragment(t, pl, asking("spread=zone;nodesWithoutKey=Exclude").Obj()); excluding == plain {
		t.Errorf("pods with other levels are both signed %v", plain)
	}
	a := fragment(t, pl, asking("spread=zone;nodesWithoutKey=Exclude").OwnerReference("ds", daemonSet).Obj())
	b := fragment(t, pl, asking("spread=rack").OwnerReference("ds", daemonSet).Obj())
	if a != b {
		t.Errorf("pods of a DaemonSet, which are not restricted, are signed %v and %v", a, b)
	}
	if fragments, status := pl.SignPod(t.Context(), asking("sprd=zone").Obj()); status.Code() != fwk.Unschedulable || fragments != nil {
		t.Errorf("a pod that cannot be read is signed %v, %v", fragments, status)
	}
}

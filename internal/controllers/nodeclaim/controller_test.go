// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var made = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// claim is the NodeClaim of a node.
func claim(node, expireAfter string, annotations map[string]string) *unstructured.Unstructured {
	c := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}, "status": map[string]any{"nodeName": node}}}
	c.SetGroupVersionKind(clusterview.NodeClaimKind)
	c.SetName("claim-of-" + node)
	c.SetUID("uid-of-claim-of-" + "n")
	c.SetCreationTimestamp(metav1.NewTime(made))
	c.SetAnnotations(annotations)
	if expireAfter != "" {
		_ = unstructured.SetNestedField(c.Object, expireAfter, "spec", "expireAfter")
	}
	return c
}

// looked is a controller that has looked some times at nodes and NodeClaims.
func looked(t *testing.T, times int, objects ...client.Object) *controllertest.Rig {
	t.Helper()
	scheme := runtime.NewScheme()
	controllertest.Must(t, corev1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(clusterview.NodeClaimKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(clusterview.NodeClaimKind.GroupVersion().WithKind("NodeClaimList"), &unstructured.UnstructuredList{})
	r := controllertest.New(t, made, fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...))
	c := &Controller{Client: r.Server, Events: r.Said}
	for range times {
		r.Must(c.look(t.Context()))
	}
	return r
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func end(r *controllertest.Rig, name string) string {
	r.Helper()
	n := node(name)
	r.Get(n)
	return n.Annotations[clusterview.ValidUntilAnnotation]
}

func TestEnds(t *testing.T) {
	at := func(d time.Duration) string { return made.Add(d).Format(time.RFC3339) }
	const terminated = "karpenter.sh/nodeclaim-termination-timestamp"
	by := func(writer string, d time.Duration) func(*corev1.Node) {
		return func(n *corev1.Node) { clusterview.SetEnd(n, writer, made.Add(d)) }
	}
	theirs := func(n *corev1.Node) { n.Annotations = map[string]string{clusterview.ValidUntilAnnotation: "tomorrow"} }
	for name, tc := range map[string]struct {
		claim *unstructured.Unstructured
		node  func(*corev1.Node)
		want  string
	}{
		"it expires":                               {claim("n", "720h", nil), nil, at(720 * time.Hour)},
		"it never does":                            {claim("n", "Never", nil), nil, ""},
		"it says nothing":                          {claim("n", "", nil), nil, ""},
		"it is being terminated":                   {claim("n", "720h", map[string]string{terminated: at(time.Hour)}), nil, at(time.Hour)},
		"and would expire before":                  {claim("n", "1h", map[string]string{terminated: at(2 * time.Hour)}), nil, at(time.Hour)},
		"and would never expire":                   {claim("n", "Never", map[string]string{terminated: at(2 * time.Hour)}), nil, at(2 * time.Hour)},
		"it has no node yet":                       {claim("", "720h", nil), nil, ""},
		"it is read anew":                          {claim("n", "720h", nil), by(clusterview.ByNodeClaim, time.Hour), at(720 * time.Hour)},
		"it never ends any more":                   {claim("n", "Never", nil), by(clusterview.ByNodeClaim, time.Hour), ""},
		"somebody else has written":                {claim("n", "720h", nil), theirs, "tomorrow"},
		"the schedule ends it before":              {claim("n", "720h", nil), by(clusterview.BySchedule, time.Hour), at(time.Hour)},
		"the schedule ends it later":               {claim("n", "1h", nil), by(clusterview.BySchedule, 720*time.Hour), at(time.Hour)},
		"the schedule ends it, and it never would": {claim("n", "Never", nil), by(clusterview.BySchedule, time.Hour), at(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			n := node("n")
			if tc.node != nil {
				tc.node(n)
			}
			r := looked(t, 2, n, node("other"), tc.claim) // the second time it has nothing to do
			if got := end(r, "n"); got != tc.want {
				t.Errorf("it ends %q, want %q", got, tc.want)
			}
			if got := end(r, "other"); got != "" {
				t.Errorf("a node of no NodeClaim ends %s", got)
			}
		})
	}
}

// A NodeClaim that cannot be read is named in an Event, once, and others are read all the same.
func TestUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		"a month": `NodeClaim claim-of-odd: spec.expireAfter: "a month" is no duration: use one such as 720h, or Never`,
		"-1h":     `NodeClaim claim-of-odd: spec.expireAfter: "-1h" is no duration`,
	} {
		good := claim("good", "720h", nil)
		good.SetUID("good")
		r := looked(t, 3, node("good"), node("odd"), good, claim("odd", text, nil))
		if end(r, "good") == "" || end(r, "odd") != "" {
			t.Errorf("they end %q and %q", end(r, "good"), end(r, "odd"))
		}
		if said := r.Told(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning NodeEndUnreadable "+want) {
			t.Errorf("it is told %q", said)
		}
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

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

// cluster is an API server with NodeClaims or without.
func cluster(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(clusterview.NodeClaimKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(clusterview.NodeClaimKind.GroupVersion().WithKind("NodeClaimList"), &unstructured.UnstructuredList{})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func end(t *testing.T, api client.Client, node string) string {
	t.Helper()
	var n corev1.Node
	if err := api.Get(t.Context(), client.ObjectKey{Name: node}, &n); err != nil {
		t.Fatal(err)
	}
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
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			if tc.node != nil {
				tc.node(node)
			}
			other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
			api := cluster(t, node, other, tc.claim)
			c := &Controller{Client: api, Events: events.NewFakeRecorder(10)}
			for range 2 { // the second time it has nothing to do
				if err := c.look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := end(t, api, "n"); got != tc.want {
				t.Errorf("it ends %q, want %q", got, tc.want)
			}
			if got := end(t, api, "other"); got != "" {
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
		good := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "good"}}
		odd := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "odd"}}
		recorder := events.NewFakeRecorder(10)
		goodClaim := claim("good", "720h", nil)
		goodClaim.SetUID("good")
		api := cluster(t, good, odd, goodClaim, claim("odd", text, nil))
		c := &Controller{Client: api, Events: recorder}
		for range 3 {
			if err := c.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if end(t, api, "good") == "" || end(t, api, "odd") != "" {
			t.Errorf("they end %q and %q", end(t, api, "good"), end(t, api, "odd"))
		}
		if said := <-recorder.Events; !strings.HasPrefix(said, "Warning NodeEndUnreadable "+want) || len(recorder.Events) > 0 {
			t.Errorf("it is told %s, and %d more", said, len(recorder.Events))
		}
	}
}

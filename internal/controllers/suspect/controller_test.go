// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package suspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

const ours = "espalier.dev/suspect=espalier:PreferNoSchedule"

// rig is a controller beside the nodes n1 to n3.
type rig struct {
	*testing.T
	*Controller
	clock *clocktesting.FakeClock
	// failing is what reading a record and patching a node come to.
	failing error
	patches int
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{T: t, clock: clocktesting.NewFakeClock(noon)}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok && r.failing != nil {
				return r.failing
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			r.patches++
			if r.failing != nil {
				return r.failing
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	o.Schedulers, o.Namespace = []string{"espalier"}, "kube-system"
	r.Controller = &Controller{Records: c, Nodes: c, Clock: r.clock, Options: o}
	for i := range 3 {
		r.node(fmt.Sprintf("n%d", i+1))
	}
	return r
}

func (r *rig) node(name string, taints ...corev1.Taint) {
	r.Helper()
	controllertest.Must(r, client.IgnoreNotFound(r.Nodes.Delete(r.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	controllertest.Must(r, r.Nodes.Create(r.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}))
}

// suspect writes a record with these suspects.
func (r *rig) suspect(nodes ...string) {
	r.Helper()
	written := record.New()
	written.Suspects = nodes
	text, err := written.Encode(record.Limit)
	controllertest.Must(r, err)
	r.write(string(text))
}

func (r *rig) write(text string) {
	r.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "espalier-failures"}}
	controllertest.Must(r, client.IgnoreNotFound(r.Nodes.Delete(r.Context(), object.DeepCopy())))
	object.Data = map[string]string{record.Key: text}
	controllertest.Must(r, r.Nodes.Create(r.Context(), object))
}

// want lets the controller look, and wants these taints on n1, n2 and n3.
func (r *rig) want(when string, want ...string) {
	r.Helper()
	r.look(r.Context())
	for i, want := range want {
		var node corev1.Node
		controllertest.Must(r, r.Nodes.Get(r.Context(), client.ObjectKey{Name: fmt.Sprintf("n%d", i+1)}, &node))
		var got []string
		for _, t := range node.Spec.Taints {
			got = append(got, t.Key+"="+t.Value+":"+string(t.Effect))
		}
		if got := strings.Join(got, ","); got != want {
			r.Errorf("%s: the taints of %s are %q, want %q", when, node.Name, got, want)
		}
	}
}

func options() Options {
	return Options{Effect: corev1.TaintEffectPreferNoSchedule, MaxPerHour: 9, MaxNodes: 9}
}

func TestSuspectsAreTainted(t *testing.T) {
	r := newRig(t, options())
	r.node("n1", corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoSchedule})
	r.want("without a record", "theirs=:NoSchedule", "", "")
	r.suspect("n1", "n3", "gone")
	r.want("with suspects", "theirs=:NoSchedule,"+ours, "", ours)
	r.want("again", "theirs=:NoSchedule,"+ours, "", ours)
	if r.patches != 2 {
		t.Errorf("nodes were patched %d times, want 2", r.patches)
	}
	r.suspect("n3")
	r.want("when one is over", "theirs=:NoSchedule", "", ours)
	controllertest.Must(r, r.Nodes.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("kube-system")))
	r.want("when the record is deleted", "theirs=:NoSchedule", "", "")
}

// However many are suspect, so many are tainted in an hour, and so many at once.
func TestSoManyAtOnce(t *testing.T) {
	r := newRig(t, Options{Effect: corev1.TaintEffectPreferNoSchedule, MaxPerHour: 1, MaxNodes: 9})
	r.suspect("n1", "n2")
	r.want("one an hour", ours, "", "")
	r.clock.Step(59 * time.Minute)
	r.want("within the hour", ours, "", "")
	r.suspect("n2")
	r.want("the first is over, within the hour", "", "", "")
	r.clock.Step(time.Minute)
	r.want("after the hour", "", ours, "")

	r = newRig(t, Options{Effect: corev1.TaintEffectPreferNoSchedule, MaxPerHour: 9, MaxNodes: 1})
	r.suspect("n1", "n2")
	r.want("one at once", ours, "", "")
	r.suspect("n2")
	r.want("the first is about to be over", "", "", "")
	r.want("the first is over", "", ours, "")
}

// A controller that starts takes away the taints that are not right, counts them, and leaves alone what is not of its schedulers.
func TestTaintsThatAreThere(t *testing.T) {
	r := newRig(t, Options{Effect: corev1.TaintEffectPreferNoSchedule, MaxPerHour: 1, MaxNodes: 9})
	taint := corev1.Taint{Key: clusterview.SuspectTaint, Value: "espalier", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: noon}}
	another := taint
	another.Value = "another"
	r.node("n1", taint)
	r.node("n2", another)
	r.suspect("n2")
	r.want("within the hour", "", "espalier.dev/suspect=another:NoSchedule", "")
	r.node("n1", taint)
	r.suspect("n1")
	r.want("with another effect", ours, "espalier.dev/suspect=another:NoSchedule", "")
}

// A taint that could not be set is tried again, and is not one of the hour's.
func TestATaintThatFails(t *testing.T) {
	r := newRig(t, Options{Effect: corev1.TaintEffectPreferNoSchedule, MaxPerHour: 1, MaxNodes: 9})
	r.suspect("n1")
	suspects, err := r.suspects(t.Context(), "espalier")
	controllertest.Must(r, err)
	r.failing = errors.New("timeout")
	controllertest.Must(r, r.taint(t.Context(), "espalier", suspects))
	r.failing = nil
	r.want("tried again", ours, "", "")
}

// What cannot be read switches nothing off and crashes nothing: the taints stay as they are.
func TestARecordThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{"torn": `{"version":1,`, "of a later version": `{"version":2}`, "of another kind": `[]`} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options())
			r.suspect("n1")
			r.want("before", ours, "", "")
			r.write(text)
			r.want(name, ours, "", "")
			r.suspect("n2")
			r.want("after", "", ours, "")
		})
	}
	r := newRig(t, options())
	r.suspect("n1")
	r.want("before", ours, "", "")
	r.suspect()
	r.failing = errors.New("timeout")
	r.want("without an API server", ours, "", "")
	r.failing = nil
	r.want("with one", "", "", "")
}

func TestValidate(t *testing.T) {
	controllertest.WantInvalid(t, options, map[string]func(*Options){
		`the effect of the taint is "NoExecute": use PreferNoSchedule or NoSchedule`: func(o *Options) { o.Effect = corev1.TaintEffectNoExecute },
		"0 is no bound of nodes tainted in an hour: use 1 to 1000":                   func(o *Options) { o.MaxPerHour = 0 },
		"1001 is no bound of nodes tainted at once: use 1 to 1000":                   func(o *Options) { o.MaxNodes = 1001 },
	})
}

func TestTrim(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Taints: []corev1.Taint{{Key: "k"}}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeDrainInProgress}}, Images: make([]corev1.ContainerImage, 1)},
	}
	got, err := Trim(node)
	trimmed, ok := got.(*corev1.Node)
	if err != nil || !ok || trimmed.Name != "n" || trimmed.ResourceVersion != "7" || len(trimmed.Spec.Taints) != 1 || trimmed.Labels != nil || trimmed.Spec.PodCIDR != "" ||
		len(trimmed.Status.Conditions) != 1 || trimmed.Status.Images != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

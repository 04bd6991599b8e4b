// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package recordingbinder_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/recordingbinder"
)

// handle is as much of the framework as the plugin asks for.
type handle struct {
	fwk.Handle
	client kubernetes.Interface
	calls  fwk.APICacher
	events *events.FakeRecorder
}

func (h *handle) ClientSet() kubernetes.Interface { return h.client }
func (h *handle) APICacher() fwk.APICacher        { return h.calls }

func (h *handle) EventRecorder() events.EventRecorderLogger { return h.events }

// calls are API calls that are made later.
type calls struct {
	fwk.APICacher
	made []*corev1.Binding
	err  error
}

func (c *calls) BindPod(binding *corev1.Binding) (<-chan error, error) {
	c.made = append(c.made, binding)
	finished := make(chan error, 1)
	finished <- c.err
	return finished, nil
}

func (*calls) WaitOnFinish(ctx context.Context, finished <-chan error) error {
	select {
	case err := <-finished:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bind has the plugin bind a pod, and returns the bindings that a client has sent.
func bind(t *testing.T, h *handle, state fwk.CycleState, pod *corev1.Pod, refuse error) ([]*corev1.Binding, *fwk.Status) {
	t.Helper()
	client := fake.NewClientset()
	var sent []*corev1.Binding
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "binding" {
			return false, nil, nil
		}
		sent = append(sent, action.(clienttesting.CreateAction).GetObject().(*corev1.Binding))
		return true, nil, refuse
	})
	h.client = client
	pl, err := recordingbinder.New(t.Context(), &config.RecordingBinderArgs{Candidates: 1, ScheduledEvents: config.ScheduledEventsAll}, h)
	if err != nil {
		t.Fatal(err)
	}
	status := pl.(fwk.BindPlugin).Bind(t.Context(), state, pod, "n1")
	return sent, status
}

func TestBind(t *testing.T) {
	spread := framework.NewCycleState()
	clusterview.WritePlacedBy(spread, clusterview.Levels{Source: clusterview.FromConstraints})
	confined := framework.NewCycleState()
	clusterview.WriteLevels(confined, clusterview.Levels{Source: clusterview.FromDefaults})
	pod := func() *st.PodWrapper { return st.MakePod().Namespace("ns").Name("p").UID("uid") }
	daemonSet := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	decided := framework.NewCycleState()
	clusterview.WritePlacedBy(decided, clusterview.Levels{Source: clusterview.FromConstraints})
	clusterview.WriteBinding(decided, map[string]string{clusterview.DecisionAnnotation: "fast"})
	leased := framework.NewCycleState()
	clusterview.WritePlacedBy(leased, clusterview.Levels{Source: clusterview.FromConstraints})
	expiry := map[string]string{clusterview.LeaseExpiryAnnotation: "2026-01-31T12:00:00Z"}
	clusterview.WriteBinding(leased, expiry)
	clusterview.WriteBinding(leased, map[string]string{clusterview.DecisionAnnotation: "fast"})
	leasedToDaemon := framework.NewCycleState()
	clusterview.WriteBinding(leasedToDaemon, expiry)
	by := func(what string) map[string]string { return map[string]string{clusterview.PlacedByAnnotation: what} }
	for name, tc := range map[string]struct {
		pod   *st.PodWrapper
		state fwk.CycleState
		want  map[string]string
	}{
		"a pod that is spread":    {pod(), spread, by("constraints")},
		"one with a node left":    {pod(), confined, by("defaults")},
		"one that says it itself": {pod().Annotation(clusterview.PlacedByAnnotation, "policy/x@1"), spread, by("constraints")},
		"one with a decision": {pod().Annotation(clusterview.DecisionAnnotation, "full"), decided, map[string]string{
			clusterview.PlacedByAnnotation: "constraints", clusterview.DecisionAnnotation: "fast",
		}},
		"one with a decision of its own": {pod().Annotation(clusterview.DecisionAnnotation, "full"), spread, map[string]string{
			clusterview.PlacedByAnnotation: "constraints", clusterview.DecisionAnnotation: "",
		}},
		"one with a lease": {pod().Annotation(clusterview.LeaseExpiryAnnotation, "2099-01-01T00:00:00Z"), leased, map[string]string{
			clusterview.PlacedByAnnotation: "constraints", clusterview.DecisionAnnotation: "fast", clusterview.LeaseExpiryAnnotation: "2026-01-31T12:00:00Z",
		}},
		"a DaemonSet's with a lease": {pod().OwnerReference("ds", daemonSet), leasedToDaemon, expiry},
		"one that says when its lease ends, and has none": {pod().Annotation(clusterview.LeaseExpiryAnnotation, "2099-01-01T00:00:00Z"), spread, map[string]string{
			clusterview.PlacedByAnnotation: "constraints", clusterview.LeaseExpiryAnnotation: "",
		}},
		"a pod of no cycle":                 {pod(), framework.NewCycleState(), nil},
		"a DaemonSet's pod":                 {pod().OwnerReference("ds", daemonSet), confined, nil},
		"a DaemonSet's that says it itself": {pod().OwnerReference("ds", daemonSet).Annotation(clusterview.PlacedByAnnotation, "policy/x@1"), confined, by("")},
	} {
		t.Run(name, func(t *testing.T) {
			later := &calls{}
			for _, h := range []*handle{{}, {calls: later}} {
				sent, status := bind(t, h, tc.state, tc.pod.Obj(), nil)
				if h.calls != nil {
					sent = later.made
				}
				if !status.IsSuccess() || len(sent) != 1 {
					t.Fatalf("%d bindings were sent: %v", len(sent), status)
				}
				b := sent[0]
				if b.Namespace != "ns" || b.Name != "p" || b.UID != "uid" || b.Target.Kind != "Node" || b.Target.Name != "n1" || !maps.Equal(b.Annotations, tc.want) {
					t.Errorf("the binding is %v", b)
				}
			}
		})
	}
}

// An API server in trouble is asked again, as DefaultBinder does; what is refused for good is not.
func TestBindAsksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		sent   int
	}{
		"an internal error":     {apierrors.NewInternalError(errors.New("etcd is starting")), 4},
		"not available":         {apierrors.NewServiceUnavailable("starting"), 4},
		"connection refused":    {syscall.ECONNREFUSED, 4},
		"a conflict":            {apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("it has a node")), 1},
		"none that is known of": {errors.New("no such node"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			sent, status := bind(t, &handle{}, framework.NewCycleState(), st.MakePod().Namespace("ns").Name("p").UID("uid").Obj(), tc.answer)
			if len(sent) != tc.sent || !errors.Is(status.AsError(), tc.answer) {
				t.Errorf("%d bindings were sent, want %d: %v", len(sent), tc.sent, status)
			}
		})
	}
}

// Annotations may have 256 KiB in all. A pod that has no room for its record is bound without, and somebody is told: with it no kubelet could write
// the pod's status before Kubernetes 1.38, and since then the API server refuses the binding.
func TestBindWithoutRoom(t *testing.T) {
	spread := framework.NewCycleState()
	clusterview.WritePlacedBy(spread, clusterview.Levels{Source: clusterview.FromConstraints})
	record := len(clusterview.PlacedByAnnotation) + len("constraints")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)
	for name, tc := range map[string]struct {
		large  int
		own    string // a record that somebody else has written
		refuse error
		want   []map[string]string
		event  bool
	}{
		"as much as there may be":  {large: 256<<10 - record, want: []map[string]string{{clusterview.PlacedByAnnotation: "constraints"}}},
		"a byte more":              {large: 256<<10 - record + 1, want: []map[string]string{nil}, event: true},
		"with a record of its own": {large: 256<<10 - record, own: "x", want: []map[string]string{{clusterview.DecisionAnnotation: ""}}, event: true},
		"it has grown since":       {large: 1, refuse: invalid, want: []map[string]string{{clusterview.PlacedByAnnotation: "constraints"}, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := st.MakePod().Namespace("ns").Name("p").UID("uid").Annotation("a", strings.Repeat("x", tc.large-1))
			if tc.own != "" {
				pod.Annotation(clusterview.DecisionAnnotation, tc.own)
			}
			h := &handle{events: events.NewFakeRecorder(10)}
			sent, status := bind(t, h, spread, pod.Obj(), tc.refuse)
			if !errors.Is(status.AsError(), tc.refuse) || !slices.EqualFunc(sent, tc.want, func(b *corev1.Binding, want map[string]string) bool { return maps.Equal(b.Annotations, want) }) {
				t.Errorf("bindings are %v, %v, want annotations %v", sent, status, tc.want)
			}
			if told := len(h.events.Events) == 1 && strings.Contains(<-h.events.Events, "larger than 262144 bytes"); told != tc.event {
				t.Errorf("somebody is told: %t", told)
			}
		})
	}
}

func TestBindFails(t *testing.T) {
	refused := errors.New("no such node")
	for name, h := range map[string]*handle{"now": {}, "later": {calls: &calls{err: refused}}} {
		if _, status := bind(t, h, framework.NewCycleState(), st.MakePod().Namespace("ns").Name("p").Obj(), refused); status.Code() != fwk.Error || !errors.Is(status.AsError(), refused) {
			t.Errorf("%s: got %v", name, status)
		}
	}
}

func TestArguments(t *testing.T) {
	want := plugintest.WantArguments(t, recordingbinder.Name, recordingbinder.New, &handle{})
	want("no candidate", &config.RecordingBinderArgs{ScheduledEvents: config.ScheduledEventsAll}, "candidates", "from 1 to 10")
}

// One pod in ten, and always the same.
func TestAnnounced(t *testing.T) {
	counts := map[config.ScheduledEvents]int{}
	const pods = 10_000
	for i := range pods {
		pod := st.MakePod().UID(fmt.Sprintf("d6c2a1f4-0000-4000-8000-%012x", i)).Obj()
		for _, events := range []config.ScheduledEvents{config.ScheduledEventsAll, config.ScheduledEventsSampled, config.ScheduledEventsOff} {
			announced := recordingbinder.Announced(events, pod)
			if announced != recordingbinder.Announced(events, pod) {
				t.Fatalf("pod %s is announced now and then", pod.UID)
			}
			if announced {
				counts[events]++
			}
		}
	}
	if n := counts[config.ScheduledEventsSampled]; counts[config.ScheduledEventsAll] != pods || counts[config.ScheduledEventsOff] != 0 || n < pods/12 || n > pods/8 {
		t.Errorf("of %d pods %v are announced", pods, counts)
	}
}

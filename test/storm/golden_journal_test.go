// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// journal is what the scheduler does, by the pod that it is about. What many goroutines write has no order but that of one pod.
type journal struct {
	g *goldenRun

	mu    sync.Mutex // guards what follows
	lines map[string][]string
	// tried are the pods in the order in which they were decided.
	tried []string
	// failed is how often a pod was refused, and written how often that was written down.
	failed, written map[string]int
	// announced are the events Scheduled, and bound where pods were bound.
	announced, bound map[string]string
	// others are lines about no pod.
	others []string
}

// newJournal watches what the scheduler writes.
func newJournal(g *goldenRun) *journal {
	j := &journal{g: g}
	j.clear()
	g.server.PrependReactor("create", "pods", j.binding)
	g.server.PrependReactor("patch", "pods", j.status)
	g.server.PrependReactor("delete", "pods", j.deletion)
	g.server.PrependReactor("create", "events", j.event)
	return j
}

func (j *journal) clear() {
	j.lines, j.tried, j.others = make(map[string][]string), nil, nil
	j.failed, j.written = make(map[string]int), make(map[string]int)
	j.announced, j.bound = make(map[string]string), make(map[string]string)
}

// note adds lines about a pod.
func (j *journal) note(pod string, lines ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines[pod] = append(j.lines[pod], lines...)
}

// has reports whether anything is known of a pod.
func (j *journal) has(pod string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.lines[pod]) > 0 || j.failed[pod] > 0 || slices.Contains(j.tried, pod)
}

// take returns what was noted, in order, and begins anew.
func (j *journal) take() (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for pod, n := range j.failed {
		if more := n - j.written[pod]; more > 0 {
			j.lines[pod] = append(j.lines[pod], fmt.Sprintf("refused as before, %d times", more))
		}
	}
	for pod, node := range j.bound {
		want := fmt.Sprintf("Successfully assigned %s to %s", pod, node)
		if note, is := j.announced[pod]; !is {
			j.lines[pod] = append(j.lines[pod], "no event Scheduled")
		} else if _, short, _ := strings.Cut(note, "/"); !strings.HasSuffix(want, short) {
			j.lines[pod] = append(j.lines[pod], "event Scheduled: "+note)
		}
	}
	if len(j.tried) > 1 {
		lines = append(lines, "decided in this order: "+strings.Join(j.tried, ", "))
	}
	for _, pod := range slices.Sorted(maps.Keys(j.lines)) {
		for _, line := range j.lines[pod] {
			if len(j.lines) > 1 {
				line = pod + ": " + line
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(j.others)
	for len(j.others) > 0 {
		n := 1
		for n < len(j.others) && j.others[n] == j.others[0] {
			n++
		}
		line := j.others[0]
		if n > 1 {
			line = fmt.Sprintf("%d times: %s", n, line)
		}
		lines, j.others = append(lines, line), j.others[n:]
	}
	j.clear()
	return lines
}

// shortKey is the key of an annotation without what those of a binding have in common. Another prefix is written down.
var shortKey = strings.NewReplacer("espalier.dev/", "", "controller.kubernetes.io/", "")

// shippedLevels are those of a pod that asks for nothing, which most do. The file has them once.
const shippedLevels = "spread=topology.kubernetes.io/zone;nodesWithoutKey=LastResort,spread=kubernetes.io/hostname;nodesWithoutKey=LastResort"

// binding notes where a pod is bound, and with what.
func (j *journal) binding(action clientgotesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	b := action.(clientgotesting.CreateAction).GetObject().(*corev1.Binding)
	if err := (*j.g.refusal.Load())(b); err != nil {
		j.note(b.Name, fmt.Sprintf("the binding to %s is refused: %v", b.Target.Name, err))
		return true, nil, err
	}
	handled, obj, err := j.g.server.bind(action)
	lines := []string{"node " + b.Target.Name}
	if err != nil {
		lines = []string{fmt.Sprintf("the binding to %s fails: %v", b.Target.Name, err)}
	}
	for _, key := range slices.Sorted(maps.Keys(b.Annotations)) {
		lines = append(lines, shortKey.Replace(key)+" "+strings.Replace(b.Annotations[key], shippedLevels, "...", 1))
	}
	for _, key := range slices.Sorted(maps.Keys(b.Labels)) {
		lines = append(lines, "label "+key+" "+b.Labels[key])
	}
	j.note(b.Name, lines...)
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.bound[b.Name] = b.Target.Name
	}
	return handled, obj, err
}

// status notes what is written into the status of a pod.
func (j *journal) status(action clientgotesting.Action) (bool, runtime.Object, error) {
	patch := action.(clientgotesting.PatchAction)
	var is struct {
		Status struct {
			NominatedNodeName json.RawMessage       `json:"nominatedNodeName"`
			Conditions        []corev1.PodCondition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(patch.GetPatch(), &is); err != nil {
		return true, nil, err
	}
	var lines []string
	for _, c := range is.Status.Conditions {
		switch {
		case c.Type == corev1.PodScheduled && (c.Reason == corev1.PodReasonUnschedulable || c.Reason == ""): // else it has changed
			lines = append(lines, "refused: "+c.Message)
		case c.Message != "":
			lines = append(lines, fmt.Sprintf("condition %s, %s: %s", c.Type, c.Reason, c.Message))
		}
		if c.Type == corev1.PodScheduled {
			j.mu.Lock()
			j.written[patch.GetName()]++
			j.mu.Unlock()
		}
	}
	if name := string(is.Status.NominatedNodeName); name != "" {
		lines = append(lines, "nominated for "+name)
	}
	j.note(patch.GetName(), lines...)
	return false, nil, nil
}

// deletion notes that a pod is evicted. It terminates until somebody removes it, as a pod that runs does.
func (j *journal) deletion(action clientgotesting.Action) (bool, runtime.Object, error) {
	del := action.(clientgotesting.DeleteActionImpl)
	if len(del.GetDeleteOptions().DryRun) > 0 {
		j.note(del.GetName(), "may it be evicted?")
		return true, nil, nil
	}
	j.note(del.GetName(), "evicted")
	obj, err := j.g.server.store.Get(pods, del.GetNamespace(), del.GetName())
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*corev1.Pod)
	if pod.DeletionTimestamp == nil {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
	}
	return true, nil, j.g.server.store.Update(pods, pod, pod.Namespace)
}

// event notes events, but for that a pod was refused, of which the message is noted, and that it was bound where it was.
func (j *journal) event(action clientgotesting.Action) (bool, runtime.Object, error) {
	e, is := action.(clientgotesting.CreateAction).GetObject().(*eventsv1.Event)
	if !is {
		return false, nil, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch e.Reason {
	case "FailedScheduling":
	case "Scheduled":
		j.announced[e.Regarding.Name] = e.Note
	default:
		j.others = append(j.others, fmt.Sprintf("event %s %s of %s %s: %s", e.Type, e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note))
	}
	return false, nil, nil
}

// reported notes an error that is only logged.
func (j *journal) reported(err error, msg string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.others = append(j.others, fmt.Sprintf("logged: %s: %v", msg, err))
}

// failures notes that a pod was refused.
func (j *journal) failures(handle scheduler.FailureHandlerFn) scheduler.FailureHandlerFn {
	return func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		j.mu.Lock()
		j.failed[pod.Pod.Name]++
		j.mu.Unlock()
		handle(ctx, f, pod, status, nominating, start)
	}
}

// decided notes that a pod is decided.
func (j *journal) decided(pod string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tried = append(j.tried, pod)
}

// uidOf is the UID of an object, of which there is one of its name.
func uidOf(kind, name string) types.UID { return types.UID(strings.ToLower(kind) + "/" + name) }

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podoutcome reads from a pod what has gone wrong with it on its node, and what well.
//
//   - outcome.go: its failures, and its success; kinds.go: what they are called
//   - placed.go: since when it is on its node
package podoutcome

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// Failure is something that went wrong with a pod on its node. Two schedulers that
// look at the same pod, one now and one later, see the same failures.
type Failure struct {
	// Key tells the failures of one pod apart: what is seen again has it again, and
	// is counted once. Containers that end in the same second are one failure, and so
	// is a whole pod that hangs: a pod of five containers does not fail five times
	// when its sandbox breaks.
	Key string
	// Kind is the error. There are some 300 at most, however pods and events are
	// written; a reason that is not known is KindOther.
	Kind string
	// At is when, by the clock of the node; zero if nothing says so. What hangs has
	// failed when it began to.
	At time.Time
	// Message says more, for people.
	Message string
}

// Failures lists what has gone wrong with a pod on its node, as far as its status
// shows it, in no particular order.
//
// Nothing is the node's fault from the moment the pod is terminating, or is disrupted
// by somebody else: what it showed before has been seen before. A container's exit
// counts once it is known not to be part of the pod's end: when the container has been
// started again or waits for that, when others of the pod run on, or when the pod has
// failed because of it. The kubelet reports that containers were killed before it says
// why, and the pods of a node that shuts down must not count against it. So exits count
// a moment late; the pod has not succeeded meanwhile either.
//
// Ephemeral containers are people looking around: they do not count.
func Failures(pod *corev1.Pod) []Failure {
	if pod.DeletionTimestamp != nil || disrupted(pod) {
		return nil
	}
	o := outcome{pod: pod}
	o.containers(pod.Status.InitContainerStatuses)
	o.containers(pod.Status.ContainerStatuses)
	switch {
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		o.failedFor(pod.Status.Reason)
	case pod.Status.Phase == corev1.PodFailed:
		o.failed()
	case pod.Status.Phase == corev1.PodRunning:
		o.exitsBesideOthers()
	}
	return o.failures
}

// Success tells since when a pod does well on its node: it has succeeded, or it is
// ready and nothing in it has failed since. How long a pod must have been ready to
// have proven itself is the caller's to say; Succeeded is proof at once. The time is zero
// if nothing says when.
func Success(pod *corev1.Pod) (since time.Time, ok bool) {
	if pod.DeletionTimestamp != nil {
		return time.Time{}, false
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		for i := range pod.Status.ContainerStatuses {
			if end := pod.Status.ContainerStatuses[i].State.Terminated; end != nil {
				since = Latest(since, end.FinishedAt.Time)
			}
		}
		return cmp.Or(since, completed(pod)), true
	}
	ready := condition(pod, corev1.PodReady)
	if pod.Status.Phase != corev1.PodRunning || ready == nil || ready.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	since = ready.LastTransitionTime.Time
	// A container without a probe is ready as soon as it runs: one that crashes and is
	// back at once may never have been seen not to be.
	for _, f := range Failures(pod) {
		since = Latest(since, f.At)
	}
	return since, true
}

// disrupted reports that a pod is being ended for a reason that is not its node's:
// the API's eviction, preemption, a taint, garbage collection, the kubelet making room
// for a critical pod, the machine shutting down. The kubelet says the same of pods that
// it evicts because the node runs out of something; these are the node's failures.
func disrupted(pod *corev1.Pod) bool {
	c := condition(pod, corev1.DisruptionTarget)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false
	}
	return c.Reason != corev1.PodReasonTerminationByKubelet || pod.Status.Reason != reasonEvicted
}

// outcome collects the failures of one pod.
type outcome struct {
	pod      *corev1.Pod
	failures []Failure
}

// add adds a failure unless there is one with its key.
func (o *outcome) add(f Failure) {
	if !slices.ContainsFunc(o.failures, func(g Failure) bool { return g.Key == f.Key }) {
		f.Message = syntax.CutTo(f.Message, messageLimit)
		o.failures = append(o.failures, f)
	}
}

// containers adds what is certain of containers whatever the pod's phase: that one
// has ended with an error and was started again, and that one cannot be started.
func (o *outcome) containers(statuses []corev1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		last := s.LastTerminationState.Terminated
		o.exit(s.Name, last)
		w := s.State.Waiting
		if w == nil {
			continue
		}
		// How a container ended that waits to be started again is told beside it, and
		// that may have been well.
		told := last != nil && (w.Reason == reasonCrashLoop || w.Reason == reasonRunContainer)
		if kind := waitingKind(w.Reason); kind != "" && !told {
			at := o.notReadySince()
			if last != nil {
				at = Latest(at, last.FinishedAt.Time)
			}
			o.add(Failure{Key: "waiting/" + kind, Kind: kind, At: at, Message: w.Message})
		}
	}
}

// exit adds that a container has ended, if that was a failure.
func (o *outcome) exit(container string, end *corev1.ContainerStateTerminated) {
	if !o.failure(container, end) {
		return
	}
	f := Failure{Key: "exit/" + container, Kind: exitKind(end), At: end.FinishedAt.Time, Message: end.Message}
	if f.At.IsZero() { // The kubelet has lost the container.
		f.At = o.notReadySince()
	} else {
		f.Key = "exit/" + strconv.FormatInt(f.At.Unix(), 10)
	}
	o.add(f)
}

// failure reports whether it counts how a container has ended. It does not if it was
// killed for a memory limit of its own or of its pod; one without is killed because
// the node has run out.
func (o *outcome) failure(container string, end *corev1.ContainerStateTerminated) bool {
	if end == nil || end.ExitCode == 0 || end.Reason == reasonRestartingAll {
		return false
	}
	return end.Reason != reasonOOMKilled || !o.memoryLimited(container)
}

func (o *outcome) memoryLimited(container string) bool {
	spec := &o.pod.Spec
	if spec.Resources != nil && !spec.Resources.Limits.Memory().IsZero() {
		return true
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name == container {
			return !c.Resources.Limits.Memory().IsZero()
		}
	}
	return false
}

// exitsBesideOthers adds the containers of a running pod that have ended while others
// of it run: the kubelet reports a pod that it ends only when all have.
func (o *outcome) exitsBesideOthers() {
	statuses := o.pod.Status.ContainerStatuses
	if !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil }) {
		return
	}
	for i := range statuses {
		o.exit(statuses[i].Name, statuses[i].State.Terminated)
	}
}

// failed adds the failure of a pod whose containers have ended it: the first of them
// that failed. Sidecars are killed when the others have ended, which is no failure.
func (o *outcome) failed() {
	var first *corev1.ContainerStatus
	excused := false
	for _, s := range slices.Concat(o.pod.Status.InitContainerStatuses, o.pod.Status.ContainerStatuses) {
		end := s.State.Terminated
		if end == nil || end.ExitCode == 0 || o.sidecar(s.Name) {
			continue
		}
		if !o.failure(s.Name, end) {
			excused = true
			continue
		}
		if first == nil || end.FinishedAt.Before(&first.State.Terminated.FinishedAt) {
			first = &s
		}
	}
	switch {
	case first != nil:
		o.exit(first.Name, first.State.Terminated)
	case !excused:
		o.add(Failure{Key: "phase", Kind: KindFailed, At: o.endedAt(), Message: o.pod.Status.Message})
	}
}

func (o *outcome) sidecar(container string) bool {
	return slices.ContainsFunc(o.pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == container && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// failedFor adds the failure of a pod that somebody else than its containers has
// ended, the kubelet as a rule: it was refused, or evicted.
func (o *outcome) failedFor(reason string) {
	kind := endKind(reason)
	if reason == reasonEvicted && condition(o.pod, corev1.DisruptionTarget) == nil && len(o.pod.Status.ContainerStatuses) > 0 {
		// Evicted for more disk than the pod's own limit: that is no disruption to the
		// kubelet. A pod that is refused under pressure has no containers.
		return
	}
	if kind != "" {
		o.add(Failure{Key: "phase", Kind: kind, At: o.endedAt(), Message: o.pod.Status.Message})
	}
}

// endedAt is when a pod that has failed did. One that was refused says when the
// kubelet first saw it, which is when it refused it.
func (o *outcome) endedAt() time.Time {
	var at time.Time
	if c := condition(o.pod, corev1.DisruptionTarget); c != nil {
		at = c.LastTransitionTime.Time
	}
	for i := range o.pod.Status.ContainerStatuses {
		if end := o.pod.Status.ContainerStatuses[i].State.Terminated; end != nil {
			at = Latest(at, end.FinishedAt.Time)
		}
	}
	if at.IsZero() && o.pod.Status.StartTime != nil {
		at = o.pod.Status.StartTime.Time
	}
	return at
}

// notReadySince is since when a pod hangs. Waiting containers have no time of their own.
func (o *outcome) notReadySince() time.Time {
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		if c := condition(o.pod, t); c != nil && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func condition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}

// Latest is the later of two times.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// EventFailure tells what a warning of a kubelet says of a pod that the pod's status
// does not. ok is false if that is nothing. The pod is the event's InvolvedObject, by
// its UID: a later one of the same name has nothing to do with it. An event is
// repeated for as long as its reason lasts, and is one failure, of when it began.
func EventFailure(event *corev1.Event) (f Failure, ok bool) {
	of := &event.InvolvedObject
	if event.Type != corev1.EventTypeWarning || of.Kind != "Pod" || of.UID == "" || of.APIVersion != "" && of.APIVersion != "v1" {
		return Failure{}, false
	}
	if cmp.Or(event.ReportingController, event.Source.Component) != kubelet {
		return Failure{}, false
	}
	kind := eventKind(event.Reason, of.FieldPath)
	if kind == "" || isTooSoon(event.Message) {
		return Failure{}, false
	}
	at := cmp.Or(event.FirstTimestamp.Time, event.EventTime.Time, event.CreationTimestamp.Time)
	return Failure{Key: "event/" + kind, Kind: kind, At: at, Message: syntax.CutTo(event.Message, messageLimit)}, true
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// FailAnnotation on a pod makes it fail on whatever node it lands; the value is the
// name of a failure kind. It is how a broken image or program is told from a broken node.
const FailAnnotation = Prefix + "fail"

// againMillis is the pause between two crashes of a restarting container.
const againMillis = 5000

// FailureKind is one way in which a pod goes wrong, as a kubelet would report it.
type FailureKind struct {
	Name string // what a user types
	Help string
	// Reason is the kubelet's word for it, "" if there is only one. See Because.
	Reason string

	template string
	fill     []string // for the template, besides the reason
	event    string   // what the warning of the reason says, "" if there is none
	repeats  bool     // the containers are restarted and fail again
}

// FailureKinds lists all kinds in the order in which the help shows them.
func FailureKinds() []FailureKind {
	const told = "devcluster was told to fail it"
	creating := []string{"WAITING", "ContainerCreating"}
	restarting := func(name, reason string, exit int, help string) FailureKind {
		return FailureKind{Name: name, Help: help, repeats: true, template: "fail-restart", fill: []string{"LAST", reason, "EXIT", strconv.Itoa(exit)}}
	}
	return []FailureKind{
		{
			Name: "rejected", Help: "the kubelet refuses the pod: phase Failed, no container is started, an event",
			Reason: "UnexpectedAdmissionError", template: "fail-rejected", event: told,
		},
		{Name: "error", Help: "all containers end with exit code 1: phase Failed", template: "fail-error"},
		restarting("crashloop", "Error", 1, "containers end with exit code 1 and are restarted, again and again"),
		restarting("oom", "OOMKilled", 137, "containers are killed for their own memory limit and restarted"),
		{Name: "image", Help: "the image cannot be pulled: phase Pending", Reason: "ImagePullBackOff", template: "fail-waiting"},
		{Name: "create", Help: "the container cannot be created: phase Pending", Reason: "CreateContainerError", template: "fail-waiting"},
		{
			Name: "mount", Help: "a volume cannot be mounted: phase Pending, a FailedMount event",
			Reason: "FailedMount", template: "fail-waiting", fill: creating, event: "MountVolume.SetUp failed: " + told,
		},
		{
			Name: "sandbox", Help: "the pod's sandbox cannot be made: phase Pending, an event",
			Reason: "FailedCreatePodSandBox", template: "fail-waiting", fill: creating, event: "Failed to create pod sandbox: " + told,
		},
	}
}

// reasonForm is what reasons look like, those of extended resources included.
var reasonForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9./_-]*$`)

// Because is the kind with another word of the kubelet for it, such as OutOfcpu for
// a pod that is refused.
func (k FailureKind) Because(reason string) (FailureKind, error) {
	if k.Reason == "" {
		return k, fmt.Errorf("a pod that fails as %q has one reason only: leave it out", k.Name)
	}
	if !reasonForm.MatchString(reason) {
		return k, fmt.Errorf("%q is not a reason: write one word, such as %s", reason, k.Reason)
	}
	k.Reason = reason
	return k, nil
}

// status is the template of a pod's status.
func (k FailureKind) status() string {
	fill := k.fill
	if fill == nil {
		fill = []string{"WAITING", k.Reason}
	}
	return template(k.template, slices.Concat(fill, []string{"REASON", k.Reason})...)
}

// warning is the event of the kind, nil if there is none.
func (k FailureKind) warning() *Event {
	if k.event == "" {
		return nil
	}
	return &Event{Type: "Warning", Reason: k.Reason, Message: k.event}
}

// FailureKindNamed finds a kind; the error lists all of them.
func FailureKindNamed(name string) (FailureKind, error) {
	var names []string
	for _, kind := range FailureKinds() {
		if kind.Name == name {
			return kind, nil
		}
		names = append(names, kind.Name)
	}
	return FailureKind{}, fmt.Errorf("unknown way to fail %q: choose one of %s", name, strings.Join(names, ", "))
}

// onNode are the stages that make pods fail on one node: those with the given labels
// (nil means all), and of these only such as have not started yet unless running is set.
func (k FailureKind) onNode(node string, labels map[string]string, running bool) []Stage {
	base := Stage{
		Name:   failureStageName(node),
		Labels: labels,
		Match:  []Match{{JQ: ".spec.nodeName", Operator: "In", Values: []string{node}}},
	}
	return k.stages(base, running)
}

// onAnnotatedPods are the stages that make pods fail which ask for it.
func (k FailureKind) onAnnotatedPods() []Stage {
	return k.stages(Stage{
		Name:        "pod-fail-" + k.Name,
		Annotations: map[string]string{FailAnnotation: k.Name},
	}, false)
}

func (k FailureKind) stages(base Stage, running bool) []Stage {
	base.Kind, base.Weight = "Pod", 1
	base.Status, base.Event = k.status(), k.warning()

	first := base
	first.Match = append([]Match{notDeleted}, base.Match...)
	if running {
		first.Match = append(first.Match, phaseIn("Pending", "Running"))
	} else {
		first.Match = append(first.Match, phaseIn("Pending"))
	}
	if !k.repeats {
		return []Stage{first}
	}
	backingOff := Match{JQ: waitingReason, Operator: "In", Values: []string{"CrashLoopBackOff"}}
	calm := Match{JQ: waitingReason, Operator: "NotIn", Values: []string{"CrashLoopBackOff"}}
	first.Match = append(first.Match, calm)

	again := base
	again.Name += againSuffix
	again.Match = append([]Match{notDeleted, phaseIn("Running"), backingOff}, base.Match...)
	again.DelayMillis = againMillis
	return []Stage{first, again}
}

const againSuffix = ".again"

func failureStageName(node string) string { return "fail." + node }

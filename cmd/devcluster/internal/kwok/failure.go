// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"fmt"
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

	status  string
	event   *Event
	repeats bool // the containers are restarted and fail again
}

// FailureKinds lists all kinds in the order in which the help shows them.
func FailureKinds() []FailureKind {
	waiting := func(name, reason, help string, event *Event) FailureKind {
		return FailureKind{Name: name, Help: help, event: event, status: template("fail-waiting", "REASON", reason)}
	}
	restarting := func(name, reason string, exit int, help string) FailureKind {
		return FailureKind{
			Name: name, Help: help, repeats: true,
			status: template("fail-restart", "REASON", reason, "EXIT", strconv.Itoa(exit)),
		}
	}
	return []FailureKind{
		{Name: "rejected", Help: "the kubelet refuses the pod: phase Failed, no container is started", status: template("fail-rejected")},
		{Name: "error", Help: "all containers end with exit code 1: phase Failed", status: template("fail-error")},
		restarting("crashloop", "Error", 1, "containers end with exit code 1 and are restarted, again and again"),
		restarting("oom", "OOMKilled", 137, "containers are killed for their own memory limit and restarted"),
		waiting("image", "ImagePullBackOff", "the image cannot be pulled: phase Pending", nil),
		waiting("create", "CreateContainerError", "the container cannot be created: phase Pending", nil),
		waiting("mount", "ContainerCreating", "a volume cannot be mounted: phase Pending, a FailedMount event",
			&Event{"Warning", "FailedMount", "MountVolume.SetUp failed: devcluster was told to fail it"}),
		waiting("sandbox", "ContainerCreating", "the pod's sandbox cannot be made: phase Pending, an event",
			&Event{"Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: devcluster was told to fail it"}),
	}
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
	base.Status, base.Event = k.status, k.event

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

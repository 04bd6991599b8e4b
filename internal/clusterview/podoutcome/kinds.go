// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podoutcome

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The vocabulary of errors: reasons as the kubelet writes them, some of them taken
// together. It is closed, because the owner of a pod can write anything into an event
// about it, and memory and metrics grow with the kinds there are.
const (
	// KindOther is a reason that is not known here: the message has it.
	KindOther = "Other"
	// KindFailed is a pod that has failed without saying why.
	KindFailed = "Failed"
	// KindImagePull is a pull that fails, and the pause before the next one.
	KindImagePull = "ErrImagePull"
	// KindExtendedResources is a node without an extended resource that it was to have.
	KindExtendedResources = "OutOfExtendedResources"
	// KindContainerLost is a container of which the kubelet or its runtime has lost track.
	KindContainerLost = "ContainerStatusUnknown"
	// KindExit is a container that ended with an error. Its exit code follows in
	// brackets, so that a program that ends with 1 everywhere does not excuse a node
	// on which it dies of an illegal instruction.
	KindExit = "Error"
)

// Reasons that mean something to more than the vocabulary.
const (
	kubelet             = "kubelet"
	reasonEvicted       = "Evicted"
	reasonCrashLoop     = "CrashLoopBackOff"
	reasonRunContainer  = "RunContainerError"
	reasonOOMKilled     = "OOMKilled"
	reasonRestartingAll = "RestartingAllContainers"
)

// messageLimit bounds messages, in bytes.
const messageLimit = 256

// endKind is the kind of a reason why a pod was ended from outside, "" if that is no
// failure of its node.
func endKind(reason string) string {
	switch reason {
	case "Preempting", // by the kubelet, for a critical pod
		"Terminated", "NodeShutdown", "Shutdown", // the machine shuts down
		"DeadlineExceeded": // the pod's own
		return ""
	case "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods",
		"NodeAffinity", "NodeName", "NodePorts", "TaintToleration",
		"UnexpectedAdmissionError", "UnknownReason", "UnexpectedPredicateFailureType", "InvalidNodeInfo",
		"TopologyAffinityError", "EmptyPodSharedPoolError", "VolumeAttachmentLimitExceeded",
		"PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "SupplementalGroupsPolicyNotSupported",
		"PodLevelResourcesNotSupported", "PodFeatureUnsupported", "InitContainerRestartPolicyForbidden",
		"AppArmor", "SysctlForbidden", reasonEvicted:
		return reason
	}
	if strings.HasPrefix(reason, "OutOf") {
		return KindExtendedResources
	}
	return KindOther
}

// waitingKind is the kind of a reason why a container waits, "" if that is no failure.
// A reason that is not known is one if it reads like one: players of nodes other than
// the kubelet have their own words for a container that is being made.
func waitingKind(reason string) string {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed":
		return KindImagePull
	case "ImageInspectError", "ErrImageNeverPull", "InvalidImageName", "ImageVolumeMountFailed",
		"CreateContainerConfigError", "CreateContainerError", "PreCreateHookError", "PreStartHookError",
		"PostStartHookError", reasonRunContainer, "CreatePodSandboxError", "ConfigPodSandboxError", reasonCrashLoop:
		return reason
	}
	if strings.HasPrefix(reason, "Err") {
		return KindOther
	}
	for _, end := range []string{"Error", "Failed", "BackOff"} {
		if strings.HasSuffix(reason, end) {
			return KindOther
		}
	}
	return ""
}

// exitKind is the kind of a container's end that was a failure.
func exitKind(end *corev1.ContainerStateTerminated) string {
	switch end.Reason {
	case reasonOOMKilled, "StartError", "ContainerCannotRun":
		return end.Reason
	case KindContainerLost, "Unknown":
		return KindContainerLost
	}
	// Windows has exit codes of 32 bits.
	if end.ExitCode < 0 || end.ExitCode > 255 {
		return KindExit
	}
	return KindExit + "(" + strconv.Itoa(int(end.ExitCode)) + ")"
}

// eventKind is the kind of a reason of the kubelet's warnings, "" if that is no
// failure, or one that the pod's status shows as well. Volumes that cannot be attached
// are not here: that is their controller's news, and mostly of another node that still
// has the volume.
func eventKind(reason, fieldPath string) string {
	switch reason {
	case "FailedCreatePodSandBox", "FailedPodSandBoxStatus", "FailedMount", "FailedMapVolume",
		"FailedMountOnFilesystemMismatch", "FailedPrepareDynamicResources", "FailedCreatePodContainer",
		"NetworkNotReady":
		return reason
	case "Failed":
		// Of a container it is in the status. Of the pod, its folders could not be made.
		if fieldPath == "" {
			return "FailedMakePodDataDirectories"
		}
	}
	return ""
}

// tooSoon are what a kubelet and its API server say when the one has heard of a pod that the other
// has not, or not yet of what it mounts. A busy API server is enough for that, on any node.
// It is tried again at once, and what is wrong with the node says so in other words.
var tooSoon = []string{
	"node requested token bound to a pod scheduled on a different node",
	"failed to sync configmap cache", "failed to sync secret cache",
}

func isTooSoon(message string) bool {
	return slices.ContainsFunc(tooSoon, func(words string) bool { return strings.Contains(message, words) })
}

// KindClass is what a kind is one of: its word, without the exit code. A program may end
// with another code each time.
func KindClass(kind string) string {
	before, _, _ := strings.Cut(kind, "(")
	return before
}

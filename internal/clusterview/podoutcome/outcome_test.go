// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podoutcome_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// at is a time, some seconds after the pods of these tests were bound.
func at(seconds int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, 0, seconds, 0, time.UTC))
}

func exitKey(seconds int) string { return fmt.Sprintf("exit/%d", at(seconds).Unix()) }

// bound is a pod on a node with an init container, a sidecar and the containers app and log, of which app has a memory limit.
func bound(change func(*corev1.Pod)) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	limit := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	pod := &corev1.Pod{}
	pod.Name, pod.UID, pod.Spec.NodeName = "p", "u", "n1"
	pod.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Resources: limit}, {Name: "log"}}
	pod.Status.Phase = corev1.PodRunning
	change(pod)
	return pod
}

// with is a pod whose main containers have the given statuses.
func with(phase corev1.PodPhase, statuses ...corev1.ContainerStatus) *corev1.Pod {
	return bound(func(p *corev1.Pod) { p.Status.Phase, p.Status.ContainerStatuses = phase, statuses })
}

func withInit(phase corev1.PodPhase, statuses ...corev1.ContainerStatus) *corev1.Pod {
	return bound(func(p *corev1.Pod) { p.Status.Phase, p.Status.InitContainerStatuses = phase, statuses })
}

// ended is a pod that has failed for a reason of its own, as a kubelet writes it.
func ended(reason string, change ...func(*corev1.Pod)) *corev1.Pod {
	return bound(func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.StartTime = corev1.PodFailed, reason, new(at(1))
		for _, c := range change {
			c(p)
		}
	})
}

func target(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: at(9),
		})
	}
}

func hasRun(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{dead("app", exit(137, 8))}
}

func exit(code int32, seconds int) *corev1.ContainerStateTerminated {
	reason := "Error"
	if code == 0 {
		reason = "Completed"
	}
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: at(seconds)}
}

func oom(seconds int) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: at(seconds)}
}

func running(name string, last *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: name, LastTerminationState: corev1.ContainerState{Terminated: last}}
	s.State.Running = &corev1.ContainerStateRunning{}
	return s
}

func waiting(name, reason string, last *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: name, LastTerminationState: corev1.ContainerState{Terminated: last}}
	s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
	return s
}

func dead(name string, end *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: end}}
}

// also changes a pod.
func also(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(p)
	return p
}

func TestFailures(t *testing.T) {
	type failures = []podoutcome.Failure
	refused := func(kind string) failures { return failures{{Key: "phase", Kind: kind, At: at(1).Time}} }
	exited := func(kind string, seconds int) failures {
		return failures{{Key: exitKey(seconds), Kind: kind, At: at(seconds).Time}}
	}
	hangs := func(kind string) failures { return failures{{Key: "waiting/" + kind, Kind: kind}} }
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = new(at(3)) }
	unready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: at(2)}}
	}
	podLimit := func(p *corev1.Pod) { p.Spec.Resources = &p.Spec.Containers[0].Resources }
	const run, pend, failed = corev1.PodRunning, corev1.PodPending, corev1.PodFailed
	lost := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}
	restarting := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "RestartingAllContainers"}
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want failures
	}{
		{"a pod that starts", with(pend, waiting("app", "ContainerCreating", nil)), nil},
		{"init containers are at work", with(pend, waiting("app", "PodInitializing", nil)), nil},
		{"somebody else's word for starting", with(pend, waiting("app", "Waiting", nil)), nil},
		{"a pod that runs", with(run, running("app", nil), running("log", nil)), nil},
		{"a pod that has succeeded, its sidecar killed", also(withInit(corev1.PodSucceeded, dead("sidecar", exit(143, 5))), func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{dead("app", exit(0, 4))}
		}), nil},

		// The kubelet refuses a pod with a phase, a reason, a message and the time it saw it.
		{"refused", ended("UnexpectedAdmissionError"), refused("UnexpectedAdmissionError")},
		{"refused for lack of CPU", ended("OutOfcpu"), refused("OutOfcpu")},
		{"refused for lack of a device", ended("OutOfexample.com/gpu"), refused("OutOfExtendedResources")},
		{"refused for a port", ended("NodePorts"), refused("NodePorts")},
		{"refused for a label", ended("NodeAffinity"), refused("NodeAffinity")},
		{"refused under pressure", ended("Evicted"), refused("Evicted")},
		{"refused in words yet unknown", ended("Moody"), refused("Other")},
		{"refused while the machine shuts down", ended("NodeShutdown"), nil},

		{"evicted, the node ran out", ended("Evicted", target("TerminationByKubelet"), hasRun), failures{{Key: "phase", Kind: "Evicted", At: at(9).Time}}},
		{"evicted for its own disk limit", ended("Evicted", hasRun), nil},
		{"preempted by the kubelet", ended("Preempting", target("TerminationByKubelet"), hasRun), nil},
		{"ended because the machine shuts down", ended("Terminated", target("TerminationByKubelet"), hasRun), nil},
		{"past its deadline", ended("DeadlineExceeded", hasRun), nil},
		{"collected as garbage", ended("", target("DeletionByPodGC"), hasRun), nil},
		{"evicted by the API", also(with(run, dead("app", exit(143, 3))), target("EvictionByEvictionAPI")), nil},
		{"preempted by a scheduler", also(with(run, running("app", exit(1, 3))), target("PreemptionByScheduler")), nil},
		{"evicted for a taint", also(with(run, running("app", exit(1, 3))), target("DeletionByTaintManager")), nil},
		{"terminating", also(with(run, waiting("app", "CrashLoopBackOff", exit(143, 3))), deleted), nil},
		{"refused and terminating", ended("OutOfcpu", deleted), nil},

		{"failed", with(failed, dead("app", exit(1, 3))), exited("Error(1)", 3)},
		{"failed without a word", with(failed), failures{{Key: "phase", Kind: "Failed"}}},
		{"failed, of two the first counts", with(failed, dead("app", exit(2, 5)), dead("log", exit(1, 3))), exited("Error(1)", 3)},
		{"failed in an init container", withInit(failed, dead("init", exit(3, 2))), exited("Error(3)", 2)},
		{"failed, the sidecar killed after it", also(withInit(failed, dead("sidecar", exit(143, 2))), func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{dead("app", exit(1, 4))}
		}), exited("Error(1)", 4)},
		{"failed by its own memory limit", with(failed, dead("app", oom(3))), nil},
		{"failed, the node's memory ran out", with(failed, dead("log", oom(3))), exited("OOMKilled", 3)},
		{"failed by the pod's memory limit", also(with(failed, dead("log", oom(3))), podLimit), nil},
		{"failed with a code of Windows", with(failed, dead("app", exit(-1073741819, 3))), exited("Error", 3)},

		{"was started again", with(run, running("app", exit(1, 3))), exited("Error(1)", 3)},
		{"was started again in time with another", with(run, running("app", exit(1, 3)), running("log", exit(1, 3))), exited("Error(1)", 3)},
		{"crash loop", with(run, waiting("app", "CrashLoopBackOff", exit(1, 3))), exited("Error(1)", 3)},
		{"crash loop of a program that ends well", with(run, waiting("app", "CrashLoopBackOff", exit(0, 3))), nil},
		{"crash loop, nobody knows why", with(run, waiting("app", "CrashLoopBackOff", nil)), hangs("CrashLoopBackOff")},
		{"crash loop of an init container", withInit(pend, waiting("init", "CrashLoopBackOff", exit(1, 3))), exited("Error(1)", 3)},
		{"crash loop of a sidecar", withInit(run, waiting("sidecar", "CrashLoopBackOff", exit(1, 3))), exited("Error(1)", 3)},
		{"crash loop by its own memory limit", with(run, waiting("app", "CrashLoopBackOff", oom(3))), nil},
		{"crash loop by the node's memory", with(run, waiting("log", "CrashLoopBackOff", oom(3))), exited("OOMKilled", 3)},
		{"two crashes seen at once", with(run, also2(running("app", nil), dead("log", exit(2, 6)), exit(2, 4))...),
			append(exited("Error(2)", 4), exited("Error(2)", 6)...)},
		{"just ended, perhaps killed", with(run, dead("app", exit(137, 3))), nil},
		{"just ended, beside one that runs", with(run, dead("app", exit(137, 3)), running("log", nil)), exited("Error(137)", 3)},
		{"ended well, beside one that runs", with(run, dead("app", exit(0, 3)), running("log", nil)), nil},
		{"the kubelet lost the container", also(with(run, waiting("app", "ContainerCreating", lost)), unready),
			failures{{Key: "exit/app", Kind: "ContainerStatusUnknown", At: at(2).Time}}},
		{"all restart because one ended", with(run, waiting("app", "RestartingAllContainers", restarting)), nil},

		{"image", with(pend, waiting("app", "ErrImagePull", nil)), hangs("ErrImagePull")},
		{"image, and a pause", with(pend, waiting("app", "ImagePullBackOff", nil)), hangs("ErrImagePull")},
		{"no registry", with(pend, waiting("app", "RegistryUnavailable", nil)), hangs("ErrImagePull")},
		{"images of all containers", with(pend, waiting("app", "ErrImagePull", nil), waiting("log", "ImagePullBackOff", nil)), hangs("ErrImagePull")},
		{"image of an init container", withInit(pend, waiting("init", "ErrImagePull", nil)), hangs("ErrImagePull")},
		{"image, since it hangs", also(with(pend, waiting("app", "ErrImagePull", nil)), unready),
			failures{{Key: "waiting/ErrImagePull", Kind: "ErrImagePull", At: at(2).Time}}},
		{"image, after it has run", with(run, waiting("app", "ErrImagePull", exit(0, 4))),
			failures{{Key: "waiting/ErrImagePull", Kind: "ErrImagePull", At: at(4).Time}}},
		{"image never pulled", with(pend, waiting("app", "ErrImageNeverPull", nil)), hangs("ErrImageNeverPull")},
		{"creation", with(pend, waiting("app", "CreateContainerError", nil)), hangs("CreateContainerError")},
		{"settings", with(pend, waiting("app", "CreateContainerConfigError", nil)), hangs("CreateContainerConfigError")},
		{"start, before there is a container", with(pend, waiting("app", "RunContainerError", nil)), hangs("RunContainerError")},
		{"start, and what became of the container", with(run, waiting("app", "RunContainerError", &corev1.ContainerStateTerminated{
			ExitCode: 128, Reason: "StartError", FinishedAt: at(3),
		})), exited("StartError", 3)},
		{"hook", with(pend, waiting("app", "PostStartHookError", nil)), hangs("PostStartHookError")},
		{"an error yet unknown", with(pend, waiting("app", "ErrNewThing", nil)), hangs("Other")},
		{"an error of another player", with(pend, waiting("app", "ProviderFailed", nil)), hangs("Other")},

		{"a person's container", bound(func(p *corev1.Pod) {
			p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{dead("debug", exit(1, 3)), waiting("more", "ErrImagePull", nil)}
		}), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := gocmp.Diff(tc.want, podoutcome.Failures(tc.pod), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// also2 is two statuses, the second of which had ended before.
func also2(first, second corev1.ContainerStatus, last *corev1.ContainerStateTerminated) []corev1.ContainerStatus {
	second.LastTerminationState.Terminated = last
	return []corev1.ContainerStatus{first, second}
}

// A failure keeps its key in every state through which a kubelet takes it, so that it is counted once.
func TestFailuresKeepTheirKeys(t *testing.T) {
	beside := running("log", nil)
	for name, states := range map[string][]*corev1.Pod{
		"a crash": {
			with(corev1.PodRunning, dead("app", exit(1, 3)), beside), with(corev1.PodRunning, waiting("app", "CrashLoopBackOff", exit(1, 3)), beside),
			with(corev1.PodRunning, running("app", exit(1, 3)), beside), with(corev1.PodFailed, dead("app", exit(1, 3)), dead("log", exit(1, 5))),
		},
		"an image": {with(corev1.PodPending, waiting("app", "ErrImagePull", nil)), with(corev1.PodPending, waiting("app", "ImagePullBackOff", nil))},
	} {
		keys := map[string]bool{}
		for _, p := range states {
			for _, f := range podoutcome.Failures(p) {
				keys[f.Key] = true
			}
		}
		if len(keys) != 1 {
			t.Errorf("%s: got keys %v, want one", name, keys)
		}
	}
}

// Whatever stands in a status, kinds are few and failures short.
func TestFailuresAreBounded(t *testing.T) {
	long := strings.Repeat("é", 5000)
	kinds := map[string]bool{}
	for i := range 1000 {
		reason := fmt.Sprintf("%s%dError", long, i)
		for _, p := range []*corev1.Pod{
			ended(reason), ended("OutOf" + reason),
			with(corev1.PodPending, waiting("app", reason, nil)), with(corev1.PodPending, waiting("app", "Err"+reason, nil)),
			with(corev1.PodFailed, dead("app", &corev1.ContainerStateTerminated{ExitCode: int32(i), Reason: reason, Message: long})),
		} {
			for _, f := range podoutcome.Failures(p) {
				kinds[f.Kind] = true
				if len(f.Key) > 300 || len(f.Message) > 300 || strings.ContainsRune(f.Message, '\uFFFD') {
					t.Fatalf("a failure is long: %+v", f)
				}
			}
		}
	}
	if len(kinds) > 300 {
		t.Errorf("%d kinds", len(kinds))
	}
}

// TestOperationsTellsWhatIsAFailure holds the table of docs/operations.md to the code: what it says is a failure is one of that name, what
// it says is none is none, and nothing is excused that it does not name.
func TestOperationsTellsWhatIsAFailure(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	placementtest.Must(t, err)
	_, section, _ := strings.Cut(string(page), "\n### What is a failure\n")
	section, _, _ = strings.Cut(section, "\n### ")
	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \| (yes|no)\b[^|]* \|$`).FindAllStringSubmatch(section, -1)
	if len(rows) < 10 {
		t.Fatalf("docs/operations.md has %d rows of what is a failure", len(rows))
	}
	var excused []string
	for _, row := range rows {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			reason := m[1]
			if row[2] == "no" {
				excused = append(excused, reason)
			}
			if counts := slices.Contains(kinds(reason), reason); counts != (row[2] == "yes") {
				t.Errorf("docs/operations.md says %q of %s, which makes failures of kinds %q", row[2], reason, kinds(reason))
			}
		}
	}
	slices.Sort(excused)
	if want := excuses(t); !slices.Equal(excused, want) {
		t.Errorf("docs/operations.md excuses %q, and the code %q", excused, want)
	}
}

// kinds are those of the failures that a reason makes, wherever a kubelet may write it.
func kinds(reason string) (all []string) {
	for _, p := range []*corev1.Pod{
		ended(reason),
		with(corev1.PodPending, waiting("app", reason, nil)),
		with(corev1.PodRunning, running("log", &corev1.ContainerStateTerminated{ExitCode: 128, Reason: reason, FinishedAt: at(3)})),
	} {
		for _, f := range podoutcome.Failures(p) {
			all = append(all, f.Kind)
		}
	}
	if f, ok := podoutcome.EventFailure(warning(reason)); ok {
		all = append(all, f.Kind)
	}
	return all
}

// excuses are the reasons for which a pod is ended and that are no failure: the first case of endKind.
func excuses(t *testing.T) (reasons []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, 0)
	placementtest.Must(t, err)
	i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Name.Name == "endKind"
	})
	if i < 0 {
		t.Fatal("there is no function endKind")
	}
	first := file.Decls[i].(*ast.FuncDecl).Body.List[0].(*ast.SwitchStmt).Body.List[0].(*ast.CaseClause)
	for _, e := range first.List {
		reason, err := strconv.Unquote(e.(*ast.BasicLit).Value)
		placementtest.Must(t, err)
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	return reasons
}

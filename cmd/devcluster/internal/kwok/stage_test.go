// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// language stands in for the functions kwok gives its templates.
var language = texttemplate.FuncMap{
	"Now":         func() string { return "2026-01-02T03:04:05Z" },
	"Quote":       func(v any) string { return `"` + toString(v) + `"` },
	"Version":     func() string { return "test" },
	"NodeIP":      func() string { return "192.0.2.1" },
	"NodeIPsWith": func(string) []string { return []string{"10.0.0.1"} },
	"PodIPsWith":  func(string, bool, string, string, string) []string { return []string{"10.128.0.1"} },
	"YAML": func(v any, indent int) (string, error) {
		text, err := yaml.Marshal(v)
		pad := "\n" + strings.Repeat("  ", indent)
		return strings.ReplaceAll("\n"+string(text), "\n", pad), err
	},
	"list": func(v ...string) []string { return v },
	"dict": func() map[string]any { return map[string]any{} },
	"add":  func(a, b any) int { return int(toFloat(a) + toFloat(b)) },
	"ternary": func(yes, no string, which bool) string {
		if which {
			return yes
		}
		return no
	},
}

func toString(v any) string { s, _ := v.(string); return s }

func toFloat(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	i, _ := v.(int)
	return float64(i)
}

// render plays a stage's status template on object and reads the result as status.
func render[Status any](t *testing.T, text string, object any) Status {
	t.Helper()
	parsed, err := texttemplate.New("stage").Funcs(language).Parse(text)
	must(t, err)
	raw, err := yaml.Marshal(object)
	must(t, err)
	var data map[string]any
	must(t, yaml.Unmarshal(raw, &data))
	var out strings.Builder
	must(t, parsed.Execute(&out, data))
	var status Status
	if err := yaml.UnmarshalStrict([]byte(out.String()), &status); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	return status
}

func aPod() *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "p", "default", "u"
	pod.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC))
	pod.Spec.NodeName = "node-001"
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i"}}
	pod.Spec.Containers = []corev1.Container{{Name: "a", Image: "i"}, {Name: "b", Image: "i"}}
	return pod
}

func stageNamed(t *testing.T, name string) Stage {
	t.Helper()
	for _, stage := range append(Nodes(), Pods()...) {
		if stage.Name == name {
			return stage
		}
	}
	t.Fatalf("no stage %q", name)
	return Stage{}
}

func TestPodStartRunsEveryContainer(t *testing.T) {
	status := render[corev1.PodStatus](t, stageNamed(t, "pod-start").Status, aPod())
	if status.Phase != corev1.PodRunning || status.PodIP != "10.128.0.1" || status.HostIP != "10.0.0.1" {
		t.Errorf("status %+v", status)
	}
	if len(status.ContainerStatuses) != 2 || len(status.InitContainerStatuses) != 1 {
		t.Fatalf("status %+v", status)
	}
	for _, container := range status.ContainerStatuses {
		if container.State.Running == nil || !container.Ready {
			t.Errorf("container %+v", container)
		}
	}
	if !slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) {
		t.Errorf("not Ready: %+v", status.Conditions)
	}
}

func TestPodStartKeepsRestartsAndAddress(t *testing.T) {
	pod := aPod()
	pod.Status.PodIP = "10.128.7.7"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}, {RestartCount: 3}}
	pod.Status.ContainerStatuses[1].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error"}
	status := render[corev1.PodStatus](t, stageNamed(t, "pod-start").Status, pod)
	if status.PodIP != "" || status.ContainerStatuses[1].RestartCount != 3 {
		t.Errorf("status %+v", status)
	}
	if last := status.ContainerStatuses[1].LastTerminationState.Terminated; last == nil || last.ExitCode != 7 || status.ContainerStatuses[0].LastTerminationState.Terminated != nil {
		t.Errorf("how the containers last ended is %+v", status.ContainerStatuses)
	}
}

// A container goes on while its node does not answer: when that is back it has run for as long as it has.
func TestPodStartKeepsWhatRuns(t *testing.T) {
	pod, since := aPod(), metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	pod.Status.ContainerStatuses = make([]corev1.ContainerStatus, 2)
	pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: since}
	pod.Status.ContainerStatuses[1].State.Waiting = &corev1.ContainerStateWaiting{}
	status := render[corev1.PodStatus](t, stageNamed(t, "pod-start").Status, pod)
	if first := status.ContainerStatuses[0].State.Running; first == nil || !first.StartedAt.Equal(&since) {
		t.Errorf("the container that ran runs since %+v", first)
	}
	if second := status.ContainerStatuses[1].State.Running; second == nil || !second.StartedAt.After(since.Time) {
		t.Errorf("the container that waited runs since %+v", second)
	}
}

func TestPodComplete(t *testing.T) {
	status := render[corev1.PodStatus](t, stageNamed(t, "pod-complete").Status, aPod())
	if status.Phase != corev1.PodSucceeded || status.ContainerStatuses[1].State.Terminated == nil {
		t.Errorf("status %+v", status)
	}
}

func TestNodeStart(t *testing.T) {
	node := &corev1.Node{}
	node.Name = "bare"
	status := render[corev1.NodeStatus](t, stageNamed(t, "node-start").Status, node)
	if len(status.Addresses) != 2 || status.Allocatable.Cpu().Value() != 32 || status.NodeInfo.OperatingSystem != "linux" {
		t.Errorf("bare node: %+v", status)
	}

	node.Labels = map[string]string{corev1.LabelArchStable: "arm64"}
	node.Status.Allocatable = corev1.ResourceList{"cpu": *status.Allocatable.Pods()}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.9.9.9"}, {Type: corev1.NodeHostName, Address: "x"}}
	status = render[corev1.NodeStatus](t, stageNamed(t, "node-start").Status, node)
	if len(status.Addresses) != 0 || status.Capacity.Cpu().Value() != 110 || status.NodeInfo.Architecture != "arm64" {
		t.Errorf("node with room, addresses and labels of its own: %+v", status)
	}
}

// A node that kwok sees for the first time must not be Ready by that: its pods would be forgotten until kwok sees the lease.
func TestANodeIsTakenUpBeforeItStarts(t *testing.T) {
	takeUp, start := stageNamed(t, "node-take-up"), stageNamed(t, "node-start")
	for stage, operator := range map[*Stage]string{&takeUp: "NotIn", &start: "In"} {
		want := Match{JQ: ".status.phase", Operator: operator, Values: []string{string(takenUp), string(corev1.NodeRunning)}}
		if !slices.ContainsFunc(stage.Match, func(m Match) bool { return reflect.DeepEqual(m, want) }) {
			t.Errorf("stage %s matches %v, want %v among them: a new node has no phase, or one that its maker gave it", stage.Name, stage.Match, want)
		}
	}
	status := render[corev1.NodeStatus](t, takeUp.Status, &corev1.Node{})
	if status.Phase != takenUp || len(status.Conditions) != 0 {
		t.Errorf("a node that is taken up: %+v", status)
	}
	if started := render[corev1.NodeStatus](t, start.Status, &corev1.Node{}); started.Phase != corev1.NodeRunning {
		t.Errorf("a node that has started is in phase %q, want Running", started.Phase)
	}
}

func TestStageNamesAreValidAndDifferent(t *testing.T) {
	stages := append(Nodes(), Pods()...)
	for _, kind := range FailureKinds() {
		stages = append(stages, kind.onAnnotatedPods()...)
	}
	seen := map[string]bool{}
	for _, stage := range stages {
		if problems := validation.IsDNS1123Subdomain(stage.Name); len(problems) > 0 || seen[stage.Name] {
			t.Errorf("stage name %q: twice %v, problems %v", stage.Name, seen[stage.Name], problems)
		}
		seen[stage.Name] = true
	}
}

// must ends the test if there is an error.
var must = placementtest.Must

func nodeIn(name string, phase corev1.NodePhase, version string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, Status: corev1.NodeStatus{Phase: phase}}
}

func TestOnlyNodesThatStayTakenUpAreUnstarted(t *testing.T) {
	first, versions := unstarted([]*corev1.Node{nodeIn("stays", takenUp, "1"), nodeIn("starts", takenUp, "2"), nodeIn("changes", takenUp, "3")}, nil)
	if len(first) != 0 {
		t.Errorf("%v are unstarted at the first look: kwok has had no time", first)
	}
	second, _ := unstarted([]*corev1.Node{
		nodeIn("stays", takenUp, "1"), nodeIn("starts", corev1.NodeRunning, "4"), nodeIn("changes", takenUp, "5"), nodeIn("new", "", "6"),
	}, versions)
	if want := []string{"stays"}; !slices.Equal(second, want) {
		t.Errorf("%v are unstarted, want %v", second, want)
	}
}

func TestAnUnstartedNodeIsTouched(t *testing.T) {
	client := fake.NewClientset(nodeIn("n", takenUp, "1"), nodeIn("runs", corev1.NodeRunning, "2"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Wake(ctx, client) }()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, settleLimit, true, func(ctx context.Context) (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
		return err == nil && node.Annotations[touchedAnnotation] != "", err
	})
	if err != nil {
		t.Errorf("node n was not touched: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Wake ended with %v", err)
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), "runs", metav1.GetOptions{})
	if err != nil || len(node.Annotations) != 0 {
		t.Errorf("a node that runs has annotations %v, %v", node.Annotations, err)
	}
}

// On a busy machine an answer comes when the next question has been asked.
func TestAnAnswerToAnEarlierQuestionIsOne(t *testing.T) {
	for answer, want := range map[string]bool{"first": true, "second": true, "of another time": false, "": false} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{answerAnnotation: answer}}}
		got, err := ask(t.Context(), fake.NewClientset(node), "n", "second", map[string]bool{"first": true, "second": true})
		if err != nil || got != want {
			t.Errorf("the answer %q is one: %t, %v", answer, got, err)
		}
	}
}

// kwok may look at the node of one question when the stage that it knows is of an earlier or a later one. Questions of other nodes are
// not answered: their stages do.
func TestAStageAnswersAnyQuestionOfItsNode(t *testing.T) {
	stage := questionStage("settle.n", "n", "second")
	want := []Match{
		{JQ: ".metadata.name", Operator: "In", Values: []string{"n"}},
		{JQ: `.metadata.annotations["` + askAnnotation + `"]`, Operator: "Exists"},
	}
	if len(stage.Annotations) != 0 || !reflect.DeepEqual(stage.Match, want) {
		t.Errorf("the stage answers nodes with %v and %v, want %v", stage.Annotations, stage.Match, want)
	}
}

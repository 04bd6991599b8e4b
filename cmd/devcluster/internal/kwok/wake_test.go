// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
)

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

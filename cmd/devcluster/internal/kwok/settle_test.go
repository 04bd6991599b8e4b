// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

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

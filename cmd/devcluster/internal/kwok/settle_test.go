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

// kwok may look at the node of one question when the stage is that of a later one.
func TestALaterStageAnswersAnEarlierQuestion(t *testing.T) {
	stage := questionStage("settle.n", "second", map[string]bool{"first": true, "second": true})
	want := Match{JQ: `.metadata.annotations["` + askAnnotation + `"]`, Operator: "In", Values: []string{"first", "second"}}
	if len(stage.Annotations) != 0 || len(stage.Match) != 1 || !reflect.DeepEqual(stage.Match[0], want) {
		t.Errorf("the stage answers nodes with %v and %v, want %v", stage.Annotations, stage.Match, want)
	}
}

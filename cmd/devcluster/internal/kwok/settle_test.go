// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
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

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import st "k8s.io/kubernetes/pkg/scheduler/testing"

// Asking is the pod p of namespace ns with an annotation, or without it if the value is "".
func Asking(annotation, value string) *st.PodWrapper {
	p := st.MakePod().Namespace("ns").Name("p").UID("p")
	if value != "" {
		p.Annotation(annotation, value)
	}
	return p
}

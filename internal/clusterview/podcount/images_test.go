// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// An image is known for as long as one node has it.
func TestHasImage(t *testing.T) {
	v := newView("a")
	pod := st.MakePod().Name("p").Container("web:2").Obj()
	check := func(when string, want bool) {
		t.Helper()
		v.refresh()
		if got := v.index.HasImage(pod); got != want {
			t.Errorf("%s: %t, want %t", when, got, want)
		}
	}
	with := func(name string, images ...string) *corev1.Node {
		sizes := make(map[string]int64)
		for _, i := range images {
			sizes[i] = 1
		}
		return st.MakeNode().Name(name).Images(sizes).Obj()
	}
	check("no node has any", false)
	v.join(with("b", "web:1"))
	check("one has another", false)
	v.join(with("c", "web:2", "db:1"))
	check("one has it", true)
	v.info("b").SetNode(with("b", "web:1", "web:2"))
	check("two have it", true)
	v.info("c").SetNode(with("c", "db:1"))
	check("one has removed it", true)
	v.leave("b")
	check("the other is gone", false)
	v.info("c").SetNode(with("c", "db:1", "web:2"))
	check("it was pulled again", true)
	v.info("c").SetNode(with("c"))
	check("all were removed", false)
}

// The images are those that ImageLocality looks for, by the names that it gives them.
func TestHasImageOfAnyKind(t *testing.T) {
	v := newView()
	v.join(st.MakeNode().Name("a").Images(map[string]int64{"web:latest": 1, "example.com:5000/db:latest": 1, "tool@sha256:1234": 1}).Obj())
	v.refresh()
	init := st.MakePod().Container("none:1").Obj()
	init.Spec.InitContainers = []corev1.Container{{Image: "web"}}
	volume := st.MakePod().Container("none:1").Obj()
	volume.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "web"}}}}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a tag":               {st.MakePod().Container("web:latest").Obj(), true},
		"another tag":         {st.MakePod().Container("web:1").Obj(), false},
		"no tag":              {st.MakePod().Container("web").Obj(), true},
		"a registry's port":   {st.MakePod().Container("example.com:5000/db").Obj(), true},
		"a digest":            {st.MakePod().Container("tool@sha256:1234").Obj(), true},
		"another digest":      {st.MakePod().Container("tool@sha256:5678").Obj(), false},
		"of a later one":      {st.MakePod().Container("none:1").Container("web").Obj(), true},
		"of an init one":      {init, true},
		"of an image volume":  {volume, true},
		"no container at all": {st.MakePod().Obj(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := v.index.HasImage(tc.pod); got != tc.want {
				t.Errorf("it is known: %t, want %t", got, tc.want)
			}
		})
	}
}

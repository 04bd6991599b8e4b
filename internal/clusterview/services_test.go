// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// Services say which pods count for a pod that stands alone, and for no other.
func TestOfServices(t *testing.T) {
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, s := range []struct {
		namespace, name string
		selector        map[string]string
	}{
		{"ns", "web", map[string]string{"app": "web"}},
		{"ns", "front", map[string]string{"tier": "front"}},
		{"ns", "without-selector", nil},
		{"ns", "everything", map[string]string{}},
		{"far", "db", map[string]string{"app": "db"}},
	} {
		err := services.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Spec: corev1.ServiceSpec{Selector: s.selector}})
		if err != nil {
			t.Fatal(err)
		}
	}
	pod := func(app string) *st.PodWrapper { return st.MakePod().Name("p").UID("p").Label("app", app) }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string // "" is no selector
	}{
		"one":                         {plugintest.Pod(pod("web")), "app=web"},
		"two are one":                 {plugintest.Pod(pod("web").Label("tier", "front").Label("more", "x")), "app=web,tier=front"},
		"of another namespace":        {plugintest.Pod(pod("db")), ""},
		"no labels":                   {plugintest.Pod(st.MakePod().Name("p").UID("p")), ""},
		"a pod with an owner":         {plugintest.Pod(pod("web"), "batch/v1 Job j j-uid"), ""},
		"a pod that names a workload": {plugintest.Pod(pod("web").Label(clusterview.WorkloadLabel, "w")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := clusterview.OfServices(tc.pod, corelisters.NewServiceLister(services))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if s != nil {
				got = s.Workload().Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func objects(t *testing.T, name string) []runtime.Object {
	t.Helper()
	var list []runtime.Object
	for _, doc := range documents(t, name) {
		obj, err := object(doc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list = append(list, obj)
	}
	return list
}

// first is the first object of a file.
func first[T runtime.Object](t *testing.T, name string) T {
	t.Helper()
	is, ok := objects(t, name)[0].(T)
	if !ok {
		t.Fatalf("%s holds a %T", name, objects(t, name)[0])
	}
	return is
}

var must = placementtest.Must

// TestDeploymentFindsItsConfiguration follows the path from the flag to the file: volume, ConfigMap, generator.
func TestDeploymentFindsItsConfiguration(t *testing.T) {
	d := first[*appsv1.Deployment](t, "base/deployment.yaml")
	pod := d.Spec.Template.Spec
	k, err := kustomization("base", documents(t, "base/kustomization.yaml")[0])
	must(t, err)
	g := k.ConfigMapGenerator[0]
	mounted := path.Join(pod.Containers[0].VolumeMounts[0].MountPath, g.Files[0])
	if !slices.Contains(pod.Containers[0].Command, "--config="+mounted) {
		t.Errorf("the command is %q, and the file is %s", pod.Containers[0].Command, mounted)
	}
	if v := pod.Volumes[0]; v.ConfigMap == nil || v.ConfigMap.Name != g.Name || d.Namespace != g.Namespace {
		t.Errorf("the volume is %+v, and the generated ConfigMap is %s/%s", v, g.Namespace, g.Name)
	}
	account := first[*corev1.ServiceAccount](t, "base/serviceaccount.yaml")
	if account.Name != pod.ServiceAccountName || account.Namespace != d.Namespace {
		t.Errorf("the Deployment runs as %s/%s, and the ServiceAccount is %+v", d.Namespace, pod.ServiceAccountName, account)
	}
	if pod.SchedulerName != corev1.DefaultSchedulerName {
		t.Errorf("the scheduler is placed by %s, which may be itself", pod.SchedulerName)
	}
}

// rights are all that the scheduler has, and at the end people. Which story of the scheduler breaks without
// each is told in test/integration/rights.
var rights = map[string][]string{
	"espalier-scheduler": {
		"[] [namespaces nodes persistentvolumeclaims persistentvolumes pods replicationcontrollers services] [] [list watch]",
		"[apps] [replicasets statefulsets] [] [list watch]",
		"[policy] [poddisruptionbudgets] [] [list watch]",
		"[storage.k8s.io] [csidrivers csinodes csistoragecapacities storageclasses volumeattachments] [] [list watch]",
		"[resource.k8s.io] [deviceclasses devicetaintrules resourceclaims resourceslices] [] [list watch]",
		"[] [pods/binding] [] [create]",
		"[] [pods/status] [] [patch]",
		"[] [pods] [] [get delete]",
		"[events.k8s.io] [events] [] [create patch]",
		"[] [persistentvolumeclaims persistentvolumes] [] [update]",
		"[resource.k8s.io] [resourceclaims] [] [create delete get update]",
		"[resource.k8s.io] [resourceclaims/binding resourceclaims/status] [] [patch update]",
		"[authentication.k8s.io] [tokenreviews] [] [create]",
		"[authorization.k8s.io] [subjectaccessreviews] [] [create]",
	},
	"espalier-scheduler-lease": {
		"[coordination.k8s.io] [leases] [] [create]", "[coordination.k8s.io] [leases] [espalier-scheduler] [get update]",
		"[] [events] [] [create]",
	},
	"espalier-scheduler-failures":        {"[] [configmaps] [espalier-scheduler-failures] [get patch create]"},
	"espalier-scheduler-policies":        {"[placement.espalier.dev] [placementpolicies clusterplacementpolicies] [] [list watch]"},
	"espalier-scheduler-runtime-classes": {"[node.k8s.io] [runtimeclasses] [] [list watch]"},
	"espalier-scheduler-events":          {"[] [events] [] [list watch]"},

	"espalier-policies-edit": {"[placement.espalier.dev] [placementpolicies] [] [get list watch create update patch delete deletecollection]"},
	"espalier-policies-view": {"[placement.espalier.dev] [placementpolicies clusterplacementpolicies] [] [get list watch]"},
}

func checkRights(t *testing.T, role string, rules []rbacv1.PolicyRule) {
	t.Helper()
	var got []string
	for _, r := range rules {
		got = append(got, fmt.Sprint(r.APIGroups, r.Resources, r.ResourceNames, r.Verbs))
	}
	if want := rights[role]; !slices.Equal(got, want) {
		t.Errorf("%s gives %q, want %q", role, got, want)
	}
}

// TestRights wants every right to be known here, and given to the scheduler alone.
func TestRights(t *testing.T) {
	cfg, err := schedulerConfig(manifests.SchedulerConfig)
	must(t, err)
	bound := map[string]bool{}
	for _, obj := range objects(t, "base/rbac.yaml") {
		var subjects []rbacv1.Subject
		switch o := obj.(type) {
		case *rbacv1.ClusterRoleBinding:
			bound[o.RoleRef.Kind+" "+o.RoleRef.Name], subjects = true, o.Subjects
		case *rbacv1.RoleBinding:
			bound[o.RoleRef.Kind+" "+o.RoleRef.Name], subjects = true, o.Subjects
		case *rbacv1.Role:
			checkRights(t, o.Name, o.Rules)
			if o.Namespace != cfg.LeaderElection.ResourceNamespace {
				t.Errorf("%s is in namespace %s", o.Name, o.Namespace)
			}
			continue
		case *rbacv1.ClusterRole:
			checkRights(t, o.Name, o.Rules)
			continue
		}
		for _, s := range subjects {
			if s.Kind != "ServiceAccount" || s.Name != "espalier-scheduler" || s.Namespace != "kube-system" {
				t.Errorf("rights are given to %+v", s)
			}
		}
	}
	want := []string{
		"ClusterRole espalier-scheduler", "ClusterRole espalier-scheduler-policies", "ClusterRole espalier-scheduler-runtime-classes", "ClusterRole espalier-scheduler-events",
		"Role espalier-scheduler-failures", "Role espalier-scheduler-lease", "Role extension-apiserver-authentication-reader",
	}
	for _, name := range want {
		if !bound[name] {
			t.Errorf("%s is not bound", name)
		}
	}
	if len(bound) != len(want) {
		t.Errorf("bound are %v, want %v", bound, want)
	}
}

// TestRightsOfPeople wants those who may write workloads to write policies, those who may read them to
// read policies, and nobody to write a status, which is the controller's.
func TestRightsOfPeople(t *testing.T) {
	want := map[string][]string{"espalier-policies-edit": {"admin", "edit"}, "espalier-policies-view": {"view"}}
	for _, obj := range objects(t, "base/policies-rbac.yaml") {
		role, ok := obj.(*rbacv1.ClusterRole)
		if !ok {
			t.Fatalf("it holds a %T", obj)
		}
		checkRights(t, role.Name, role.Rules)
		var gathered []string
		for _, name := range []string{"admin", "edit", "view"} {
			if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+name] == "true" {
				gathered = append(gathered, name)
			}
		}
		if !slices.Equal(gathered, want[role.Name]) {
			t.Errorf("%s goes to %q, want %q", role.Name, gathered, want[role.Name])
		}
		delete(want, role.Name)
	}
	if len(want) > 0 {
		t.Errorf("%v are not there", want)
	}
}

// TestExamplesAskForEspalier wants every example to name the scheduler, and to ask for something that it can read.
func TestExamplesAskForEspalier(t *testing.T) {
	names, err := fs.Glob(files, "examples/*.yaml")
	more, moreErr := fs.Glob(files, "examples/filters/*.yaml")
	if err = errors.Join(err, moreErr); err != nil || len(names) < 7 || len(more) < 3 {
		t.Fatalf("found %v and %v: %v", names, more, err)
	}
	names = append(names, more...)
	for _, name := range names {
		for _, obj := range objects(t, name) {
			meta, spec := podOf(obj)
			if spec == nil {
				continue
			}
			if spec.SchedulerName != "espalier-scheduler" {
				t.Errorf("%s: its pods are for %q", name, spec.SchedulerName)
			}
			if meta[clusterview.PlacementAnnotation] == "" && len(spec.TopologySpreadConstraints) == 0 {
				t.Errorf("%s: asks for nothing", name)
			}
			if err := readable(meta, spec); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if strings.Contains(spec.Containers[0].Image, "latest") || spec.Containers[0].Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: wants a fixed image and a cpu request", name)
			}
		}
	}
}

// podOf is the annotations and the spec of the pods that an object makes.
func podOf(obj runtime.Object) (map[string]string, *corev1.PodSpec) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Spec.Template.Annotations, &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return o.Spec.Template.Annotations, &o.Spec.Template.Spec
	case *batchv1.Job:
		return o.Spec.Template.Annotations, &o.Spec.Template.Spec
	case *corev1.Pod:
		return o.Annotations, &o.Spec
	}
	return nil, nil
}

// readable reads what pods ask for as the scheduler does.
func readable(annotations map[string]string, spec *corev1.PodSpec) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: *spec}
	_, levels := clusterview.LevelsOf(pod, nil, nil)
	_, constraints := clusterview.Constraints(pod)
	_, platforms := clusterview.PlatformWish(pod)
	_, limits := clusterview.Limits(pod, nil, nil)
	return errors.Join(levels, constraints, platforms, limits)
}

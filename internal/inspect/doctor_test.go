// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// api answers what the checks ask of an API server: for definitions by their names, for Leases and for webhooks.
type api struct {
	definitions map[string]*unstructured.Unstructured
	leases      []coordinationv1.Lease
	webhooks    []admissionregistrationv1.ValidatingWebhook
	// rules are those that the service accounts of the scheduler have.
	rules []rbacv1.PolicyRule
	err   error
}

func (a *api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if a.err != nil {
		return a.err
	}
	is, there := a.definitions[key.Name]
	if !there {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, key.Name)
	}
	into.(*unstructured.Unstructured).Object = is.Object
	return nil
}

func (a *api) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch into := into.(type) {
	case *coordinationv1.LeaseList:
		into.Items = a.leases
	case *rbacv1.ClusterRoleList:
		into.Items = []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "scheduler"}, Rules: a.rules}, {ObjectMeta: metav1.ObjectMeta{Name: "all"}, Rules: needed}}
	case *rbacv1.ClusterRoleBindingList:
		into.Items = []rbacv1.ClusterRoleBinding{
			{RoleRef: rbacv1.RoleRef{Name: "scheduler"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: ours}}},
			{RoleRef: rbacv1.RoleRef{Name: "all"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "other", Name: ours}, {Kind: "Group", Name: "system:masters"}}},
		}
	case *admissionregistrationv1.ValidatingWebhookConfigurationList:
		into.Items = []admissionregistrationv1.ValidatingWebhookConfiguration{{Webhooks: a.webhooks}}
	}
	return a.err
}

// needed are the rights of this release.
var needed = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"list", "watch"}},
}

// definition is one whose schema has a description.
func definition(name, description string) *unstructured.Unstructured {
	d := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{
		map[string]any{"name": "v1alpha1", "schema": map[string]any{"description": description}},
	}}}}
	d.SetAPIVersion("apiextensions.k8s.io/v1")
	d.SetKind("CustomResourceDefinition")
	d.SetName(name)
	return d
}

// lease is that of a scheduler, renewed so long before a time.
func lease(name, holder string, now time.Time, ago time.Duration) coordinationv1.Lease {
	renewed := metav1.NewMicroTime(now.Add(-ago))
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: new(int32(15))},
	}
}

// waiting is a pod of a scheduler that has waited for so long, and of which nothing has been said.
func waiting(name, scheduler string, since time.Time) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(since)}, Spec: corev1.PodSpec{SchedulerName: scheduler}}
}

// installation is the Deployment of the scheduler, with so many of its two replicas.
func installation(image string, available int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "espalier-scheduler", Labels: map[string]string{"app.kubernetes.io/name": "espalier-scheduler"}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ServiceAccountName: ours,
			Containers:         []corev1.Container{{Name: "scheduler", Image: image}},
		}}},
		Status: appsv1.DeploymentStatus{AvailableReplicas: available},
	}
}

// ofOurs is a running pod of a component, with a port.
func ofOurs(app, name, port string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"app.kubernetes.io/name": app}},
		Spec:       corev1.PodSpec{NodeName: "a-1", SchedulerName: ours, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: port, ContainerPort: 99}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// ready is what pods say of their informers, by their names.
func ready(_ context.Context, namespace, address, path string) (int, string, error) {
	switch namespace + " " + address + " " + path {
	case "kube-system https:filled:99 readyz/informers", "kube-system http:filled-too:99 readyz/informers":
		return http.StatusOK, "ok", nil
	case "kube-system https:filled:99 version":
		return http.StatusOK, `{"major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": "37", "gitVersion": "v0.1.0"}`, nil
	case "kube-system https:behind:99 version":
		return http.StatusOK, `{"major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": "36", "gitVersion": "v0.1.0"}`, nil
	case "kube-system https:behind:99 readyz/informers":
		return http.StatusOK, "ok", nil
	case "kube-system https:refused:99 readyz/informers":
		return http.StatusInternalServerError, "internal server error: csinodes of storage.k8s.io/v1: forbidden\n", errors.New("it has failed")
	case "kube-system http:old:99 readyz/informers":
		return http.StatusNotFound, "404 page not found", errors.New("not found")
	default:
		return 0, "", errors.New("no right")
	}
}

func TestDoctor(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sharing := waiting("p", "default-scheduler", now)
	sharing.Spec.NodeName = "a-1"
	for name, tc := range map[string]struct {
		// change alters a cluster in which all is well.
		change func(c *cluster, a *api)
		// bad has the check that finds something, and a part of what it says; none if all is well.
		bad map[string]string
	}{
		"all is well":         {func(*cluster, *api) {}, nil},
		"the oldest server":   {func(c *cluster, _ *api) { c.Server = "v1.34.0-eks-1" }, nil},
		"an old API server":   {func(c *cluster, _ *api) { c.Server = "v1.33.9" }, map[string]string{"API server": "v1.33.9"}},
		"a new API server":    {func(c *cluster, _ *api) { c.Server = "v1.39.0" }, map[string]string{"API server": "v1.39.0"}},
		"no API server":       {func(c *cluster, _ *api) { c.Server = "a fork" }, map[string]string{"API server": "a fork"}},
		"no definition":       {func(_ *cluster, a *api) { a.definitions = nil }, map[string]string{"CRD moves": "not installed"}},
		"an older definition": {func(_ *cluster, a *api) { a.definitions["moves"] = definition("moves", "old") }, map[string]string{"CRD moves": "another one"}},
		"no rights": {
			func(c *cluster, a *api) {
				a.err = apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", errors.New("no"))
				c.Unread = []string{"pods: forbidden"}
			},
			map[string]string{"CRD moves": "not known", "leader": "not known", "rights": "pods: forbidden", "rights of the scheduler": "not known"},
		},
		"a scheduler that lacks rights": {
			func(_ *cluster, a *api) { a.rules = needed[:1] },
			map[string]string{"rights of ServiceAccount kube-system/espalier-scheduler": "it may not list replicasets.apps, watch replicasets.apps"},
		},
		"a scheduler that lacks all rights": {
			func(c *cluster, a *api) { a.rules = nil; c.Add(installation("espalier-scheduler:v0.1.3", 2)) },
			map[string]string{"rights of ServiceAccount kube-system/espalier-scheduler": "it may not list nodes, list pods, list replicasets.apps, watch nodes, watch pods, and 1 more"},
		},
		"a scheduler that runs as somebody": {func(_ *cluster, a *api) { a.rules = nil }, nil},
		"no Lease":                          {func(_ *cluster, a *api) { a.leases = a.leases[:1] }, map[string]string{"leader": "no Lease is called espalier-scheduler"}},
		"nobody leads":                      {func(_ *cluster, a *api) { a.leases[1] = lease(ours, "", now, time.Second) }, map[string]string{"leader": `by ""`}},
		"a leader that is gone":             {func(_ *cluster, a *api) { a.leases[1] = lease(ours, "pod-1", now, time.Minute) }, map[string]string{"leader": "renewed 1m0s ago"}},
		"replicas that are active at once": {
			func(_ *cluster, a *api) {
				a.leases = append(a.leases[:1], lease(ours, "pod-0", now, time.Minute), lease(ours+"-1", "pod-2", now, time.Second), lease(ours+"-0", "pod-1", now, time.Second), lease(ours+"-test", "pod-3", now, 0))
			}, nil,
		},
		"replicas that are gone": {
			func(_ *cluster, a *api) { a.leases = append(a.leases[:1], lease(ours+"-0", "pod-1", now, time.Minute)) }, map[string]string{"leader": "espalier-scheduler-0 was renewed 1m0s ago"},
		},
		"a scheduler that does not run": {
			func(c *cluster, _ *api) { c.Add(waiting("p", "spalier", now.Add(-2*time.Minute))) },
			map[string]string{"schedulerName": `1 of "spalier"`},
		},
		"a pod that has just come": {func(c *cluster, _ *api) { c.Add(waiting("p", "spalier", now.Add(-time.Second))) }, nil},
		"pods of two schedulers on a node": {
			func(c *cluster, _ *api) { c.Add(sharing) },
			map[string]string{"nodes": "nodes with pods of two schedulers, which may promise the same capacity: 1"},
		},
		"a scheduler that lacks a replica": {
			func(c *cluster, _ *api) {
				c.Add(installation("registry.example.com:5000/espalier-scheduler:v0.1.3", 1))
			},
			map[string]string{"Deployment kube-system/espalier-scheduler": "1 of 2 replicas available"},
		},
		"a scheduler of another release": {
			func(c *cluster, _ *api) {
				c.Add(installation("registry.example.com:5000/espalier-scheduler:v0.2.0", 2))
			},
			map[string]string{"Deployment kube-system/espalier-scheduler": "espalier-scheduler:v0.2.0"},
		},
		"a scheduler of this release":  {func(c *cluster, _ *api) { c.Add(installation("espalier-scheduler:v0.1.3", 2)) }, nil},
		"a scheduler between releases": {func(c *cluster, _ *api) { c.Add(installation("espalier-scheduler:v0.0.0-g8e28f11", 2)) }, nil},
		"pods of two schedulers on a node, and an arbiter": {
			func(c *cluster, a *api) {
				c.Add(sharing)
				a.webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: "bindings.espalier.dev", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("known")}}}
			},
			nil,
		},
		"pods whose informers are filled": {
			func(c *cluster, _ *api) {
				c.Add(ofOurs(ours, "filled", "https"))
				c.Add(ofOurs("espalier-controller", "filled-too", "probes"))
			}, nil,
		},
		"a pod that was started before an upgrade": {
			func(c *cluster, _ *api) { c.Add(ofOurs(ours, "behind", "https")) },
			map[string]string{"version of Pod kube-system/behind": "runs as one of Kubernetes 1.36"},
		},
		"pods whose informers are not filled": {
			func(c *cluster, _ *api) {
				ended := ofOurs(ours, "ended", "https")
				ended.Status.Phase = corev1.PodSucceeded
				for _, p := range []*corev1.Pod{ofOurs(ours, "refused", "https"), ofOurs("espalier-controller", "old", "probes"), ofOurs(ours, "hidden", "https"), ofOurs(ours, "odd", "web"), ended} {
					c.Add(p)
				}
			},
			map[string]string{
				"informers of Pod kube-system/refused": "csinodes of storage.k8s.io/v1: forbidden", "informers of Pod kube-system/old": "it does not say it",
				"informers of Pod kube-system/hidden": "not known: no right", "informers of Pod kube-system/odd": `no port "https"`,
				"version of Pod kube-system/refused": "not known: no right",
			},
		},
		"an arbiter that has not said where it is": {
			func(c *cluster, a *api) {
				c.Add(sharing)
				a.webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: "bindings.espalier.dev"}}
			},
			map[string]string{"nodes": "may promise the same capacity: 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			c.Server = "v1.37.1"
			c.deployment("web", template(), "a-1")
			a := &api{
				definitions: map[string]*unstructured.Unstructured{"moves": definition("moves", "new")},
				rules:       needed,
				leases:      []coordinationv1.Lease{lease("other", "pod-0", now, 0), lease(ours, "pod-1", now, time.Second)},
			}
			tc.change(c, a)
			checks := Checks{
				API: a, Snapshot: &c.Snapshot, Definitions: []*unstructured.Unstructured{definition("moves", "new")},
				Rights: needed, Version: "v0.1.0", Lease: ours, Schedulers: []string{ours}, Now: now, Ready: ready,
			}
			findings, err := checks.Run(t.Context())
			must(t, err)
			bad := 0
			for _, f := range findings {
				want, isBad := tc.bad[f.Check]
				if f.OK == isBad || !strings.Contains(f.Found, want) || isBad && f.Fix == "" {
					t.Errorf("%+v, want what has %q", f, want)
				}
				if isBad {
					bad++
				}
			}
			if bad != len(tc.bad) {
				t.Errorf("%d of %d are found: %+v", bad, len(tc.bad), findings)
			}
		})
	}
}

func TestDoctorWithoutAnAPIServer(t *testing.T) {
	gone := errors.New("connection refused")
	c := newCluster(t)
	checks := Checks{API: &api{err: gone}, Snapshot: &c.Snapshot, Now: time.Now()}
	if _, err := checks.Run(t.Context()); !errors.Is(err, gone) {
		t.Errorf("the error is %v", err)
	}
}

func TestReadMoves(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	move := func(namespace, name string, age int, ended bool, phase placementv1alpha1.MovePhase) client.Object {
		m := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(begin.Add(time.Duration(age) * time.Minute))}}
		m.Spec.Pod.Name, m.Spec.ReplicaSet.Name, m.Spec.Reason, m.Status.Phase = "pod-"+name, "web-1", placementv1alpha1.MoveDrain, phase
		if ended {
			m.Status.EndedAt = &metav1.Time{Time: begin.Add(time.Hour)}
		}
		return m
	}
	scheme := runtime.NewScheme()
	must(t, placementv1alpha1.AddToScheme(scheme))
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		move("ns", "done", 5, true, placementv1alpha1.MoveDone), move("ns", "old", 1, false, placementv1alpha1.MoveReplacing),
		move("ns", "young", 3, false, ""), move("other", "elsewhere", 2, false, placementv1alpha1.MoveEvicting),
	).Build()
	for namespace, want := range map[string]string{"ns": "young Planned, old Replacing, done Done", "": "young Planned, elsewhere Evicting, old Replacing, done Done"} {
		moves, err := ReadMoves(t.Context(), api, namespace)
		must(t, err)
		var got []string
		for _, m := range moves {
			got = append(got, m.Name+" "+string(m.Phase))
			if m.Pod != "pod-"+m.Name || m.ReplicaSet != "web-1" || m.Reason != placementv1alpha1.MoveDrain || (m.Ended != nil) != (m.Name == "done") {
				t.Errorf("%+v", m)
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("of namespace %q there are %s, want %s", namespace, text, want)
		}
	}
}

// without is an API server that does not have a kind.
type without struct{ client.Reader }

func (without) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Move"}}
}

func TestReadMovesWithoutTheKind(t *testing.T) {
	if _, err := ReadMoves(t.Context(), without{}, ""); err == nil || !strings.Contains(err.Error(), "apply manifests/crds") {
		t.Errorf("the error is %v", err)
	}
}

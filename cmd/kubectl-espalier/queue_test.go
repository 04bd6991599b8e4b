// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

const tenantsPage = "../../docs/tenants.md"

// tenants writes a snapshot of the cluster of the page: its objects, ten nodes of 10 CPUs and one of another pool, and pods of 4. Those that are given are
// written as well.
func tenants(t *testing.T, page string, more ...*corev1.Pod) string {
	t.Helper()
	s := &snapshot.Snapshot{Taken: time.Unix(0, 0), Server: "v1.37.1"}
	_, after, _ := strings.Cut(page, "## Three teams")
	_, after, _ = strings.Cut(after, "```yaml\n")
	block, _, _ := strings.Cut(after, "```\n")
	for i, text := range strings.Split(block, "---\n") {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(text), object))
		object.SetCreationTimestamp(metav1.Unix(int64(i), 0))
		s.Add(object)
	}
	for i := range 11 {
		pool := "shared"
		if i == 10 {
			pool = "another"
		}
		s.Add(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"example.com/pool": pool}},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}},
		})
	}
	for namespace, env := range map[string]string{"shop": "prod", "ci": "test", "play": "dev"} {
		s.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"example.com/environment": env}}})
	}
	for _, p := range append([]*corev1.Pod{podAt("play", "nb-0", "n9"), podAt("play", "nb-1", ""), podAt("ci", "build-0", "n5"), podAt("shop", "web-0", "n1"), podAt("shop", "web-1", "n2")}, more...) {
		s.Add(p)
	}
	return saved(t, s)
}

func podAt(namespace, name, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
		Spec: corev1.PodSpec{NodeName: node, SchedulerName: "espalier-scheduler", Containers: []corev1.Container{{
			Name: "c", Image: "image", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4")}},
		}}},
	}
	if node != "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	}
	return p
}

// The order that the page shows is that of its example.
func TestTheWorkedExample(t *testing.T) {
	page, err := os.ReadFile(tenantsPage)
	must(t, err)
	file := tenants(t, string(page))
	got, err := run(t, "queue", "shared", "--snapshot", file)
	if err != nil || !strings.Contains(string(page), "```\n"+got+"```\n") {
		t.Errorf("queue prints\n%s, %v\nand %s shows another thing", got, err, tenantsPage)
	}
	for args, want := range map[string][]string{
		"queue -o wide":          {"it has not been tried yet: position 5 of 5", "n9"},
		"queue shared -o json":   {`"leaves": 4`, `"why": "it has not been tried yet`, `"reserved": true`},
		"explain nb-1 -n play":   {`order: it has not been tried yet: position 5 of 5 in partition "shared", allocation "dev"`},
		"explain build-0 -n ci":  {`order: position 3 of 5 in partition "shared", allocation "test"`},
		"explain web-0 -n shop ": {"position 1 of 5"},
		"explain nb-1 -n play --scheduler-config ../../manifests/overlays/tenants/scheduler-config.yaml": {
			"fits on 10 of 11 nodes", "1: node(s) were not of the partition of the pod's allocation, or lacked its traits (n10)",
		},
	} {
		got, err := run(t, append(strings.Fields(args), "--snapshot", file)...)
		for _, part := range want {
			if err != nil || !strings.Contains(got, part) {
				t.Errorf("%s does not say %q, %v:\n%s", args, part, err, got)
			}
		}
	}
	if _, err := run(t, "queue", "none", "--snapshot", file); err == nil || !strings.Contains(err.Error(), `there is no Partition "none" that is accepted`) {
		t.Errorf("got %v", err)
	}
	if got, err := run(t, "queue", "--snapshot", cluster(t)); err != nil || got != "No partitions found.\n" {
		t.Errorf("without partitions: %q, %v", got, err)
	}
}

// An order that misses what decides about it would be a wrong one, and no Partition that is accepted is not the same as none.
func TestNoOrder(t *testing.T) {
	partition := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte("{apiVersion: placement.espalier.dev/v1alpha1, kind: Partition, metadata: {name: odd}, spec: {nodeSelector: {matchExpressions: [{key: a, operator: Like}]}}}"), partition))
	odd := &snapshot.Snapshot{Taken: time.Unix(0, 0), Server: "v1.37.1"}
	odd.Add(partition)
	unread := &snapshot.Snapshot{Taken: time.Unix(0, 0), Server: "v1.37.1", Unread: []string{"services: forbidden", "namespaces: forbidden"}}
	for want, s := range map[string]*snapshot.Snapshot{
		"no Partition is accepted: see the condition Accepted of each":                                   odd,
		"namespaces could not be read, and decide about the order: ask for the right to list partitions": unread,
	} {
		s.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		if got, err := run(t, "queue", "--snapshot", saved(t, s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, %v, want %s", got, err, want)
		}
	}
}

// Pods of priority 0 come last, and one that cannot be read is in no order.
func TestQueueOfOthers(t *testing.T) {
	page, err := os.ReadFile(tenantsPage)
	must(t, err)
	last, bad := podAt("shop", "cache", "n3"), podAt("shop", "bad", "")
	last.Annotations = map[string]string{"espalier.dev/allocation-priority": "0"}
	bad.Annotations = map[string]string{"espalier.dev/allocation-priority": "high"}
	file := tenants(t, string(page), last, bad)
	got, err := run(t, "queue", "--snapshot", file)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if end := lines[len(lines)-1]; err != nil || !strings.HasPrefix(end, "6 ") || !strings.HasSuffix(end, "last") || strings.Contains(got, "shop/bad") {
		t.Errorf("it prints, %v:\n%s", err, got)
	}
	got, err = run(t, "explain", "bad", "-n", "shop", "--snapshot", file)
	if want := `order: it is in no order: annotation espalier.dev/allocation-priority "high"`; err != nil || !strings.Contains(got, want) {
		t.Errorf("it prints, %v:\n%s", err, got)
	}
	// The scheduler has nothing to do with it: the pod is held, and would be so whoever runs.
	if !strings.Contains(got, "It fits, and is not tried: the order says why.") {
		t.Errorf("it prints\n%s", got)
	}
}

// The CRDs of the release are read as a client reads those of a cluster: integers among them, such as minimum: 1, are not fractions.
func TestDefinitionsAreReadAsThoseOfACluster(t *testing.T) {
	all, err := definitions()
	must(t, err)
	if len(all) < 3 {
		t.Errorf("there are %d CRDs", len(all))
	}
	for _, definition := range all {
		text, err := definition.MarshalJSON()
		must(t, err)
		read, _, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, nil)
		must(t, err)
		if !equality.Semantic.DeepEqual(read.(*unstructured.Unstructured).Object, definition.Object) {
			t.Errorf("%s is another one when a client has read it", definition.GetName())
		}
	}
}

// The rights that are looked for are those of the manifests, of all roles for the whole cluster.
func TestRights(t *testing.T) {
	all, err := rights()
	must(t, err)
	has := func(group, resource, verb string) bool {
		return slices.ContainsFunc(all, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	}
	if !has("", "pods/binding", "create") || !has("node.k8s.io", "runtimeclasses", "list") || !has("", "events", "watch") || has("", "configmaps", "get") {
		t.Errorf("the rights are %v", all)
	}
}

// What changes while the pods are listed for the watch is no change to it: a drawing of before would stay as it is.
func TestWatchKnowsThePodsBeforeItDraws(t *testing.T) {
	listed, drawn := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			http.Error(w, "it is asked for a list", http.StatusBadRequest)
			return
		}
		select {
		case <-drawn:
		case <-time.After(300 * time.Millisecond):
		}
		close(listed)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}))
	t.Cleanup(server.Close)
	kube := genericclioptions.NewConfigFlags(false)
	kube.APIServer = &server.URL
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	over := errors.New("over")
	err := (&common{kube: kube}).watch(cmd, "ns", func(io.Writer) error {
		close(drawn)
		select {
		case <-listed:
			return over
		default:
			return errors.New("it draws before it knows the pods")
		}
	})
	if !errors.Is(err, over) {
		t.Error(err)
	}
}

// Where the pods cannot be listed the drawing says why, and is not waited for in silence.
func TestWatchDrawsWithoutThePods(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }))
	t.Cleanup(server.Close)
	kube := genericclioptions.NewConfigFlags(false)
	kube.APIServer = &server.URL
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	broken, begin := errors.New("the API server is broken"), time.Now()
	if err := (&common{kube: kube}).watch(cmd, "ns", func(io.Writer) error { return broken }); !errors.Is(err, broken) || time.Since(begin) >= listTimeout {
		t.Errorf("it ended after %s with %v", time.Since(begin), err)
	}
	if pause(0) != leastPause || pause(time.Second) != timesPause*time.Second || pause(time.Hour) != mostPause {
		t.Error("a drawing stays for another time")
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

const (
	// namespace has the pods that are measured, crowdNamespace those that lie there, and
	// attackNamespace those of another tenant.
	namespace       = "bench"
	crowdNamespace  = "crowd"
	attackNamespace = "attack"
	endTimeout      = 30 * time.Second
	kindsPath       = "/apis/placement.espalier.dev/v1alpha1/"
)

// World is a control plane with the nodes of some workloads that find the same there.
type World struct {
	// Profiles takes a processor profile of Profiled for the workload, of the last of its
	// runs. "" takes none; a profile costs a little of what is measured.
	Profiles string

	// Controller is the path of Espalier's controller, for the workloads that have it run beside.
	Controller string
	// NullWebhook is the path of the webhook that allows each binding, for the workloads that have it.
	NullWebhook string

	// workload is the one that is measured.
	workload load.Workload
	cluster  *rig.Devcluster
	config   *rest.Config
	client   kubernetes.Interface
	// kubeconfig and logs are for the schedulers: who they are, and the folder that has
	// one for the logs of each workload.
	kubeconfig, logs string
	nodes            []*corev1.Node
	// owners are the ReplicaSets of the groups.
	owners []*appsv1.ReplicaSet
	say    Say
	// progress shows how far is what takes longer.
	progress Progress
}

// Say reports progress to a person.
type Say func(format string, args ...any)

// Progress shows a person that so many of all are done of something.
type Progress func(done, all int, what string)

// NewWorld starts a control plane and lays out what the workloads find there. Logs go
// into folders in logs, one for each workload.
func NewWorld(ctx context.Context, devcluster, logs string, workloads []load.Workload, say Say, progress Progress) (w *World, err error) {
	for _, workload := range workloads {
		if err := os.MkdirAll(filepath.Join(logs, workload.Name), 0o755); err != nil {
			return nil, fmt.Errorf("making the folder for logs: %w", err)
		}
	}
	dir := filepath.Join(logs, workloads[0].Name)
	cluster, err := rig.StartDevcluster(ctx, rig.DevclusterOptions{Binary: devcluster, Dir: dir, Args: []string{"--bare"}, Progress: io.Discard})
	if err != nil {
		return nil, err
	}
	w = &World{cluster: cluster, kubeconfig: cluster.Kubeconfig, logs: logs, say: say, progress: progress}
	defer func() {
		if err != nil {
			_ = cluster.Stop(endTimeout)
		}
	}()
	if w.config, w.client, err = rig.Client(cluster.Kubeconfig); err != nil {
		return nil, err
	}
	// As the schedulers do: JSON would cost the API server more than the binding does.
	protobuf := rest.CopyConfig(w.config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	if w.client, err = kubernetes.NewForConfig(protobuf); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if err := w.layOut(ctx, workloads); err != nil {
		return nil, err
	}
	return w, nil
}

// Close ends the control plane.
func (w *World) Close() error { return w.cluster.Stop(endTimeout) }

// layOut makes what is there before the first pod comes.
func (w *World) layOut(ctx context.Context, workloads []load.Workload) error {
	applier, err := w.install(ctx)
	if err != nil {
		return err
	}
	groups := 0
	for _, workload := range workloads {
		tenants := workload.Tenants()
		err := w.each(ctx, "allocations made", len(tenants), func(ctx context.Context, i int) error { return applier.ApplyObject(ctx, tenants[i], "") })
		if err != nil {
			return err
		}
		groups = max(groups, workload.Groups)
	}
	w.owners = make([]*appsv1.ReplicaSet, groups)
	err = w.each(ctx, "ReplicaSets made", groups, func(ctx context.Context, group int) error {
		owner, err := w.client.AppsV1().ReplicaSets(namespace).Create(ctx, load.ReplicaSet(group), metav1.CreateOptions{})
		w.owners[group] = owner
		return err
	})
	if err != nil {
		return err
	}
	w.nodes = workloads[0].MakeNodes()
	err = w.each(ctx, "nodes made", len(w.nodes), func(ctx context.Context, i int) error {
		_, err := w.client.CoreV1().Nodes().Create(ctx, w.nodes[i], metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return w.each(ctx, "pods laid out", len(w.nodes)*workloads[0].Crowd, func(ctx context.Context, i int) error {
		pod := load.CrowdPod(i, w.nodes[i%len(w.nodes)].Name)
		_, err := w.client.CoreV1().Pods(crowdNamespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// install makes what a cluster has before its nodes come, and returns an applier that knows its kinds.
func (w *World) install(ctx context.Context) (*rig.Applier, error) {
	applier, err := rig.NewApplier(w.config)
	if err != nil {
		return nil, err
	}
	// A cluster that has Espalier installed has it, and our scheduler watches it.
	if err := applier.Definitions(ctx, manifests.Files); err != nil {
		return nil, err
	}
	// Whoever asks too early is told to come again in a second, for which the first pod would wait.
	for _, resource := range []string{"placementpolicies", "partitions", "allocations"} {
		err = rig.Poll(ctx, endTimeout, 50*time.Millisecond, "the API server to serve "+resource, func() error {
			return w.client.Discovery().RESTClient().Get().AbsPath(kindsPath + resource).Do(ctx).Error()
		})
		if err != nil {
			return nil, err
		}
	}
	for _, name := range []string{namespace, crowdNamespace, attackNamespace} {
		if _, err := w.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("creating namespace %s: %w", name, err)
		}
		// No controller makes it here, and without it the API server takes no pods.
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		if _, err := w.client.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("creating service account %s/default: %w", name, err)
		}
	}
	if _, err := w.client.StorageV1().StorageClasses().Create(ctx, load.StorageClass(), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating StorageClass %s: %w", load.StorageName, err)
	}
	// One that has looked kinds up before these were there looks again once, and says to whoever asks meanwhile that there are none.
	return rig.NewApplier(w.config)
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// used are the filters that look at nothing but nodes, pods and namespaces. A framework is not made without the first and the last.
var used = []string{
	names.PrioritySort,
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts, names.NodeResourcesFit,
	names.PodTopologySpread, names.InterPodAffinity,
	names.DefaultBinder,
}

// Cluster is nodes, and pods on them, at one moment.
type Cluster struct {
	snapshot  *cache.Snapshot
	framework framework.Framework
}

// New returns a cluster. Namespaces are those of the pods, for affinities that select them. What it starts ends with the context.
func New(ctx context.Context, nodes []*corev1.Node, pods []*corev1.Pod, namespaces []*corev1.Namespace) (*Cluster, error) {
	metrics.Register() // a framework counts what it is asked, whether anybody reads it
	configuration, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("the default configuration of kube-scheduler: %w", err)
	}
	profile := &configuration.Profiles[0]
	profile.Plugins = &schedulerapi.Plugins{}
	for _, name := range used {
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, schedulerapi.Plugin{Name: name})
	}
	for i := range profile.PluginConfig {
		if args, is := profile.PluginConfig[i].Args.(*schedulerapi.PodTopologySpreadArgs); is {
			args.DefaultingType = schedulerapi.ListDefaulting // the pod's own constraints alone; defaults are no filters
		}
	}
	// Nothing is asked of an API server: the one lister that is used has what it is given.
	factory := informers.NewSharedInformerFactory(nil, 0)
	known := factory.Core().V1().Namespaces().Informer().GetIndexer()
	for _, n := range namespaces {
		if err := known.Add(n); err != nil {
			return nil, fmt.Errorf("namespace %s: %w", n.Name, err)
		}
	}
	snapshot := cache.NewSnapshot(onNodes(pods, nodes), nodes)
	f, err := frameworkruntime.NewFramework(ctx, frameworkplugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithSnapshotSharedLister(snapshot))
	if err != nil {
		return nil, fmt.Errorf("the filters of kube-scheduler: %w", err)
	}
	return &Cluster{snapshot, f}, nil
}

// onNodes are the pods whose nodes are there. Of a node that is gone its pods are so a while later, and filters do not expect that.
func onNodes(pods []*corev1.Pod, nodes []*corev1.Node) []*corev1.Pod {
	names := sets.New[string]()
	for _, n := range nodes {
		names.Insert(n.Name)
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !names.Has(p.Spec.NodeName) })
}

// Fits returns which nodes could take another pod like this one, which may run already. It runs all the while: what it
// holds is not free.
func (c *Cluster) Fits(ctx context.Context, pod *corev1.Pod) (func(node string) bool, error) {
	_, _, fits, err := c.ask(ctx, pod)
	return fits, err
}

// FitsInstead returns which nodes could take another pod like this one, which runs, when this one is gone. Constraints and affinities may refuse
// nodes then that they allow while it is there: its domain has one pod less, from which the others must not differ too much.
func (c *Cluster) FitsInstead(ctx context.Context, pod *corev1.Pod) (func(node string) bool, error) {
	state, another, fits, err := c.ask(ctx, pod)
	if err != nil || state == nil {
		return fits, err
	}
	left, err := c.snapshot.NodeInfos().Get(pod.Spec.NodeName)
	if err != nil {
		return fits, nil //nolint:nilerr // its node is gone, and so it is not counted there
	}
	left = left.Snapshot()
	if err := left.RemovePod(klog.FromContext(ctx), pod); err != nil {
		return nil, fmt.Errorf("taking pod %s/%s off its node: %w", pod.Namespace, pod.Name, err)
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if status := c.framework.RunPreFilterExtensionRemovePod(ctx, state, another, info, left); !status.IsSuccess() {
		return nil, fmt.Errorf("asking the filters about pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	return func(node string) bool {
		if node == pod.Spec.NodeName {
			return c.framework.RunFilterPlugins(ctx, state, another, left).IsSuccess()
		}
		return fits(node)
	}, nil
}

// ask asks the filters about another pod like this one. The state is nil if they refuse it everywhere.
func (c *Cluster) ask(ctx context.Context, pod *corev1.Pod) (state fwk.CycleState, another *corev1.Pod, fits func(node string) bool, err error) {
	another = pod.DeepCopy()
	another.Name, another.UID, another.Spec.NodeName, another.Status = pod.Name+"-another", pod.UID+"-another", "", corev1.PodStatus{}
	state = framework.NewCycleState()
	result, status, _ := c.framework.RunPreFilterPlugins(ctx, state, another)
	if status.IsRejected() {
		return nil, another, func(string) bool { return false }, nil
	}
	if !status.IsSuccess() {
		return nil, another, nil, fmt.Errorf("asking the filters about pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	var only sets.Set[string]
	if !result.AllNodes() {
		only = result.NodeNames
	}
	return state, another, func(node string) bool {
		if only != nil && !only.Has(node) {
			return false
		}
		info, err := c.snapshot.NodeInfos().Get(node)
		return err == nil && c.framework.RunFilterPlugins(ctx, state, another, info).IsSuccess()
	}, nil
}

// Node is a node as the scheduler sees it, with its pods. It is false for one that is not there.
func (c *Cluster) Node(name string) (fwk.NodeInfo, bool) {
	info, err := c.snapshot.NodeInfos().Get(name)
	return info, err == nil
}

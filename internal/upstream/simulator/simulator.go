// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/espalier-scheduler/espalier/internal/upstream"
)

// Configuration is that of a scheduler.
type Configuration = schedulerapi.KubeSchedulerConfiguration

// Options are what is simulated.
type Options struct {
	Config *Configuration
	// Plugins are those that are not in-tree.
	Plugins frameworkruntime.Registry
	// NodeLocal are those of them that look at nothing but the pod and one node.
	NodeLocal []string
	// Prepare, if set, is called with the informers before there are plugins.
	Prepare func(informers.SharedInformerFactory) error
	Objects []runtime.Object
}

// Simulator is a scheduler that binds nothing. It is not safe for concurrent use.
type Simulator struct {
	sched     *scheduler.Scheduler
	nodeLocal []string
	// snapshot is what the plugins are shown.
	snapshot *cache.Snapshot
}

// Decision is what became of a pod.
type Decision struct {
	// Node is "" for a pod that fits nowhere.
	Node string
	// Message says why, as the pod's condition would, "" for a pod that has a node.
	Message string
	// Refused has the reasons of each node that was looked at and refused.
	Refused map[string][]string
	// State is what the plugins said to each other.
	State fwk.CycleState
}

// New returns a scheduler that has seen all objects. What it starts ends with the context.
func New(ctx context.Context, o Options) (*Simulator, error) {
	ctx = klog.NewContext(ctx, logr.Discard()) // what a scheduler logs is for who runs it
	client, err := newClient(o.Objects)
	if err != nil {
		return nil, err
	}
	factory := newFactory(client, o.Objects)
	if o.Prepare != nil {
		if err := o.Prepare(factory); err != nil {
			return nil, err
		}
	}
	unheard := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	snapshot := cache.NewEmptySnapshot()
	sched, err := scheduler.New(ctx, client, factory, nil, unheard,
		scheduler.WithComponentConfigVersion(o.Config.APIVersion),
		scheduler.WithProfiles(o.Config.Profiles...),
		scheduler.WithParallelism(o.Config.Parallelism),
		scheduler.WithPercentageOfNodesToScore(o.Config.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(o.Plugins),
		scheduler.WithNodeInfoSnapshot(snapshot),
	)
	if err != nil {
		return nil, fmt.Errorf("making a scheduler: %w", err)
	}
	// As the scheduler is that ships. What it does when it binds, announces or takes up pods is never asked for here. Why profiles have no fast path is
	// said by that scheduler: the decisions are the same.
	if _, err := upstream.Adapt(ctx, sched, upstream.Options{Profiles: o.Config.Profiles, NodeLocal: o.NodeLocal, Client: client, NoSampling: true}); err != nil {
		return nil, fmt.Errorf("making a scheduler: %w", err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil, fmt.Errorf("showing the cluster to a scheduler: %w", err)
	}
	return &Simulator{sched, o.NodeLocal, snapshot}, nil
}

// Profiles are the names of the schedulers that it is.
func (s *Simulator) Profiles() []string { return slices.Sorted(maps.Keys(s.sched.Profiles)) }

// Decide decides a pod as its scheduler would, and places it nowhere. It fails for a pod whose scheduler it is not.
func (s *Simulator) Decide(ctx context.Context, pod *corev1.Pod) (Decision, error) {
	profile, info, err := s.of(pod)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{State: framework.NewCycleState()}
	result, err := s.sched.SchedulePod(ctx, profile, d.State, info)
	if ctx.Err() != nil {
		return d, ctx.Err() // a cycle that has ended finds no node for any pod
	}
	if err == nil {
		d.Node = result.SuggestedHost
		return d, nil
	}
	var fit *framework.FitError
	switch {
	case errors.Is(err, scheduler.ErrNoNodesAvailable):
	case errors.As(err, &fit):
		d.Refused = make(map[string][]string)
		fit.Diagnosis.NodeToStatus.ForEachExplicitNode(func(node string, status *fwk.Status) { d.Refused[node] = status.Reasons() })
	default:
		return d, fmt.Errorf("deciding pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	d.Message = err.Error()
	return d, nil
}

// Place decides a pod, and counts it on its node from then on.
func (s *Simulator) Place(ctx context.Context, pod *corev1.Pod) (Decision, error) {
	d, err := s.Decide(ctx, pod)
	if err != nil || d.Node == "" {
		return d, err
	}
	profile := s.sched.Profiles[pod.Spec.SchedulerName]
	placed := pod.DeepCopy()
	placed.Spec.NodeName = d.Node
	if err := s.sched.Cache.AssumePod(klog.FromContext(ctx), placed); err != nil {
		return d, fmt.Errorf("placing pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	// It is on its node now, and would be counted there once more.
	s.sched.SchedulingQueue.DeleteNominatedPodIfExists(placed)
	if status := profile.RunReservePluginsReserve(ctx, d.State, placed, d.Node); !status.IsSuccess() {
		return d, errors.Join(fmt.Errorf("placing pod %s/%s on %s: %w", pod.Namespace, pod.Name, d.Node, status.AsError()),
			s.sched.Cache.ForgetPod(klog.FromContext(ctx), placed))
	}
	return d, nil
}

// Filtered is what the filters say to a pod.
type Filtered struct {
	// Fits are the nodes that they allow.
	Fits sets.Set[string]
	// Refused has the reasons of each of the others.
	Refused map[string][]string
	// Message is what a PreFilter plugin says that refuses the pod on all nodes, "" if none does.
	Message string
	State   fwk.CycleState
}

// PreFiltered is what the PreFilter plugins say of a pod.
type PreFiltered struct {
	State fwk.CycleState
	// Message is why they refuse it, "" if they do not.
	Message string
	// Lasting says that what the filters say depends on nothing but what the pod needs and the node.
	Lasting bool
}

// PreFilter runs the PreFilter plugins alone.
func (s *Simulator) PreFilter(ctx context.Context, pod *corev1.Pod) (PreFiltered, error) {
	profile, _, err := s.of(pod)
	if err != nil {
		return PreFiltered{}, err
	}
	p := PreFiltered{State: framework.NewCycleState()}
	result, status, _ := profile.RunPreFilterPlugins(ctx, p.State, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return p, fmt.Errorf("asking the filters about pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	p.Message = status.Message()
	p.Lasting = status.IsSuccess() && result.AllNodes() && upstream.Lasting(profile, p.State, pod, s.nodeLocal)
	return p, nil
}

// Filter asks the filters about all nodes, and places the pod nowhere.
func (s *Simulator) Filter(ctx context.Context, pod *corev1.Pod) (Filtered, error) {
	profile, _, err := s.of(pod)
	if err != nil {
		return Filtered{}, err
	}
	all, err := s.snapshot.NodeInfos().List()
	if err != nil {
		return Filtered{}, fmt.Errorf("looking at the nodes: %w", err)
	}
	f := Filtered{Fits: sets.New[string](), Refused: make(map[string][]string), State: framework.NewCycleState()}
	result, status, _ := profile.RunPreFilterPlugins(ctx, f.State, pod)
	if status.IsRejected() {
		f.Message = status.Message()
		for _, n := range all {
			f.Refused[n.Node().Name] = status.Reasons()
		}
		return f, nil
	}
	if !status.IsSuccess() {
		return f, fmt.Errorf("asking the filters about pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	statuses := make([]*fwk.Status, len(all))
	profile.Parallelizer().Until(ctx, len(all), func(i int) {
		if name := all[i].Node().Name; !result.AllNodes() && !result.NodeNames.Has(name) {
			statuses[i] = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node is none of those that the pod may be on")
			return
		}
		statuses[i] = profile.RunFilterPluginsWithNominatedPods(ctx, f.State, pod, all[i])
	}, "Simulate")
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	for i, status := range statuses {
		name := all[i].Node().Name
		switch {
		case status.IsSuccess():
			f.Fits.Insert(name)
		case status.IsRejected():
			f.Refused[name] = status.Reasons()
		default:
			return f, fmt.Errorf("asking the filters about pod %s/%s on node %s: %w", pod.Namespace, pod.Name, name, status.AsError())
		}
	}
	return f, nil
}

// Room returns for how many more pods like this one each node has resources, whatever else keeps them away.
func (s *Simulator) Room(pod *corev1.Pod) (map[string]int64, error) {
	all, err := s.snapshot.NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("looking at the nodes: %w", err)
	}
	wanted := framework.NewResource(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	room := make(map[string]int64, len(all))
	for _, n := range all {
		has, taken := n.GetAllocatable(), n.GetRequested()
		free := int64(has.GetAllowedPodNumber() - len(n.GetPods()))
		fits := func(has, taken, wanted int64) {
			if wanted > 0 {
				free = min(free, (has-taken)/wanted)
			}
		}
		fits(has.GetMilliCPU(), taken.GetMilliCPU(), wanted.MilliCPU)
		fits(has.GetMemory(), taken.GetMemory(), wanted.Memory)
		fits(has.GetEphemeralStorage(), taken.GetEphemeralStorage(), wanted.EphemeralStorage)
		for name, amount := range wanted.ScalarResources {
			fits(has.GetScalarResources()[name], taken.GetScalarResources()[name], amount)
		}
		room[n.Node().Name] = max(free, 0)
	}
	return room, nil
}

// of returns what a pod is decided by, with the snapshot up to date.
func (s *Simulator) of(pod *corev1.Pod) (framework.Framework, *framework.QueuedPodInfo, error) {
	profile, is := s.sched.Profiles[pod.Spec.SchedulerName]
	if !is {
		return nil, nil, fmt.Errorf("pod %s/%s: its schedulerName is %q, and the configuration has %q", pod.Namespace, pod.Name, pod.Spec.SchedulerName, s.Profiles())
	}
	if err := s.sched.Cache.UpdateSnapshot(klog.Background(), s.snapshot); err != nil {
		return nil, nil, fmt.Errorf("looking at the cluster: %w", err)
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return profile, &framework.QueuedPodInfo{PodInfo: info}, nil
}

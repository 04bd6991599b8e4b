// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// controllerDeeds are those of whoever makes Deployments, and of the controllers that
// then make pods. Two such actors have Deployments of their own.
func (a *actor) controllerDeeds() map[string]func(context.Context) {
	apps := []string{a.name + "-0", a.name + "-1", a.name + "-2"}
	current := make(map[string]*appsv1.ReplicaSet)
	kind := make(map[string]string)
	profile := make(map[string]string)
	sets := a.server.AppsV1().ReplicaSets(namespace)
	roll := func(ctx context.Context, app string) {
		set := replicaSet(app, a.fresh(app), a.fresh("revision"))
		created, err := sets.Create(ctx, set, metav1.CreateOptions{})
		a.must(err)
		if err != nil {
			return
		}
		current[app], kind[app], profile[app] = created, oneOf(a, slices.Sorted(maps.Keys(kinds))...), oneOf(a, stormy...)
	}
	ofApp := func(app string) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool { return p.Labels["app"] == app }
	}
	grow := func(ctx context.Context) {
		app := oneOf(a, apps...)
		if current[app] == nil {
			roll(ctx, app)
		}
		for range 1 + a.IntN(8) {
			if !a.crowded() {
				a.createPod(ctx, podOf(a.fresh(app), kind[app], app, profile[app], current[app]))
			}
		}
	}
	return map[string]func(context.Context){
		"grow": grow, "grow again": grow,
		"shrink": func(ctx context.Context) {
			for range a.IntN(6) {
				if p := a.somePod(ofApp(oneOf(a, apps...))); p != nil {
					a.deletePod(ctx, p.Name)
				}
			}
		},
		"roll": func(ctx context.Context) {
			if a.rarely(4) {
				roll(ctx, oneOf(a, apps...))
			}
		},
		"drop": func(ctx context.Context) {
			if app := oneOf(a, apps...); a.rarely(20) && current[app] != nil {
				a.must(sets.Delete(ctx, current[app].Name, metav1.DeleteOptions{}))
				delete(current, app)
			}
		},
	}
}

func (a *actor) createPod(ctx context.Context, pod *corev1.Pod) {
	_, err := a.server.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	a.must(err)
}

// personDeeds are those of people with pods of their own, and of another scheduler.
func (a *actor) personDeeds() map[string]func(context.Context) {
	return map[string]func(context.Context){
		"bare": func(ctx context.Context) {
			if kind := oneOf(a, slices.Sorted(maps.Keys(kinds))...); !a.crowded() {
				a.createPod(ctx, podOf(a.fresh("bare"), kind, "bare-"+kind, oneOf(a, stormy...), nil))
			}
		},
		"pinned": func(ctx context.Context) {
			if !a.crowded() {
				pod := podOf(a.fresh("pinned"), "plain", "pinned", shipped, nil)
				pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
						{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{a.nodeName()}},
					}}},
				}}}
				a.createPod(ctx, pod)
			}
		},
		"another scheduler's": func(ctx context.Context) {
			if !a.crowded() {
				pod := podOf(a.fresh("other"), "port", "other", corev1.DefaultSchedulerName, nil)
				pod.Spec.NodeName = a.nodeName()
				a.createPod(ctx, pod)
			}
		},
		"relabel": func(ctx context.Context) {
			if p := a.somePod(func(p *corev1.Pod) bool { return p.Spec.SchedulerName != corev1.DefaultSchedulerName }); p != nil {
				a.changePod(ctx, p.Name, func(p *corev1.Pod) { p.Labels["storm"] = oneOf(a, "x", "y") })
			}
		},
		"delete": func(ctx context.Context) {
			if p := a.somePod(func(*corev1.Pod) bool { return true }); p != nil {
				a.deletePod(ctx, p.Name)
			}
		},
	}
}

// policyDeeds are those of whoever writes policies.
func (a *actor) policyDeeds() map[string]func(context.Context) {
	write := func(context.Context) {
		name := oneOf(a, "p0", "p1", "p2", "p3")
		p := &placementv1alpha1.PlacementPolicy{
			TypeMeta: metav1.TypeMeta{Kind: ofPolicy.Kind, APIVersion: placementv1alpha1.SchemeGroupVersion.String()},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, UID: types.UID(a.fresh(name)), Generation: int64(a.born), CreationTimestamp: metav1.Now(),
			},
			Spec: placementv1alpha1.PlacementPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{oneOf(a, kindLabel, "storm"): oneOf(a, "plain", "port", "x", "y")}},
				Levels:      []placementv1alpha1.Level{{TopologyKey: placementv1alpha1.TopologyKey(oneOf(a, zone, rack, "no.such")), NodesWithoutKey: oneOf(a, placementv1alpha1.NodesWithoutKeyOwnDomain, placementv1alpha1.NodesWithoutKeyExclude)}},
				Faults:      &placementv1alpha1.Faults{Threshold: new(int32(1 + a.IntN(4)))},
			},
		}
		if a.rarely(2) {
			p.Spec.DomainLimits = []placementv1alpha1.DomainLimit{{TopologyKey: rack, MaxPods: int64(1 + a.IntN(3))}}
		}
		if a.server.store.Create(policies, p, namespace) == nil {
			return
		}
		if old, err := a.server.store.Get(policies, namespace, name); err == nil {
			p.ResourceVersion = old.(*placementv1alpha1.PlacementPolicy).ResourceVersion
			a.must(a.server.store.Update(policies, p, namespace))
		}
	}
	return map[string]func(context.Context){
		"write": write, "write again": write,
		"delete": func(context.Context) {
			a.must(a.server.store.Delete(policies, namespace, oneOf(a, "p0", "p1", "p2", "p3")))
		},
	}
}

// kubeletDeeds are what becomes of pods on their nodes.
func (a *actor) kubeletDeeds() map[string]func(context.Context) {
	bound := func(do func(context.Context, *corev1.Pod)) func(context.Context) {
		return func(ctx context.Context) {
			if p := a.somePod(func(p *corev1.Pod) bool { return p.Spec.NodeName != "" }); p != nil {
				do(ctx, p)
			}
		}
	}
	status := func(change func(*corev1.PodStatus)) func(context.Context) {
		return bound(func(ctx context.Context, p *corev1.Pod) {
			a.changePod(ctx, p.Name, func(p *corev1.Pod) { change(&p.Status) })
		})
	}
	ready := status(func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	})
	exit := func(s *corev1.PodStatus, code int32) {
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "con0", RestartCount: int32(a.IntN(9)), State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()},
		}}}
	}
	return map[string]func(context.Context){
		"ready": ready, "ready too": ready, "ready as well": ready,
		"crash": status(func(s *corev1.PodStatus) { s.Phase = corev1.PodRunning; exit(s, 1+a.Int32N(3)) }),
		"fail":  status(func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed; exit(s, 1) }),
		"refuse": status(func(s *corev1.PodStatus) {
			s.Phase, s.Reason, s.StartTime = corev1.PodFailed, "OutOfcpu", new(metav1.Now())
		}),
		"succeed": status(func(s *corev1.PodStatus) {
			s.Phase = corev1.PodSucceeded
			exit(s, 0)
		}),
		"end": bound(func(ctx context.Context, p *corev1.Pod) { a.deletePod(ctx, p.Name) }),
		"terminate": bound(func(ctx context.Context, p *corev1.Pod) {
			a.changePod(ctx, p.Name, func(p *corev1.Pod) {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(time.Now())), new(int64(30))
			})
		}),
		"warn":    bound(a.warn),
		"collect": a.collect,
	}
}

// warn has a node's kubelet say that a pod cannot be started.
func (a *actor) warn(ctx context.Context, p *corev1.Pod) {
	_, err := a.server.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.fresh("event")}, Type: corev1.EventTypeWarning,
		Reason: oneOf(a, "FailedCreatePodSandBox", "Failed", "FailedMount"), Source: corev1.EventSource{Component: "kubelet", Host: p.Spec.NodeName},
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: p.Name, UID: p.UID},
	}, metav1.CreateOptions{})
	a.must(err)
}

// collect deletes pods that have ended, or whose deletion is over.
func (a *actor) collect(ctx context.Context) {
	for _, p := range a.server.allPods(a.T) {
		if p.DeletionTimestamp != nil || (p.Status.Phase != corev1.PodPending && p.Status.Phase != corev1.PodRunning && a.rarely(2)) {
			a.deletePod(ctx, p.Name)
		}
	}
}

const (
	namespace = "ns"
	zone      = "zone"
	rack      = "rack"
	// kindLabel on a pod names its entry of kinds.
	kindLabel = "kind"
)

// kinds are the pods there are, as they differ from a plain one. All of them are
// placed by the tree; odd says that not each of them has a node hint.
var kinds = map[string]struct {
	make func(*st.PodWrapper)
	odd  bool
}{
	"plain":  {make: func(*st.PodWrapper) {}},
	"spread": {make: func(p *st.PodWrapper) { p.Annotation(clusterview.PlacementAnnotation, "spread=zone,spread=rack") }},
	"pack":   {make: func(p *st.PodWrapper) { p.Annotation(clusterview.PlacementAnnotation, "pack=zone,spread=rack") }},
	"weighted": {make: func(p *st.PodWrapper) {
		p.Annotation(clusterview.PlacementAnnotation, "spread=zone;weight.a=3;weight.*=1")
	}},
	"excluding": {make: func(p *st.PodWrapper) {
		p.Annotation(clusterview.PlacementAnnotation, "spread=rack;nodesWithoutKey=Exclude")
	}},
	"malformed":  {make: func(p *st.PodWrapper) { p.Annotation(clusterview.PlacementAnnotation, "spread=") }},
	"limited":    {make: func(p *st.PodWrapper) { p.Annotation(clusterview.DomainLimitsAnnotation, "rack=2,node.name=1") }},
	"port":       {make: func(p *st.PodWrapper) { p.HostPort(8080) }},
	"other port": {make: func(p *st.PodWrapper) { p.HostPort(9090) }},
	"disk":       {make: func(p *st.PodWrapper) { p.Annotation(clusterview.ConstraintsAnnotation, "node.labels.disk==ssd") }},
	"arm":        {make: func(p *st.PodWrapper) { p.Annotation(clusterview.PlatformsAnnotation, "linux/arm64") }},
	"selective":  {make: func(p *st.PodWrapper) { p.NodeSelector(map[string]string{"disk": "ssd"}) }},
	"tolerant":   {make: func(p *st.PodWrapper) { p.Toleration("storm") }},
	"large":      {make: func(p *st.PodWrapper) { p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "3"}) }},
	"urgent":     {make: func(p *st.PodWrapper) { p.Priority(100).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "2"}) }},
	"handled":    {make: func(p *st.PodWrapper) { p.Obj().Spec.RuntimeClassName = new("sandboxed") }},
	"soft": {make: func(p *st.PodWrapper) {
		p.SpreadConstraint(1, zone, corev1.ScheduleAnyway, alike(p), nil, nil, nil, nil)
	}},
	"hard": {make: func(p *st.PodWrapper) {
		p.SpreadConstraint(2, zone, corev1.DoNotSchedule, alike(p), nil, nil, nil, nil)
	}},
	"apart": {make: func(p *st.PodWrapper) {
		p.PodAntiAffinity(corev1.LabelHostname, alike(p), st.PodAntiAffinityWithRequiredReq)
	}},
	"near": {odd: true, make: func(p *st.PodWrapper) { p.PodAffinity(zone, alike(p), st.PodAffinityWithPreferredReq) }},
}

func alike(p *st.PodWrapper) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Obj().Labels["app"]}}
}

// podOf is a pod of a kind, of the ReplicaSet of an app, or of a workload of its own
// name where there is none.
func podOf(name, kind, app, scheduler string, of *appsv1.ReplicaSet) *corev1.Pod {
	p := st.MakePod().Namespace(namespace).Name(name).UID(name).SchedulerName(scheduler).
		Label("app", app).Label(kindLabel, kind).Container("image").Phase(corev1.PodPending)
	kinds[kind].make(p)
	pod := p.Obj()
	if len(pod.Spec.Containers[0].Resources.Requests) == 0 {
		p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "100m"})
	}
	if of == nil {
		pod.Labels[clusterview.WorkloadLabel] = app
		return pod
	}
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = of.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	return pod
}

// replicaSet is one of a Deployment.
func replicaSet(app, name, revision string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(name),
		Labels:          map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: revision},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: app, UID: types.UID(app), Controller: new(true)}},
	}}
}

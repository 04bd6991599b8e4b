// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// tenantsSchedulerNeeds and tenantsControllerNeeds are the stories of what the component tenants gives to each.
var (
	tenantsSchedulerNeeds = map[string]need{
		"list partitions":  {"places in a partition", placesInAPartition, []string{listing}},
		"list allocations": {"places in a partition", placesInAPartition, []string{listing}},
	}
	tenantsControllerNeeds = map[string]need{
		"list partitions":             {"counts", counts, []string{listing}},
		"list allocations":            {"counts", counts, []string{listing}},
		"list nodes":                  {"counts", counts, []string{listing}},
		"watch nodes":                 {"counts and hears", countsAndHears, nil}, // there is nothing to do before
		"patch partitions/status":     {"counts the partition", countsPartition, nil},
		"patch allocations/status":    {"counts", counts, nil},
		"create pods/eviction":        {"evicts", evicts, nil},
		"create events.k8s.io/events": {"tells", tells, nil},
	}
)

// startTenantsScheduler starts the scheduler with the profile of the overlay, for the Partitions and Allocations of the stage alone.
func (s *stage) startTenantsScheduler(args ...string) {
	s.Helper()
	s.proxy.only = s.name
	s.startWith(strings.NewReplacer(rig.SchedulerName, s.name, "amespace: kube-system", "amespace: "+s.name).Replace(string(manifests.TenantsConfig)), args...)
}

func (s *stage) startTenantsController(args ...string) {
	s.Helper()
	s.proxy.only = s.name
	s.startController(append(args, "--allocations")...)
}

// share makes a partition of a node, and an allocation that may run one of its pods that are called so.
func (s *stage) share(name string) {
	s.Helper()
	s.node(name)
	s.object("Partition", name, map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelHostname: name}}})
	s.object("Allocation", name, map[string]any{
		"partition": name, "reserved": map[string]any{"cpu": "1"}, "maxUtilizationPercent": int64(100),
		"assignments": []any{map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: s.name}},
			"podSelector":       map[string]any{"matchLabels": map[string]any{"app": name}},
		}},
	})
}

// shared is a pod of the allocation that requests all that it reserves.
func (s *stage) shared(name, of string) *corev1.Pod {
	pod := s.pod(name)
	pod.Labels = map[string]string{"app": of}
	pod.Spec.NodeSelector = nil
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return pod
}

// placesInAPartition: a pod of an allocation runs on the node of its partition. One that comes at the same time as these may be placed
// before they are known, and so another one is made.
func placesInAPartition(s *stage) error {
	name, pods := s.name+"-places", 0
	s.share(name)
	return s.wait("a pod on the node of its partition", func() error {
		pods++
		pod := s.shared(fmt.Sprint("shared-", pods), name)
		pod.Spec.Containers[0].Resources.Requests = nil // however many there are, they are within the maximum
		if err := s.bound(s.create(pod)); err != nil {
			return err
		}
		now, err := cluster.client.CoreV1().Pods(s.name).Get(s.Context(), pod.Name, metav1.GetOptions{})
		if err == nil && now.Spec.NodeName != name {
			err = fmt.Errorf("pod %s is on node %s", pod.Name, now.Spec.NodeName)
		}
		return err
	})
}

// running puts a pod of an allocation on the node of its partition, as if a scheduler had.
func (s *stage) running(name, of string) {
	s.Helper()
	pod := s.create(s.shared(name, of))
	must(s, cluster.client.CoreV1().Pods(s.name).Bind(s.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: of},
	}, metav1.CreateOptions{}))
}

// counts: the status of an allocation says how many of its pods run.
func counts(s *stage) error {
	name := s.name + "-counts"
	s.share(name)
	s.running("counted", name)
	return s.statusOf(s.resource(placementv1alpha1.AllocationResource), name, "runningPods")
}

// countsAndHears: and what it counts is watched then.
func countsAndHears(s *stage) error {
	name := s.name + "-hears"
	s.share(name)
	if err := s.statusOf(s.resource(placementv1alpha1.PartitionResource), name, "nodes"); err != nil {
		return err
	}
	return hears(question{resource: "nodes"})(s)
}

// countsPartition: and that of a partition says how many nodes it has.
func countsPartition(s *stage) error {
	name := s.name + "-partition"
	s.share(name)
	return s.statusOf(s.resource(placementv1alpha1.PartitionResource), name, "nodes")
}

// overrun has an allocation run twice as much as it may, and returns the pods.
func (s *stage) overrun(name string) []string {
	s.Helper()
	s.share(name)
	pods := []string{name + "-0", name + "-1"}
	for _, pod := range pods {
		s.running(pod, name)
	}
	return pods
}

// evicts: a pod that must not run is evicted.
func evicts(s *stage) error {
	pods := s.overrun(s.name + "-evicts")
	return s.evicted(pods...)
}

// evicted waits until one of some pods is terminating, or gone.
func (s *stage) evicted(pods ...string) error {
	s.Helper()
	return s.wait("a pod to be evicted", func() error {
		for _, name := range pods {
			now, err := cluster.client.CoreV1().Pods(s.name).Get(s.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && now.DeletionTimestamp != nil {
				return nil
			}
		}
		return errors.New("all run")
	})
}

// tells: and an Event says why.
func tells(s *stage) error {
	pods := s.overrun(s.name + "-tells")
	return s.wait("an Event of a pod that is evicted", func() error {
		list, err := cluster.client.EventsV1().Events(s.name).List(s.Context(), metav1.ListOptions{FieldSelector: "reason=MustNotRun"})
		if err == nil && !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return slices.Contains(pods, e.Regarding.Name) }) {
			err = errors.New("there is none")
		}
		return err
	})
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Snapshot is a cluster at one moment. Its objects are trimmed, and are not to be changed.
type Snapshot struct {
	// Taken is when, by the clock of who took it.
	Taken time.Time
	// Server is the version of the API server.
	Server string
	// Unread names what could not be read, with the reason. A decision that depends on it may be another one.
	Unread []string
	// Objects are those of Kubernetes' own kinds.
	Objects []runtime.Object
	// Policies are the PlacementPolicies and ClusterPlacementPolicies, as the API server has them.
	Policies []*unstructured.Unstructured
	// Tenants are the Partitions and Allocations, likewise.
	Tenants []*unstructured.Unstructured
}

// source is a kind that is read.
type source struct {
	what string
	// list makes a list of it. It is nil for the records of failures, which are not all of their kind.
	list func() client.ObjectList
	// needed says that without it there is nothing to look at.
	needed bool
}

// sources are the kinds that decide where pods go. The first are the pods, which are read beside all others.
func sources() []source {
	return []source{
		{"pods", func() client.ObjectList { return &corev1.PodList{} }, true},
		{"nodes", func() client.ObjectList { return &corev1.NodeList{} }, true},
		{"replicasets", func() client.ObjectList { return &appsv1.ReplicaSetList{} }, false},
		{"deployments", func() client.ObjectList { return &appsv1.DeploymentList{} }, false},
		{"statefulsets", func() client.ObjectList { return &appsv1.StatefulSetList{} }, false},
		{"daemonsets", func() client.ObjectList { return &appsv1.DaemonSetList{} }, false},
		{"jobs", func() client.ObjectList { return &batchv1.JobList{} }, false},
		{"replicationcontrollers", func() client.ObjectList { return &corev1.ReplicationControllerList{} }, false},
		{"namespaces", func() client.ObjectList { return &corev1.NamespaceList{} }, false},
		{"services", func() client.ObjectList { return &corev1.ServiceList{} }, false},
		{"persistentvolumeclaims", func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} }, false},
		{"persistentvolumes", func() client.ObjectList { return &corev1.PersistentVolumeList{} }, false},
		{"poddisruptionbudgets", func() client.ObjectList { return &policyv1.PodDisruptionBudgetList{} }, false},
		{"priorityclasses", func() client.ObjectList { return &schedulingv1.PriorityClassList{} }, false},
		{"runtimeclasses", func() client.ObjectList { return &nodev1.RuntimeClassList{} }, false},
		{"storageclasses", func() client.ObjectList { return &storagev1.StorageClassList{} }, false},
		{"csinodes", func() client.ObjectList { return &storagev1.CSINodeList{} }, false},
		{"csidrivers", func() client.ObjectList { return &storagev1.CSIDriverList{} }, false},
		{"csistoragecapacities", func() client.ObjectList { return &storagev1.CSIStorageCapacityList{} }, false},
		{"volumeattachments", func() client.ObjectList { return &storagev1.VolumeAttachmentList{} }, false},
		{"deviceclasses", func() client.ObjectList { return &resourcev1.DeviceClassList{} }, false},
		{"resourceclaims", func() client.ObjectList { return &resourcev1.ResourceClaimList{} }, false},
		{"resourceslices", func() client.ObjectList { return &resourcev1.ResourceSliceList{} }, false},
		{"placementpolicies", ours("PlacementPolicyList"), false},
		{"clusterplacementpolicies", ours("ClusterPlacementPolicyList"), false},
		{"partitions", ours("PartitionList"), false},
		{"allocations", ours("AllocationList"), false},
		{"records of failures", nil, false},
	}
}

// ours makes lists of our kinds that are not decoded: one malformed object must not keep the others from being read.
func ours(kind string) func() client.ObjectList {
	return func() client.ObjectList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(placementv1alpha1.SchemeGroupVersion.WithKind(kind))
		return list
	}
}

// Scheme knows all kinds that are read.
func Scheme() *runtime.Scheme { return scheme.Scheme }

// Add adds an object, trimmed.
func (s *Snapshot) Add(o runtime.Object) {
	if object, is := o.(*unstructured.Unstructured); is {
		s.addOurs(trimOurs(object))
		return
	}
	s.Objects = append(s.Objects, trim(o))
}

// addOurs adds an object of one of our kinds.
func (s *Snapshot) addOurs(object *unstructured.Unstructured) {
	if kind := object.GetKind(); kind == "Partition" || kind == "Allocation" {
		s.Tenants = append(s.Tenants, object)
	} else {
		s.Policies = append(s.Policies, object)
	}
}

// Of returns the objects of a kind.
func Of[T runtime.Object](s *Snapshot) []T {
	var all []T
	for _, o := range s.Objects {
		if is, ok := o.(T); ok {
			all = append(all, is)
		}
	}
	return all
}

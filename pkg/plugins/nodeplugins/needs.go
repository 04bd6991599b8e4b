// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	nodelisters "k8s.io/client-go/listers/node/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"
	csitrans "k8s.io/csi-translation-lib"
)

// needs are what a node must have for a pod.
type needs struct {
	// drivers are CSI drivers by name, each once, in order.
	drivers []string
	// handler is a runtime handler; "" is the default one, which every node has.
	handler string
}

func (n needs) empty() bool { return len(n.drivers) == 0 && n.handler == "" }

// missingDriver is the first driver that a CSINode does not list; "" if it lists all.
// A node without a CSINode, which every kubelet makes, has no driver.
func (n needs) missingDriver(csiNode *storagev1.CSINode) string {
	for _, driver := range n.drivers {
		if csiNode == nil || !slices.ContainsFunc(csiNode.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver }) {
			return driver
		}
	}
	return ""
}

// handledBy reports whether a node has the handler, or reports none at all.
func (n needs) handledBy(node *corev1.Node) bool {
	reported := node.Status.RuntimeHandlers
	return n.handler == "" || len(reported) == 0 ||
		slices.ContainsFunc(reported, func(h corev1.NodeRuntimeHandler) bool { return h.Name == n.handler })
}

// handlers are the names of the handlers that a node reports.
func handlers(node *corev1.Node) []string {
	var names []string
	for _, h := range node.Status.RuntimeHandlers {
		names = append(names, h.Name)
	}
	return names
}

// resolver finds out what pods need.
type resolver struct {
	claims         corelisters.PersistentVolumeClaimLister
	volumes        corelisters.PersistentVolumeLister
	storageClasses storagelisters.StorageClassLister
	drivers        storagelisters.CSIDriverLister
	runtimeClasses nodelisters.RuntimeClassLister
	// translator knows which driver has taken over from which volume plugin in-tree.
	translator csitrans.CSITranslator
}

func newResolver(factory informers.SharedInformerFactory) resolver {
	return resolver{
		claims:         factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes:        factory.Core().V1().PersistentVolumes().Lister(),
		storageClasses: factory.Storage().V1().StorageClasses().Lister(),
		drivers:        factory.Storage().V1().CSIDrivers().Lister(),
		runtimeClasses: factory.Node().V1().RuntimeClasses().Lister(),
		translator:     csitrans.New(),
	}
}

// of returns what a pod needs. The error says that its RuntimeClass does not exist;
// the API server refuses such pods, so it was deleted later.
func (r *resolver) of(pod *corev1.Pod) (needs, error) {
	var n needs
	for i := range pod.Spec.Volumes {
		if driver := r.driver(pod, &pod.Spec.Volumes[i]); driver != "" {
			n.drivers = append(n.drivers, driver)
		}
	}
	slices.Sort(n.drivers)
	n.drivers = slices.Compact(n.drivers)
	name := className(pod)
	if name == "" {
		return n, nil
	}
	class, err := r.runtimeClasses.Get(name)
	if err != nil {
		return needs{}, fmt.Errorf("runtimeClassName %q: %w: create the RuntimeClass, or the pod anew without it", name, err)
	}
	n.handler = class.Handler
	return n, nil
}

// className is the pod's RuntimeClass, "" for none.
func className(pod *corev1.Pod) string {
	if pod.Spec.RuntimeClassName == nil {
		return ""
	}
	return *pod.Spec.RuntimeClassName
}

// driver is the CSI driver that a volume of a pod is known to need, "" for none.
func (r *resolver) driver(pod *corev1.Pod, v *corev1.Volume) string {
	switch name := claimName(pod, v); {
	case v.CSI != nil:
		return v.CSI.Driver
	case name != "":
		return r.driverOfClaim(pod.Namespace, name)
	case r.translator.IsInlineMigratable(v):
		plugin, err := r.translator.GetInTreePluginNameFromSpec(nil, v)
		if err != nil {
			return "" // it was asked a line above whether it knows the plugin
		}
		return r.successor(plugin)
	}
	return ""
}

// claimName is the claim that a volume stands for, "" if it is no claim.
func claimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, v)
	}
	return ""
}

func (r *resolver) driverOfClaim(namespace, name string) string {
	claim, err := r.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return ""
	}
	pv, err := r.volumes.Get(claim.Spec.VolumeName)
	switch {
	case err != nil: // not bound yet, or to a volume that is gone
		return r.driverOfClass(volume.GetPersistentVolumeClaimClass(claim))
	case pv.Spec.CSI != nil:
		return pv.Spec.CSI.Driver
	case r.translator.IsPVMigratable(pv):
		plugin, err := r.translator.GetInTreePluginNameFromSpec(pv, nil)
		if err != nil {
			return "" // it was asked a line above whether it knows the plugin
		}
		return r.successor(plugin)
	}
	return ""
}

// driverOfClass is the driver that will make a volume, if it is known to be one.
func (r *resolver) driverOfClass(name string) string {
	driver := r.provisioner(name)
	if _, err := r.drivers.Get(driver); apierrors.IsNotFound(err) {
		return ""
	}
	return driver
}

// provisioner is what will make the volumes of a class, be it a driver or not; "" if
// there is no such class.
func (r *resolver) provisioner(class string) string {
	c, err := r.storageClasses.Get(class)
	switch {
	case err != nil:
		return ""
	case r.translator.IsMigratableIntreePluginByName(c.Provisioner):
		return r.successor(c.Provisioner)
	}
	return c.Provisioner
}

// successor is the driver that has taken over from a plugin in-tree.
func (r *resolver) successor(plugin string) string {
	driver, err := r.translator.GetCSINameFromInTreeName(plugin)
	if err != nil {
		return ""
	}
	return driver
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// registers says in a node's CSINode what its kubelet would: that these drivers run
// on it. It goes with its node, as a kubelet's does.
func (s *story) registers(name string, drivers ...string) {
	s.Helper()
	node, err := s.client.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
	s.must(err, "reading node "+name)
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}},
	}}
	for _, d := range drivers {
		csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, storagev1.CSINodeDriver{Name: d, NodeID: name})
	}
	_, err = s.client.StorageV1().CSINodes().Create(s.ctx, csiNode, metav1.CreateOptions{})
	s.must(err, "registering drivers on "+name)
}

// mounts gives the pod an ephemeral volume of a driver.
func mounts(driver string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver}}})
	}
}

// claims gives the pod a volume by claim.
func claims(name string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "claimed", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// A pod whose volume needs a CSI driver goes where the driver is registered, and waits for it.
func TestMissingCSIDriver(t *testing.T) {
	s := begin(t, byZone)
	nodes := s.nodes(3, 20, zone("zone-a"))
	driver := s.name + ".example.com"
	_, err := s.client.StorageV1().CSIDrivers().Create(s.ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: storagev1.CSIDriverSpec{AttachRequired: new(false), VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{
			storagev1.VolumeLifecycleEphemeral, storagev1.VolumeLifecyclePersistent,
		}},
	}, metav1.CreateOptions{})
	s.must(err, "creating CSIDriver "+driver)
	s.Cleanup(func() {
		_ = s.client.StorageV1().CSIDrivers().Delete(context.Background(), driver, metav1.DeleteOptions{})
	})
	s.registers(nodes[0], driver)
	s.registers(nodes[1], "other.example.com")

	s.deploy("app", 3, "", mounts(driver))
	s.on("app", 3, nodes[0])

	// A claim that is bound to a volume of a driver that is nowhere yet.
	late := "late-" + driver
	s.volume("data", late)
	s.pod("claim", s.template("claim", "", claims("data")))
	// Drivers come before node selectors, so that nodes of other stories are counted too.
	s.says("claim", " node(s) didn't have a CSI driver that the pod's volumes need")
	s.registers(nodes[2], late, driver)
	s.on("claim", 1, nodes[2])
}

// volume makes a volume of a driver and a claim that is bound to it.
func (s *story) volume(claim, driver string) {
	s.Helper()
	name := s.name + "-" + claim
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	_, err := s.client.CoreV1().PersistentVolumes().Create(s.ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes,
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: s.ns, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
		},
	}, metav1.CreateOptions{})
	s.must(err, "creating volume "+name)
	s.Cleanup(func() { s.dropVolume(claim, name) })
	claims := s.client.CoreV1().PersistentVolumeClaims(s.ns)
	_, err = claims.Create(s.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: new(""), VolumeName: name, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	s.must(err, "creating claim "+claim)
	s.until("claim "+claim+" to be bound", func() error {
		c, err := claims.Get(s.ctx, claim, metav1.GetOptions{})
		if err == nil && c.Status.Phase != corev1.ClaimBound {
			err = fmt.Errorf("it is %s", c.Status.Phase)
		}
		return err
	})
}

// dropVolume deletes a claim and its volume for good: nobody else may be there to take
// their protection away.
func (s *story) dropVolume(claim, name string) {
	ctx, unprotected := context.Background(), []byte(`{"metadata":{"finalizers":null}}`)
	claims, volumes := s.client.CoreV1().PersistentVolumeClaims(s.ns), s.client.CoreV1().PersistentVolumes()
	_ = claims.Delete(ctx, claim, metav1.DeleteOptions{})
	_, _ = claims.Patch(ctx, claim, types.MergePatchType, unprotected, metav1.PatchOptions{})
	_ = volumes.Delete(ctx, name, metav1.DeleteOptions{})
	_, _ = volumes.Patch(ctx, name, types.MergePatchType, unprotected, metav1.PatchOptions{})
}

// A pod with a RuntimeClass goes where the kubelet reports its handler, and waits for one.
func TestMissingRuntimeHandler(t *testing.T) {
	s := begin(t, byZone)
	// The handlers are there before the node takes pods: one that reports none takes them all.
	nodes := []string{s.node(20, zone("zone-a")), s.node(20, zone("zone-a"))}
	s.handles(nodes[0], "", "runc")
	s.handles(nodes[1], "", "runc", "kata-qemu")
	s.live(nodes...)
	for class, handler := range map[string]string{s.name + "-kata": "kata-qemu", s.name + "-wasm": "spin"} {
		_, err := s.client.NodeV1().RuntimeClasses().Create(s.ctx, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Handler: handler}, metav1.CreateOptions{})
		s.must(err, "creating RuntimeClass "+class)
		s.Cleanup(func() {
			_ = s.client.NodeV1().RuntimeClasses().Delete(context.Background(), class, metav1.DeleteOptions{})
		})
	}
	s.deploy("kata", 3, "", func(spec *corev1.PodSpec) { spec.RuntimeClassName = new(s.name + "-kata") })
	s.pod("wasm", s.template("wasm", "", func(spec *corev1.PodSpec) { spec.RuntimeClassName = new(s.name + "-wasm") }))
	s.on("kata", 3, nodes[1])
	s.says("wasm", fmt.Sprintf("%d node(s) didn't have the runtime handler of the pod's RuntimeClass", 2+s.realNodes()))

	// A node that reports no handlers is taken to have them.
	silent := s.nodes(1, 20, zone("zone-a"))
	s.on("wasm", 1, silent...)
}

// realNodes counts the nodes that no story has made and that take pods. They are real, and
// report what handlers they have: none of a story's.
func (s *story) realNodes() (n int) {
	s.Helper()
	list, err := s.client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{LabelSelector: "!" + storyLabel})
	s.must(err, "listing nodes")
	for i := range list.Items {
		if takesPods(&list.Items[i]) && len(list.Items[i].Status.RuntimeHandlers) > 0 {
			n++
		}
	}
	return n
}

// handles writes the runtime handlers of a node into its status.
func (s *story) handles(name string, handlers ...string) {
	s.Helper()
	s.until("the handlers of "+name, func() error {
		node, err := s.client.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.RuntimeHandlers = nil
		for _, h := range handlers {
			node.Status.RuntimeHandlers = append(node.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: h})
		}
		_, err = s.client.CoreV1().Nodes().UpdateStatus(s.ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// A RuntimeClass that is deleted before its pod is placed is said to be missing, and
// the pod is placed once it is back.
func TestRuntimeClassDeletedAndMadeAgain(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(1, 20, zone("zone-a"))
	classes := s.client.NodeV1().RuntimeClasses()
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Handler: "kata"}
	_, err := classes.Create(s.ctx, class, metav1.CreateOptions{})
	s.must(err, "creating RuntimeClass "+s.name)
	s.Cleanup(func() { _ = classes.Delete(context.Background(), s.name, metav1.DeleteOptions{}) })
	s.pod("late", s.template("late", "", func(spec *corev1.PodSpec) {
		spec.RuntimeClassName = &s.name
		spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "e2e.espalier.dev/wait"}}
	}))
	s.must(classes.Delete(s.ctx, s.name, metav1.DeleteOptions{}), "deleting RuntimeClass "+s.name)
	_, err = s.client.CoreV1().Pods(s.ns).Patch(s.ctx, "late", types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
	s.must(err, "opening the pod's gate")
	s.says("late", `runtimeClassName "`+s.name+`": runtimeclass.node.k8s.io "`+s.name+`" not found: create the RuntimeClass, or the pod anew without it`)
	_, err = classes.Create(s.ctx, class, metav1.CreateOptions{})
	s.must(err, "creating RuntimeClass again")
	s.settled("late", 1)
}

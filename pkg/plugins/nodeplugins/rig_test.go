// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins_test

import (
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodeplugins"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// csiNodes are the CSINodes of a cluster by name.
type csiNodes map[string]*storagev1.CSINode

func (c csiNodes) CSINodes() fwk.CSINodeLister         { return c }
func (c csiNodes) List() ([]*storagev1.CSINode, error) { return nil, nil }
func (c csiNodes) Get(name string) (*storagev1.CSINode, error) {
	if n, ok := c[name]; ok {
		return n, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}, name)
}

// handle is the cluster, and its CSINodes.
type handle struct {
	*plugintest.Cluster
	csi csiNodes
}

func (h handle) SharedCSIManager() fwk.CSIManager { return h.csi }

// newPlugin makes the plugin in a cluster that has the objects.
func newPlugin(t *testing.T, objects ...runtime.Object) *nodeplugins.NodePlugins {
	t.Helper()
	pl, _ := newCluster(t, objects...)
	return pl
}

// newCluster is newPlugin, with the cluster.
func newCluster(t *testing.T, objects ...runtime.Object) (*nodeplugins.NodePlugins, *plugintest.Cluster) {
	t.Helper()
	csi := csiNodes{}
	var others []runtime.Object
	for _, o := range objects {
		if n, ok := o.(*storagev1.CSINode); ok {
			csi[n.Name] = n
			continue
		}
		others = append(others, o)
	}
	c := plugintest.NewCluster(others...)
	pl := plugintest.New[*nodeplugins.NodePlugins](t, nodeplugins.New, nil, handle{c, csi})
	c.Start(t)
	return pl, c
}

func csiNode(name string, drivers ...string) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, d := range drivers {
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: d, NodeID: name})
	}
	return n
}

func csiDriver(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func storageClass(name, provisioner string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
}

func runtimeClass(name, handler string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: handler}
}

// claim asks a class for a volume; one that is bound has it.
func claim(name, class, bound string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: bound},
	}
}

func persistentVolume(name string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}
}

func csiVolume(driver string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "1"}}
}

// pod has volumes, and the RuntimeClass unless it is "".
func pod(class string, volumes ...corev1.VolumeSource) *corev1.Pod {
	p := st.MakePod().Namespace("ns").Name("p").UID("p")
	for i, v := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: string(rune('a' + i)), VolumeSource: v})
	}
	if class != "" {
		p.Spec.RuntimeClassName = &class
	}
	return p.Obj()
}

func inline(driver string) corev1.VolumeSource {
	return corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver}}
}

func claimed(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

var bindMount = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}}

// node reports runtime handlers; without any it reports none.
func node(name string, handlers ...string) *corev1.Node {
	n := st.MakeNode().Name(name).Obj()
	for _, h := range handlers {
		n.Status.RuntimeHandlers = append(n.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: h})
	}
	return n
}

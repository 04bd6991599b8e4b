// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins_test

import (
	"context"
	"reflect"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
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
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: bound},
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

func TestNew(t *testing.T) {
	plugintest.WantNoArguments(t, "NodePlugins", newPlugin(t), nodeplugins.New)
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t)
	sign := func(p *corev1.Pod) []fwk.SignFragment {
		t.Helper()
		fragments, status := pl.SignPod(t.Context(), p)
		if !status.IsSuccess() {
			t.Fatalf("not signed: %v", status)
		}
		return fragments
	}
	plain := sign(pod("", inline("a")))
	if !reflect.DeepEqual(plain, sign(pod("", inline("a")))) {
		t.Error("two pods that ask for the same are signed otherwise")
	}
	for name, other := range map[string]*corev1.Pod{
		"another driver": pod("", inline("b")), "a claim": pod("", claimed("a")), "no volume": pod(""), "a RuntimeClass": pod("kata", inline("a")),
	} {
		if reflect.DeepEqual(plain, sign(other)) {
			t.Errorf("a pod with %s is signed like one without", name)
		}
	}
}

func TestHints(t *testing.T) {
	cluster := []runtime.Object{
		runtimeClass("kata", "kata-qemu"), csiDriver("d2"),
		storageClass("one", "d1"), storageClass("two", "d2"), claim("c1", "one", ""), claim("c2", "two", ""),
		csiNode("late", "d1", "d2"),
	}
	driver, handler := pod("", inline("d1"), inline("d2")), pod("kata")
	both := pod("kata", inline("d1"))
	theirs := claim("c1", "one", "pv")
	theirs.Namespace = "other"
	for _, tc := range []struct {
		name          string
		resource      fwk.EventResource
		action        fwk.ActionType
		pod           *corev1.Pod
		before, after any
		want          fwk.QueueingHint
	}{
		{"a CSINode comes with the drivers", fwk.CSINode, fwk.Add, driver, nil, csiNode("n", "d1", "d2"), fwk.Queue},
		{"a CSINode comes with one of them", fwk.CSINode, fwk.Add, driver, nil, csiNode("n", "d1"), fwk.QueueSkip},
		{"the last driver is installed", fwk.CSINode, fwk.Update, driver, csiNode("n", "d1"), csiNode("n", "d1", "d2"), fwk.Queue},
		{"another driver is installed", fwk.CSINode, fwk.Update, driver, csiNode("n", "d1"), csiNode("n", "d1", "d3"), fwk.QueueSkip},
		{"the drivers had been there", fwk.CSINode, fwk.Update, driver, csiNode("n", "d1", "d2"), csiNode("n", "d1", "d2", "d3"), fwk.QueueSkip},
		{"a pod without drivers", fwk.CSINode, fwk.Add, handler, nil, csiNode("n", "d1"), fwk.QueueSkip},
		{"a pod whose RuntimeClass is gone", fwk.CSINode, fwk.Add, pod("gone", inline("d1")), nil, csiNode("n", "d1"), fwk.QueueSkip},

		{"a node comes with the handler", fwk.Node, fwk.Add, handler, nil, node("n", "", "kata-qemu"), fwk.Queue},
		{"a node comes that reports none", fwk.Node, fwk.Add, handler, nil, node("n"), fwk.Queue},
		{"a node comes without it", fwk.Node, fwk.Add, both, nil, node("n", "", "runc"), fwk.QueueSkip},
		{"a node comes after its CSINode", fwk.Node, fwk.Add, driver, nil, node("late"), fwk.Queue},
		{"the same, without the handler", fwk.Node, fwk.Add, both, nil, node("late", "", "runc"), fwk.QueueSkip},
		{"a node comes before its CSINode", fwk.Node, fwk.Add, both, nil, node("n", "", "kata-qemu"), fwk.QueueSkip},
		{"a node is ready again and has it", fwk.Node, fwk.UpdateNodeCondition, handler, node("n", "runc"), node("n", "runc", "kata-qemu"), fwk.Queue},
		{"a node has had it without an event", fwk.Node, fwk.UpdateNodeCondition, handler, node("n", "kata-qemu"), node("n", "kata-qemu"), fwk.Queue},
		{"a pod that wants no handler", fwk.Node, fwk.Add, driver, nil, node("n"), fwk.QueueSkip},
		{"a pod whose RuntimeClass is gone, and a node", fwk.Node, fwk.Add, pod("gone"), nil, node("n"), fwk.QueueSkip},

		{"a claim of the pod is bound", fwk.PersistentVolumeClaim, fwk.Update, pod("", claimed("c1")), claim("c1", "one", ""), claim("c1", "one", "pv"), fwk.Queue},
		{"a claim of the pod comes", fwk.PersistentVolumeClaim, fwk.Add, pod("", claimed("c1")), nil, claim("c1", "one", ""), fwk.Queue},
		{"another claim is bound", fwk.PersistentVolumeClaim, fwk.Update, pod("", claimed("c1")), claim("c2", "two", ""), claim("c2", "two", "pv"), fwk.QueueSkip},
		{"another namespace's claim comes", fwk.PersistentVolumeClaim, fwk.Add, pod("", claimed("c1")), nil, theirs, fwk.QueueSkip},
		{"a claim of the pod changes otherwise", fwk.PersistentVolumeClaim, fwk.Update, pod("", claimed("c1")), claim("c1", "one", ""), claim("c1", "one", ""), fwk.QueueSkip},

		{"the provisioner is no driver any more", fwk.CSIDriver, fwk.Delete, pod("", claimed("c1")), csiDriver("d1"), nil, fwk.Queue},
		{"the same, seen late", fwk.CSIDriver, fwk.Delete, pod("", claimed("c1")), cache.DeletedFinalStateUnknown{Obj: csiDriver("d1")}, nil, fwk.Queue},
		{"another driver is deleted", fwk.CSIDriver, fwk.Delete, pod("", claimed("c2")), csiDriver("d1"), nil, fwk.QueueSkip},
		{"the driver of an inline volume is deleted", fwk.CSIDriver, fwk.Delete, pod("", inline("d1")), csiDriver("d1"), nil, fwk.QueueSkip},

		{"the class comes anew", fwk.StorageClass, fwk.Add, pod("", claimed("c1")), nil, storageClass("one", "d3"), fwk.Queue},
		{"the class comes anew, unseen", fwk.StorageClass, fwk.Update, pod("", claimed("c1")), storageClass("one", "d1"), storageClass("one", "d3"), fwk.Queue},
		{"the class changes otherwise", fwk.StorageClass, fwk.Update, pod("", claimed("c1")), storageClass("one", "d1"), storageClass("one", "d1"), fwk.QueueSkip},
		{"another class comes", fwk.StorageClass, fwk.Add, pod("", claimed("c1")), nil, storageClass("two", "d3"), fwk.QueueSkip},
		{"a class comes, of an inline volume's driver", fwk.StorageClass, fwk.Add, driver, nil, storageClass("one", "d1"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			event := fwk.ClusterEvent{Resource: tc.resource, ActionType: tc.action}
			plugintest.WantHint(t, newPlugin(t, cluster...), tc.pod, plugintest.Change{Event: event, Before: tc.before, After: tc.after}, tc.want)
		})
	}
}

// A runtime that restarts quickly reports another handler while its node stays ready, of which the framework has no event. The pod that is
// woken must fit at once, although the scheduler's cache may not have seen the change.
func TestRegression_NewHandlerOfAReadyNodeWakesNobody(t *testing.T) {
	waits, other := pod("kata"), pod("wasm")
	waits.Name, waits.UID, other.Name, other.UID = "waits", "waits", "other", "other"
	placed, plain := waits.DeepCopy(), pod("")
	placed.Name, placed.UID, placed.Spec.NodeName = "placed", "placed", "n"
	plain.Name, plain.UID = "plain", "plain"
	before, after := node("n", "runc"), node("n", "runc", "kata-qemu")
	pl, c := newCluster(t, before, waits, other, placed, plain, runtimeClass("kata", "kata-qemu"), runtimeClass("wasm", "spin"))
	c.WantWoken(t, pl, waits, before, after)
}

// A RuntimeClass comes back, or is made anew with another handler. The pod that waits for it is woken when the plugin sees the class, and not
// a moment before: it would be refused once more, and wait for minutes.
func TestRegression_RuntimeClassThatComesBack(t *testing.T) {
	waits, other := pod("kata"), pod("wasm")
	waits.Name, waits.UID, other.Name, other.UID = "waits", "waits", "other", "other"
	n := node("n", "runc", "kata-qemu")
	pl, c := newCluster(t, n, waits, other, runtimeClass("wasm", "spin"))
	for _, change := range []func(context.Context, kubernetes.Interface) error{
		func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.NodeV1().RuntimeClasses().Create(ctx, runtimeClass("kata", "kata-clh"), metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.NodeV1().RuntimeClasses().Update(ctx, runtimeClass("kata", "kata-qemu"), metav1.UpdateOptions{})
			return err
		},
	} {
		c.WantWokenBy(t, waits, change)
	}
	if status := plugintest.Filter(t, pl, waits, n); !status.IsSuccess() {
		t.Errorf("it is awake, and refused: %v", status)
	}
}

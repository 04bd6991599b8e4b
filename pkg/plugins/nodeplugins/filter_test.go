// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodeplugins"
)

// The vectors of 2.10, in its sequence. A volume's plugin is a CSI driver. A network's has no meaning on Kubernetes, where all pods share
// one; the runtime handler stands in for it as what a node must have besides the driver.
func TestVector_2_10(t *testing.T) {
	kata := runtimeClass("kata", "p1")
	n1, n2, n3 := node("n1", "", "runc"), node("n2", "", "runc"), node("n3", "", "p1")
	one := []runtime.Object{kata, csiNode("n1", "p1")}
	two := slices.Concat(one, []runtime.Object{csiNode("n2", "p1", "p2")})
	three := slices.Concat(two, []runtime.Object{csiNode("n3", "p1")})
	for _, tc := range []struct {
		name    string
		cluster []runtime.Object
		nodes   []*corev1.Node
		pod     *corev1.Pod
		fit     string
		message string
	}{
		{"2.10 t1 volume p1", one, []*corev1.Node{n1}, pod("", inline("p1")), "n1", ""},
		{"2.10 t2 volumes p1 and p2, n1 lacks one", one, []*corev1.Node{n1}, pod("", inline("p1"), inline("p2")), "",
			"0/1 nodes are available: 1 node(s) didn't have a CSI driver that the pod's volumes need."},
		{"2.10 t2 with n2", two, []*corev1.Node{n1, n2}, pod("", inline("p1"), inline("p2")), "n2", ""},
		{"2.10 t3 the second kind of plugin is nowhere", two, []*corev1.Node{n1, n2}, pod("kata", inline("p1")), "",
			"0/2 nodes are available: 2 node(s) didn't have the runtime handler of the pod's RuntimeClass."},
		{"2.10 t3 with n3", three, []*corev1.Node{n1, n2, n3}, pod("kata", inline("p1")), "n3", ""},
		{"both kinds missing, each node counts once", three, []*corev1.Node{n1, n2, n3}, pod("kata", inline("p2")), "",
			"0/3 nodes are available: 1 node(s) didn't have the runtime handler of the pod's RuntimeClass, " +
				"2 node(s) didn't have a CSI driver that the pod's volumes need."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pl := newPlugin(t, tc.cluster...)
			_, each := plugintest.FilterEach(t, pl, tc.pod, tc.nodes...)
			var fit []string
			for i, status := range each {
				if status.IsSuccess() {
					fit = append(fit, tc.nodes[i].Name)
				}
			}
			if got := strings.Join(fit, " "); got != tc.fit {
				t.Errorf("fits %q, want %q", got, tc.fit)
			}
			if got := plugintest.Message(t, pl, tc.pod, tc.nodes...); got != tc.message {
				t.Errorf("got  %s\nwant %s", got, tc.message)
			}
		})
	}
	t.Run("2.10 t0 bind mount only", func(t *testing.T) {
		if status, _ := plugintest.FilterEach(t, newPlugin(t), pod("", bindMount)); status.Code() != fwk.Skip {
			t.Errorf("got %v", status)
		}
	})
}

// What a volume needs depends on what is known of it.
func TestDriversOfVolumes(t *testing.T) {
	ephemeral := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	ebs := &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}
	cluster := []runtime.Object{
		csiDriver("csi.example.com"), csiDriver("ebs.csi.aws.com"),
		storageClass("csi", "csi.example.com"), storageClass("local", "example.com/local-path"), storageClass("ebs", "kubernetes.io/aws-ebs"),
		claim("waits", "csi", ""), claim("waits-local", "local", ""), claim("waits-ebs", "ebs", ""), claim("lost", "csi", "gone"),
		claim("bound", "local", "pv-csi"), claim("bound-dir", "csi", "pv-dir"), claim("bound-ebs", "local", "pv-ebs"),
		claim("p-a", "csi", ""), claim("no-class", "", ""), claim("bad-class", "nothing", ""),
		persistentVolume("pv-csi", csiVolume("unregistered.example.com")),
		persistentVolume("pv-dir", corev1.PersistentVolumeSource{HostPath: bindMount.HostPath}),
		persistentVolume("pv-ebs", corev1.PersistentVolumeSource{AWSElasticBlockStore: ebs}),
	}
	for _, tc := range []struct {
		name   string
		volume corev1.VolumeSource
		driver string // "" if the plugin is not concerned
	}{
		{"inline, without a CSIDriver", inline("secrets.example.com"), "secrets.example.com"},
		{"inline, of a plugin that a driver has taken over from", corev1.VolumeSource{AWSElasticBlockStore: ebs}, "ebs.csi.aws.com"},
		{"claim that waits for its first consumer", claimed("waits"), "csi.example.com"},
		{"claim of a provisioner that is no driver", claimed("waits-local"), ""},
		{"claim of a provisioner that a driver has taken over from", claimed("waits-ebs"), "ebs.csi.aws.com"},
		{"claim bound to a driver's volume", claimed("bound"), "unregistered.example.com"},
		{"claim bound to no driver's volume", claimed("bound-dir"), ""},
		{"claim bound to a volume that a driver has taken over", claimed("bound-ebs"), "ebs.csi.aws.com"},
		{"claim bound to a volume that is gone", claimed("lost"), "csi.example.com"},
		{"claim made for the pod", ephemeral, "csi.example.com"},
		{"claim without a class", claimed("no-class"), ""},
		{"claim of a class that is not there", claimed("bad-class"), ""},
		{"claim that is not there", claimed("nothing"), ""},
		{"directory", bindMount, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			has, lacks := node("has"), node("lacks")
			pl := newPlugin(t, append(cluster, csiNode("has", "other.example.com", tc.driver), csiNode("lacks", "other.example.com"))...)
			status, each := plugintest.FilterEach(t, pl, pod("", tc.volume, tc.volume), has, lacks, node("without"))
			if tc.driver == "" {
				if status.Code() != fwk.Skip {
					t.Errorf("got %v, and nothing is known to be needed", status)
				}
				return
			}
			for i, want := range []fwk.Code{fwk.Success, fwk.UnschedulableAndUnresolvable, fwk.UnschedulableAndUnresolvable} {
				if each[i].Code() != want || (want != fwk.Success && each[i].Message() != nodeplugins.ErrReasonDriver) {
					t.Errorf("node %d: %v, want %v", i, each[i], want)
				}
			}
		})
	}
}

func TestHandlers(t *testing.T) {
	pl := newPlugin(t, runtimeClass("kata", "kata-qemu"), runtimeClass("default", ""))
	for _, tc := range []struct {
		name string
		node *corev1.Node
		want fwk.Code
	}{
		{"has it", node("n", "", "runc", "kata-qemu"), fwk.Success},
		{"lacks it", node("n", "", "runc", "kata"), fwk.UnschedulableAndUnresolvable},
		{"reports none", node("n"), fwk.Success},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, each := plugintest.FilterEach(t, pl, pod("kata"), tc.node); each[0].Code() != tc.want {
				t.Errorf("got %v, want %v", each[0], tc.want)
			}
		})
	}
	for _, class := range []string{"", "default"} {
		if status, _ := plugintest.FilterEach(t, pl, pod(class)); status.Code() != fwk.Skip {
			t.Errorf("RuntimeClass %q: %v", class, status)
		}
	}
}

func TestMissingRuntimeClass(t *testing.T) {
	const want = `runtimeClassName "kata": runtimeclass.node.k8s.io "kata" not found: create the RuntimeClass, or the pod anew without it`
	status, _ := plugintest.FilterEach(t, newPlugin(t), pod("kata"))
	plugintest.WantRefusal(t, status, want)
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t), pod(""))
	plugintest.WantNoExtensions(t, newPlugin(t))
}

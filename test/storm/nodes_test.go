// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// nodes is how many there are while all are there.
const nodes = 24

func nodeName(i int) string { return fmt.Sprintf("n%02d", i) }

// newNode is one in three zones of two racks; some have an SSD, some are of ARM.
func newNode(i int, uid string) *corev1.Node {
	n := st.MakeNode().Name(nodeName(i)).UID(uid).Label(corev1.LabelHostname, nodeName(i)).
		Label(zone, string("abc"[i%3])).Label(rack, fmt.Sprint(i%6)).Label("disk", []string{"hdd", "ssd"}[i%2]).
		Label(corev1.LabelOSStable, "linux").Label(corev1.LabelArchStable, []string{"amd64", "arm64"}[i/12]).
		Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "20", corev1.ResourceCPU: "8"}).
		Condition(corev1.NodeReady, corev1.ConditionTrue, "", "").Obj()
	n.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: ""}, {Name: "sandbox"}}
	return n
}

// nodeDeeds are those of whoever runs the machines.
func (a *actor) nodeDeeds() map[string]func(context.Context) {
	toggle := func(to *string, x, y string) {
		if *to == x {
			*to = y
		} else {
			*to = x
		}
	}
	change := func(how func(*corev1.Node)) func(context.Context) {
		return func(ctx context.Context) { a.changeNode(ctx, how) }
	}
	label := func(key string, values ...string) func(context.Context) {
		return change(func(n *corev1.Node) {
			if value := oneOf(a, values...); value != "" {
				n.Labels[key] = value
			} else {
				delete(n.Labels, key)
			}
		})
	}
	return map[string]func(context.Context){
		"zone": label(zone, "a", "b", "c", "d", ""), "rack": label(rack, "0", "1", "2", "3", ""), "disk": label("disk", "ssd", "hdd"),
		"cordon":  change(func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable && a.rarely(3) }),
		"taint":   change(func(n *corev1.Node) { a.taint(n, "storm") }),
		"flap":    change(a.flap),
		"handler": change(func(n *corev1.Node) { toggle(&n.Status.RuntimeHandlers[1].Name, "sandbox", "other") }),
		"room": change(func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse(oneOf(a, "5", "20", "30"))
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(oneOf(a, "1", "4", "8"))
		}),
		"ports": change(func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.ReservedHostPortsAnnotation, oneOf(a, "", "8080/tcp", "nonsense"))
		}),
		"forgive": change(func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.FailuresForgivenAnnotation, time.Now().Format(time.RFC3339))
		}),
		"go":     a.goNode,
		"come":   a.comeNode,
		"return": a.comeNode,
	}
}

// taint puts a taint on a node, or takes it off; mostly the latter.
func (a *actor) taint(n *corev1.Node, key string) {
	had := len(n.Spec.Taints)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	if len(n.Spec.Taints) == had && a.rarely(2) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: oneOf(a, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)})
	}
}

// flap makes a node ready or not, with the taint that then comes with it.
func (a *actor) flap(n *corev1.Node) {
	ready := n.Status.Conditions[0].Status == corev1.ConditionTrue
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	if ready && a.rarely(3) {
		n.Status.Conditions[0].Status = corev1.ConditionFalse
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	}
}

// goNode deletes a node, and some or all of its pods after it.
func (a *actor) goNode(ctx context.Context) {
	name := a.nodeName()
	a.must(a.server.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}))
	for range a.IntN(20) {
		if p := a.somePod(func(p *corev1.Pod) bool { return p.Spec.NodeName == name }); p != nil {
			a.deletePod(ctx, p.Name)
		}
	}
}

// comeNode brings a node back under the name that another had.
func (a *actor) comeNode(ctx context.Context) {
	_, err := a.server.CoreV1().Nodes().Create(ctx, newNode(a.IntN(nodes), a.fresh("node")), metav1.CreateOptions{})
	a.must(err)
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func running(p *corev1.Pod) error {
	if p.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("pod %s on node %q is %s: %s", p.Name, p.Spec.NodeName, p.Status.Phase, waitsFor(p))
	}
	return nil
}

// A kubelet is stopped. Its containers run on and nobody deletes the pods, but nobody knows how they are: they do not count, and what comes
// makes up for them. They count again as soon as the kubelet is back.
func TestKubeletStoppedAndStarted(t *testing.T) {
	s := begin(t)
	s.deploy("app", 8)
	o := s.settled("app", 8)
	s.zones(o, 4, 4)
	// One of the three has two of the four pods.
	lost, on := "", o.OnNodes()
	for _, node := range s.many {
		if on[node] == 2 {
			lost = node
		}
	}
	mend := s.broken(func() { s.shell(lost, "systemctl stop kubelet") }, func() { s.shell(lost, "systemctl start kubelet") })
	s.notReady(lost)

	s.Scale("app", 12)
	o = s.observe("app", 12, running)
	s.zones(o, 7, 5) // without the two: five and five
	if n := o.OnNodes()[lost]; n != 2 {
		s.Errorf("node %s has %d pods, want the two of before", lost, n)
	}

	mend()
	s.allWell()
	s.zones(s.settled("app", 12), 7, 5)
	s.Scale("app", 14)
	s.zones(s.settled("app", 14), 7, 7)
}

// A zone's one node hangs, with all that is on it, until its pods are replaced
// elsewhere. When it wakes up it ends those it has, and takes its share of what comes.
func TestNodePaused(t *testing.T) {
	s := begin(t)
	s.deploy("app", 8, func(spec *corev1.PodSpec) {
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](1),
			})
		}
	})
	s.zones(s.settled("app", 8), 4, 4)
	mend := s.broken(func() { s.engine("pause", s.one) }, func() { s.engine("unpause", s.one) })
	s.notReady(s.one)
	s.Until("eight pods in the other zone", func() error {
		n, err := s.runningOn("app", s.many...)
		if err == nil && n != 8 {
			err = fmt.Errorf("there are %d", n)
		}
		return err
	})

	mend()
	s.allWell()
	s.zones(s.settled("app", 8), 8, 0)
	s.Scale("app", 12)
	s.zones(s.settled("app", 12), 8, 4)
}

// keeps are the strategies, and whether a pod stays under them whose node is back, where its replacement is no better placed.
var keeps = map[string]bool{"Original": true, "Replacement": false, "LongestRunning": true, "BestPlaced": true}

// A kubelet is stopped for three minutes, and for ten, while its containers run on. Pods that a policy keeps go on with the containers that
// they had, and what took their places is gone; or the other way round, if the policy says so. Those of the default scheduler, which tolerate it
// for a minute, are killed.
func TestKubeletStoppedForThreeMinutes(t *testing.T) { begin(t).partition(3 * time.Minute) }

func TestKubeletStoppedForTenMinutes(t *testing.T) { begin(t).partition(10 * time.Minute) }

func (s *story) partition(lasts time.Duration) {
	s.Helper()
	pods := map[string]int{"stock": 8}
	for keep := range keeps {
		app := strings.ToLower(keep)
		pods[app] = 6 // three for the large zone, one on each of its nodes
		s.apply("PlacementPolicy", app, map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{"app": app}},
			"disconnect":  map[string]any{"replaceAfterSeconds": int64(30), "lostAfterSeconds": int64(3600), "keep": keep},
		})
		s.deploy(app, pods[app])
	}
	s.deploy("stock", pods["stock"], func(spec *corev1.PodSpec) {
		spec.SchedulerName = corev1.DefaultSchedulerName
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60)),
		})
	})
	lost, before := s.many[0], make(map[string]map[string]corev1.Pod)
	for app, n := range pods {
		s.settled(app, n)
		if before[app] = s.podsOn(app, lost); len(before[app]) == 0 {
			s.Fatalf("no pod of %s is on node %s: this would tell nothing", app, lost)
		}
	}

	begun := time.Now()
	mend := s.broken(func() { s.shell(lost, "systemctl stop kubelet") }, func() { s.shell(lost, "systemctl start kubelet") })
	s.notReady(lost)
	for app, want := range pods {
		s.Until(fmt.Sprintf("%d pods of %s on other nodes", want, app), func() error {
			n, err := s.runningOn(app, s.one, s.many[1], s.many[2])
			if err == nil && n != want {
				err = fmt.Errorf("there are %d", n)
			}
			return err
		})
		s.Logf("%s: other pods are ready %s after the node was last heard of", app, time.Since(begun).Round(time.Second))
	}
	time.Sleep(time.Until(begun.Add(lasts)))
	s.Logf("the node has been silent for %s", time.Since(begun).Round(time.Second))

	mend()
	s.allWell()
	s.settled("stock", pods["stock"])
	s.sameContainers("stock", lost, before["stock"], false)
	for keep, stays := range keeps {
		app := strings.ToLower(keep)
		s.zones(s.settled(app, pods[app]), 3, 3)
		s.sameContainers(app, lost, before[app], stays)
	}
}

// sameContainers fails the story unless the pods of an app go on, in the containers that they had, or are gone as soon as their kubelet has ended
// them.
func (s *story) sameContainers(app, node string, before map[string]corev1.Pod, stay bool) {
	s.Helper()
	if !stay {
		s.Until(fmt.Sprintf("%d pods of %s to be gone from %s", len(before), app, node), func() error {
			after := s.podsOn(app, node)
			for name, was := range before {
				if is, there := after[name]; there && is.UID == was.UID {
					return fmt.Errorf("pod %s is still there", name)
				}
			}
			return nil
		})
		return
	}
	after := s.podsOn(app, node)
	for name, was := range before {
		is, there := after[name]
		if !there || is.UID != was.UID {
			s.Errorf("%s: pod %s does not go on", app, name)
			continue
		}
		if a, b := was.Status.ContainerStatuses[0], is.Status.ContainerStatuses[0]; a.ContainerID != b.ContainerID || b.RestartCount != a.RestartCount {
			s.Errorf("%s: pod %s ran %s, with %d restarts, and runs %s, with %d", app, name, a.ContainerID, a.RestartCount, b.ContainerID, b.RestartCount)
		}
	}
	s.Logf("%s: %d pods go on in their containers", app, len(before))
}

// podsOn are the pods of an app on a node, by name.
func (s *story) podsOn(app, node string) map[string]corev1.Pod {
	s.Helper()
	list, err := s.Client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app, FieldSelector: "spec.nodeName=" + node})
	s.Must(err, "listing pods")
	pods := make(map[string]corev1.Pod)
	for _, p := range list.Items {
		pods[p.Name] = p
	}
	return pods
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// kubelets play those of all nodes: what is terminating ends, and what does not fit is rejected, in the order in which it comes. In place of a
// rejected pod its owner would make another one, and so do they.
type kubelets struct {
	*story
	work sync.WaitGroup

	mu sync.Mutex // guards what follows
	// nodes are those that pods were bound to, by their names, even if they have gone.
	nodes map[string]string
	// on has the pods of each node that were not rejected.
	on       map[string]map[types.UID]bool
	rejected map[types.UID]bool
	// beyond is how many pods came to a node that had no room.
	beyond map[string]int
	// last is when the last pod was taken.
	last time.Time
	made int
}

// kubelets begin to watch. Rejecting has them reject pods; else these stay where they are.
func (s *story) kubelets(rejecting bool) *kubelets {
	s.Helper()
	k := &kubelets{story: s, nodes: make(map[string]string), on: make(map[string]map[types.UID]bool), rejected: make(map[types.UID]bool), beyond: make(map[string]int)}
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(s.name))
	informer := factory.Core().V1().Pods().Informer()
	saw := func(obj any) {
		if p, is := obj.(*corev1.Pod); is {
			k.saw(p, rejecting)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: saw, UpdateFunc: func(_, obj any) { saw(obj) },
		DeleteFunc: func(obj any) {
			if p, is := obj.(*corev1.Pod); is {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.on[p.Spec.NodeName], p.UID)
			}
		},
	})
	s.must(err)
	ctx, cancel := context.WithCancel(s.ctx)
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		s.Fatal("the watch of pods did not start")
	}
	s.Cleanup(func() {
		cancel()
		factory.Shutdown()
		k.work.Wait()
	})
	return k
}

func (k *kubelets) saw(p *corev1.Pod, rejecting bool) {
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodFailed {
		return
	}
	if p.DeletionTimestamp != nil {
		k.work.Go(func() {
			// A kubelet takes a moment.
			time.Sleep(20 * time.Millisecond)
			_ = k.client.CoreV1().Pods(p.Namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
		})
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.on[p.Spec.NodeName][p.UID] || k.rejected[p.UID] {
		return
	}
	k.nodes[p.Name] = p.Spec.NodeName
	full := len(k.on[p.Spec.NodeName]) >= k.slots
	if full {
		k.beyond[p.Spec.NodeName]++
	}
	if full && rejecting {
		k.rejected[p.UID] = true
		k.made++
		again := k.pod(fmt.Sprintf("again-%05d", k.made), p.Spec.SchedulerName)
		k.work.Go(func() { k.reject(p, again) })
		return
	}
	if k.on[p.Spec.NodeName] == nil {
		k.on[p.Spec.NodeName] = make(map[types.UID]bool)
	}
	k.on[p.Spec.NodeName][p.UID] = true
	k.last = time.Now()
}

// reject does what a kubelet does with a pod for which it has no room, and then its owner.
func (k *kubelets) reject(p, again *corev1.Pod) {
	ctx := context.Background()
	// A patch, because schedulers write conditions meanwhile. The pod may have been deleted.
	failed := []byte(`{"status": {"phase": "Failed", "reason": "OutOfcpu"}}`)
	_, err := k.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, failed, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		k.Errorf("rejecting pod %s: %v", p.Name, err)
	}
	if err := k.create(ctx, again); err != nil {
		k.Errorf("making pod %s: %v", again.Name, err)
	}
}

// running is how many pods run, and when the last was taken.
func (k *kubelets) running() (running int, last time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pods := range k.on {
		running += len(pods)
	}
	return running, k.last
}

// run waits until so many pods run, and for no longer than a scheduler does, and returns when the last was taken.
func (k *kubelets) run(pods int, scheduler *rig.Process) (last time.Time) {
	k.Helper()
	k.until(fmt.Sprintf("%d pods to run", pods), scheduler, func() error {
		var running int
		if running, last = k.running(); running < pods {
			return fmt.Errorf("%d do", running)
		}
		return nil
	})
	return last
}

// seen are the nodes of all pods that were bound, how many run, and how many came to a node that had no room.
func (k *kubelets) seen() (nodes map[string]string, running int, beyond map[string]int) {
	running, _ = k.running()
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.nodes), running, maps.Clone(k.beyond)
}

// tally is how the nodes of a story were filled.
type tally struct {
	// bound is how many pods are on nodes, without those that were rejected.
	bound int
	// beyond is how many came to nodes that had no room, rejected or not.
	beyond int
	// unanswered is how many bindings were made though the arbiter had not answered within its second, or was not there.
	unanswered int
	// answered is how many pods are beyond, node by node, that are more than bindings to that node without an answer: the arbiter let them pass.
	answered int
}

// tally counts, and has the story fail if a pod was bound twice.
func (s *story) tally(k *kubelets) (t tally) {
	s.Helper()
	nodes, on, beyond := k.seen()
	without := make(map[string]int)
	for pod, unanswered := range s.bindings(nodes) {
		if unanswered {
			t.unanswered++
			without[nodes[pod]]++
		}
	}
	for node, n := range beyond {
		t.beyond += n
		t.answered += max(n-without[node], 0)
	}
	t.bound = on
	return t
}

// bindings are those of a story's pods, and whether they were made without an answer. It waits until the audit log has those of so many.
func (s *story) bindings(of map[string]string) (unanswered map[string]bool) {
	s.Helper()
	s.must(rig.Poll(s.ctx, timeout, 100*time.Millisecond, "the audit log to have all bindings", func() error {
		writes, err := rig.Writes(world.auditLog)
		if err != nil {
			return err
		}
		unanswered = make(map[string]bool)
		for i := range writes {
			w := &writes[i]
			if w.Object.Namespace != s.name || w.Object.Subresource != "binding" || !w.Done() {
				continue
			}
			if _, before := unanswered[w.Object.Name]; before {
				return rig.Never(fmt.Errorf("pod %s was bound twice", w.Object.Name))
			}
			unanswered[w.Object.Name] = w.Unanswered()
		}
		for pod := range of {
			if _, is := unanswered[pod]; !is {
				return fmt.Errorf("the binding of %s is not there", pod)
			}
		}
		return nil
	}))
	return unanswered
}

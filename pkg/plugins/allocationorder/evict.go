// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
)

var evictedPods = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: "espalier", Name: "tail_evictions_total", StabilityLevel: metrics.ALPHA,
	Help: "Number of pods that were evicted from the end of the order of a partition, for pods that come before them, by partition and by whether the pod that left was within its reservation.",
}, []string{"partition", "reserved"})

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(evictedPods) })

// maxUnevictable is how long a pod stays that the API server did not let go, before that is tried again.
const maxUnevictable = 5 * time.Minute

// unevictable is why a pod of a partition stays, and since when.
type unevictable struct {
	err       error
	partition string
	since     time.Time
}

// noteUnevictable remembers a pod that the API server did not let go, as an admission policy or the lack of a right has it. Others would
// make way in vain beside it, time and again. That the server is down, or busy, says nothing of the pod.
func (pl *AllocationOrder) noteUnevictable(pod types.UID, partition string, err error) {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		if code := status.Status().Code; code >= 400 && code < 500 && code != http.StatusConflict && code != http.StatusTooManyRequests {
			pl.unevictable[pod] = unevictable{err, partition, time.Now()}
		}
	}
}

// whoStays says which pod of a partition the API server does not let go, and why, for people. It is "" if there is none.
func (pl *AllocationOrder) whoStays(partition string) string {
	var all []string
	for _, one := range pl.unevictable {
		if one.partition == partition {
			all = append(all, one.err.Error())
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf(" that the API server lets go; it refuses %d: %s", len(all), slices.Min(all))
}

// evict has pods make way for those that are at a place, or for a group of which the last is there, and remembers that. If some cannot be
// evicted, the others are waited for all the same: more would go in vain otherwise.
func (pl *AllocationOrder) evict(ctx context.Context, preemptors []preemptor, at allocations.Place, victims []victim) error {
	if err := pl.mayAllGo(ctx, at, victims); err != nil {
		return err
	}
	errs := make([]error, len(victims))
	pl.handle.Parallelizer().Until(ctx, len(victims), func(i int) { errs[i] = pl.evictOne(ctx, at, victims[i]) }, Name)
	var gone []*corev1.Pod
	for i, v := range victims {
		pod := v.info.GetPod()
		if errs[i] != nil {
			pl.noteUnevictable(pod.UID, at.Partition.Name, errs[i])
			continue
		}
		gone = append(gone, pod)
		evictedPods.WithLabelValues(at.Partition.Name, fmt.Sprint(v.place.Entry().Reserved)).Inc()
	}
	for _, p := range preemptors {
		pl.tenants.MadeWay(at.Stamp, p.pod, p.node, gone)
	}
	return errors.Join(errs...)
}

// mayAllGo asks the API server whether it lets all of several victims go, before the first of them does: the others would go in vain if it
// does not.
func (pl *AllocationOrder) mayAllGo(ctx context.Context, at allocations.Place, victims []victim) error {
	if len(victims) < 2 {
		return nil
	}
	errs := make([]error, len(victims))
	pl.handle.Parallelizer().Until(ctx, len(victims), func(i int) {
		errs[i] = pl.remove(ctx, victims[i].info.GetPod(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}, Name)
	for i, v := range victims {
		pl.noteUnevictable(v.info.GetPod().UID, at.Partition.Name, errs[i])
	}
	return errors.Join(errs...)
}

// remove deletes a pod. One that is gone is deleted.
func (pl *AllocationOrder) remove(ctx context.Context, pod *corev1.Pod, options metav1.DeleteOptions) error {
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	err := pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// evictOne evicts a pod, as kube-scheduler's preemption does: it says in the pod's status why, and deletes it.
func (pl *AllocationOrder) evictOne(ctx context.Context, at allocations.Place, v victim) error {
	logger, its, pod := klog.FromContext(ctx), v.info.GetPod(), at.Entry().Object
	why := fmt.Sprintf("it makes way for pod %s/%s, which comes before it: it is at %s, and that one at position %d", pod.Namespace, pod.Name, v.place, at.Index+1)
	// One that is not bound yet need not be deleted: it waits again.
	if waits := pl.handle.GetWaitingPod(its.UID); waits != nil && waits.Preempt(Name, "preempted") {
		return nil
	}
	if binds := pl.handle.GetPodInPreBind(its.UID); binds != nil && binds.CancelPod("preempted by "+Name) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		LastTransitionTime: metav1.Now(), Message: pl.handle.ProfileName() + ": " + why,
	}}}})
	if err == nil {
		_, err = pl.handle.ClientSet().CoreV1().Pods(its.Namespace).Patch(ctx, its.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("evicting pod %s/%s: writing why it leaves: %w", its.Namespace, its.Name, err)
	}
	if err := pl.tenants.Deleting(its.UID, func() error { return pl.remove(ctx, its, metav1.DeleteOptions{}) }); err != nil {
		return err //nolint:wrapcheck // it is that of remove
	}
	logger.V(2).Info("Evicted a pod from the end of the order", "pod", klog.KObj(its), "for", klog.KObj(pod), "node", v.node)
	pl.handle.EventRecorder().WithLogger(logger).Eventf(its, pod, corev1.EventTypeNormal, "Preempted", "Preempting", "%s", why)
	return nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// maxAwaited bounds the Jobs that are waited for. A pod whose Job is forgotten is tried again with all others that wait, after minutes.
const maxAwaited = 10_000

// jobs knows the deadlines of Jobs, and wakes the pods of one that comes late or is given another deadline. The framework has no events of
// Jobs but for those of a watch of its own, of whole objects.
type jobs struct {
	lister  batchlisters.JobLister
	waiting *refusal.Waiting

	mu sync.Mutex // guards awaited
	// awaited are Jobs that were asked for and not known. Jobs come by the thousand, and to wake pods takes a look at all of them.
	awaited sets.Set[cache.ObjectName]
}

// watchJobs has the Jobs of a cluster be known.
func watchJobs(ctx context.Context, handle fwk.Handle) (*jobs, error) {
	informer := handle.SharedInformerFactory().Batch().V1().Jobs()
	j := &jobs{lister: informer.Lister(), waiting: refusal.WaitingOf(ctx, handle), awaited: sets.New[cache.ObjectName]()}
	if err := informer.Informer().SetTransform(trimJob); err != nil {
		return nil, fmt.Errorf("watching Jobs: %w", err)
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if job, ok := obj.(*batchv1.Job); ok && j.came(cache.MetaObjectToName(job)) {
				j.wake(job)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok := oldObj.(*batchv1.Job)
			after, alsoOK := newObj.(*batchv1.Job)
			if ok && alsoOK && clusterview.JobLease(before) != clusterview.JobLease(after) {
				j.wake(after)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching Jobs: %w", err)
	}
	return j, nil
}

// get returns a Job. One that is not known is waited for.
func (j *jobs) get(namespace, name string) (*batchv1.Job, error) {
	job, err := j.lister.Jobs(namespace).Get(name)
	if !apierrors.IsNotFound(err) {
		return job, err
	}
	j.mu.Lock()
	if len(j.awaited) >= maxAwaited {
		clear(j.awaited) // most of them are of Jobs that are gone, and never come
	}
	j.awaited.Insert(cache.NewObjectName(namespace, name))
	j.mu.Unlock()
	return j.lister.Jobs(namespace).Get(name) // it may have come before anybody waited for it
}

// came reports whether a Job was waited for that has come.
func (j *jobs) came(name cache.ObjectName) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.awaited.Has(name)
	j.awaited.Delete(name)
	return was
}

// wake has the pods of a Job tried again that have no node.
func (j *jobs) wake(job *batchv1.Job) {
	j.waiting.Wake(func(pod *corev1.Pod) bool {
		return pod.Namespace == job.Namespace && clusterview.JobOf(pod) == job.Name
	})
}

// trimJob leaves of a Job what a lease is read from, for a cache.
func trimJob(obj any) (any, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok {
		return obj, nil
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion},
		Spec:       batchv1.JobSpec{ActiveDeadlineSeconds: job.Spec.ActiveDeadlineSeconds},
	}, nil
}

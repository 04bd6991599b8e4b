// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// A refused pod that an event may help meanwhile is tried again at once. The queue takes it back before it notes that it is no longer
// being tried; and one that is taken out between the two is thrown away, and never tried again. So a pod has to be back before the next one
// is taken out.
func TestFailAsyncLosesNoPod(t *testing.T) {
	logger := klog.New(nil) // each try would be logged in ten lines
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), logger), 30*time.Second)
	recorder := metrics.NewMetricsAsyncRecorder(10, time.Second, ctx.Done())
	defer func() { cancel(); <-recorder.IsStoppedCh }()
	helps := func(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.Queue, nil }
	first := func(a, b fwk.QueuedEntityInfo) bool { return a.GetTimestamp().Before(b.GetTimestamp()) }
	queue := internalqueue.NewPriorityQueue(first, informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		internalqueue.WithMetricsRecorder(recorder),
		internalqueue.WithQueueingHintMapPerProfile(internalqueue.QueueingHintMapPerProfile{
			"": {framework.EventUnscheduledPodAdd: {{PluginName: "refusing", QueueingHintFn: helps}}},
		}))
	context.AfterFunc(ctx, queue.Close)

	profiles := profile.Map{"one": &registry{T: t}}
	fail := failAsync(ctx, profiles, nil, func(_ context.Context, _ framework.Framework, pod *framework.QueuedPodInfo, _ *fwk.Status, _ *fwk.NominatingInfo, _ time.Time) {
		pod = pod.DeepCopy()
		pod.UnschedulablePlugins = sets.New("refusing")
		if err := queue.AddUnschedulablePodIfNotPresent(logger, pod, 0); err != nil {
			t.Error(err)
		}
	})
	queue.Add(ctx, st.MakePod().Name("p").UID("p").Obj())
	const tries = 20000
	for i := range tries {
		entity, err := queue.Pop(logger)
		if err != nil || entity == nil {
			t.Fatalf("the pod was lost after %d of %d tries: %v", i, tries, err)
		}
		queue.MoveAllToActiveOrBackoffQueue(logger, framework.EventUnscheduledPodAdd, nil, nil, nil)
		fail(ctx, profiles["one"], entity.(*framework.QueuedPodInfo), rejected, nobody, time.Now())
	}
}

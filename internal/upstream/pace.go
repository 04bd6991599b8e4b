// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const (
	// most is how many bindings are under way when the next pod is made to wait. An API server
	// takes up to 200 changes at a time from all clients, unless its flags say otherwise.
	most = 128
	// atMost is how long. Bindings that hang, behind a webhook for instance, must not keep
	// pods waiting that have nothing to do with them: what has not ended by then is not
	// waited for again.
	atMost = 100 * time.Millisecond
	// more is how many bindings are let under way beside those that have not ended by then. An
	// API server that stops for a moment ends none of them either: when each wait in vain let in
	// as many again, a second of such moments had a thousand under way.
	more = 32
)

// nextEntity is how a scheduler comes by its next pod.
type nextEntity func(klog.Logger) (framework.QueuedEntityInfo, error)

// pace has a scheduler that is not running yet wait with the next pod while many bindings are
// under way, for a moment at most, and returns how it is to come by pods.
//
// A pod is decided many times faster than it is bound, and nothing keeps the two in step. Of
// a batch of thousands nearly all were under way at once, each with a stack and a request, which
// were looked through whenever memory was collected and made nothing faster. And what
// is decided later is decided with more known. With this, 2,500 pods on 5,000 nodes took 0.5 to
// 0.6 s of processor time for 1,000 where they had taken 0.7 to 0.9, and 200 MiB where they had
// taken 320 and more (`make perf ONLY=Spread2`, three rounds).
func pace(profiles profile.Map, next nextEntity) nextEntity {
	w := &underWay{ended: make(chan struct{}, 1)}
	for name, f := range profiles {
		profiles[name] = &pacedFramework{f, w}
	}
	return func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		w.hold()
		return next(logger)
	}
}

// underWay counts bindings.
type underWay struct {
	bindings atomic.Int64
	over     atomic.Int64 // those that have ended
	// ended has one token if a binding has ended since the last look.
	ended chan struct{}

	// limit is how many are too many. After a wait in vain it is higher, because those that were
	// waited for may hang. Which they are is not known, so they are taken to hang until as many
	// have ended: past is what over is then.
	limit, past int64
}

func (w *underWay) end() {
	w.bindings.Add(-1)
	w.over.Add(1)
	select {
	case w.ended <- struct{}{}:
	default: // there is one, and who takes it looks after this
	}
}

// tooMany reports whether the next pod has to wait.
func (w *underWay) tooMany() bool {
	if w.over.Load() >= w.past {
		w.limit = most
	}
	return w.bindings.Load() >= w.limit
}

// hold waits until few enough are under way. It is for one caller, which asks for one pod
// after another.
func (w *underWay) hold() {
	if !w.tooMany() {
		return
	}
	enough := time.NewTimer(atMost)
	defer enough.Stop()
	for w.tooMany() {
		select {
		case <-w.ended:
		case <-enough.C:
			hanging := w.bindings.Load()
			w.limit, w.past = hanging+more, w.over.Load()+hanging
			return
		}
	}
}

// pacedFramework is a profile whose bindings are counted.
type pacedFramework struct {
	framework.Framework
	underWay *underWay
}

// RunBindPlugins binds a pod.
func (p *pacedFramework) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	p.underWay.bindings.Add(1)
	defer p.underWay.end()
	return p.Framework.RunBindPlugins(ctx, state, pod, node)
}

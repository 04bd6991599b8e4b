// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const (
	// askFor bounds how long the API server is asked. The pod counts as placed meanwhile. It is
	// longer than a leader lives that cannot reach the API server.
	askFor = 30 * time.Second
	// answerWithin bounds one question, so that a connection that swallows it is not all there is.
	answerWithin = 5 * time.Second
)

// between are the pauses between questions. Pods by the hundred may be asked about at once.
var between = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 4 * time.Second}

// NewClient returns a client to ask with. It has a limit of requests of its own, as high as that
// of the one that binds: there, a question would stand behind all bindings that are under way,
// which may take longer than a timeout.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "confirm-binding"))
	if err != nil {
		return nil, fmt.Errorf("making the client that asks what became of bindings: %w", err)
	}
	return client, nil
}

// confirm has the profiles of a scheduler that is not running yet look for the pods that they
// failed to bind, unless the error is one that says that nothing was sent. What an extender
// binds is not theirs.
func confirm(profiles profile.Map, client kubernetes.Interface, unsent error) {
	for name, f := range profiles {
		profiles[name] = &confirmingFramework{f, client, unsent}
	}
}

// confirmingFramework is a profile that believes in a failed binding only when it has looked.
type confirmingFramework struct {
	framework.Framework
	client kubernetes.Interface
	unsent error
}

// RunBindPlugins binds a pod. It succeeds as well when the pod turns out to be where it was
// to be bound, whatever the answer was. When that cannot be found out, it fails as it did.
func (p *confirmingFramework) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	status := p.Framework.RunBindPlugins(ctx, state, pod, node)
	// A plugin that rejects a pod has bound nothing. An answer of "conflict" may well be about
	// a binding of our own: a request that failed is sent again before we see it.
	// A pod whose binding was never sent may be there by another's, who has announced it.
	// What the arbiter refuses was not there before, or it would not have. And a scheduler that is terminated tries nothing again.
	if status.Code() != fwk.Error || errors.Is(status.AsError(), p.unsent) || refused(status) || ctx.Err() != nil {
		return status
	}
	logger := klog.FromContext(ctx)
	where, err := p.find(ctx, pod)
	switch {
	case err != nil:
		logger.Error(err, "It is not known whether the pod was bound; it will be tried again", "pod", klog.KObj(pod), "node", node)
	case where == node:
		logger.Info("The pod was bound, although binding it failed", "pod", klog.KObj(pod), "node", node)
		return nil
	}
	return status
}

// find returns the node that a pod is on, "" if it is on none or is no more. It asks until
// there is an answer, within askFor.
func (p *confirmingFramework) find(ctx context.Context, pod *corev1.Pod) (node string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var last error
	err = between.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		// No version is named: the answer must be what etcd holds, not what a cache remembers.
		now, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			// Whatever it is: an API server that starts forbids what it has not read the roles of yet.
			last = err
			return false, nil
		case now.UID == pod.UID:
			node = now.Spec.NodeName
		}
		return true, nil
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w; the last answer was: %w", err, last)
	}
	return node, err
}

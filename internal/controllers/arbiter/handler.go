// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Handler answers the API server's questions about bindings.
type Handler struct {
	Ledger *Ledger
	// Pods reads from a cache, API from the API server.
	Pods, API client.Reader
	// Limits has the domain limits of pods.
	Limits *Limits
}

var _ admission.Handler = &Handler{}

// Handle answers one of them. What is no binding of a pod to a node is let pass, as is one that cannot be read: the API server says what is
// to be said of it.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	var binding corev1.Binding
	if err := json.Unmarshal(request.Object.Raw, &binding); err != nil || binding.Target.Kind != "" && binding.Target.Kind != "Node" || binding.Target.Name == "" {
		bindings.WithLabelValues(unchecked).Inc()
		return admission.Allowed("")
	}
	name := types.NamespacedName{Namespace: request.Namespace, Name: binding.Name}
	pod, shown, err := h.pod(ctx, name, binding.UID)
	switch {
	case err != nil:
		// To let it pass would be to admit what nobody has looked at: it counts as a conflict (VV10).
		return h.refuse(ctx, name, binding.Target.Name, "may have no room", []string{fmt.Sprintf("the pod could not be read: %v", err)})
	case pod == nil || pod.Spec.NodeName != "":
		bindings.WithLabelValues(unchecked).Inc()
		return admission.Allowed("")
	}
	admit := func(pod *corev1.Pod) []string {
		// The API server does not bind a pod with gates, so that it takes no room.
		without := ptr.Deref(request.DryRun, false) || gated(pod)
		return h.Ledger.Admit(ctx, pod, binding.Target.Name, h.Limits.of(ctx, pod), without)
	}
	reasons := admit(pod)
	if len(reasons) > 0 {
		// There may be news of the pod as well as of the node: a scheduler writes which devices it has got a moment before it binds it.
		if now, _, err := h.pod(ctx, name, binding.UID); err == nil && now != nil && now.ResourceVersion != pod.ResourceVersion {
			reasons = admit(now)
		}
	}
	if len(reasons) > 0 {
		return h.refuse(ctx, name, binding.Target.Name, "has no room", reasons)
	}
	if shown && h.gone(ctx, name, pod.UID) {
		// The ledger may have been told so before it has kept room for the pod, and would keep it.
		h.Ledger.RemovePod(pod.UID)
	}
	bindings.WithLabelValues(admitted).Inc()
	return admission.Allowed("")
}

// gated reports whether a pod is not to be bound yet.
func gated(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 }

// pod returns the pod of a binding, nil if there is none any more, or it is bound to a node, and whether it is as the watch has shown it. A pod that it
// has not shown yet is asked for, and so is one that is bound already, if it is known by its name alone: there may be another one of that name by now. So
// is one with gates, which may have lost them a moment before it was bound.
func (h *Handler) pod(ctx context.Context, name types.NamespacedName, uid types.UID) (pod *corev1.Pod, shown bool, err error) {
	for i, reader := range []client.Reader{h.Pods, h.API} {
		pod := &corev1.Pod{}
		err := reader.Get(ctx, name, pod, client.UnsafeDisableDeepCopy)
		switch {
		case err == nil && i == 0 && gated(pod): // the API server has the last word
		case err == nil && (pod.UID == uid || uid == "" && pod.Spec.NodeName == ""):
			return pod, i == 0, nil
		case err != nil && !apierrors.IsNotFound(err):
			return nil, false, err
		}
	}
	return nil, false, nil
}

// gone reports that the watch has shown that a pod is gone, which it had shown before.
func (h *Handler) gone(ctx context.Context, name types.NamespacedName, uid types.UID) bool {
	pod := &corev1.Pod{}
	err := h.Pods.Get(ctx, name, pod, client.UnsafeDisableDeepCopy)
	return apierrors.IsNotFound(err) || err == nil && pod.UID != uid
}

// refuse says that the node has no room, or may have none, so that a scheduler of ours knows it from all else that may be in a binding's way.
func (h *Handler) refuse(ctx context.Context, pod types.NamespacedName, node, has string, reasons []string) admission.Response {
	bindings.WithLabelValues(refused).Inc()
	message := fmt.Sprintf("node %s %s for pod %s: %s", node, has, pod, strings.Join(reasons, "; "))
	klog.FromContext(ctx).V(2).Info("Refused a binding", "pod", klog.KRef(pod.Namespace, pod.Name), "node", node, "reasons", reasons)
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{
			Kind: "pods", Name: pod.Name, Causes: []metav1.StatusCause{{Type: clusterview.RefusedBinding, Field: "target.name", Message: node}},
		},
	}}}
}

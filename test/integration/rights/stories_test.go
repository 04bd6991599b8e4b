// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// story is something that the program does, and an error is that it does not. Stories of one
// stage share its node, and none is in another's way.
type story func(*stage) error

// pod is one that goes to the stage's node.
func (s *stage) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			SchedulerName: s.name, NodeSelector: map[string]string{corev1.LabelHostname: s.name},
			Containers: []corev1.Container{{Name: "c", Image: "busybox:1.37"}},
		},
	}
}

func (s *stage) create(pod *corev1.Pod) *corev1.Pod {
	s.Helper()
	return made(s, cluster.client.CoreV1().Pods(pod.Namespace).Create, pod)
}

// bound waits until the pod has a node.
func (s *stage) bound(pod *corev1.Pod) error {
	return sees(s, "pod "+pod.Name+" to be placed", cluster.client.CoreV1().Pods(pod.Namespace).Get, pod.Name, func(now *corev1.Pod) bool {
		return now.Spec.NodeName != ""
	})
}

// places: a pod gets a node.
func places(s *stage) error { return s.bound(s.create(s.pod("placed"))) }

// obeys: a pod is placed over the levels of the policy that selects it. A pod that comes at the same time as the policy may be
// placed before that is known, and so another one is made.
func obeys(s *stage) error {
	s.policy("obeyed")
	return s.placedBy("policy/obeyed@")
}

// obeysCluster: and so it is over those of a policy of the cluster.
func obeysCluster(s *stage) error {
	s.clusterPolicy()
	return s.placedBy("clusterpolicy/" + s.name + "@")
}

// placedBy makes pods until one is placed by a policy.
func (s *stage) placedBy(policy string) error {
	s.Helper()
	kind, _, _ := strings.Cut(policy, "/")
	pods := 0
	return s.wait("a pod that is placed by "+policy, func() error {
		pods++
		name := fmt.Sprintf("obeys-%s-%d", kind, pods)
		if err := s.bound(s.create(s.pod(name))); err != nil {
			return err
		}
		now, err := cluster.client.CoreV1().Pods(s.name).Get(s.Context(), name, metav1.GetOptions{})
		if err == nil && !strings.HasPrefix(now.Annotations["espalier.dev/placed-by"], policy) {
			err = fmt.Errorf("pod %s is placed by %q", name, now.Annotations["espalier.dev/placed-by"])
		}
		return err
	})
}

// confirms: a pod that was bound is known to be, although the API server has said that it is in trouble.
func confirms(s *stage) error {
	const name = "unanswered"
	s.proxy.before(func(w http.ResponseWriter, info *apirequest.RequestInfo) bool {
		if info.Subresource != "binding" || info.Name != name {
			return false
		}
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: s.name}}
		err := cluster.client.CoreV1().Pods(s.name).Bind(s.Context(), binding, metav1.CreateOptions{})
		if err != nil && !apierrors.IsConflict(err) { // it is sent more than once
			s.Errorf("binding pod %s: %v", name, err)
		}
		return fail(w)
	})
	defer s.proxy.before(nil)
	s.create(s.pod(name))
	return s.told(name, "Scheduled")
}

// hears: what is watched is watched, and not listed again and again.
func hears(q question) story {
	return func(s *stage) error {
		q.verb = "watch"
		return s.wait("a watch of "+q.resource, func() error {
			if s.proxy.count(q, 200) == 0 {
				return errors.New("it is not watched")
			}
			return nil
		})
	}
}

// explains: a pod that has no place is told why.
func explains(s *stage) error {
	pod := s.pod("refused")
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "nowhere"}
	s.create(pod)
	return sees(s, "the condition of a pod that has no place", cluster.client.CoreV1().Pods(s.name).Get, pod.Name, func(now *corev1.Pod) bool {
		return len(now.Status.Conditions) > 0
	})
}

// reports: and so is who looks at the events.
func reports(s *stage) error {
	pod := s.pod("reported")
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "nowhere"}
	s.create(pod)
	return s.told("reported", "FailedScheduling")
}

// event is one about the object of that name, the last that there is.
func (s *stage) event(name, reason string) (last *corev1.Event, err error) {
	list, err := cluster.client.CoreV1().Events(s.name).List(s.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.Name == name && (last == nil || e.EventTime.After(last.EventTime.Time)) {
			last = e
		}
	}
	if last == nil {
		return nil, fmt.Errorf("there is no event %s of %s", reason, name)
	}
	return last, nil
}

// told waits for an event about an object.
func (s *stage) told(name, reason string) error {
	return s.wait("an event "+reason+" of "+name, func() error {
		_, err := s.event(name, reason)
		return err
	})
}

// repeats: what is said again of a pod is counted, and not written anew. The first time it is told changes the pod, so it takes three.
func repeats(s *stage) error {
	s.unbindable("repeated")
	defer s.proxy.before(nil)
	s.create(s.pod("repeated"))
	return s.wait("the third failure to be counted with the second", func() error {
		event, err := s.event("repeated", "FailedScheduling")
		if err == nil && event.Series == nil {
			err = errors.New("it is not")
		}
		return err
	})
}

// preempts: a pod of low priority goes for one of high priority.
func preempts(s *stage) error {
	node := s.name + "-small"
	s.node(node)
	high := s.name + "-high"
	made(s, cluster.client.SchedulingV1().PriorityClasses().Create, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: high}, Value: 1000})
	var victim *corev1.Pod
	for _, name := range []string{"victim", "preemptor"} {
		pod := s.pod(name)
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("6")}
		if victim != nil {
			pod.Spec.PriorityClassName = high
			s.create(pod)
			break
		}
		victim = s.create(pod)
		if err := s.bound(victim); err != nil {
			return err
		}
	}
	return sees(s, "the victim to be terminating", cluster.client.CoreV1().Pods(s.name).Get, victim.Name, func(now *corev1.Pod) bool {
		return now.DeletionTimestamp != nil
	})
}

// keepsLease waits until a Lease is there and has been renewed.
func (s *stage) keepsLease(name string) error {
	leases := cluster.client.CoordinationV1().Leases(s.name)
	var first *coordinationv1.Lease
	err := sees(s, "its Lease", leases.Get, name, func(now *coordinationv1.Lease) bool {
		first = now
		return true
	})
	if err != nil {
		return err
	}
	return sees(s, "its Lease to be renewed", leases.Get, name, func(now *coordinationv1.Lease) bool {
		return !now.Spec.RenewTime.Equal(first.Spec.RenewTime)
	})
}

// elects: it takes its Lease, and keeps it.
func elects(s *stage) error { return s.keepsLease(s.name) }

// joins: it takes one of its Leases and keeps it, and places pods when it sees that there is nobody else.
func joins(s *stage) error {
	if err := s.keepsLease(s.name + "-0"); err != nil {
		return err
	}
	return places(s)
}

// takesOver: a Lease that another has let go of is taken.
func takesOver(s *stage) error { return s.told(s.name, "LeaderElection") }

// status sets the status of a pod, as its kubelet does.
func (s *stage) status(pod *corev1.Pod, status string) {
	s.Helper()
	_, err := cluster.client.CoreV1().Pods(pod.Namespace).Patch(s.Context(), pod.Name, mergePatch,
		[]byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
	must(s, err)
}

const mergePatch = types.MergePatchType

// metrics asks for /metrics until it is served.
func (s *stage) metrics(token string, certificates ...tls.Certificate) error {
	return s.wait("/metrics", func() error {
		status, _, err := rig.Get(s.Context(), "https://127.0.0.1:"+s.port+"/metrics", token, certificates...)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
}

// serves: whoever may read /metrics reads them, known by a token.
func serves(s *stage) error {
	token, err := rig.ReaderToken(s.Context(), cluster.client, s.name, s.name+"-reader", "/metrics")
	must(s, err)
	return s.metrics(token)
}

// recognizes: or by a certificate that the cluster's authority has signed.
func recognizes(s *stage) error {
	config := rest.CopyConfig(cluster.config)
	must(s, rest.LoadTLSFiles(config))
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	must(s, err)
	return s.metrics("", certificate)
}

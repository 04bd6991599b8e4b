// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"
)

// binder is a profile whose bindings have an outcome.
type binder struct {
	framework.Framework
	status *fwk.Status
}

func (b *binder) RunBindPlugins(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return b.status
}

var (
	errAway   = errors.New("connection refused")
	errUnsent = errors.New("not sent")
)

func pod(uid types.UID, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: uid}, Spec: corev1.PodSpec{NodeName: node}}
}

// answer is the API server's to one question.
type answer struct {
	pod *corev1.Pod
	err error
}

var (
	away      = answer{err: errAway}
	starting  = answer{err: apierrors.NewForbidden(corev1.Resource("pods"), "p", errAway)}
	notFound  = answer{err: apierrors.NewNotFound(corev1.Resource("pods"), "p")}
	elsewhere = answer{pod: pod("1", "b")}
)

func TestConfirm(t *testing.T) {
	failed := fwk.AsStatus(errAway)
	for _, tc := range []struct {
		name    string
		status  *fwk.Status
		answers []answer // the last one again and again
		asked   int      // -1: as often as there is time for
		takes   time.Duration
		bound   bool
	}{
		{"bound", nil, nil, 0, 0, true},
		{"rejected", fwk.NewStatus(fwk.Unschedulable, "no"), nil, 0, 0, false},
		{"skipped", fwk.NewStatus(fwk.Skip), nil, 0, 0, false},
		{"not sent", fwk.AsStatus(fmt.Errorf("binding: %w", errUnsent)), []answer{{pod: pod("1", "a")}}, 0, 0, false},
		{"bound, and not answered", failed, []answer{{pod: pod("1", "a")}}, 1, 0, true},
		{"not bound", failed, []answer{{pod: pod("1", "")}}, 1, 0, false},
		{"bound elsewhere", failed, []answer{elsewhere}, 1, 0, false},
		{"gone", failed, []answer{notFound}, 1, 0, false},
		{"another of that name", failed, []answer{{pod: pod("2", "a")}}, 1, 0, false},
		{"bound, and known late", failed, []answer{away, starting, away, {pod: pod("1", "a")}}, 4, 1100 * time.Millisecond, true},
		{"not bound, and known late", failed, []answer{away, {pod: pod("1", "")}}, 2, 150 * time.Millisecond, false},
		{"never known", failed, []answer{away}, -1, askFor, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				client := fake.NewClientset()
				client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					a := tc.answers[min(asked, len(tc.answers)-1)]
					asked++
					return true, a.pod, a.err
				})
				profiles := profile.Map{"one": &binder{status: tc.status}}
				confirm(profiles, client, errUnsent)
				begin := time.Now()
				got := profiles["one"].RunBindPlugins(t.Context(), nil, pod("1", ""), "a")
				took := time.Since(begin)
				if got.IsSuccess() != tc.bound {
					t.Errorf("the status is %v, want success to be %t", got, tc.bound)
				}
				if !tc.bound && got != tc.status {
					t.Errorf("the status is %v, want it as it was: %v", got, tc.status)
				}
				if tc.asked >= 0 && asked != tc.asked {
					t.Errorf("asked %d times, want %d", asked, tc.asked)
				}
				if took > tc.takes {
					t.Errorf("took %s, want at most %s", took, tc.takes)
				}
				if tc.takes > 0 && took < tc.takes/3 {
					t.Errorf("took %s, want about %s", took, tc.takes)
				}
			})
		})
	}
}

// A scheduler that is terminated waits for nothing.
func TestConfirmEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errAway })
		profiles := profile.Map{"one": &binder{status: fwk.AsStatus(errAway)}}
		confirm(profiles, client, errUnsent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if got := profiles["one"].RunBindPlugins(ctx, nil, pod("1", ""), "a"); got.Code() != fwk.Error {
			t.Errorf("the status is %v, want the error", got)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("took %s, want no longer than its context", took)
		}
		client.ClearActions()
		profiles["one"].RunBindPlugins(ctx, nil, pod("1", ""), "a")
		if asked := client.Actions(); len(asked) > 0 {
			t.Errorf("asked %v after its end", asked)
		}
	})
}

// A question does not stand behind the bindings in their limit of requests.
func TestClientHasALimitOfItsOwn(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: 0.001, Burst: 1}
	binds, err := kubernetes.NewForConfig(config)
	must(t, err)
	asks, err := NewClient(config)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	get := func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Pods("ns").Get(ctx, "p", metav1.GetOptions{})
		return err
	}
	if err := get(binds); !apierrors.IsNotFound(err) {
		t.Fatalf("the first request: %v", err)
	}
	if err := get(binds); err == nil || apierrors.IsNotFound(err) {
		t.Fatalf("the second request was let through: %v", err)
	}
	if err := get(asks); !apierrors.IsNotFound(err) {
		t.Errorf("a question while the limit of bindings is reached: %v", err)
	}
}

// Whoever uses the scheduler's configuration later is not taken for the one who asks.
func TestClientLeavesTheConfigurationAlone(t *testing.T) {
	config := &rest.Config{Host: "127.0.0.1", UserAgent: "kube-scheduler"}
	_, err := NewClient(config)
	must(t, err)
	if config.UserAgent != "kube-scheduler" {
		t.Errorf("the user agent of the configuration is %q by now", config.UserAgent)
	}
}

// order is a Hinter with an order of nodes, or without.
type order struct {
	Hinter
	by  map[string]int64
	err error
}

func (o order) Order(context.Context, fwk.CycleState, *corev1.Pod, []string) (map[string]int64, error) {
	return o.by, o.err
}

// choice is a node with its victims.
type choice struct {
	node    string
	victims *extenderv1.Victims
}

func (c choice) Name() string                 { return c.node }
func (c choice) Victims() *extenderv1.Victims { return c.victims }
func (c choice) NumPodGroupDisruptions() int  { return 0 }

// merit is how a choice does by the in-tree criteria.
func (c choice) merit() string {
	sum := int64(0)
	for _, p := range c.victims.Pods {
		sum += int64(*p.Spec.Priority)
	}
	return fmt.Sprintf("%d violations, %d victims of at most %d and %d in all", c.victims.NumPDBViolations, len(c.victims.Pods), *c.victims.Pods[0].Spec.Priority, sum)
}

// choose is what an evaluator chooses for a pod.
func choose(of preemption.Interface, candidates []preemption.Candidate) choice {
	ctx := context.WithValue(context.Background(), preemptorKey{}, preemptor{framework.NewCycleState(), st.MakePod().Obj()})
	c := (&preemption.Evaluator{Interface: of}).SelectCandidate(ctx, candidates)
	return choice{c.Name(), c.Victims()}
}

// What the in-tree criteria tell apart they tell apart here, whatever the order is; what they find equal is told apart by the order.
func TestPropertyPreemption(t *testing.T) {
	inTree := &defaultpreemption.DefaultPreemption{}
	rapid.Check(t, func(t *rapid.T) {
		var candidates []preemption.Candidate
		by := make(map[string]int64)
		for i := range rapid.IntRange(2, 6).Draw(t, "nodes") {
			c := choice{fmt.Sprint("n", i), &extenderv1.Victims{NumPDBViolations: rapid.Int64Range(0, 1).Draw(t, "violations")}}
			for range rapid.IntRange(1, 3).Draw(t, "victims") {
				started := metav1.NewTime(time.Unix(rapid.Int64Range(0, 3).Draw(t, "started"), 0))
				c.victims.Pods = append(c.victims.Pods, st.MakePod().Priority(rapid.Int32Range(-2, 2).Draw(t, "priority")).StartTime(started).Obj())
			}
			slices.SortFunc(c.victims.Pods, func(a, b *corev1.Pod) int { return int(*b.Spec.Priority - *a.Spec.Priority) })
			candidates = append(candidates, c)
			by[c.node] = rapid.Int64Range(-2, 0).Draw(t, "order")
		}
		stock, ours := choose(inTree, candidates), choose(&treePreemption{inTree, order{by: by}}, candidates)
		if d := cmp.Diff(stock.merit(), ours.merit()); d != "" {
			t.Fatalf("in-tree -, ours +:\n%s", d)
		}
		for _, c := range candidates {
			if c := c.(choice); c.merit() == ours.merit() && by[c.node] > by[ours.node] {
				t.Fatalf("it chose %s, and %s is before it in the order %v", ours.node, c.node, by)
			}
		}
	})
}

// An order that cannot be had leaves the in-tree choice.
func TestPreemptionWithoutAnOrder(t *testing.T) {
	young, old := metav1.NewTime(time.Unix(2, 0)), metav1.NewTime(time.Unix(1, 0))
	victims := func(started metav1.Time) *extenderv1.Victims {
		return &extenderv1.Victims{Pods: []*corev1.Pod{st.MakePod().Priority(1).StartTime(started).Obj()}}
	}
	candidates := []preemption.Candidate{choice{"old", victims(old)}, choice{"young", victims(young)}}
	for name, tc := range map[string]struct {
		order order
		want  string
	}{
		"an order":     {order{by: map[string]int64{"old": 0, "young": -1}}, "old"},
		"no order":     {order{by: map[string]int64{}}, "young"},
		"a broken one": {order{by: map[string]int64{"old": 0, "young": -1}, err: errors.New("no snapshot")}, "young"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := choose(&treePreemption{&defaultpreemption.DefaultPreemption{}, tc.order}, candidates); got.node != tc.want {
				t.Errorf("it chose %s, want %s", got.node, tc.want)
			}
		})
	}
}

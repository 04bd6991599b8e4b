// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
)

// Pods that are not replaced cost one request for their namespace and two for their Deployment, and none for half a minute, however many there are.
func TestRefusedPodsCostLittle(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   int
	}{
		"a budget that allows one": {func(c *cluster) { c.budgets[0].Status.DisruptionsAllowed = 1 }, 1},
		"two budgets":              {func(c *cluster) { c.budgets, c.Pods = append(c.budgets, budget("two", 0)), All }, 1},
		"an owner that is gone":    {func(c *cluster) { c.pod.OwnerReferences[0].UID = "another" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster()
			tc.change(cluster)
			controller, api, clock := cluster.start(t)
			for i := range 30 {
				p := cluster.pod.DeepCopy()
				p.Name, p.UID, p.ResourceVersion = fmt.Sprintf("web-1-%d", i+1), types.UID(fmt.Sprintf("web-1-%d", i+1)), ""
				if err := api.Create(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			requests := 0
			controller.API = interceptor.NewClient(api, interceptor.Funcs{
				Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
					requests++
					return to.Get(ctx, key, into, options...)
				},
				List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					if _, is := into.(*policyv1.PodDisruptionBudgetList); is {
						requests++
					}
					return to.List(ctx, into, options...)
				},
			})
			begin := clock.Now()
			for _, look := range []struct {
				after time.Duration
				want  int
			}{{0, tc.want}, {2 * time.Second, tc.want}, {28 * time.Second, tc.want}, {30 * time.Second, 2 * tc.want}} {
				clock.SetTime(begin.Add(look.after))
				if err := controller.look(t.Context()); err != nil {
					t.Fatal(err)
				}
				if requests != look.want {
					t.Errorf("after %s there were %d requests, want %d", look.after, requests, look.want)
				}
			}
		})
	}
}

// Once another controller has made a Move, a look is over: it could make none.
func TestALookEndsWhenAnotherMakesAMove(t *testing.T) {
	cluster := newCluster()
	controller, api, _ := cluster.start(t)
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		func() client.Object {
			p := cluster.pod.DeepCopy()
			p.Namespace, p.UID, p.ResourceVersion = "other", "another", ""
			return p
		}(),
	} {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var namespaces []string
	controller.API = interceptor.NewClient(api, interceptor.Funcs{
		List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, is := into.(*policyv1.PodDisruptionBudgetList); is {
				of := (&client.ListOptions{}).ApplyOptions(options)
				namespaces = append(namespaces, of.Namespace)
				m := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: "of-another-controller"}}
				if made, err := move.NewCount().Make(ctx, to, m); !made || err != nil {
					t.Errorf("made: %t, error %v", made, err)
				}
			}
			return to.List(ctx, into, options...)
		},
	})
	if err := controller.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(namespaces) != 1 {
		t.Errorf("it asks about %v", namespaces)
	}
}

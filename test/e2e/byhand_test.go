// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

// replacing returns the only pod of an app, on the only node that has room, while it waits for another one to take its place.
func (s *story) replacing(app string) corev1.Pod {
	s.Helper()
	s.nodes(1, 1, zone("zone-a"))
	pod := s.deployed(app, 1, "").Pods[0]
	s.keeps(app, 1)
	s.move(&pod, placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain, DeadlineSeconds: 600})
	s.moved(1, placementv1alpha1.MoveReplacing)
	return pod
}

// collected waits until the garbage collector knows Moves: it looks for new kinds every half a minute, and removes nothing for the sake of those that
// it does not know.
func (s *story) collected() {
	s.Helper()
	none := placementv1alpha1.ObjectReference{Name: "none", UID: "none"}
	m := named[placementv1alpha1.Move](s, "of-none")
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: "none", UID: "none"}}
	m.Spec = placementv1alpha1.MoveSpec{Pod: none, ReplicaSet: none, Reason: placementv1alpha1.MoveDrain}
	s.make(m)
	s.goes(m)
}

// A Move goes in another way than by its own steps: because somebody deletes it, with all that depends on it, or without the finalizer that has
// it wait. The pod is its ReplicaSet's again, and was ready all the time.
func TestMoveIsRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*story, *placementv1alpha1.Move){
		"alone": func(s *story, m *placementv1alpha1.Move) { s.delete(m) },
		"with-its-dependents": func(s *story, m *placementv1alpha1.Move) {
			s.delete(m, client.PropagationPolicy(metav1.DeletePropagationForeground))
		},
		"with-its-finalizer": func(s *story, m *placementv1alpha1.Move) {
			s.delete(m)
			err := world.objects.Patch(s.ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			s.must(client.IgnoreNotFound(err), "taking its finalizer off")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, moves, byZone)
			s.collected()
			before := s.replacing("app")
			stop := s.neverBelow("app", 1)
			m := named[placementv1alpha1.Move](s, before.Name)
			remove(s, m)
			s.goes(m)
			after := s.settled("app", 1).Pods[0]
			stop()
			if by := metav1.GetControllerOf(&after); after.UID != before.UID || by == nil || by.Kind != "ReplicaSet" || len(after.OwnerReferences) != 1 {
				t.Errorf("pod %s of %v is there, and not %s", after.Name, after.OwnerReferences, before.Name)
			}
			s.sweptOff(&after)
		})
	}
}

// sweptOff waits until a pod has nothing of a Move any more.
func (s *story) sweptOff(pod *corev1.Pod) {
	s.Helper()
	becomes(s, pod.Name, "the pod to be as it was", func(is *corev1.Pod) error {
		for _, key := range moveAnnotations {
			if value, there := is.Annotations[key]; there {
				return fmt.Errorf("it still has %s: %s", key, value)
			}
		}
		return nil
	})
}

// A Move that somebody has made by hand goes with the Deployment, as those of the controller do, though a disruption budget wants its pod.
func TestMoveByHandGoesWithTheDeployment(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	s.collected()
	s.nodes(1, 1, zone("zone-a"))
	pod := s.deployed("app", 1, "").Pods[0]
	s.keeps("app", 1)
	m := s.moveOf(&pod, placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain})
	s.make(m)
	s.moved(1, placementv1alpha1.MoveReplacing)
	s.delete(named[appsv1.Deployment](s, "app"))
	s.settled("app", 0)
	s.goes(m)
}

// asks makes a policy that says for which reasons the pods of an app are replaced.
func (s *story) asks(app string, moves placementv1alpha1.Moves) {
	s.Helper()
	s.governs(app, app, placementv1alpha1.PlacementPolicySpec{Moves: &moves})
}

// Of a cordoned node those pods are replaced whose policy asks for it, although no budget keeps them there, and none whose policy does not
// want it, although one does. The controller's flag has those replaced alone that a budget keeps.
func TestDrainByPolicy(t *testing.T) {
	s := begin(t, moves, byZone)
	node := s.nodes(1, 20, zone("zone-a"))[0]
	apps := map[string]int{"all": 0, "none": 2, "unasked": 2} // how many stay there
	for app := range apps {
		s.deployed(app, 2, "")
	}
	s.keeps("none", 2)
	s.asks("all", placementv1alpha1.Moves{Drained: placementv1alpha1.DrainedAll})
	s.asks("none", placementv1alpha1.Moves{Drained: placementv1alpha1.DrainedNone})
	s.nodes(1, 20, zone("zone-b"))
	stop := s.neverBelow("all", 2)
	s.cordon(true, node)
	s.movedExactly(2)
	stop()
	for app, want := range apps {
		s.eachHas(s.settled(app, 2), want, node)
	}
}

// condition gives a node a condition that is true.
func (s *story) condition(node string, is corev1.NodeConditionType) {
	s.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":"True","reason":"Story","message":"","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, is, now, now)
	_, err := s.client.CoreV1().Nodes().Patch(s.ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	s.must(err, "giving node "+node+" the condition "+string(is))
}

// Nobody has cordoned a node of which a change is planned. New pods go to others of its zone, and a pod that a disruption budget keeps there is
// replaced first.
func TestNodeWhoseChangeIsPlanned(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	if world.scheduler == nil {
		s.Skip("the cluster's own scheduler need not have the feature gate")
	}
	rig.Since(t, world.client, rig.LifecycleSince, "conditions that say of the end of a node")
	planned := s.nodes(1, 20, zone("zone-a"))[0]
	s.deployed("kept", 1, "")
	s.keeps("kept", 1)
	s.nodes(1, 20, zone("zone-a"))
	stop := s.neverBelow("kept", 1)
	s.condition(planned, corev1.NodeMaintenancePlanned)
	s.moved(1, placementv1alpha1.MoveDone)
	stop()
	s.deploy("new", 4, "")
	for app, pods := range map[string]int{"kept": 1, "new": 4} {
		s.eachHas(s.settled(app, pods), 0, planned)
	}
	s.wroteNoReplicas("kept")
}

// drawings is what a command that goes on has printed so far.
type drawings struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *drawings) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *drawings) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// A tree that is watched is drawn again when pods have come, and ends well when it is interrupted.
func TestKubectlEspalierWatches(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.nodes(2, 50, zone("zone-a"))
	s.deployed("app", 2, "")
	binary, err := rig.Binary("kubectl-espalier", binFolder)
	s.must(err, "finding kubectl-espalier")
	cmd := exec.CommandContext(s.ctx, binary, "tree", "deployment/app", "--watch", "--kubeconfig", world.kubeconfig, "-n", s.ns)
	var out drawings
	cmd.Stdout, cmd.Stderr = &out, &out
	s.must(cmd.Start(), "starting kubectl espalier")
	all := regexp.MustCompile(`(?m)^all +([0-9]+) `)
	shows := func(pods string) {
		s.Helper()
		s.until("a tree of "+pods+" pods", func() error {
			drawn := all.FindAllStringSubmatch(out.String(), -1)
			return errorIf(len(drawn) == 0 || drawn[len(drawn)-1][1] != pods, "it is drawn\n%s", out.String())
		})
	}
	shows("2")
	s.scale("app", 5)
	shows("5")
	s.must(cmd.Process.Signal(os.Interrupt), "interrupting kubectl espalier")
	s.must(cmd.Wait(), "waiting for kubectl espalier to end")
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/watch"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/test/fixture"
)

// timeout bounds anything that a story waits for.
const timeout = 5 * time.Minute

// story is a namespace with one Deployment.
type story struct {
	testing.TB
	fixture.Space
}

func begin(t *testing.T) *story {
	ns := "ecosystem-" + strings.ToLower(strings.NewReplacer("Test", "", "/", "-").Replace(t.Name()))
	return &story{t, fixture.New(t.Context(), t, world.client, ns, timeout, 250*time.Millisecond)}
}

// apply applies a file. An Applier knows the kinds that were there when it was made.
func (s *story) apply(folder, name string) error {
	applier, err := rig.NewApplier(world.config)
	if err != nil {
		return err
	}
	return applier.Apply(s.Ctx, os.DirFS(folder), name, "")
}

// neighbour starts a program that ends with the story.
func (s *story) neighbour(name, path string, args ...string) {
	s.Helper()
	p, err := rig.Start(rig.Command{Name: name, Path: path, Args: args, Dir: world.dir})
	s.Must(err, "starting "+name)
	s.Cleanup(func() {
		if err := p.Stop(30 * time.Second); err != nil {
			s.Error(err)
		}
	})
}

// zonesOf makes so many nodes in zone a, in zone b and so on.
func (s *story) zonesOf(nodes ...int) {
	s.Helper()
	for i, n := range nodes {
		for serial := range n {
			s.node(string(rune('a'+i)), serial)
		}
	}
}

// node makes a node of a zone that only the story's pods want.
func (s *story) node(zone string, serial int) {
	s.Helper()
	name := fmt.Sprintf("%s-%s-%d", s.NS, zone, serial)
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	_, err := world.client.CoreV1().Nodes().Create(s.Ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, "story": s.NS, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}, metav1.CreateOptions{})
	s.Must(err, "making node "+name)
}

// deploy makes the Deployment, of pods of one CPU that are to be spread over keys, on nodes with a label.
func (s *story) deploy(replicas int32, nodes map[string]string, keys ...string) {
	s.Helper()
	s.deployOver(replicas, nodes, 0, keys...)
}

// deployOver is deploy, for pods that must be spread over at least so many zones besides.
func (s *story) deployOver(replicas int32, nodes map[string]string, zones int32, keys ...string) {
	s.Helper()
	s.Until("nodes that take pods", s.takePods)
	d := fixture.Deployment("app", replicas)
	spec := &d.Spec.Template.Spec
	spec.NodeSelector = nodes
	spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for _, key := range keys {
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: d.Spec.Selector,
		})
	}
	if zones > 0 {
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.Spec.Selector, MinDomains: &zones,
		})
	}
	s.Deploy(d)
}

// takePods wants the story's nodes to be ready: otherwise the first ones of them would get too many pods.
func (s *story) takePods() error {
	nodes, err := world.client.CoreV1().Nodes().List(s.Ctx, metav1.ListOptions{LabelSelector: "story=" + s.NS})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady }); !ready || tainted {
			return fmt.Errorf("node %s is not ready", n.Name)
		}
	}
	return nil
}

// zones counts the pods that run, by the zones of their nodes. It is an error if there are not so many, or others.
func (s *story) zones(want int) (map[string]int, error) {
	pods, err := world.client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := world.client.CoreV1().Nodes().List(s.Ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	zoneOf := make(map[string]string)
	for i := range nodes.Items {
		zoneOf[nodes.Items[i].Name] = nodes.Items[i].Labels[corev1.LabelTopologyZone]
	}
	counts, others := make(map[string]int), ""
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			counts[zoneOf[p.Spec.NodeName]]++
		} else {
			others += fmt.Sprintf("; pod %s is %s on %q: %v", p.Name, p.Status.Phase, p.Spec.NodeName, p.Status.Conditions)
		}
	}
	running := 0
	for _, n := range counts {
		running += n
	}
	if running != want || len(pods.Items) != want {
		return nil, fmt.Errorf("%d of %d pods run, and there are %d, by zone %v%s", running, want, len(pods.Items), counts, others)
	}
	return counts, nil
}

// even waits until so many pods run, and zones have so many each, in whatever order.
func (s *story) even(pods int, want ...int) {
	s.Helper()
	s.Until(fmt.Sprintf("%d pods, by zone %v", pods, want), func() error {
		counts, err := s.zones(pods)
		if err != nil {
			return err
		}
		got := slices.Sorted(maps.Values(counts))
		slices.Reverse(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("zones have %v", counts)
		}
		return nil
	})
}

// made counts the pods of the story that are made from now on, until the story ends.
func (s *story) made() (count func() int) {
	s.Helper()
	list, err := world.client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "listing pods")
	w, err := watch.NewRetryWatcherWithContext(s.Ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return world.client.CoreV1().Pods(s.NS).Watch(ctx, o)
		},
	})
	s.Must(err, "watching pods")
	s.Cleanup(w.Stop)
	made := &atomic.Int64{}
	go func() {
		for e := range w.ResultChan() {
			if e.Type == apiwatch.Added {
				made.Add(1)
			}
		}
	}()
	return func() int { return int(made.Load()) }
}

// below returns for how long fewer pods of the story than so many were ready, since now.
func (s *story) below(pods int) (stop func() time.Duration) {
	s.Helper()
	w, err := world.client.CoreV1().Pods(s.NS).Watch(s.Ctx, metav1.ListOptions{})
	s.Must(err, "watching pods")
	total := make(chan time.Duration, 1)
	go func() {
		ready, once, since, sum := make(map[types.UID]bool), false, time.Time{}, time.Duration(0)
		for e := range w.ResultChan() {
			p, is := e.Object.(*corev1.Pod)
			if !is {
				continue
			}
			if delete(ready, p.UID); e.Type != apiwatch.Deleted && rig.IsReady(p) {
				ready[p.UID] = true
			}
			once = once || len(ready) >= pods
			switch short := once && len(ready) < pods; {
			case short && since.IsZero():
				since = time.Now()
			case !short && !since.IsZero():
				sum += time.Since(since)
				since = time.Time{}
			}
		}
		total <- sum
	}()
	return func() time.Duration {
		w.Stop()
		return <-total
	}
}

// rebalanced has the controller rebalance the story's Deployment.
func (s *story) rebalanced() {
	s.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, rebalanceLabel)
	_, err := world.client.CoreV1().Namespaces().Patch(s.Ctx, s.NS, types.MergePatchType, patch, metav1.PatchOptions{})
	s.Must(err, "labelling the namespace")
}

// moves counts the Moves that were made for pods of the story.
func (s *story) moves() int {
	s.Helper()
	client, err := dynamic.NewForConfig(world.config)
	s.Must(err, "making a client")
	list, err := client.Resource(schema.GroupVersionResource{Group: "placement.espalier.dev", Version: "v1alpha1", Resource: "moves"}).Namespace(s.NS).List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "listing Moves")
	return len(list.Items)
}

// quiet fails the story if a pod is made within the time that -quiet gives.
func (s *story) quiet() {
	s.Helper()
	made := s.made()
	for begun := time.Now(); time.Since(begun) < *quietFlag; {
		select {
		case <-s.Ctx.Done():
			s.Fatal(context.Cause(s.Ctx))
		case <-time.After(min(30*time.Second, *quietFlag)):
			s.Logf("quiet for %s of %s", time.Since(begun).Round(time.Second), *quietFlag)
		}
		if n := made(); n > 0 {
			s.Fatalf("%d pods were made again after %s, though all was even", n, time.Since(begun).Round(time.Second))
		}
	}
}

// binFolder is where make puts the binaries, seen from this folder.
const binFolder = "../../bin"

// quietFlag is for how long nothing may happen when a story is at its end.
var quietFlag = flag.Duration("quiet", 10*time.Minute, "for how long nothing may be moved when all is even")

// world is the cluster that the stories share.
var world struct {
	config *rest.Config
	client kubernetes.Interface
	// kubeconfig is the administrator's, which the neighbours have.
	kubeconfig, dir string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "ecosystem", Bin: binFolder, Args: func(string) []string { return []string{"--nodes=0"} }}.Main(m, prepare))
}

// prepare starts a scheduler with the rights of the manifests, and the controller.
func prepare(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
	world.kubeconfig, world.dir = d.Kubeconfig, dir
	if world.config, world.client, err = rig.Client(d.Kubeconfig); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "scheduler.kubeconfig")
	applier, err := rig.Establish(ctx, world.config, world.client, manifests.Files, kubeconfig)
	if err != nil {
		return nil, err
	}
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return nil, err
	}
	scheduler, err := rig.StartScheduler(rig.SchedulerOptions{
		Binary: binary, Kubeconfig: kubeconfig, Dir: dir, Args: []string{"--config=../../manifests/base/scheduler-config.yaml"},
	})
	if err != nil {
		return nil, err
	}
	controller, err := startController(ctx, applier)
	return func() (err error) {
		if controller != nil {
			err = controller.StopCleanly(15 * time.Second)
		}
		return errors.Join(err, scheduler.StopCleanly(15*time.Second))
	}, err
}

// rebalanceLabel is on the namespaces in which the controller rebalances.
const rebalanceLabel = "ecosystem.espalier.dev/rebalance"

// startController starts the controller, which rebalances and waits for no longer than it has to.
func startController(ctx context.Context, applier *rig.Applier) (*rig.Process, error) {
	if err := applier.Apply(ctx, manifests.Files, "components/rebalance/rbac.yaml", ""); err != nil {
		return nil, err
	}
	binary, err := rig.Binary("espalier-controller", binFolder)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(world.dir, "controller.kubeconfig")
	if err := rig.WriteKubeconfig(ctx, world.config, world.client, rig.ControllerName, kubeconfig); err != nil {
		return nil, err
	}
	return rig.Start(rig.Command{Name: rig.ControllerName, Path: binary, Dir: world.dir, Args: []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--health-probe-bind-address=0",
		"--rebalance=Enabled", "--rebalance-namespace-selector=" + rebalanceLabel, "--rebalance-quiet=3s", "--rebalance-node-ready=2s", "--rebalance-pod-age=2s",
	}})
}

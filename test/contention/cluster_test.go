// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// storyLabel is on the nodes of a story.
const storyLabel = "contention.espalier.dev/story"

// creators is how many objects are in the making at once.
const creators = 16

// story is one test with nodes and a namespace of its own. All other nodes are gone.
type story struct {
	*testing.T
	ctx    context.Context
	client kubernetes.Interface
	// name is the namespace, and begins the names of nodes and processes.
	name string
	// slots is how many pods a node takes.
	slots int
}

func begin(t *testing.T) *story {
	t.Helper()
	core.Begin(t)
	s := &story{T: t, ctx: t.Context(), client: world.client, name: strings.ToLower(strings.NewReplacer("Test", "", "/", "-", "_", "-").Replace(t.Name()))}
	_, err := s.client.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, metav1.CreateOptions{})
	s.must(err)
	// No controller is there to make the account that pods run as.
	_, err = s.client.CoreV1().ServiceAccounts(s.name).Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	s.must(err)
	t.Cleanup(func() {
		ctx := context.Background()
		now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
		if err := s.client.CoreV1().Pods(s.name).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			s.Error(err)
		}
		if err := s.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: storyLabel + "=" + s.name}); err != nil {
			s.Error(err)
		}
	})
	return s
}

func (s *story) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// scaled is how many there are of what the page has so many of.
func scaled(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// each does something n times, some of them at once.
func (s *story) each(n int, do func(context.Context, int) error) {
	s.Helper()
	group, ctx := errgroup.WithContext(s.ctx)
	group.SetLimit(creators)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	s.must(group.Wait())
}

// nodes makes nodes that each take so many pods.
func (s *story) nodes(n, slots int) {
	s.Helper()
	s.slots = slots
	room := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(slots), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	s.each(n, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("%s-%04d", s.name, i)
		_, err := s.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprint("zone-", i%3), storyLabel: s.name}},
			Status:     corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}, metav1.CreateOptions{})
		return err
	})
}

// pod is one that takes a slot.
func (s *story) pod(name, scheduler string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name, Labels: map[string]string{"app": scheduler, "espalier.dev/workload": scheduler}}}
	p.Spec.SchedulerName = scheduler
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func (s *story) create(ctx context.Context, p *corev1.Pod) error {
	_, err := s.client.CoreV1().Pods(s.name).Create(ctx, p, metav1.CreateOptions{})
	return err
}

// pods makes so many pods for each scheduler, in turn.
func (s *story) pods(n int, schedulers ...string) {
	s.Helper()
	s.each(n*len(schedulers), func(ctx context.Context, i int) error {
		return s.create(ctx, s.pod(fmt.Sprintf("p-%05d", i), schedulers[i%len(schedulers)]))
	})
}

// start starts a scheduler, and returns when it has bound a pod.
func (s *story) start(name, binary, kubeconfig, schedulerName string, args ...string) *rig.Process {
	s.Helper()
	p, err := rig.StartScheduler(rig.SchedulerOptions{
		Name: s.name + "-" + name, Binary: binary, Kubeconfig: kubeconfig, Dir: world.dir,
		Args: append([]string{"--kube-api-qps=500", "--kube-api-burst=1000"}, args...),
	})
	s.must(err)
	s.Cleanup(func() { _ = p.Stop(15 * time.Second) }) // the stock one ends with an error
	warm := s.pod("warm-"+name, schedulerName)
	s.must(s.create(s.ctx, warm))
	s.until(name+" to bind its first pod", p, func() error {
		now, err := s.client.CoreV1().Pods(s.name).Get(s.ctx, warm.Name, metav1.GetOptions{})
		if err == nil && now.Spec.NodeName == "" {
			err = fmt.Errorf("pod %s has no node", warm.Name)
		}
		return err
	})
	s.must(s.client.CoreV1().Pods(s.name).Delete(s.ctx, warm.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	return p
}

// stock starts the stock scheduler, for pods without another.
func (s *story) stock(name string) *rig.Process {
	s.Helper()
	flags, err := rig.EmulatedVersion(world.client)
	s.must(err)
	return s.start(name, world.stock, world.kubeScheduler, corev1.DefaultSchedulerName, flags...)
}

// ours starts Espalier's scheduler.
func (s *story) ours(args ...string) *rig.Process {
	s.Helper()
	return s.start("ours", world.ours, world.scheduler, rig.SchedulerName, args...)
}

// until waits, and for no longer than a process runs.
func (s *story) until(what string, p *rig.Process, check func() error) {
	s.Helper()
	err := rig.Poll(s.ctx, timeout, 50*time.Millisecond, what, func() error {
		select {
		case <-p.Done():
			return rig.Never(p.Err())
		default:
			return check()
		}
	})
	s.must(err)
}

// at once has processes begin together with what has come while they stood still.
func (s *story) atOnce(processes []*rig.Process, meanwhile func()) (start time.Time) {
	s.Helper()
	for _, p := range processes {
		s.must(p.Pause())
	}
	meanwhile()
	for _, p := range processes {
		s.must(p.Resume())
	}
	return time.Now()
}

const (
	// timed is how many bindings are timed, one after the other. Of a thousand, one burst of other work on the machine would be the slowest ten.
	timed = 5000
	// delay is by how much the arbiter may make a binding take longer, 99 of 100 of them.
	delay = 3 * time.Millisecond
)

// Bindings are made one after the other, some without the arbiter, then as many with it, and so on: whatever else the machine does befalls both.
// The stories of schedulers cannot show what it adds, as their bindings wait for each other.
func TestBindingTakesNoLonger(t *testing.T) {
	s := begin(t)
	s.nodes(125, 100)
	var took [2][]time.Duration
	const turns = 5
	for turn := range turns {
		for with := range took {
			t.Run(fmt.Sprintf("turn %d, arbiter %t", turn, with == 1), func(t *testing.T) {
				part := &story{T: t, ctx: t.Context(), client: s.client, name: s.name, slots: s.slots}
				if with == 1 {
					part.webhook()
					part.arbiter(fmt.Sprint("arbiter-", turn))
				}
				took[with] = append(took[with], part.bindEach(fmt.Sprintf("%d-%d", turn, with), timed/turns)...)
			})
		}
	}
	p50, p99 := [2]time.Duration{}, [2]time.Duration{}
	for with, of := range took {
		slices.Sort(of)
		p50[with], p99[with] = of[len(of)/2], of[len(of)*99/100]
	}
	t.Logf("a binding takes %s, 99 of 100 %s; with the arbiter %s and %s", p50[0], p99[0], p50[1], p99[1])
	if p99[1] > p99[0]+delay {
		t.Errorf("99 of 100 bindings take %s longer", p99[1]-p99[0])
	}
}

// bindEach makes pods and binds them to nodes in turn, and returns how long each binding took.
func (s *story) bindEach(name string, n int) (took []time.Duration) {
	s.Helper()
	pod := func(i int) string { return fmt.Sprintf("timed-%s-%04d", name, i) }
	s.each(n, func(ctx context.Context, i int) error { return s.create(ctx, s.pod(pod(i), "nobody")) })
	nodes, err := s.client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{LabelSelector: storyLabel + "=" + s.name})
	s.must(err)
	for i := range n {
		begun := time.Now()
		s.must(s.client.CoreV1().Pods(s.name).Bind(s.ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod(i)}, Target: corev1.ObjectReference{Kind: "Node", Name: nodes.Items[i%len(nodes.Items)].Name},
		}, metav1.CreateOptions{}))
		took = append(took, time.Since(begun))
	}
	return took
}

const (
	// binFolder is where make build puts the binaries, and stockFolder where make perf-tools puts the stock scheduler, seen from this folder.
	binFolder   = "../../bin"
	stockFolder = "../../_output/perf"
	// timeout bounds what is to come on a busy machine.
	timeout = 3 * time.Minute
)

// core are the stories that are told with -short, which have a fifth of the pods that docs/several-schedulers.md says: what goes wrong with bindings, and what the arbiter is for.
var core = &rig.Core{Names: []string{"TestAnswersThatGoWrong", "TestTwoSchedulersFull/with"}, Whole: "make e2e-contention"}

// world is the cluster that the stories share.
var world struct {
	config *rest.Config
	client kubernetes.Interface
	// dir takes logs; it is kept if a story fails.
	dir string
	// kubeScheduler is for the stock scheduler, by the name that it has in every cluster; scheduler and controller hold the tokens of their
	// accounts.
	kubeScheduler, scheduler, controller string
	// metricsToken is for whoever asks for metrics.
	metricsToken string
	// auditLog has the changes of all objects.
	auditLog string
	// stock, ours and controls are the paths of binaries.
	stock, ours, controls string
	// table has a row for each story that has been told.
	table []string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "contention", Bin: binFolder, Core: core, Args: func(dir string) []string {
		world.dir, world.auditLog = dir, filepath.Join(dir, "audit.log")
		return []string{"--bare", "--audit-log=" + world.auditLog}
	}}.Main(m, func(ctx context.Context, d *rig.Devcluster, _ string) (end func() error, err error) {
		return printTable, prepare(ctx, d.Kubeconfig)
	}))
}

// prepare finds the binaries, and gives the accounts the rights of the manifests.
func prepare(ctx context.Context, kubeconfig string) (err error) {
	for _, b := range []struct {
		path         *string
		folder, name string
	}{{&world.ours, binFolder, "espalier-scheduler"}, {&world.controls, binFolder, "espalier-controller"}, {&world.stock, stockFolder, "kube-scheduler"}} {
		if b.folder == stockFolder {
			*b.path, err = rig.BinaryIn(b.folder, b.name)
		} else {
			*b.path, err = rig.Binary(b.name, b.folder)
		}
		if err != nil {
			return err
		}
	}
	if world.config, world.client, err = rig.Client(kubeconfig); err != nil {
		return err
	}
	if err := inTurn(ctx); err != nil {
		return err
	}
	world.kubeScheduler = filepath.Join(world.dir, "kube-scheduler.kubeconfig")
	if err := asKubeScheduler(kubeconfig, world.kubeScheduler); err != nil {
		return err
	}
	world.scheduler, world.controller = filepath.Join(world.dir, "scheduler.kubeconfig"), filepath.Join(world.dir, "controller.kubeconfig")
	applier, err := rig.Establish(ctx, world.config, world.client, manifests.Files, world.scheduler)
	if err != nil {
		return err
	}
	if err := applier.Apply(ctx, manifests.Files, "components/arbiter/rbac.yaml", ""); err != nil {
		return err
	}
	if world.metricsToken, err = rig.ReaderToken(ctx, world.client, rig.SchedulerNamespace, "contention-metrics", "/metrics"); err != nil {
		return err
	}
	return rig.WriteKubeconfig(ctx, world.config, world.client, rig.ControllerName, world.controller)
}

// inTurn has the API server take some 25 requests of schedulers at a time, and let the others wait. A devcluster's takes 800 at once, and two
// cores do not get one of so many done within the second in which a webhook has to answer.
func inTurn(ctx context.Context) error {
	levels := world.client.FlowcontrolV1().PriorityLevelConfigurations()
	level, err := levels.Get(ctx, "workload-high", metav1.GetOptions{})
	if err != nil {
		return err
	}
	level.Annotations[flowcontrolv1.AutoUpdateAnnotationKey] = "false"
	limited := level.Spec.Limited
	limited.NominalConcurrencyShares, limited.BorrowingLimitPercent = ptr.To[int32](1), ptr.To[int32](0)
	limited.LimitResponse.Queuing.QueueLengthLimit = 10000
	_, err = levels.Update(ctx, level, metav1.UpdateOptions{})
	return err
}

// asKubeScheduler writes a kubeconfig by which the administrator passes for the stock scheduler. An administrator's requests are taken by the
// API server however many there are at once, until none of them is answered in time, and no webhook either; those of schedulers in turn.
func asKubeScheduler(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:kube-scheduler"
	}
	return clientcmd.WriteToFile(*config, to)
}

// printTable prints the rows as docs/several-schedulers.md has them.
func printTable() error {
	if len(world.table) > 0 {
		fmt.Printf("\n| story | arbiter | pods beyond allocatable | that the arbiter let pass | bound, or in place of one that did not fit | time | bindings refused | made without an answer |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n%s\n",
			strings.Join(world.table, "\n"))
	}
	return nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// What the stories about faulty nodes share: nodes that fail their pods, and what was lost on them.

// failAnnotation makes a pod fail on any node, to devcluster.
const failAnnotation = "devcluster.espalier.dev/fail"

// Events about a node that is avoided.
const (
	nodeFaulty  = "NodeFaulty"
	nodeCleared = "NodeFaultyCleared"
)

// needsFailures marks a story whose nodes or pods must fail as devcluster has them fail. Elsewhere it cannot be told, and says so.
func (s *story) needsFailures() {
	s.Helper()
	if *nodesFlag != "devcluster" {
		s.Skip("not told here: its nodes or pods fail as only devcluster has them fail (-nodes=devcluster); test/kubelet tells of real kubelets")
	}
}

// devcluster runs a command of devcluster on the cluster of the stories.
func (s *story) devcluster(args ...string) {
	s.Helper()
	s.needsFailures()
	binary, err := rig.Binary("devcluster", binFolder)
	s.must(err, "finding devcluster")
	out, err := exec.CommandContext(s.ctx, binary, append(args, "--kubeconfig="+world.kubeconfig)...).CombinedOutput()
	if err != nil {
		s.Fatalf("devcluster %v: %v\n%s", args, err, out)
	}
}

// fail makes pods that start on the nodes fail, in one of devcluster's ways.
func (s *story) fail(as string, nodes ...string) {
	s.Helper()
	s.devcluster(append([]string{"fail", "--as=" + as}, nodes...)...)
	s.Cleanup(func() { s.healLater(nodes...) })
}

// healLater heals nodes when the story is over: its failures would outlive them.
func (s *story) healLater(nodes ...string) {
	binary, err := rig.Binary("devcluster", binFolder)
	if err != nil {
		s.Error(err)
		return
	}
	args := append([]string{"heal", "--kubeconfig=" + world.kubeconfig}, nodes...)
	if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
		s.Errorf("devcluster %v: %v\n%s", args, err, out)
	}
}

// heal lets pods on the nodes be well again.
func (s *story) heal(nodes ...string) {
	s.Helper()
	s.devcluster(append([]string{"heal"}, nodes...)...)
}

// losses remembers every pod of a namespace that was ever Failed, also when it is gone.
type losses struct {
	// threshold and window are the scheduler's: how many within how long make a node faulty.
	threshold int
	window    time.Duration

	mu   sync.Mutex      // guards pods
	pods map[string]loss // by UID
}

// loss is a pod that was lost: of which app, on which node, and when that was first seen.
type loss struct {
	app, node string
	seen      time.Time
}

func (l *losses) saw(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Status.Phase != corev1.PodFailed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.pods[string(pod.UID)]; !ok {
		l.pods[string(pod.UID)] = loss{pod.Labels["app"], pod.Spec.NodeName, time.Now()}
	}
}

// count is how many were lost that pass the check.
func (l *losses) count(check func(loss) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, lost := range l.pods {
		if check(lost) {
			n++
		}
	}
	return n
}

func (l *losses) total() int { return l.count(func(loss) bool { return true }) }

// losses starts to remember, until the story ends.
func (s *story) losses() *losses {
	s.Helper()
	l := &losses{threshold: 5, window: 5 * time.Minute, pods: map[string]loss{}}
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(s.ns))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: l.saw, UpdateFunc: func(_, obj any) { l.saw(obj) }, DeleteFunc: l.saw,
	})
	s.must(err, "watching pods")
	factory.Start(s.ctx.Done())
	if !cache.WaitForCacheSync(s.ctx.Done(), informer.HasSynced) {
		s.Fatalf("watching pods: the watch did not start")
	}
	return l
}

// lostAtMost fails the story if more pods were lost, or any elsewhere than on the bad nodes.
func (s *story) lostAtMost(l *losses, most int, bad ...string) {
	s.Helper()
	total := l.total()
	s.Logf("%d pods were lost", total)
	if total > most {
		s.Errorf("%d pods were lost, want at most %d", total, most)
	}
	if elsewhere := l.count(func(lost loss) bool { return !slices.Contains(bad, lost.node) }); elsewhere > 0 {
		s.Errorf("%d pods were lost on other nodes than %v", elsewhere, bad)
	}
	if total == 0 {
		s.Errorf("no pod was lost: the story told nothing")
	}
}

// told counts the events with a reason about a node, or about an object of the story's
// namespace. Events about nodes are in whatever namespace their writer chose.
func (s *story) told(reason, kind, name string) int {
	s.Helper()
	namespace := s.ns
	if kind == "Node" {
		namespace = metav1.NamespaceAll
	}
	list, err := s.client.CoreV1().Events(namespace).List(s.ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"reason": reason, "involvedObject.kind": kind, "involvedObject.name": name,
	}.String()})
	s.must(err, "listing events")
	return len(list.Items)
}

// tells waits for an event with a reason about an object.
func (s *story) tells(reason, kind, name string) {
	s.Helper()
	s.until(fmt.Sprintf("an event %s about %s %s", reason, kind, name), func() error {
		return errorIf(s.told(reason, kind, name) == 0, "there is none")
	})
}

// marked waits until people are told that a node is faulty for an app of n pods. A pod that is made anew before the end of the last one on
// the node has been noticed goes elsewhere, and with it the last failure that it takes may not come by itself, or not before the first has
// left the window: it is asked for.
func (s *story) marked(l *losses, node, kind, app string, n int) {
	s.Helper()
	s.until(fmt.Sprintf("%s to be faulty for %s", node, app), func() error {
		if s.told(nodeFaulty, "Node", node) > 0 && s.told(nodeFaulty, kind, app) > 0 {
			return nil
		}
		failed := l.count(func(lost loss) bool {
			return lost.app == app && lost.node == node && time.Since(lost.seen) < l.window
		})
		if failed < l.threshold {
			pods := s.settled(app, n).Pods
			s.delete(named[corev1.Pod](s, pods[0].Name))
			s.settled(app, n)
		}
		return fmt.Errorf("nobody is told, after %d failures within %s", failed, l.window)
	})
}

// ownFaults writes the shipped profile under another scheduler name, with arguments for
// faulty nodes, and lets the scheduler keep its record in the story's namespace.
func (s *story) ownFaults(args map[string]any) (flag string) {
	s.Helper()
	s.scheduler = "e2e-" + s.name
	s.recordHere()
	var config map[string]any
	s.must(yaml.Unmarshal(manifests.SchedulerConfig, &config), "reading the shipped profile")
	profiles, ok := config["profiles"].([]any)
	if !ok || len(profiles) != 1 {
		s.Fatalf("the shipped configuration has not exactly one profile: %v", config["profiles"])
	}
	profile, ok := profiles[0].(map[string]any)
	if !ok {
		s.Fatalf("the shipped profile is %v", profiles[0])
	}
	args["record"] = map[string]any{"namespace": s.ns}
	profile["schedulerName"] = s.scheduler
	others, _ := profile["pluginConfig"].([]any)
	others = slices.DeleteFunc(others, func(c any) bool {
		named, ok := c.(map[string]any)
		return ok && named["name"] == "FaultyNode"
	})
	profile["pluginConfig"] = append(others, map[string]any{"name": "FaultyNode", "args": args})
	config["leaderElection"] = map[string]any{
		"leaderElect": false, "resourceName": s.scheduler, "resourceNamespace": s.ns,
		"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms",
	}
	text, err := yaml.Marshal(config)
	s.must(err, "writing the profile")
	path := filepath.Join(s.TempDir(), "profile.yaml")
	s.must(os.WriteFile(path, text, 0o600), "writing the profile")
	return "--config=" + path
}

// recordHere gives the scheduler in the story's namespace what the manifests give it in its own: a record of failures, and a Lease.
func (s *story) recordHere() {
	s.Helper()
	for _, o := range entitled(s.ns, rig.SchedulerName, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "update"}},
	}) {
		s.make(o)
	}
}

// ownScheduler starts a scheduler that is stopped when the story ends, unless the story has killed it. It must not have ended by itself.
func (s *story) ownScheduler(name string, flags ...string) *rig.Process {
	s.Helper()
	p, err := startScheduler(name, flags...)
	s.must(err, "starting scheduler "+name)
	s.Cleanup(func() {
		if err := p.StopCleanly(15 * time.Second); err != nil {
			s.Error(err)
		}
	})
	return p
}

// bad makes n nodes with room, of which the last is bad: it fails its pods.
func (s *story) bad(as string, n, room int) (good []string, bad string) {
	s.Helper()
	all := s.nodes(n, room, nil)
	s.fail(as, all[n-1])
	return all[:n-1], all[n-1]
}

// eachHas fails the story unless every node has so many of the pods.
func (s *story) eachHas(o *rig.Observation, want int, nodes ...string) {
	s.Helper()
	on := o.OnNodes()
	for _, node := range nodes {
		if on[node] != want {
			s.Errorf("%s has %d pods, want %d: %v", node, on[node], want, on)
		}
	}
}

// metered is a process that says what it has counted: a scheduler of a story's own, or the controller.
type metered struct {
	*story
	url string
}

// servesMetrics adds to the flags of a scheduler those by which it serves its metrics to everybody on this machine, and says where.
func servesMetrics(flags ...string) (all []string, url string, err error) {
	port, err := rig.FreePort()
	return append(flags, "--bind-address=127.0.0.1", "--secure-port="+port, "--authentication-kubeconfig="+world.schedulerKubeconfig,
		"--authorization-kubeconfig="+world.schedulerKubeconfig, "--authorization-always-allow-paths=/metrics"), "https://127.0.0.1:" + port + "/metrics", err
}

// withMetrics starts a scheduler that does so.
func (s *story) withMetrics(flags ...string) *metered {
	s.Helper()
	flags, url, err := servesMetrics(flags...)
	s.must(err, "finding a port")
	s.ownScheduler(s.scheduler, flags...)
	return &metered{story: s, url: url}
}

// metric returns the sum of a metric over its labels, 0 if it was never counted.
func (m *metered) metric(name string) (sum float64) {
	m.Helper()
	for _, n := range m.by(name, "") {
		sum += n
	}
	return sum
}

// by returns the sums of a metric by a label.
func (m *metered) by(name, label string) map[string]float64 {
	m.Helper()
	metrics := testutil.NewMetrics()
	m.must(testutil.ParseMetrics(m.page(), &metrics), "reading metrics")
	sums := make(map[string]float64)
	for _, one := range metrics[name] {
		sums[string(one.Metric[model.LabelName(label)])] += float64(one.Value)
	}
	return sums
}

// page waits for an answer and returns it.
func (m *metered) page() (page string) {
	m.Helper()
	m.until("metrics", func() (err error) {
		var status int
		if status, page, err = rig.Get(m.ctx, m.url, world.metricsToken); err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
	return page
}

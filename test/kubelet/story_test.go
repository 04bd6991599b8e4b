// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/test/fixture"
)

const (
	zoneLabel = corev1.LabelTopologyZone

	// timeout is how long anything may take: a node that hangs is known to after
	// close to a minute, and a container that fails waits ever longer for its next start.
	timeout = 4 * time.Minute
)

var byZone = evenness.Level{Name: zoneLabel}

// story is one test, with a namespace of its own and the nodes that all stories share.
type story struct {
	testing.TB
	fixture.Space
	// many are the nodes of the large zone, one the node of the small one.
	many []string
	one  string
}

// begin starts a story, when all nodes are well and nothing is left of the story before.
func begin(t *testing.T) *story {
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	ns := fmt.Sprintf("kubelet-%s-%05x", name[:min(len(name), 40)], rand.N(1<<20))
	s := &story{TB: t, Space: fixture.New(t.Context(), t, world.client, ns, timeout, 250*time.Millisecond)}
	s.allWell()
	t.Cleanup(s.end)
	return s
}

// allWell waits until every node takes pods, and learns the nodes' names.
func (s *story) allWell() {
	s.Helper()
	s.Until("all nodes to take pods", func() error {
		s.many, s.one = nil, ""
		list, err := s.Client.CoreV1().Nodes().List(s.Ctx, metav1.ListOptions{LabelSelector: zoneLabel + " in (zone-a, zone-b)"})
		if err != nil {
			return err
		}
		for i := range list.Items {
			node := &list.Items[i]
			if err := rig.TakesPods(node); err != nil {
				return err
			}
			if node.Labels[zoneLabel] == "zone-b" {
				s.one = node.Name
			} else {
				s.many = append(s.many, node.Name)
			}
		}
		if len(s.many) != 3 || s.one == "" {
			return fmt.Errorf("zone-a is %v, zone-b %q: kind.yaml says three nodes and one", s.many, s.one)
		}
		slices.Sort(s.many)
		return nil
	})
}

// end deletes the story's namespace and waits until it is gone: its pods would be in the way of the next story's.
func (s *story) end() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if s.Failed() {
		s.Logf("pods at the end:\n%s\nevents:\n%s", s.pods(ctx), s.warnings(ctx))
	}
	s.Ctx = ctx
	err := s.Client.CoreV1().Namespaces().Delete(ctx, s.NS, metav1.DeleteOptions{})
	s.Must(err, "deleting the story's namespace")
	s.Until("the namespace to be gone", func() error {
		_, err := s.Client.CoreV1().Namespaces().Get(ctx, s.NS, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}

// pods lists the story's pods for a person who reads a failure.
func (s *story) pods(ctx context.Context) string {
	list, err := s.Client.CoreV1().Pods(s.NS).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range list.Items {
		p := &list.Items[i]
		fmt.Fprintf(&b, "%s on %q %s %s %s", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Reason, waitsFor(p))
		if p.DeletionTimestamp != nil {
			b.WriteString(" and is to end")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// warnings lists the story's warnings for a person who reads a failure.
func (s *story) warnings(ctx context.Context) string {
	list, err := s.Client.CoreV1().Events(s.NS).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, e := range list.Items {
		fmt.Fprintf(&b, "%s %s: %s\n", e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return b.String()
}

// settled waits until n pods of the app run and are ready, and no others are left, and returns where they are.
func (s *story) settled(app string, n int) *rig.Observation {
	s.Helper()
	return s.observe(app, n, func(p *corev1.Pod) error {
		if !rig.IsReady(p) {
			return fmt.Errorf("pod %s on node %q is %s and not ready: %s", p.Name, p.Spec.NodeName, p.Status.Phase, waitsFor(p))
		}
		return nil
	})
}

// observe waits until the app has n pods on nodes that pass the check, and no others are left, and returns where they are.
func (s *story) observe(app string, n int, check func(*corev1.Pod) error) *rig.Observation {
	s.Helper()
	var o *rig.Observation
	s.Until(fmt.Sprintf("%d pods of %s", n, app), func() (err error) {
		o, err = rig.Observe(s.Ctx, s.Client, rig.Workload{Namespace: s.NS, Selector: "app=" + app, Levels: []evenness.Level{byZone}})
		if err != nil {
			return err
		}
		return o.Settled(n, check)
	})
	return o
}

// zones fails the story unless the zones have so many pods.
func (s *story) zones(o *rig.Observation, many, one int) {
	s.Helper()
	got := evenness.Counts(0, o.Nodes)
	if got["zone-a"] != many || got["zone-b"] != one {
		s.Errorf("zone-a has %d pods and zone-b %d, want %d and %d\n%s", got["zone-a"], got["zone-b"], many, one, o.Draw())
	}
}

var (
	kubeconfigFlag = flag.String("kubeconfig", "", "administrator's kubeconfig of a cluster of kind that runs the scheduler")
	imageFlag      = flag.String("image", "", "the image of test/kubelet/workload, loaded into all nodes")
)

// world is the cluster, and the client that all stories share.
var world struct {
	config *rest.Config
	client kubernetes.Interface
	image  string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if rig.Listing() {
		os.Exit(m.Run())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func prepare() (err error) {
	if *kubeconfigFlag == "" || *imageFlag == "" {
		return errors.New("-kubeconfig or -image is not given: these stories need a cluster of kind, which make e2e-kind makes")
	}
	world.image = *imageFlag
	world.config, world.client, err = rig.Client(*kubeconfigFlag)
	return err
}

// engine runs a command of the engine, whatever has become of the story's own context:
// what was broken must be mended also when the story has failed. It returns all that was said.
func (s *story) engine(args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		s.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// shell runs a script on a node.
func (s *story) shell(node, script string) string {
	s.Helper()
	return s.engine("exec", node, "sh", "-euc", script)
}

// broken breaks something now, and mends it when mend is called or the story ends.
func (s *story) broken(breakIt, mendIt func()) (mend func()) {
	s.Helper()
	done := false
	mend = func() {
		if !done {
			done = true
			mendIt()
		}
	}
	s.Cleanup(mend)
	breakIt()
	return mend
}

// notReady waits until the node is known not to be, and pods are kept away from it.
func (s *story) notReady(node string) {
	s.Helper()
	s.Until("node "+node+" not to be ready", func() error {
		n, err := s.Client.CoreV1().Nodes().Get(s.Ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, t := range n.Spec.Taints {
			if t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoSchedule {
				return nil
			}
		}
		return fmt.Errorf("its taints are %v", n.Spec.Taints)
	})
}

// marked waits until an Event says that the node is faulty for a workload of the story.
func (s *story) marked(node string) {
	s.Helper()
	s.Until("node "+node+" to be called faulty", func() error {
		events, err := s.Client.CoreV1().Events(corev1.NamespaceAll).List(s.Ctx, metav1.ListOptions{FieldSelector: "reason=NodeFaulty"})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == node && strings.Contains(e.Message, s.NS) {
				s.Logf("%s: %s", node, e.Message)
				return nil
			}
		}
		return fmt.Errorf("none of %d events says so", len(events.Items))
	})
}

// runningOn counts the app's pods that are ready, and are not to end, on some nodes.
func (s *story) runningOn(app string, nodes ...string) (int, error) {
	list, err := s.Client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range list.Items {
		if p := &list.Items[i]; rig.IsReady(p) && slices.Contains(nodes, p.Spec.NodeName) {
			n++
		}
	}
	return n, nil
}

// podEvents selects what has happened to a pod for a reason.
func podEvents(p *corev1.Pod, reason string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fmt.Sprintf("involvedObject.uid=%s,reason=%s", p.UID, reason)}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// kubeletPort is taken on every node, by its kubelet.
const kubeletPort = 10250

// listening has the container listen at a port of the node, and nowhere else.
func listening(port int32) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.HostNetwork = true
		spec.Containers[0].Args = append(spec.Containers[0].Args, fmt.Sprintf("-listen=:%d", port))
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

// fetch asks a port of a node, by way of the API server.
func (s *story) fetch(node string, port int32) (string, error) {
	body, err := s.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(fmt.Sprintf("%s:%d", node, port)).SubResource("proxy").DoRaw(s.Ctx)
	return strings.TrimSpace(string(body)), err
}

// reserve writes down the host ports that a node holds itself; none takes the note away, whatever
// has become of the story's own context: all stories share the nodes.
func (s *story) reserve(node, ports string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	value := "null"
	if ports != "" {
		value = fmt.Sprintf("%q", ports)
	}
	patch := `{"metadata":{"annotations":{"espalier.dev/reserved-host-ports":` + value + `}}}`
	_, err := s.Client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	s.Must(err, "annotating node "+node)
}

// refused waits until the app has one pod without a node, and its condition gives this reason.
func (s *story) refused(app, reason string) {
	s.Helper()
	s.Until("a pod to be refused for "+reason, func() error {
		list, err := s.Client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app, FieldSelector: "spec.nodeName="})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d pods have no node", len(list.Items))
		}
		for _, c := range list.Items[0].Status.Conditions {
			if c.Type == corev1.PodScheduled && strings.Contains(c.Message, reason) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", list.Items[0].Status.Conditions)
	})
}

// Every pod really listens at the port that it was placed for. One more has no node
// left, says so, and gets the port of the first that ends.
func TestHostPortTrulyTaken(t *testing.T) {
	const port = 18080
	s := begin(t)
	s.deploy("app", 4, listening(port))
	s.zones(s.settled("app", 4), 3, 1)
	for _, node := range append(slices.Clone(s.many), s.one) {
		s.Until("an answer from node "+node, func() error {
			got, err := s.fetch(node, port)
			if err == nil && got != node {
				err = fmt.Errorf("got %q, want the node's name", got)
			}
			return err
		})
	}

	template := s.template("next", listening(port))
	s.create("next", 1, template)
	s.refused("next", "didn't have free host port 18080/tcp")
	s.Scale("app", 0)
	o := s.settled("next", 1)
	s.Until("an answer from the next pod", func() error {
		for node := range o.OnNodes() {
			if got, err := s.fetch(node, port); err != nil || got != node {
				return errors.Join(fmt.Errorf("node %s answers %q", node, got), err)
			}
		}
		return nil
	})
}

// A port that the node holds itself is no secret of the node's: written down, it keeps
// the pod away. That it is right to, the pod shows when the note is taken away.
func TestHostPortHeldByTheNode(t *testing.T) {
	s := begin(t)
	nodes := append(slices.Clone(s.many), s.one)
	mend := s.broken(func() {
		for _, node := range nodes {
			s.reserve(node, fmt.Sprintf("%d/tcp", kubeletPort))
		}
	}, func() {
		for _, node := range nodes {
			s.reserve(node, "")
		}
	})
	s.deploy("app", 1, listening(kubeletPort))
	s.refused("app", fmt.Sprintf("4 node(s) reserved host port %d/tcp", kubeletPort))
	mend()
	s.observe("app", 1, hasFailed)
}

// What a manifest asks for is one thing, and what the kernel was told another: every process of what is installed has a number for a user,
// no capability and no way to get one, a filter of system calls, and a file system that it cannot write to.
func TestInstalledProcessesAreConfined(t *testing.T) {
	s := begin(t)
	want := map[string]string{
		"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532",
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		"NoNewPrivs": "1", "Seccomp": "2",
	}
	for _, p := range s.installed() {
		status, root := s.process(p)
		for field, value := range want {
			if status[field] != value {
				t.Errorf("%s of %s is %q, want %q", field, p.Name, status[field], value)
			}
		}
		if !slices.Contains(strings.Split(root, ","), "ro") {
			t.Errorf("the root of %s is mounted %s, want ro", p.Name, root)
		}
	}
}

// none are no capabilities, in the kernel's words.
const none = "0000000000000000"

// An image says the version of the program that is in it.
func TestImagesSayTheVersion(t *testing.T) {
	s := begin(t)
	for _, p := range s.installed() {
		_, tag, _ := strings.Cut(p.Spec.Containers[0].Image, ":")
		// A tag has no plus, which a version may have.
		if said := strings.ReplaceAll(s.execute(p, program(p), "--version"), "+", "_"); tag == "" || !slices.Contains(strings.Fields(said), tag) {
			t.Errorf("%s --version in %s, whose image is %s, says %q", program(p), p.Name, p.Spec.Containers[0].Image, said)
		}
	}
}

// installed are the pods of Espalier itself, which run and are not to end.
func (s *story) installed() []*corev1.Pod {
	s.Helper()
	list, err := s.Client.CoreV1().Pods(metav1.NamespaceSystem).List(s.Ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name in (espalier-scheduler, espalier-controller)",
	})
	s.Must(err, "listing the pods of Espalier")
	var pods []*corev1.Pod
	for i := range list.Items {
		if p := &list.Items[i]; rig.IsReady(p) {
			pods = append(pods, p)
		}
	}
	if len(pods) != 3 {
		s.Fatalf("%d pods of Espalier are ready, want two schedulers and a controller", len(pods))
	}
	return pods
}

// program is what a pod of Espalier runs.
func program(p *corev1.Pod) string { return p.Spec.Containers[0].Command[0] }

// process finds the pod's one process on its node and returns what the kernel says of
// it, by field, and how its root is mounted. The node sees the processes of all its pods.
func (s *story) process(p *corev1.Pod) (status map[string]string, root string) {
	s.Helper()
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	said := s.shell(p.Spec.NodeName, fmt.Sprintf(`for process in /proc/[0-9]*; do
  if grep -qs %s "$process/cgroup" && [ "$(tr '\0' '\n' <"$process/cmdline" | head -n 1)" = %s ]; then
    cat "$process/status"
    awk '$5 == "/" { print "Root:", $6 }' "$process/mountinfo"
  fi
done`, id, program(p)))
	status = map[string]string{}
	for line := range strings.Lines(said) {
		field, value, _ := strings.Cut(line, ":")
		if _, twice := status[field]; twice {
			s.Fatalf("%s has several processes:\n%s", p.Name, said)
		}
		status[field] = strings.Join(strings.Fields(value), " ")
	}
	if len(status) == 0 {
		s.Fatalf("%s has no process on node %s", p.Name, p.Spec.NodeName)
	}
	return status, status["Root"]
}

// execute runs a program in the pod's container and returns what it says.
func (s *story) execute(p *corev1.Pod, command ...string) string {
	s.Helper()
	request := s.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(p.Namespace).Name(p.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(world.config, "GET", request.URL().String())
	s.Must(err, "preparing to run "+command[0]+" in "+p.Name)
	var out, complaints bytes.Buffer
	err = executor.StreamWithContext(s.Ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &complaints})
	s.Must(err, "running "+command[0]+" in "+p.Name+": "+complaints.String())
	return out.String()
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// What a manifest asks for is one thing, and what the kernel was told another: every
// process of what is installed has a number for a user, no capability and no way to
// get one, a filter of system calls, and a file system that it cannot write to.
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

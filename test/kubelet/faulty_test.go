// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// unpullable is a registry that nobody has, at a port of the node where nothing listens.
// A name would be looked up, which may take long before it fails.
const unpullable = "127.0.0.1:1/espalier/"

// faulty is the story of the one node of a zone on which nothing works: all pods there show what is seen, the node is called faulty, and
// what replaces the pods goes to the other zone. Another workload has its pods there all the same if what is broken is none of its
// business; and when all is mended, the next revision is as even as ever.
type faulty struct {
	breakIt, mendIt func()
	seen            func(*corev1.Pod) error
	change          []func(*corev1.PodSpec)
	// other says that another workload is not affected.
	other bool
}

func (s *story) tell(f faulty) {
	s.Helper()
	mend := s.broken(f.breakIt, f.mendIt)
	s.deploy("app", 12, f.change...)
	s.zones(s.observe("app", 12, func(p *corev1.Pod) error {
		if p.Spec.NodeName != s.one {
			return nil
		}
		return f.seen(p)
	}), 6, 6)
	s.marked(s.one)

	s.drop("app", s.one)
	s.zones(s.settled("app", 12), 12, 0)
	if f.other {
		s.deploy("other", 4, func(spec *corev1.PodSpec) { spec.Containers[0].Args = nil })
		s.zones(s.settled("other", 4), 2, 2)
	}

	mend()
	s.roll("app", "2")
	s.rolled("app")
	s.zones(s.settled("app", 12), 6, 6)
}

// happened waits for no more than the warning: pods that hang do not show why themselves.
func (s *story) happened(p *corev1.Pod, reason string) error {
	list, err := s.Client.CoreV1().Events(s.NS).List(s.Ctx, podEvents(p, reason))
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("pod %s on node %s has no event %s", p.Name, p.Spec.NodeName, reason)
	}
	return nil
}

// hasFailed is what is seen of a pod whose container has exited with an error.
func hasFailed(p *corev1.Pod) error {
	for _, c := range p.Status.ContainerStatuses {
		if end := c.LastTerminationState.Terminated; end != nil && end.ExitCode == 1 {
			return nil
		}
	}
	return fmt.Errorf("pod %s on node %s has not failed: %s", p.Name, p.Spec.NodeName, waitsFor(p))
}

func TestContainersThatExitWithAnError(t *testing.T) {
	s := begin(t)
	file := s.flags() + "/" + failFile
	s.tell(faulty{
		breakIt: func() { s.shell(s.one, "mkdir -p "+s.flags()+" && touch "+file) },
		mendIt:  func() { s.shell(s.one, "rm -f "+file) },
		seen:    hasFailed,
		other:   true,
	})
}

// The runtime refuses to make containers and goes on with all else, so that what is there can be ended.
func TestRuntimeThatIsBroken(t *testing.T) {
	s := begin(t)
	s.tell(faulty{
		breakIt: func() {
			s.shell(s.one, `runc=$(command -v runc)
cp -p "$runc" "$runc.real"
cat >"$runc.broken" <<END
#!/bin/sh
for word; do
  if [ "\$word" = create ]; then echo 'broken for a story' >&2; exit 1; fi
done
exec "$runc.real" "\$@"
END
chmod +x "$runc.broken"
mv "$runc.broken" "$runc"`)
		},
		mendIt: func() { s.shell(s.one, `runc=$(command -v runc); mv "$runc.real" "$runc"`) },
		seen:   func(p *corev1.Pod) error { return s.happened(p, "FailedCreatePodSandBox") },
	})
}

// The image is on all nodes but one, and cannot be had from anywhere else.
func TestPullThatFailsOnOneNode(t *testing.T) {
	s := begin(t)
	name := unpullable + s.NS + ":1"
	s.tell(faulty{
		breakIt: func() {
			for _, node := range s.many {
				s.shell(node, "ctr --namespace k8s.io images tag docker.io/library/"+world.image+" "+name)
			}
		},
		mendIt: func() { s.shell(s.one, "ctr --namespace k8s.io images tag docker.io/library/"+world.image+" "+name) },
		seen:   pullFails,
		change: []func(*corev1.PodSpec){image(name)},
		other:  true,
	})
	for _, node := range append(slices.Clone(s.many), s.one) {
		s.shell(node, "ctr --namespace k8s.io images rm "+name)
	}
}

// An image that is nowhere is the workload's own mistake. When it has failed on every node as often as makes a node faulty, none is worse
// than another: pods that come then are as even as those before, and so is what mends it.
func TestPullThatFailsEverywhere(t *testing.T) {
	s := begin(t)
	s.apply("PlacementPolicy", "app", map[string]any{
		"podSelector": map[string]any{"matchLabels": map[string]any{"app": "app"}},
		"faults":      map[string]any{"threshold": int64(2)}, // each node of the large zone has two of twelve pods
	})
	// The first pods would fail while the last are being placed.
	gated := func(spec *corev1.PodSpec) { spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}} }
	s.deploy("app", 12, image(unpullable+"no-such-thing:1"), gated)
	s.open("app", 12)
	s.zones(s.observe("app", 12, pullFails), 6, 6)
	s.Scale("app", 16)
	s.open("app", 16)
	s.zones(s.observe("app", 16, pullFails), 8, 8)
	s.Patch("app", fmt.Sprintf(`{"spec":{"template":{"spec":{"schedulingGates":null,"containers":[{"name":"app","image":%q}]}}}}`, world.image))
	s.rolled("app")
	s.zones(s.settled("app", 16), 8, 8)
}

func pullFails(p *corev1.Pod) error {
	if why := waitsFor(p); !strings.Contains(why, "ErrImagePull") && !strings.Contains(why, "ImagePullBackOff") {
		return errors.New("pod " + p.Name + " on node " + p.Spec.NodeName + " waits for something else: " + why)
	}
	return nil
}

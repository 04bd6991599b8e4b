// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

// What is counted of what is refused.
var (
	portTaken     = refusal.CounterOf(Name, "port_taken")
	portReserved  = refusal.CounterOf(Name, "port_reserved")
	nodeMalformed = refusal.CounterOf(Name, "node_malformed")
)

// wantsKey is where the ports of the pod being scheduled are kept for the cycle.
const wantsKey fwk.StateKey = "PreFilter" + Name

// want is one port of the pod, with what is said of the nodes that do not have it:
// a pod meets thousands of them, and the words are the same for all.
type want struct {
	hostport.Port
	taken, reserved string
}

type wants []want

// Clone shares the ports: they are written once.
func (w wants) Clone() fwk.StateData { return w }

// PreFilter finds the pod's host ports, and skips pods that have none. One that has
// its node already, and is here to be resized, is no longer in its own way.
func (pl *HostPorts) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	ports := hostPorts(pod)
	if len(ports) == 0 || pod.Spec.NodeName != "" {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if p, found := pl.reservedEverywhere(ports); found {
		portReserved.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("host port %s is reserved on all nodes by argument reserved of plugin %s: use another host port", p, Name))
	}
	pl.holders.prune(len(nodes))
	w := make(wants, len(ports))
	for i, p := range ports {
		w[i] = want{Port: p, taken: ErrReasonTaken + p.String(), reserved: ErrReasonReserved + p.String()}
	}
	state.Write(wantsKey, w)
	return nil, nil
}

// reservedEverywhere returns a port of these that no node ever gives to a pod.
func (pl *HostPorts) reservedEverywhere(ports []hostport.Port) (hostport.Port, bool) {
	for _, p := range ports {
		if pl.reserved.Conflicts(p) {
			return p, true
		}
	}
	return hostport.Port{}, false
}

// PreFilterExtensions is nil: what changes when pods come and go is the node, and
// Filter looks at the node.
func (pl *HostPorts) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps the pod off nodes on which a port is taken. What the node holds
// itself comes first: no pod that is removed would change it, so preemption need not try.
func (pl *HostPorts) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	w, err := readWants(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	h := pl.holders.of(node)
	if h.malformed {
		nodeMalformed.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonMalformed)
	}
	for i := range w {
		if h.byNode.Conflicts(w[i].Port) {
			portReserved.Inc()
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, w[i].reserved)
		}
	}
	for i := range w {
		if conflicts(h.byPods, w[i].Port) {
			portTaken.Inc()
			return fwk.NewStatus(fwk.Unschedulable, w[i].taken)
		}
	}
	return nil
}

func readWants(state fwk.CycleState) (wants, error) {
	data, err := state.Read(wantsKey)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: the cycle has no host ports: is it enabled at PreFilter? %w", Name, err)
	}
	w, ok := data.(wants)
	if !ok {
		return nil, fmt.Errorf("plugin %s: reading %q: it holds a %T", Name, wantsKey, data)
	}
	return w, nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"

	"github.com/moby/swarmkit/v2/api"
	"github.com/moby/swarmkit/v2/manager/state/store"
)

var (
	newest = &api.Version{Index: 2}
	older  = &api.Version{Index: 1}
)

// populate writes all but the new tasks.
func (s *swarm) populate(tx store.Tx) error {
	if err := store.CreateService(tx, named(service)); err != nil {
		return err
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if err := store.CreateNode(tx, s.node(n)); err != nil {
			return err
		}
		for _, t := range s.tasksOn(n) {
			t.NodeID = n.Name
			t.Status.State = api.TaskStateRunning
			if err := store.CreateTask(tx, t); err != nil {
				return err
			}
		}
	}
	if s.failures() == 0 {
		return nil
	}
	t := task(probe, probe)
	t.Spec.Placement = &api.Placement{Constraints: []string{"node.labels.probe == no node has it"}}
	if err := store.CreateService(tx, named(probe)); err != nil {
		return err
	}
	return store.CreateTask(tx, t)
}

func named(name string) *api.Service {
	return &api.Service{ID: name, SpecVersion: newest, Spec: api.ServiceSpec{Annotations: api.Annotations{Name: name}}}
}

func (s *swarm) node(n *Node) *api.Node {
	node := &api.Node{
		ID:     n.Name,
		Spec:   api.NodeSpec{Annotations: api.Annotations{Name: n.Name, Labels: n.Labels}},
		Status: api.NodeStatus{State: api.NodeStatus_READY},
		Description: &api.NodeDescription{
			Hostname:  n.Name,
			Resources: &api.Resources{NanoCPUs: n.CPU, MemoryBytes: n.Memory},
		},
	}
	if n.Platform != (Platform{}) {
		node.Description.Platform = &api.Platform{OS: n.Platform.OS, Architecture: n.Platform.Arch}
	}
	switch n.State {
	case Pause:
		node.Spec.Availability = api.NodeAvailabilityPause
	case Drain:
		node.Spec.Availability = api.NodeAvailabilityDrain
	case Down:
		node.Status.State = api.NodeStatus_DOWN
	}
	return node
}

// tasksOn returns the tasks that are on a node. Those that are going to fail reserve
// nothing: they must leave nothing but the failure.
func (s *swarm) tasksOn(n *Node) []*api.Task {
	var tasks []*api.Task
	for i := range n.Running {
		tasks = append(tasks, s.task(fmt.Sprintf("%s-running-%d", n.Name, i), newest))
	}
	for i := range n.Older {
		tasks = append(tasks, s.task(fmt.Sprintf("%s-older-%d", n.Name, i), older))
	}
	for i := range n.Others {
		tasks = append(tasks, task(fmt.Sprintf("%s-other-%d", n.Name, i), "other"))
	}
	if len(n.Taken) > 0 {
		tasks = append(tasks, task(n.Name+"-port", "port"))
		tasks[len(tasks)-1].Endpoint = endpoint(n.Taken)
	}
	for i := range n.Failures {
		t := task(failing(n, i), service)
		t.SpecVersion = s.version(newest)
		tasks = append(tasks, t)
	}
	return tasks
}

// createTasks writes the new tasks.
func (s *swarm) createTasks(tx store.Tx) error {
	for i := range s.Service.Tasks {
		if err := store.CreateTask(tx, s.task(pending(i), newest)); err != nil {
			return err
		}
	}
	return nil
}

// version is nil where the service has none.
func (s *swarm) version(v *api.Version) *api.Version {
	if s.Service.Unversioned {
		return nil
	}
	return v
}

// task is a pending task of the service.
func (s *swarm) task(id string, version *api.Version) *api.Task {
	t := task(id, service)
	t.SpecVersion = s.version(version)
	if s.Service.CPU > 0 || s.Service.Memory > 0 {
		t.Spec.Resources = &api.ResourceRequirements{
			Reservations: &api.Resources{NanoCPUs: s.Service.CPU, MemoryBytes: s.Service.Memory},
		}
	}
	if len(s.Service.Ports) > 0 {
		t.Endpoint = endpoint(s.Service.Ports)
	}
	p := &api.Placement{Constraints: s.Service.Constraints, MaxReplicas: uint64(s.Service.MaxPerNode)}
	for _, l := range s.Service.Labels {
		p.Preferences = append(p.Preferences, &api.PlacementPreference{
			Preference: &api.PlacementPreference_Spread{Spread: &api.SpreadOver{SpreadDescriptor: "node.labels." + l}},
		})
	}
	for _, wanted := range s.Service.Platforms {
		p.Platforms = append(p.Platforms, &api.Platform{OS: wanted.OS, Architecture: wanted.Arch})
	}
	t.Spec.Placement = p
	return t
}

// task is a pending task that asks for nothing.
func task(id, service string) *api.Task {
	return &api.Task{
		ID:           id,
		ServiceID:    service,
		DesiredState: api.TaskStateRunning,
		Status:       api.TaskStatus{State: api.TaskStatePending},
	}
}

func endpoint(ports []Port) *api.Endpoint {
	e := &api.Endpoint{}
	for _, p := range ports {
		e.Ports = append(e.Ports, &api.PortConfig{PublishMode: api.PublishModeHost, PublishedPort: p.Number, Protocol: protocols[p.Protocol]})
	}
	return e
}

var protocols = map[string]api.PortConfig_Protocol{"tcp": api.ProtocolTCP, "udp": api.ProtocolUDP, "sctp": api.ProtocolSCTP}

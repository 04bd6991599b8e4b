// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import "fmt"

// SchedulerOptions is how to run the scheduler.
type SchedulerOptions struct {
	// Name is what messages and the log file call it. Default espalier-scheduler.
	Name string
	// Binary is the path of espalier-scheduler.
	Binary string
	// Kubeconfig is whose rights it has.
	Kubeconfig string
	// Dir takes its log.
	Dir string
	// Args come after --kubeconfig.
	Args []string
}

// alone is for a scheduler that shares its name with no other and serves nobody:
// without an election it schedules from the first second, also after a SIGKILL,
// and without a port it collides with nothing.
var alone = []string{"--leader-elect=false", "--secure-port=0"}

// StartScheduler starts a scheduler that neither elects nor serves. It schedules
// as soon as its informers have synced.
func StartScheduler(o SchedulerOptions) (*Process, error) {
	if o.Name == "" {
		o.Name = SchedulerName
	}
	args := append([]string{"--kubeconfig=" + o.Kubeconfig}, alone...)
	p, err := Start(Command{Name: o.Name, Path: o.Binary, Args: append(args, o.Args...), Dir: o.Dir})
	if err != nil {
		return nil, fmt.Errorf("starting the scheduler: %w", err)
	}
	return p, nil
}

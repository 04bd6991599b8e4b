// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures schedulers on a control plane: real processes, started anew
// for every run, against one API server and etcd that nothing else uses.
//
//	World: devcluster --bare, nodes, the pods that lie there already
//	  └─ Measure: the attackers' pods ─► start a scheduler ─► prepare ─► read ─► play ─► read ─► end it, remove the pods
//
//	                   prepare                               play
//	Drip and Churn     it leads, and binds a first pod       pods come, and are bound
//	all other rows     pods come, and lie in its queue       it leads, and they are bound
//
// Nobody plays the nodes: a pod is done when it is bound. Claims are given their volumes. The schedulers take
// turns in one world, so that whatever slows the machine slows them all.
//
// scheduler_perf of Kubernetes, whose workloads these are modelled on, runs scheduler,
// API server and load in one process. There, neither the processor time nor the memory of a
// scheduler can be told from the rest, and what our binary adds to the scheduler before
// it starts would have to be added again.
package bench

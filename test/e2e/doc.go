// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds stories: things that happen to a cluster, and where pods must be afterwards.
//
// A story brings its own nodes and its own namespace and looks at nothing else,
// so stories run side by side, on any cluster whose nodes may be created through
// the API and are brought to life by KWOK. Without -kubeconfig that is a
// devcluster, and the scheduler under test is bin/espalier-scheduler as a process
// of its own, with the rights of manifests/ and no others.
//
//	go test ./test/e2e                                      # everything on a devcluster, in short
//	go test ./test/e2e -core                                # the core of each label, as make test does
//	go test ./test/e2e -labels=spread,moves                 # what is about these
//	go test ./test/e2e -run SharesAndPack -v                # one story
//	go test ./test/e2e -run Partition -v -whole             # at its whole length, as make e2e-nightly does
//	go test ./test/e2e -kubeconfig FILE                     # on another cluster
//	go test ./test/e2e -kubeconfig FILE -scheduler=deployed # with the scheduler that runs there
//
// Each story has a label and may be in the label's core: selection_test.go. What the flags leave out is skipped and says so, and
// the last line says how many stories were told.
//
// make e2e-kind does the last in a cluster of kind, with KWOK beside it and -nodes=kwok.
// The nodes are played there as well; what needs real kubelets is in test/kubelet. Stories
// whose nodes must fail on demand are marked, and are told on a devcluster alone.
package e2e

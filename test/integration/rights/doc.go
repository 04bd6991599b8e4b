// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights holds the roles of the manifests to what is needed, and to nothing
// more: with all of them every story goes as told and nothing is refused, and with
// any one right taken away a story of it breaks.
//
// The API server is real and asks RBAC; it is alone, so that no controller and no KWOK does what the tests play: kubelets,
// volumes and devices. That is why it has one of its own. Between it and the program under test stands a proxy, which
// notes what is asked and what is refused.
package rights

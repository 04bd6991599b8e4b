// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kwok plays the nodes of a local control plane with the controllers of KWOK:
// it runs them, tells them through Stage resources what a node and a pod do,
// and makes chosen nodes fail their pods or fall silent.
//
// How KWOK chooses: of all stages whose selector matches an object it takes one
// at random by weight, and a stage of weight 0 only when no other matches. So the
// healthy behaviour has weight 0 everywhere and a failure weight 1: a failure, where
// there is one, always wins, and taking it away needs no change elsewhere.
package kwok

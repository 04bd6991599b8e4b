// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletioncost is the controller that repairs the deletion costs of pods, which the scheduler binds them with.
//
// A pod that is lost while its branch of the first level can take no other leaves a hole in the numbers of the branch. Until the next pod
// fills it, a scale-down may remove one pod more from that branch than from others. And pods that were bound before the scheduler gave
// any costs would outlive all others.
package deletioncost

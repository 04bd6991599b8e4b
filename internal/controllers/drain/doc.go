// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drain is the controller that has pods replaced before they are evicted from nodes that somebody is about to remove.
// kubectl drain asks again and again to evict a pod whose disruption budget allows none; with a replacement beside it the budget
// does. A cordoned node counts as one that is about to be removed: whoever cordons it without draining it has these pods evicted all the same.
package drain

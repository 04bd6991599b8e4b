// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

// Amount is one resource of a node.
type Amount struct{ Total, Available int64 }

// used is the share that is in use, in percent.
func (a Amount) used() float64 { return 100 * float64(a.Total-a.Available) / float64(a.Total) }

// LeastAllocated scores a node by how little of it is in use, 0 to 100: the mean of its resources, in whole percent
// (vector VV5). Kubernetes' scorer of that name rounds each resource and not their mean.
func LeastAllocated(resources ...Amount) int64 { return 100 - MostAllocated(resources...) }

// MostAllocated scores it by how much is (vector VV5).
func MostAllocated(resources ...Amount) int64 {
	var sum float64
	for _, r := range resources {
		sum += r.used()
	}
	return int64(sum / float64(len(resources)))
}

// LeastRecentlyUsed scores nodes by how long ago a pod has come to each: that of the longest ago has 100
// (vector VV12). It spreads a burst.
func LeastRecentlyUsed(now int64, last []int64) []int64 {
	longest := int64(0)
	for _, at := range last {
		longest = max(longest, now-at)
	}
	scores := make([]int64, len(last))
	for i, at := range last {
		if longest > 0 {
			scores[i] = (now - at) * 100 / longest
		}
	}
	return scores
}

// Combine is the score of a node of which several plugins have added up theirs where it was sampled, and others where
// it is decided about: their mean (vector VV6). Without plugins nodes are equals.
func Combine(sampled int64, plugins int, decided ...int64) int64 {
	if plugins += len(decided); plugins == 0 {
		return 0
	}
	for _, s := range decided {
		sampled += s
	}
	return sampled / int64(plugins)
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ordinal

import (
	"fmt"
	"strconv"
	"strings"
)

// Ordinal is a pod's number in its branch.
type Ordinal struct {
	// N is at least 1 and at most Max.
	N int32
	// Share is that of the branch when the pod came to it.
	Share Share
}

// Share is how much of its level a branch gets: Of parts in Sum. The zero value means that all branches get the same.
// If Of is 0 and Sum is not, the branch is a last resort.
type Share struct{ Of, Sum int64 }

// Max bounds the numbers. No branch has as many pods: a larger number is a mistake.
const Max = 1_000_000

// lowestCost bounds the costs of all but last resorts. Karpenter adds a pod's cost, divided by 2^27, to what
// it costs to disrupt the pod's node, and ours must not decide that.
const lowestCost = -1 << 24

// Cost is the pod's deletion cost: a ReplicaSet removes the pods with the lowest first.
//
// Among equals it is -N. Of unequal branches, one gets its Nth pod when (2N - 1) / share is the least
// (Sainte-Laguë's rule, by which the tree fills them). So this is what the cost is in proportion to. What is on a last resort
// goes before all others, because it came when there was no other place.
func (o Ordinal) Cost() int32 {
	switch {
	case o.Share == Share{}:
		return -o.N
	case o.Share.Of == 0:
		return lowestCost - o.N
	}
	// At most 1,000 times the pods of the workload, and below 2^63: 2^21 times 2^9 times a sum of 2^28.
	cost := (int64(2*o.N-1)*500*o.Share.Sum + o.Share.Of - 1) / o.Share.Of
	return int32(max(-cost, lowestCost))
}

// String returns "N" among equals, and "N@OF/SUM" else: "3@70/100" is the third pod of a branch that gets 70 of 100.
func (o Ordinal) String() string {
	if o.Share == (Share{}) {
		return strconv.Itoa(int(o.N))
	}
	return fmt.Sprintf("%d@%d/%d", o.N, o.Share.Of, o.Share.Sum)
}

// Parse reads what String has written, and nothing else.
func Parse(text string) (Ordinal, error) {
	var o Ordinal
	number, share, weighted := strings.Cut(text, "@")
	n, err := strconv.ParseInt(number, 10, 32)
	if err == nil && weighted {
		of, sum, _ := strings.Cut(share, "/")
		if o.Share.Of, err = strconv.ParseInt(of, 10, 32); err == nil {
			o.Share.Sum, err = strconv.ParseInt(sum, 10, 32)
		}
	}
	o.N = int32(n)
	if err != nil || n < 1 || n > Max || o.Share.Of < 0 || o.Share.Sum < o.Share.Of || o.String() != text {
		return Ordinal{}, fmt.Errorf("%.40q is no ordinal: want a number from 1 to %d, as in 3, or 3@70/100 where shares differ", text, Max)
	}
	return o, nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"fmt"

	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

func ExampleParse() {
	limits, err := limit.Parse("kubernetes.io/hostname = 1, node.labels.rack = 2")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range limits {
		fmt.Println(l)
	}

	_, err = limit.Parse("kubernetes.io/hostname=1,rack=two")
	fmt.Println(err)
	// Output:
	// kubernetes.io/hostname=1
	// rack=2
	// limit 2 "rack=two": invalid number of pods "two": a limit is a whole number of pods from 1 to 1000000
}

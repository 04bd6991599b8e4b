// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level_test

import (
	"fmt"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

func ExampleParse() {
	levels, err := level.Parse("spread=topology.kubernetes.io/zone; weight.zone-a=70; weight.*=30, spread=node.labels.rack")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range levels {
		fmt.Println(l)
	}

	_, err = level.Parse("spread=topology.kubernetes.io/zone,sprd=rack")
	fmt.Println(err)
	// Output:
	// spread=topology.kubernetes.io/zone;weight.*=30;weight.zone-a=70
	// spread=rack
	// level 2 "sprd=rack": unknown strategy "sprd": use spread=PROPERTY or pack=PROPERTY
}

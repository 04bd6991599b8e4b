// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package placementtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
)

// seedVariable names the variable of the environment that says what random tests begin with: a
// number, or "random" for another one in each process.
const seedVariable = "ESPALIER_SEED"

// fixedSeed is for who does not ask: a change is judged by what it changes, and not by the luck of
// whoever runs the tests next.
const fixedSeed = 20260131

// Seed is what random tests begin with. It is printed, since a run can only be had again by it, and
// it is never 0, which rapid takes for no seed.
var Seed = sync.OnceValue(func() uint64 {
	seed, err := seedOf(os.Getenv(seedVariable))
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, "random tests begin with %s=%d\n", seedVariable, seed)
	return seed
})

func seedOf(text string) (uint64, error) {
	switch text {
	case "":
		return fixedSeed, nil
	case "random":
		return 1 + rand.Uint64N(1<<32), nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seed == 0 {
		return 0, fmt.Errorf("%s=%q: write a number above 0, or random", seedVariable, text)
	}
	return seed, nil
}

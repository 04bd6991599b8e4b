// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"math"
	"strings"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// epoch is the first end that there is.
var epoch = time.Unix(0, 0).UTC()

// ParseEnd reads when a node ends, as RFC 3339 writes times. One before 1970 is taken for the beginning of that year: the zero time would be
// no end at all. The error quotes what cannot be read.
func ParseEnd(text string) (time.Time, error) {
	end, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	if err != nil {
		return time.Time{}, syntax.Refuse("no time", text, "write it as 2026-01-31T12:00:00Z")
	}
	if end.Before(epoch) {
		return epoch, nil
	}
	return end.UTC(), nil
}

// Hour is the hour in which a node ends, counted from 1970, and 0 for one without an end. By it nodes are compared. By the second no two
// nodes would be alike, and the one that has joined last would get every pod until it is full.
func Hour(end time.Time) int32 {
	if end.IsZero() {
		return 0
	}
	return int32(min(max(end.Unix()/int64(time.Hour/time.Second), FirstHour), math.MaxInt32))
}

// FirstHour is the first that Hour returns for a node with an end. It stands for an end that cannot be read as well.
const FirstHour = 1

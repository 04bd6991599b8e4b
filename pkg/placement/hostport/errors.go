// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport

import (
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// SyntaxError is one thing that is wrong with ports, in pieces. It is the only kind of
// error this package returns.
type SyntaxError = syntax.Error

// noun is what errors call an entry of the list.
const noun = "port"

// refuse makes the error for a part; the caller that knows the port adds it.
func refuse(problem, part, allowed string) *SyntaxError { return syntax.Refuse(problem, part, allowed) }

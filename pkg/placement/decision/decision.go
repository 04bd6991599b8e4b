// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import "strconv"

// Decision is how the tree came to a node.
type Decision struct {
	// Fast says that the node was proposed before the filters were asked about the others.
	Fast bool `json:"fast"`
	// Steps are the choices on the way down, the first level first. Levels at which there was nothing to choose have none.
	Steps []Step `json:"steps"`
	// Cut says that there were more than could be written.
	Cut bool `json:"cut,omitempty"`
}

// Step is one choice: of a branch at a level, or of a node inside the last branch.
type Step struct {
	// Level names the level by the last part of its key, such as zone, or by the whole key if that part is Node.
	Level  string `json:"level"`
	Chosen Option `json:"chosen"`
	// Next is the best of the others that no filter had refused, as far as was known. It has no name where there was none.
	Next Option `json:"next,omitzero"`
	// Relation says how the chosen one compares with the next.
	Relation Relation `json:"relation,omitempty"`
}

// Node is the level of a choice between nodes.
const Node = "node"

// Option is a branch or a node, with what counted when it was chosen from, before the pod was there.
type Option struct {
	// Name is a value of the level or a node's name. It is NoValue for the nodes without the key, or with an empty value.
	Name string `json:"name"`
	// Revision and Workload count pods: of the pod's revision, and of its workload with all revisions.
	Revision int32 `json:"revision"`
	Workload int32 `json:"workload"`
	// State is what was held against it, "" for nothing.
	State string `json:"state,omitempty"`
}

// NoValue is the name of the nodes without a level's key, or with an empty value.
const NoValue = "(none)"

// Relation says how the chosen option compares with the next.
type Relation string

const (
	// Before says that it comes first by health, taints or counts.
	Before Relation = "before"
	// Tied says that only load, preferences, images or names tell them apart.
	Tied Relation = "tied with"
	// InsteadOf says that the next one is better by health, taints or counts. So it is with pods of a StatefulSet, whose branches take turns, and
	// where other plugins than the tree decided.
	InsteadOf Relation = "instead of"
)

// Max bounds the length of what is written, in bytes.
const Max = 512

const (
	fast, full    = "fast", "full"
	afterPath     = ": "
	betweenSteps  = "; "
	afterLevel    = " "
	beforeCount   = "="
	betweenCounts = "/"
	cut           = "..."
)

// String writes a decision in at most Max bytes, and leaves out the steps that do not fit. For example:
//
//	fast: zone a=3 before b=4; rack r1=1/2 tied with r2=1/2; node n7=0 before n9=0 (soft taint)
//
// The numbers are pods of the revision, and behind a slash those of the workload where they differ.
func (d *Decision) String() string {
	text, between := full, afterPath
	if d.Fast {
		text = fast
	}
	for i := range d.Steps {
		next, room := between+d.Steps[i].String(), Max-len(text)
		if i < len(d.Steps)-1 || d.Cut {
			room -= len(betweenSteps + cut)
		}
		if len(next) > room {
			return text + between + cut
		}
		text += next
		between = betweenSteps
	}
	if d.Cut {
		text += between + cut
	}
	return text
}

// String writes one step.
func (s *Step) String() string {
	text := s.Level + afterLevel + s.Chosen.String()
	if s.Next.Name != "" {
		text += " " + string(s.Relation) + " " + s.Next.String()
	}
	return text
}

// String writes one option.
func (o *Option) String() string {
	text := o.Name + beforeCount + strconv.Itoa(int(o.Revision))
	if o.Workload != o.Revision {
		text += betweenCounts + strconv.Itoa(int(o.Workload))
	}
	if o.State != "" {
		text += " (" + o.State + ")"
	}
	return text
}

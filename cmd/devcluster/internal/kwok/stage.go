// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"embed"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stageGVR is the resource kwok watches.
var stageGVR = schema.GroupVersionResource{Group: "kwok.x-k8s.io", Version: "v1alpha1", Resource: "stages"}

//go:embed stages/*.tmpl
var templates embed.FS

// Stage is one step in the life of a node or a pod: when Match holds, and after
// Delay, the object's status becomes what Status renders to.
type Stage struct {
	Name   string
	Kind   string // "Node" or "Pod"
	Weight int64  // 0 for healthy behaviour, 1 for what must win over it

	Labels      map[string]string
	Annotations map[string]string
	Match       []Match

	DelayMillis int64
	// DelayFrom is a jq expression on the object whose value, a duration like
	// "30s", replaces DelayMillis where it is present.
	DelayFrom string

	Event    *Event
	Status   string // template of .status, in kwok's language; "" leaves the status alone
	Metadata string // template of .metadata; "" leaves the metadata alone
	Delete   bool
}

// Match is one condition on the object; all of them must hold.
type Match struct {
	JQ       string
	Operator string // In, NotIn, Exists, DoesNotExist
	Values   []string
}

// Event is recorded on the object when the stage plays.
type Event struct{ Type, Reason, Message string }

// Conditions that several stages share.
var (
	notDeleted = Match{JQ: ".metadata.deletionTimestamp", Operator: "DoesNotExist"}
	deleted    = Match{JQ: ".metadata.deletionTimestamp", Operator: "Exists"}
	ready      = Match{JQ: readyStatus, Operator: "In", Values: []string{"True"}}
	notReady   = Match{JQ: readyStatus, Operator: "NotIn", Values: []string{"True"}}
)

const (
	readyStatus   = `.status.conditions.[] | select( .type == "Ready" ) | .status`
	waitingReason = `.status.containerStatuses.[].state.waiting.reason`
)

func phaseIn(phases ...string) Match {
	return Match{JQ: ".status.phase", Operator: "In", Values: phases}
}

// template returns an embedded template with @NAME@ replaced by the value after
// NAME in pairs. Not text/template: kwok's own language uses its braces.
func template(name string, pairs ...string) string {
	text, err := templates.ReadFile("stages/" + name + ".tmpl")
	if err != nil {
		panic("kwok: no embedded template " + name) // a slip of this package, met by its tests
	}
	for i := range pairs {
		if i%2 == 0 {
			pairs[i] = "@" + pairs[i] + "@"
		}
	}
	return strings.NewReplacer(pairs...).Replace(string(text))
}

// Object is the stage as the API server keeps it.
func (s Stage) Object() *unstructured.Unstructured {
	selector := map[string]any{}
	if len(s.Labels) > 0 {
		selector["matchLabels"] = stringMap(s.Labels)
	}
	if len(s.Annotations) > 0 {
		selector["matchAnnotations"] = stringMap(s.Annotations)
	}
	if len(s.Match) > 0 {
		var expressions []any
		for _, m := range s.Match {
			jq := map[string]any{"key": m.JQ, "operator": m.Operator}
			if len(m.Values) > 0 {
				jq["values"] = stringList(m.Values)
			}
			expressions = append(expressions, map[string]any{"jq": jq})
		}
		selector["matchExpressions"] = expressions
	}
	spec := map[string]any{
		"resourceRef": map[string]any{"apiGroup": "v1", "kind": s.Kind},
		"selector":    selector,
		"weight":      s.Weight,
		"steps":       s.steps(),
	}
	if s.DelayMillis > 0 || s.DelayFrom != "" {
		delay := map[string]any{"durationMilliseconds": s.DelayMillis}
		if s.DelayFrom != "" {
			delay["durationFrom"] = map[string]any{"jq": map[string]any{"expression": s.DelayFrom}}
		}
		spec["delay"] = delay
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": stageGVR.GroupVersion().String(),
		"kind":       "Stage",
		"metadata":   map[string]any{"name": s.Name},
		"spec":       spec,
	}}
}

func (s Stage) steps() []any {
	steps := []any{}
	if s.Event != nil {
		steps = append(steps, map[string]any{"event": map[string]any{
			"type": s.Event.Type, "reason": s.Event.Reason, "message": s.Event.Message,
		}})
	}
	if s.Status != "" {
		steps = append(steps, map[string]any{"patch": map[string]any{
			"subresource": "status", "root": "status", "template": s.Status,
		}})
	}
	if s.Metadata != "" {
		steps = append(steps, map[string]any{"patch": map[string]any{
			"root": "metadata", "template": s.Metadata,
		}})
	}
	if s.Delete {
		steps = append(steps, map[string]any{"delete": true})
	}
	return steps
}

func stringMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

func stringList(in []string) []any {
	out := make([]any, 0, len(in))
	for _, v := range in {
		out = append(out, v)
	}
	return out
}

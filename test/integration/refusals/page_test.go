// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
)

// unseen are reasons of in-tree filters that no cluster of refusals gives.
var unseen = []string{
	"node(s) didn't match scheduler-enforced node affinity", // not exported: of addedAffinity
	volumerestrictions.ErrReasonDiskConflict, volumerestrictions.ErrReasonReadWriteOncePodConflict,
	nodevolumelimits.ErrReasonMaxVolumeCountExceeded,
	string(volumebinding.ErrReasonBindConflict), string(volumebinding.ErrReasonNodeConflict),
	volumebinding.ErrReasonNotEnoughSpace, volumebinding.ErrReasonPVNotExist,
	volumezone.ErrReasonConflict,
	interpodaffinity.ErrReasonAffinityRulesNotMatch, interpodaffinity.ErrReasonAntiAffinityRulesNotMatch,
	interpodaffinity.ErrReasonExistingAntiAffinityRulesNotMatch,
	"resource claim NAME is in the process of being allocated", // not exported: of DynamicResources
}

// fault begins what pods are not told, but those who call or run a plugin, or an Event; and what is only a
// part of what a pod is told, after that which names the whole.
var fault = regexp.MustCompile(`^(plugin|args of plugin|NodeClaim|a client for|making a client for|reading|listing|watching|writing down|evicting|trying out) |^(spec\.|it makes way for pod |it has not been tried yet| that the API server lets go; |have not been read yet$|position %d|identity %d|%s is |strategy: |nodesWithoutKey: |share: |labelSelector: |matchLabelKeys: |property: |topologyKey: |constraint over |it cannot be decoded: |%q of %s is no amount: |The (constraint|level) over |The pod is bound without a record |The annotation |%s: %[sw]$|%s %w$|%s cannot be read: |%s: %s: keys and values |%w: see whether )`)

// keys are the constants that our reasons are composed with.
var keys = map[string]string{
	"ReservedHostPortsAnnotation": clusterview.ReservedHostPortsAnnotation, "ValidUntilAnnotation": clusterview.ValidUntilAnnotation,
}

// row is the first cell of a row, a reason; PORT, RESOURCE and NAME stand for any.
var row = regexp.MustCompile("(?m)^\\| `([^`]*?)(?:PORT|RESOURCE)?` \\|")

// Every reason that a filter of the shipped profile gives is explained, and nothing is explained that none of them gives.
func TestTroubleshootingExplainsEveryReason(t *testing.T) {
	page, err := os.ReadFile("../../../docs/troubleshooting.md")
	must(t, err)
	// The tables of what comes after are of other things.
	told, _, found := strings.Cut(string(page), "\n## Pending without an event\n")
	if !found {
		t.Error("docs/troubleshooting.md has no section that follows the refusals")
	}
	rows := make(map[string]bool)
	for _, m := range row.FindAllStringSubmatch(told, -1) {
		if rows[m[1]] {
			t.Errorf("%q has two rows", m[1])
		}
		rows[m[1]] = true
	}
	given := map[string]bool{notHelpful: true, noVictims: true}
	for i := range refusals {
		given[refusals[i].row] = true
	}
	for _, reason := range append(ours(t), unseen...) {
		given[reason] = true
	}
	for _, kind := range []string{"policies", "partitions and allocations"} {
		given[kind+" "+optionalkind.ErrUnread.Error()], given[kind+" cannot be read"] = true, true
	}
	for reason := range given {
		if !rows[reason] {
			t.Errorf("docs/troubleshooting.md has no row for %q", reason)
		}
	}
	whole := ofPods(t)
	explains := func(reason, message string) bool {
		return strings.HasPrefix(message, strings.ReplaceAll(reason, "PORT", "NAME"))
	}
	for _, message := range whole {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(rows)), func(reason string) bool { return explains(reason, message) }) {
			t.Errorf("docs/troubleshooting.md has no row for %q", message)
		}
	}
	for reason := range rows {
		isOfPods := slices.ContainsFunc(whole, func(message string) bool { return explains(reason, message) })
		if !given[reason] && !isOfPods {
			t.Errorf("docs/troubleshooting.md explains %q, which no filter is known to say", reason)
		}
	}
}

// ours are the constants named ErrReason of all our plugins. Of one that a message is completed with a port, it is the part before.
func ours(t *testing.T) (reasons []string) {
	t.Helper()
	inspect(t, "../../../pkg/plugins/*/*.go", func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "ErrReason") {
			reasons = append(reasons, text(t, spec.Values[0]))
		}
	})
	if len(reasons) < 9 {
		t.Fatalf("found the reasons %q: there are more", reasons)
	}
	return reasons
}

// inspect looks at all that is in source files, but tests.
func inspect(t *testing.T, pattern string, look func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	must(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			look(n)
			return true
		})
	}
}

// ofPods is what pods are told as a whole by ours: the messages and errors of our plugins, and of
// the packages that read for them what pods ask for. NAME stands for what they quote.
func ofPods(t *testing.T) (messages []string) {
	t.Helper()
	names := strings.NewReplacer("annotation %s", "annotation espalier.dev/NAME", "%q", `"NAME"`, "%s", "NAME", "%w", "NAME")
	for _, folder := range []string{"pkg/plugins/*", "internal/clusterview", "internal/clusterview/allocations", "internal/optionalkind", "internal/policies", "internal/tenants"} {
		inspect(t, "../../../"+folder+"/*.go", func(n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Errorf", "Sprintf"}, function.Sel.Name) && types.ExprString(function) != "errors.New" {
				return
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				return
			}
			if message := text(t, literal); !fault.MatchString(message) {
				messages = append(messages, names.Replace(message))
			}
		})
	}
	if len(messages) < 10 {
		t.Fatalf("found the messages %q: there are more", messages)
	}
	return messages
}

// text evaluates a string constant of literals and keys of ours.
func text(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		must(t, err)
		return s
	case *ast.BinaryExpr:
		return text(t, e.X) + text(t, e.Y)
	case *ast.SelectorExpr:
		if key, ok := keys[e.Sel.Name]; ok {
			return key
		}
	}
	t.Fatalf("a reason is composed of a %T that is not known here", e)
	return ""
}

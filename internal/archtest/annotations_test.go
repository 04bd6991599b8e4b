// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// prefix begins all keys.
const prefix = "espalier.dev/"

// syntaxes are the pages that say how the values are written that a parser reads.
var syntaxes = map[string]string{
	"level.Parse":         "as [spread](../spread.md) says",
	"limit.Parse":         "as [limits](../limits-and-filters.md) says",
	"constraint.Parse":    "as [limits and filters](../limits-and-filters.md) says",
	"platform.Parse":      "as [limits and filters](../limits-and-filters.md) says",
	"hostport.Parse":      "as [limits and filters](../limits-and-filters.md) says",
	"decision.Parse":      "as [operations](../operations.md#how-its-node-was-chosen) says",
	"lifetime.ParseEnd":   "as [lifetimes](../lifetimes.md#when-a-node-ends) says",
	"lifetime.ParseLease": "as [lifetimes](../lifetimes.md#leases) says",
	"ordinal.Parse":       "as [scale-down](../algorithm.md#scale-down) says",
}

// docs/reference/annotations.md has all keys of internal/clusterview/keys.go, with what their comments say: `go test ./internal/archtest -run
// Reference -update` writes it.
func TestAnnotationsReference(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../clusterview/keys.go", nil, parser.ParseComments)
	must(t, err)
	var page strings.Builder
	page.WriteString("# Annotations and labels\n\nAfter reading this page you know every annotation, label and taint of Espalier.\n")
	syntax := regexp.MustCompile(`in\s+the\s+syntax\s+of\s+([a-z]+\.Parse[A-Za-z]*)`)
	keys := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 || spec.Doc == nil || spec.Names[0].Name == "Prefix" {
			return true
		}
		sum, is := spec.Values[0].(*ast.BinaryExpr)
		if !is {
			return true
		}
		name := spec.Names[0].Name
		key := prefix + strings.Trim(sum.Y.(*ast.BasicLit).Value, `"`)
		keys[key] = true
		says := strings.Join(strings.Fields(strings.TrimPrefix(spec.Doc.Text(), name)), " ")
		says = syntax.ReplaceAllStringFunc(says, func(is string) string {
			parser := syntax.FindStringSubmatch(is)[1]
			if syntaxes[parser] == "" {
				t.Errorf("%s: no page says what %s reads", name, parser)
			}
			return syntaxes[parser]
		})
		says = strings.ReplaceAll(says, ", see Levels.PlacedBy.", ", [the first word says who](../operations.md#by-what-a-pod-was-placed).")
		page.WriteString("\n## " + key + "\n\n`" + key + "` " + says + "\n")
		return true
	})
	page.WriteString("\n## Keys of the manifests\n\nNo code reads these. The manifests of a release do.\n\n| key | on | meaning |\n| --- | --- | --- |\n" +
		"| `espalier.dev/node-pool` | nodes, as a label and as a taint | the nodes of [mode `NodePool`](../install.md) |\n" +
		"| `espalier.dev/default-scheduler` | namespaces, as a label | pods of the namespace get Espalier as their scheduler, where [its admission policy](../install.md#admission-policies) is installed |\n" +
		"| `espalier.dev/ends` | nodes, as a label | `staggered` on the nodes to which the component `stagger-ends` gives [their ends](../lifetimes.md#staggered-ends) |\n")
	for _, key := range []string{"node-pool", "default-scheduler", "ends"} {
		keys[prefix+key] = true
	}
	wantPage(t, "../../docs/reference/annotations.md", page.String())
	documented(t, keys)
}

// documented wants the manifests to have no key that the page lacks.
func documented(t *testing.T, keys map[string]bool) {
	t.Helper()
	key := regexp.MustCompile(`(?:^|[^a-z.])(espalier\.dev/[a-z][a-z-]*)`)
	err := fs.WalkDir(os.DirFS("../../manifests"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".go" || path.Ext(name) == ".md" {
			return err
		}
		text, err := os.ReadFile(path.Join("../../manifests", name))
		for _, m := range key.FindAllStringSubmatch(string(text), -1) {
			if !keys[m[1]] {
				t.Errorf("manifests/%s has the key %s, which docs/reference/annotations.md lacks", name, m[1])
			}
		}
		return err
	})
	must(t, err)
}

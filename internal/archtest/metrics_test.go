// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pages of docs/reference anew that are made from the code")

// metric is one that the code makes.
type metric struct {
	name, kind, help string
	labels           []string
}

// makers make metrics. A description is of what is looked up when it is asked for, which is a gauge here.
var makers = map[string]string{
	"NewCounterVec": "counter", "NewCounter": "counter", "NewGaugeVec": "gauge", "NewGauge": "gauge", "NewGaugeFunc": "gauge", "NewHistogramVec": "histogram", "NewHistogram": "histogram", "NewDesc": "gauge",
}

// metrics are those that the files of some rooms make, in the order of their names.
func metrics(sources []source, rooms ...string) (all []metric) {
	texts := make(map[string]string) // of constants, by their room
	for _, s := range sources {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if spec, is := n.(*ast.ValueSpec); is && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					if lit, is := spec.Values[i].(*ast.BasicLit); is && lit.Kind == token.STRING {
						texts[s.room+"."+name.Name], _ = strconv.Unquote(lit.Value)
					}
				}
			}
			return true
		})
	}
	for _, s := range sources {
		if s.test || !matchesAny(rooms, s.room) {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			maker, is := call.Fun.(*ast.SelectorExpr)
			if !is || makers[maker.Sel.Name] == "" {
				return true
			}
			if m := metricOf(call, func(e ast.Expr) string { return textOf(e, s.room, texts) }); strings.HasPrefix(m.name, "espalier_") {
				m.kind = makers[maker.Sel.Name]
				all = append(all, m)
			}
			return true
		})
	}
	slices.SortFunc(all, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return all
}

// metricOf reads how one is made: by options, or by a name and what it says.
func metricOf(call *ast.CallExpr, text func(ast.Expr) string) (m metric) {
	first := call.Args[0]
	if pointer, is := first.(*ast.UnaryExpr); is {
		first = pointer.X
	}
	if options, is := first.(*ast.CompositeLit); is {
		parts := make(map[string]string)
		for _, element := range options.Elts {
			if pair, is := element.(*ast.KeyValueExpr); is {
				parts[pair.Key.(*ast.Ident).Name] = text(pair.Value)
			}
		}
		m.name, m.help = parts["Name"], parts["Help"]
		if parts["Subsystem"] != "" {
			m.name = parts["Subsystem"] + "_" + m.name
		}
	} else if len(call.Args) > 2 {
		m.name, m.help = text(first), text(call.Args[1])
	}
	for _, arg := range call.Args[1:] {
		if list, is := arg.(*ast.CompositeLit); is {
			for _, label := range list.Elts {
				m.labels = append(m.labels, text(label))
			}
		}
	}
	return m
}

// textOf is what an expression says: a text, a constant of its room, a sum of such, or the name of a metric of its parts.
func textOf(e ast.Expr, room string, texts map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return ""
		}
		return text
	case *ast.Ident:
		return texts[room+"."+e.Name]
	case *ast.BinaryExpr:
		return textOf(e.X, room, texts) + textOf(e.Y, room, texts)
	case *ast.CallExpr: // metrics.BuildFQName
		var parts []string
		for _, arg := range e.Args {
			if part := textOf(arg, room, texts); part != "" {
				parts = append(parts, part)
			}
		}
		return strings.Join(parts, "_")
	default:
		return ""
	}
}

// wantPage wants a page to have this text, or writes it.
func wantPage(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(file, []byte(text), 0o644))
	}
	if is, err := os.ReadFile(file); err != nil || string(is) != text {
		t.Errorf("%s is not of the code: write it anew with -update: %v", file, err)
	}
}

// docs/reference/metrics.md has all metrics of our own: `go test ./internal/archtest -run Reference -update` writes it.
func TestMetricsReference(t *testing.T) {
	sources := own(t)
	var page strings.Builder
	page.WriteString("# Metrics\n\nAfter reading this page you know every metric of Espalier. [Operations](../operations.md#metrics) says how to read them.\n")
	for _, process := range []struct {
		name, also string
		rooms      []string
	}{
		{"scheduler", "It has all metrics of kube-scheduler as well.", []string{"pkg/plugins/...", "internal/upstream/...", "internal/policies/...", "internal/refusal/...", "internal/faultcache/...", "internal/scheduler/...", "internal/tenants/...", "internal/informersync"}},
		{"controller", "It has the metrics of controller-runtime as well.", []string{"internal/controllers/...", "internal/informersync"}},
	} {
		fmt.Fprintf(&page, "\n## Of the %s\n\n%s\n\n| metric | type | labels | what it is |\n| --- | --- | --- | --- |\n", process.name, process.also)
		all := metrics(sources, process.rooms...)
		if len(all) < 4 {
			t.Errorf("the %s has %d metrics", process.name, len(all))
		}
		for _, m := range all {
			labels := ""
			if len(m.labels) > 0 {
				labels = "`" + strings.Join(m.labels, "`, `") + "`"
			}
			if m.help == "" || slices.Contains(m.labels, "") {
				t.Errorf("not all is known of %s: %+v", m.name, m)
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, strings.ReplaceAll(m.help, "|", "\\|"))
		}
	}
	wantPage(t, "../../docs/reference/metrics.md", page.String())
	// What the code registers and the page of operations, or one that it leads to, leaves out is found by nobody who needs it.
	var explained strings.Builder
	pages := []string{"docs/operations.md", "docs/moves.md", "docs/several-schedulers.md", "docs/tenants.md"}
	for _, name := range pages {
		text, err := os.ReadFile("../../" + name)
		must(t, err)
		explained.Write(text)
	}
	for _, m := range metrics(sources, "pkg/...", "internal/...") {
		if !strings.Contains(explained.String(), "`"+m.name+"`") {
			t.Errorf("none of %v explains %s", pages, m.name)
		}
	}
}

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

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// check holds all rules against the files and returns what breaks them.
func check(sources []source) []violation {
	var found []violation
	for i := range sources {
		src := &sources[i]
		for _, r := range importRules {
			found = append(found, r.check(src)...)
		}
		for _, r := range siblingRules {
			found = append(found, r.check(src)...)
		}
		found = append(found, checkCalls(src)...)
		found = append(found, checkSize(src)...)
	}
	return append(found, checkKeys(sources)...)
}

// binds reports whether a rule speaks about the file.
func (r importRule) binds(src *source) bool {
	if src.test && !r.tests {
		return false
	}
	return matches(r.room, src.room) && !matchesAny(r.except, src.room) && !slices.Contains(r.exceptFiles, src.path)
}

func (r importRule) check(src *source) []violation {
	if !r.binds(src) {
		return nil
	}
	var found []violation
	for _, imp := range src.imports {
		allowed := r.allow == nil || matchesAny(r.allow, imp.path)
		if !allowed || matchesAny(r.deny, imp.path) {
			found = append(found, violation{r.name, src.path, "must not import " + imp.path, r.why})
		}
	}
	return found
}

func (r siblingRule) check(src *source) []violation {
	own, ok := r.child(src.room)
	if !ok {
		return nil
	}
	var found []violation
	for _, imp := range src.imports {
		if other, ok := r.child(imp.path); ok && other != own {
			found = append(found, violation{r.name, src.path, "must not import " + imp.path, r.why})
		}
	}
	return found
}

// child is the folder directly below the parent in which a package is.
func (r siblingRule) child(pkg string) (string, bool) {
	below, ok := strings.CutPrefix(pkg, r.parent+"/")
	child, _, _ := strings.Cut(below, "/")
	return child, ok
}

// checkCalls finds uses, called or passed on, of functions that are not pure.
func checkCalls(src *source) []violation {
	if src.test || !matches(pureRule.room, src.room) {
		return nil
	}
	var found []violation
	report := func(what string) {
		found = append(found, violation{pureRule.name, src.path, "must not use " + what, pureRule.why})
	}
	names := map[string]string{}
	for _, imp := range src.imports {
		names[imp.name] = imp.path
	}
	ast.Inspect(src.syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				if use := names[id.Name] + "." + n.Sel.Name; slices.Contains(pureRule.deny, use) {
					report(use)
				}
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && slices.Contains(pureRule.deny, id.Name) {
				report(id.Name)
			}
		}
		return true
	})
	return found
}

func checkSize(src *source) []violation {
	limit := sizeRule.source
	switch {
	case src.generated:
		return nil
	case strings.HasSuffix(src.path, "_test.go"):
		limit = sizeRule.test
	}
	if src.lines <= limit {
		return nil
	}
	return []violation{{
		sizeRule.name, src.path,
		fmt.Sprintf("has %d lines, more than %d", src.lines, limit), sizeRule.why,
	}}
}

// checkKeys finds the files that spell our label and annotation keys, and allows one: the first in the room that owns them.
func checkKeys(sources []source) []violation {
	var found []violation
	owner := ""
	for i := range sources {
		src := &sources[i]
		if src.test || !spells(src.syntax, keyRule.prefix) {
			continue
		}
		if owner == "" && src.room == keyRule.room {
			owner = src.path
			continue
		}
		found = append(found, violation{
			keyRule.name, src.path, "must not spell a key that begins with " + keyRule.prefix, keyRule.why,
		})
	}
	return found
}

func spells(file *ast.File, prefix string) bool {
	spelled := false
	ast.Inspect(file, func(node ast.Node) bool {
		if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			spelled = spelled || (err == nil && containsKey(text, prefix))
		}
		return !spelled
	})
	return spelled
}

// containsKey looks for the prefix as a whole: in "devcluster.espalier.dev/x" it is the end of another one, which is not ours to own.
func containsKey(text, prefix string) bool {
	for i, rest := 0, text; ; {
		at := strings.Index(rest, prefix)
		if at < 0 {
			return false
		}
		if i += at; i == 0 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-.", rune(text[i-1])) {
			return true
		}
		i += len(prefix)
		rest = text[i:]
	}
}

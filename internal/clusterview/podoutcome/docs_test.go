// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podoutcome_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
)

// TestOperationsTellsWhatIsAFailure holds the table of docs/operations.md to the code: what it says
// is a failure is one of that name, what it says is none is none, and nothing is excused that
// it does not name.
func TestOperationsTellsWhatIsAFailure(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### What is a failure\n")
	section, _, _ = strings.Cut(section, "\n### ")
	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \| (yes|no)\b[^|]* \|$`).FindAllStringSubmatch(section, -1)
	if len(rows) < 10 {
		t.Fatalf("docs/operations.md has %d rows of what is a failure", len(rows))
	}
	var excused []string
	for _, row := range rows {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			reason := m[1]
			if row[2] == "no" {
				excused = append(excused, reason)
			}
			if counts := slices.Contains(kinds(reason), reason); counts != (row[2] == "yes") {
				t.Errorf("docs/operations.md says %q of %s, which makes failures of kinds %q", row[2], reason, kinds(reason))
			}
		}
	}
	slices.Sort(excused)
	if want := excuses(t); !slices.Equal(excused, want) {
		t.Errorf("docs/operations.md excuses %q, and the code %q", excused, want)
	}
}

// kinds are those of the failures that a reason makes, wherever a kubelet may write it.
func kinds(reason string) (all []string) {
	for _, p := range []*corev1.Pod{
		ended(reason),
		with(corev1.PodPending, waiting("app", reason, nil)),
		with(corev1.PodRunning, running("log", &corev1.ContainerStateTerminated{ExitCode: 128, Reason: reason, FinishedAt: at(3)})),
	} {
		for _, f := range podoutcome.Failures(p) {
			all = append(all, f.Kind)
		}
	}
	if f, ok := podoutcome.EventFailure(warning(reason)); ok {
		all = append(all, f.Kind)
	}
	return all
}

// excuses are the reasons for which a pod is ended and that are no failure: the first case of
// endKind.
func excuses(t *testing.T) (reasons []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Name.Name == "endKind"
	})
	if i < 0 {
		t.Fatal("there is no function endKind")
	}
	first := file.Decls[i].(*ast.FuncDecl).Body.List[0].(*ast.SwitchStmt).Body.List[0].(*ast.CaseClause)
	for _, e := range first.List {
		reason, err := strconv.Unquote(e.(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	return reasons
}

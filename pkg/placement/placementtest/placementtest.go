// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placementtest is what tests of the pure core share, and tests of what
// stands on it: how hard properties are tried, and what every refusal must be like.
package placementtest

import (
	"errors"
	"flag"
	"strconv"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// TB is what testing.T, testing.B and rapid.T share.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Settle settles how hard properties are tried and what they begin with, see Seed, by flags
// of rapid, unless the command line says otherwise. It is for TestMain, and before any test.
func Settle(settings map[string]string) {
	flag.Parse()
	given := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	set := func(name, value string) {
		if given[name] {
			return
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	// A seed is printed; a file in the source tree would be one more thing to clean.
	set("rapid.nofailfile", "true")
	set("rapid.seed", strconv.FormatUint(Seed(), 10))
	for name, value := range settings {
		set(name, value)
	}
}

// CheckRefusal holds a refusal to what an event can carry: one printable line that
// quotes something, of at most so many bytes.
func CheckRefusal(t TB, err error, most int) {
	t.Helper()
	s := err.Error()
	if len(s) > most {
		t.Errorf("message of %d bytes: %.200s...", len(s), s)
	}
	if strings.Count(s, `"`) < 2 {
		t.Errorf("message quotes nothing: %s", s)
	}
	// The end of a line is not printable either.
	for _, r := range s {
		if !strconv.IsPrint(r) {
			t.Errorf("message has the unprintable %q: %s", r, s)
		}
	}
}

// WantRefusals fails the test unless a parser refuses each text, with the whole of this
// message, of at most so many bytes: it is what a person sees in an event or a log.
func WantRefusals[T any](t TB, parse func(string) (T, error), most int, messages map[string]string) {
	t.Helper()
	for in, want := range messages {
		got, err := parse(in)
		if err == nil {
			t.Errorf("Parse(%q) = %v, want an error", in, got)
			continue
		}
		CheckRefusal(t, err, most)
		if err.Error() != want {
			t.Errorf("Parse(%q):\n got %s\nwant %s", in, err, want)
		}
		if refusal, ok := errors.AsType[*syntax.Error](err); !ok || refusal.Problem == "" || refusal.Allowed == "" {
			t.Errorf("Parse(%q): %#v is not a whole syntax.Error", in, err)
		}
	}
}

// WantBounds fails the test unless a parser refuses each text, which is long, with a
// message of at most so many bytes that has this part.
func WantBounds[T any](t TB, parse func(string) (T, error), most int, parts map[string]string) {
	t.Helper()
	for in, want := range parts {
		_, err := parse(in)
		if err == nil {
			t.Errorf("Parse took %.40q...", in)
			continue
		}
		CheckRefusal(t, err, most)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.40q...): %v, want %q", in, err, want)
		}
	}
}

// Must ends the test, or one case of a property, if there is an error.
func Must(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

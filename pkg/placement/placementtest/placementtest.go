// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placementtest is what tests of the pure core share, and tests of what
// stands on it: how hard properties are tried, and what every refusal must be like.
package placementtest

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
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

// WantParsed fails the test unless a text is read as the list, and the list written in its
// canonical form. That is the text itself if canonical is "" and there is anything to write.
func WantParsed[S ~[]E, E any](t TB, parse func(string) (S, error), format func(S) string, text string, want S, canonical string) {
	t.Helper()
	got, err := parse(text)
	if err != nil {
		t.Errorf("Parse(%q): %v", text, err)
		return
	}
	if !equal(got, want) {
		t.Errorf("Parse(%q)\n got %+v\nwant %+v", text, got, want)
	}
	if len(want) > 0 && canonical == "" {
		canonical = text
	}
	if s := format(got); s != canonical {
		t.Errorf("Parse(%q) is formatted as %q, want %q", text, s, canonical)
	}
}

// CheckParse holds a parser to what its callers rely on, whatever the text is: what it takes
// survives format, and what it refuses fits an event and comes with no list. It returns the
// list, and whether it was taken.
func CheckParse[S ~[]E, E any](t TB, parse func(string) (S, error), format func(S) string, most int, text string) (S, bool) {
	t.Helper()
	list, err := parse(text)
	if err != nil {
		if _, ok := errors.AsType[*syntax.Error](err); !ok || list != nil {
			t.Errorf("Parse(%q) returns %v and a %T: %v", text, list, err, err)
		}
		CheckRefusal(t, err, most)
		return nil, false
	}
	written := format(list)
	if again, err := parse(written); err != nil || !equal(again, list) {
		t.Errorf("Parse(%q) is formatted as %q, which is %+v, %v", text, written, again, err)
	}
	return list, true
}

// equal compares elements, of which some have lists of their own.
func equal[S ~[]E, E any](a, b S) bool {
	return slices.EqualFunc(a, b, func(x, y E) bool { return reflect.DeepEqual(x, y) })
}

// Many is a list of n entries, each of which has its number, from 0, in the place of %d.
func Many(n int, entry, separator string) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(entry, i)
	}
	return strings.Join(entries, separator)
}

// WantRefusals fails the test unless a parser refuses each text, with the whole of this
// message, of at most so many bytes: it is what a person sees in an event or a log.
func WantRefusals[S ~[]E, E any](t TB, parse func(string) (S, error), most int, messages map[string]string) {
	t.Helper()
	for in, want := range messages {
		got, err := parse(in)
		if err == nil || got != nil {
			t.Errorf("Parse(%q) = %v, %v, want nothing but an error", in, got, err)
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

// WantParts fails the test unless a text has all of these parts.
func WantParts(t TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q: %s", part, text)
		}
	}
}

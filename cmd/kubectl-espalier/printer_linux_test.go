// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// terminal opens one of its own for a test: what is written to the returned file is shown there, and all tells what has been.
func terminal(t *testing.T) (out *os.File, all func() string) {
	t.Helper()
	shown, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("a terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(shown.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(shown.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		out, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatalf("a terminal: %v", err)
	}
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(shown) // it ends in an error when nobody has the other end any more
		read <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	return out, func() string {
		_ = out.Close()
		defer func() { _ = shown.Close() }()
		return <-read
	}
}

// escapes are what a terminal reads as colours.
var escapes = regexp.MustCompile("\x1b\\[[0-9]*m")

// On a terminal there are colours, unless they are not wanted. Without them the text is the same.
func TestColours(t *testing.T) {
	file := cluster(t)
	for _, args := range []string{
		"tree deployment/web", "tree deployment/web -o wide", "explain pod/choosy", "balance -A", "simulate -f testdata/web.yaml --replicas 9",
	} {
		t.Setenv("TERM", "xterm")
		full := append(strings.Fields(args), "-n", "shop", "--snapshot", file)
		plain, err := run(t, full...)
		must(t, err)
		if escapes.MatchString(plain) {
			t.Errorf("%s: colours in a file", args)
		}
		for _, noColour := range []string{"", "1"} {
			t.Setenv("NO_COLOR", noColour)
			out, all := terminal(t)
			cmd := newCommand("v0.0.0", genericiooptions.IOStreams{Out: out, ErrOut: io.Discard})
			cmd.SetArgs(full)
			must(t, cmd.ExecuteContext(t.Context()))
			shown := all()
			if escapes.MatchString(shown) != (noColour == "") {
				t.Errorf("%s with NO_COLOR=%q shows %q", args, noColour, shown)
			}
			if text := escapes.ReplaceAllString(shown, ""); text != plain {
				t.Errorf("%s shows on a terminal\n%s\nand in a file\n%s", args, text, plain)
			}
		}
	}
}

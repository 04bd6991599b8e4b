// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command simulate plays several schedulers on the same nodes, see package contention, and writes what comes
// of it into docs/contention.md and the pictures beside it. The same program always writes the same.
//
//	go run . -docs ../../docs
//
// It is a module of its own: the library that draws must not come to the product.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const page = "contention.md"

func main() {
	docs := flag.String("docs", "../../docs", "the folder with the page and the pictures")
	flag.Parse()
	if err := run(*docs); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

// run plays all figures, and writes them.
func run(docs string) error {
	text, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	files, err := results(string(text))
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(docs, name), content, 0o644); err != nil { //nolint:gosec // everybody may read the documentation
			return fmt.Errorf("writing the documentation: %w", err)
		}
	}
	return nil
}

// results are the files as they are to be: the page, with its tables renewed, and the pictures.
func results(text string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, f := range figures() {
		if err := f.play(); err != nil {
			return nil, err
		}
		picture, err := f.draw()
		if err != nil {
			return nil, err
		}
		files[f.name+".svg"] = picture
		if text, err = replaced(text, f); err != nil {
			return nil, err
		}
	}
	files[page] = []byte(text)
	return files, nil
}

// replaced is a page with the table of a figure between the two lines that are for it.
func replaced(text string, f *figure) (string, error) {
	begin, end := "<!-- begin of "+f.name+" -->\n", "<!-- end of "+f.name+" -->\n"
	before, rest, found := strings.Cut(text, begin)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		return "", fmt.Errorf("%s has no lines %q and %q for a table: add them", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + f.table() + end + after, nil
}

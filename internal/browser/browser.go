// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser has a headless browser show pages, for tests: what they look like, and what a script finds in them. The browser has no
// network: a page that needs one is shown without.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"image"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// Env names the variable that says which browser is used.
const Env = "ESPALIER_BROWSER"

// known are the names under which a browser that has these flags is installed.
var known = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// ErrNone says that there is no browser.
var ErrNone = errors.New("no browser is installed, so that nobody has seen this: install Chromium (apt-get install chromium), or name one in " + Env)

// Browser is the path of one.
type Browser string

// Find finds a browser: the one that the environment names, or the first of those that are known. Without one the error is ErrNone.
func Find() (Browser, error) {
	if path := os.Getenv(Env); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("%s: %w", Env, err)
		}
		return Browser(path), nil
	}
	for _, name := range known {
		if path, err := exec.LookPath(name); err == nil {
			return Browser(path), nil
		}
	}
	return "", ErrNone
}

// Page is what is shown, and how.
type Page struct {
	// File is the path of a page, or of a picture.
	File          string
	Width, Height int
	// Dark says that whoever looks prefers dark pages.
	Dark bool
}

// limit bounds one run of the browser.
const limit = 2 * time.Minute

// run shows a page, and returns what the browser prints. Flags say what it is to do with the page.
func (b Browser) run(ctx context.Context, p Page, flags ...string) ([]byte, error) {
	profile, err := os.MkdirTemp("", "espalier-browser-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(profile) }()
	file, err := filepath.Abs(p.File)
	if err != nil {
		return nil, err
	}
	scheme := 1 // light
	if p.Dark {
		scheme = 0
	}
	flags = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--allow-file-access-from-files",
		"--user-data-dir=" + profile, "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-component-update",
		fmt.Sprintf("--window-size=%d,%d", p.Width, p.Height), fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme),
		// The time in the page runs ahead by so much at once: what comes late is there.
		"--virtual-time-budget=5000",
	}, flags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(b), append(flags, (&url.URL{Scheme: "file", Path: file}).String())...)
	// Into files: a process of the browser may outlive it, and keep a pipe open that would then be waited for.
	out, err := os.Create(filepath.Join(profile, "out"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	said, err := os.Create(filepath.Join(profile, "said"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = said.Close() }()
	cmd.Stdout, cmd.Stderr = out, said
	if err := cmd.Run(); err != nil {
		why, _ := os.ReadFile(said.Name()) // if it can be read
		return nil, fmt.Errorf("%s shows %s: %w: %.2000s", b, p.File, err, why)
	}
	return os.ReadFile(out.Name())
}

// shoot returns what a page looks like, and writes it into a file as PNG.
func (b Browser) shoot(ctx context.Context, p Page, into string) (image.Image, error) {
	if _, err := b.run(ctx, p, "--screenshot="+into); err != nil {
		return nil, err
	}
	f, err := os.Open(into)
	if err != nil {
		return nil, fmt.Errorf("%s has made no picture of %s: %w", b, p.File, err)
	}
	defer func() { _ = f.Close() }()
	return png.Decode(f)
}

// found is where a page leaves what its script has found.
var found = regexp.MustCompile(`(?s)<pre id="espalier-found">(.*?)</pre>`)

// Find shows a page of HTML, has a script look at it, and reads into an answer what the script returns. The script is the body of a function,
// which is called when the page is there.
func (b Browser) Find(ctx context.Context, page []byte, width, height int, script string, answer any) error {
	dir, err := os.MkdirTemp("", "espalier-page-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "page.html")
	asking := `<script>addEventListener("load", () => {
		const found = (() => { ` + script + ` })();
		const pre = document.createElement("pre"); pre.id = "espalier-found"; pre.textContent = JSON.stringify(found); document.body.append(pre);
	})</script>`
	if err := os.WriteFile(file, append(page, asking...), 0o600); err != nil {
		return err
	}
	return b.Found(ctx, Page{File: file, Width: width, Height: height}, answer)
}

// Found shows a page, and reads into an answer what its own script leaves, as JSON, in an element pre with the id espalier-found.
func (b Browser) Found(ctx context.Context, p Page, answer any) error {
	dom, err := b.run(ctx, p, "--dump-dom")
	if err != nil {
		return err
	}
	match := found.FindSubmatch(dom)
	if match == nil {
		return fmt.Errorf("the script of %s has found nothing: %.2000s", p.File, dom)
	}
	return json.Unmarshal([]byte(html.UnescapeString(string(match[1]))), answer)
}

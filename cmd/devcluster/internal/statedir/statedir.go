// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statedir manages the one folder that holds everything a local control plane
// writes. A file lock ensures that at most one process has the folder open. The kernel
// releases the lock when the process ends, so a killed devcluster never blocks the next
// one.
package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Dir is an open state folder.
type Dir struct {
	path      string
	lock      *os.File
	temporary bool
	// Continued says that, before Open, a control plane became ready in this folder; see MarkMade.
	Continued bool
}

const (
	temporaryPrefix = "devcluster-"
	sweepAge        = 5 * time.Minute

	lockName = "devcluster.lock"
	// madeName marks a folder whose control plane once became ready.
	madeName = "devcluster.made"
)

var errLocked = errors.New("locked by another process")

// Open takes the folder at path, making it if need be. With an empty path it makes a
// temporary one, which Close removes. A folder that holds something else than an
// earlier control plane is refused: we would write over it.
func Open(path string) (*Dir, error) {
	temporary := path == ""
	if temporary {
		var err error
		sweep(os.TempDir())
		if path, err = os.MkdirTemp("", temporaryPrefix); err != nil {
			return nil, fmt.Errorf("making a temporary state folder: %w", err)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state folder %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	if err := refuseStrange(path); err != nil {
		return nil, err
	}
	d := &Dir{path: path, temporary: temporary}
	if d.lock, err = takeLock(d.File(lockName)); err != nil {
		if errors.Is(err, errLocked) {
			return nil, fmt.Errorf("state folder %s is in use by another devcluster (process %s): stop that one or choose another --dir",
				path, readPID(d.File(lockName)))
		}
		return nil, fmt.Errorf("locking state folder %s: %w", path, err)
	}
	_, err = os.Stat(d.File(madeName))
	d.Continued = err == nil
	for _, sub := range []string{"logs", "kwok"} {
		if err := os.MkdirAll(d.File(sub), 0o700); err != nil {
			d.Close()
			return nil, fmt.Errorf("making the state folder: %w", err)
		}
	}
	return d, nil
}

// sweep removes the temporary folders of runs that were killed. One that is in use is
// locked; one that is minutes old and not locked is abandoned.
func sweep(parent string) {
	locks, err := filepath.Glob(filepath.Join(parent, temporaryPrefix+"*", lockName))
	if err != nil {
		return
	}
	for _, file := range locks {
		info, err := os.Stat(file)
		if err != nil || time.Since(info.ModTime()) < sweepAge {
			continue
		}
		lock, err := takeLock(file)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(filepath.Dir(file))
		_ = lock.Close()
	}
}

func refuseStrange(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("reading the state folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("folder %s is not empty and is no state folder of devcluster (it holds %q): choose another --dir",
			path, entries[0].Name())
	}
	return nil
}

func readPID(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(content))
}

// Path is the folder, absolute.
func (d *Dir) Path() string { return d.path }

// File is the path of a file or folder in it.
func (d *Dir) File(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// MarkMade records in a file that the control plane became ready. Continued is then true for the next Open of this
// folder.
func (d *Dir) MarkMade() error {
	return os.WriteFile(d.File(madeName), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}

// Keep leaves a temporary folder where it is after Close, for an error that names a
// log in it. The sweep of a later run removes it.
func (d *Dir) Keep() { d.temporary = false }

// Close releases the lock of the folder. It first removes the folder if it is temporary.
func (d *Dir) Close() {
	if d.temporary {
		_ = os.RemoveAll(d.path)
	}
	_ = d.lock.Close()
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestTemporaryFolderIsRemovedUnlessItIsKept(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Setenv("TMPDIR", t.TempDir())
		d, err := Open("")
		must(t, err)
		if _, err := os.Stat(d.File("logs")); err != nil {
			t.Error(err)
		}
		if kept {
			d.Keep()
		}
		d.Close()
		if _, err := os.Stat(d.File("logs")); os.IsNotExist(err) == kept {
			t.Errorf("kept %t: %s: %v", kept, d.Path(), err)
		}
	}
}

func TestKeptFolderIsContinued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for run, continued := range []bool{false, false, true} {
		d, err := Open(path)
		must(t, err)
		if d.Continued != continued {
			t.Errorf("run %d: Continued = %v", run, d.Continued)
		}
		if run == 1 { // the first run died before it was ready
			must(t, d.MarkMade())
		}
		d.Close()
	}
}

func TestFolderInUseIsRefused(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path)
	must(t, err)
	defer d.Close()
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "is in use by another devcluster") {
		t.Errorf("error %v", err)
	}
}

func TestStrangeFolderIsRefused(t *testing.T) {
	path := t.TempDir()
	must(t, os.WriteFile(filepath.Join(path, "thesis.txt"), nil, 0o600))
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("error %v", err)
	}
}

func TestSweepRemovesOnlyTheFoldersOfTheDead(t *testing.T) {
	parent := t.TempDir()
	old := time.Now().Add(-2 * sweepAge)
	made := func(name string, when time.Time) string {
		folder := filepath.Join(parent, name)
		must(t, os.Mkdir(folder, 0o700))
		lock := filepath.Join(folder, lockName)
		must(t, os.WriteFile(lock, nil, 0o600))
		must(t, os.Chtimes(lock, when, when))
		return folder
	}
	dead, young, strange := made("devcluster-dead", old), made("devcluster-young", time.Now()), made("other", old)
	alive := made("devcluster-alive", old)
	lock, err := takeLock(filepath.Join(alive, lockName))
	must(t, err)
	defer func() { _ = lock.Close() }()
	must(t, os.Chtimes(filepath.Join(alive, lockName), old, old))
	sweep(parent)
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the dead one is still there: %v", err)
	}
	for _, folder := range []string{young, strange, alive} {
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
	}
}

// must ends the test if there is an error.
var must = placementtest.Must

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// New makes a plugin from arguments with which that must be possible.
func New[P fwk.Plugin](t testing.TB, factory frameworkruntime.PluginFactory, args runtime.Object, handle fwk.Handle) P {
	t.Helper()
	pl, err := factory(t.Context(), args, handle)
	if err != nil {
		t.Fatal(err)
	}
	return pl.(P)
}

// WantNew fails the test unless the plugin of the name was made; or if there are parts,
// unless it was not, and the error holds them all.
func WantNew(t testing.TB, name string, pl fwk.Plugin, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 {
		if err != nil || pl.Name() != name {
			t.Errorf("got %v, %v", pl, err)
		}
		return
	}
	if err == nil {
		t.Fatal("it was made")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// WantNoArguments fails the test unless the plugin has the name, and refuses arguments by it.
func WantNoArguments(t testing.TB, name string, pl fwk.Plugin, factory frameworkruntime.PluginFactory) {
	t.Helper()
	if pl.Name() != name {
		t.Errorf("its name is %q", pl.Name())
	}
	_, err := factory(t.Context(), &runtime.Unknown{}, nil)
	want := "args of plugin " + name + ": it takes none, got *runtime.Unknown: remove its pluginConfig"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

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

// WantArguments fails the test unless the plugin refuses the arguments of another one, and
// none, and says what it takes. The answer is a test of some arguments: the plugin of the
// name is made from them; or if there are parts, it is not, and the error holds them all.
func WantArguments(t *testing.T, name string, factory frameworkruntime.PluginFactory, handle fwk.Handle) func(test string, args runtime.Object, parts ...string) {
	t.Helper()
	want := func(test string, args runtime.Object, parts ...string) {
		t.Run(test, func(t *testing.T) {
			pl, err := factory(t.Context(), args, handle)
			if len(parts) == 0 {
				if err != nil || pl.Name() != name {
					t.Errorf("got %v, %v", pl, err)
				}
				return
			}
			if err == nil {
				t.Fatal("it was made")
			}
			for _, part := range append(parts, name) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
		})
	}
	want("args of another plugin", &runtime.Unknown{}, "*config."+name+"Args", "*runtime.Unknown")
	want("no args", nil, "*config."+name+"Args", "<nil>")
	return want
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

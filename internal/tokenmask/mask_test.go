// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tokenmask

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var must = placementtest.Must

// TestMaskedLogger wants bodies with tokens to be masked however they are written out, all else
// to be as it is, and lines to be said to come from where they do.
func TestMaskedLogger(t *testing.T) {
	review := `{"kind":"TokenReview","spec":{"token":"secret"}}`
	for name, tc := range map[string]struct {
		message, body string
		masked        bool
	}{
		"text":          {"Request Body", review, true},
		"an answer":     {"Response Body", review, true},
		"a dump":        {"Request Body", hex.Dump([]byte("k8s\x00\x0a\x29\x0a\x18authentication.k8s.io/v1TokenReview secret")), true},
		"a new token":   {"Response Body", `{"kind":"TokenRequest","status":{"token":"secret"}}`, true},
		"another body":  {"Request Body", `{"kind":"Pod","note":"secret"}`, false},
		"another line":  {"TokenReview was made", "secret", false},
		"a dump of one": {"Request Body", hex.Dump([]byte("k8s\x00 a Pod with a secret")), false},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			logger := maskedLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log), textlogger.Verbosity(8))))
			logger.WithName("n").WithValues("k", "v").V(8).Info(tc.message, "body", tc.body)
			if got := strings.Contains(log.String(), masked); got != tc.masked || strings.Contains(log.String(), "secret") == tc.masked && !strings.Contains(name, "dump") {
				t.Errorf("masked is %t, want %t:\n%s", got, tc.masked, &log)
			}
			if !strings.Contains(log.String(), "mask_test.go:") {
				t.Errorf("the line is said to be from elsewhere:\n%s", &log)
			}
			logger.V(9).Info("too much")
			if strings.Contains(log.String(), "too much") {
				t.Error("it says more than it is to")
			}
		})
	}
}

// loggingGates are the features of logging, with one of them set.
func loggingGates(t *testing.T, set string) featuregate.MutableFeatureGate {
	t.Helper()
	gates := featuregate.NewFeatureGate()
	must(t, logsapi.AddFeatureGates(gates))
	must(t, gates.Set(set))
	return gates
}

// apply applies what is configured for as long as the test runs.
func apply(t *testing.T, config *logsapi.LoggingConfiguration, gates featuregate.FeatureGate) {
	t.Helper()
	t.Cleanup(func() {
		klog.ClearLogger()
		klog.EnableContextualLogging(true)
		if err := logsapi.ResetForTest(gates); err != nil {
			t.Error(err)
		}
		klog.StopFlushDaemon() // which all of these start
	})
	must(t, Apply(config, gates))
}

// TestFormats wants a log in either format to be written at once, though a buffer is asked for, and to be masked.
func TestFormats(t *testing.T) {
	for _, format := range []string{logsapi.DefaultLogFormat, logsapi.JSONLogFormat} {
		t.Run(format, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			log, err := os.Create(path)
			must(t, err)
			out, both := os.Stdout, os.Stderr
			t.Cleanup(func() {
				os.Stdout, os.Stderr = out, both
				_ = log.Close()
			})
			os.Stdout, os.Stderr = log, log

			config := logsapi.NewLoggingConfiguration()
			flags := pflag.NewFlagSet("logging", pflag.ContinueOnError)
			logsapi.AddFlags(config, flags)
			args := []string{"--logging-format=" + format, "-v=8", "--log-" + format + "-split-stream", "--log-" + format + "-info-buffer-size=64Ki"}
			must(t, flags.Parse(args))
			apply(t, config, loggingGates(t, "LoggingAlphaOptions=true"))
			klog.V(8).InfoS("Request Body", "body", `{"kind":"TokenReview","spec":{"token":"secret"}}`)

			text, err := os.ReadFile(path)
			must(t, err)
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			for i, want := range []string{args[len(args)-1], masked} {
				if len(lines) != 2 || !strings.Contains(lines[i], want) || json.Valid([]byte(lines[i])) != (format == logsapi.JSONLogFormat) {
					t.Fatalf("want one line that says %s, and one that says %s:\n%s", args[len(args)-1], masked, text)
				}
			}
			if strings.Contains(string(text), "secret") {
				t.Errorf("it says a secret:\n%s", text)
			}
			if !strings.Contains(lines[1], "mask_test.go:") {
				t.Errorf("the line is said to be from elsewhere: %s", lines[1])
			}
		})
	}
}

// TestRegression_MaskWithoutContextualLogging writes one line with the feature off, in which
// klog's logger and the mask handed it to each other until the stack was full.
func TestRegression_MaskWithoutContextualLogging(t *testing.T) {
	gates := loggingGates(t, "ContextualLogging=false")
	apply(t, logsapi.NewLoggingConfiguration(), gates)
	klog.InfoS("One line")
	if logger := klog.FromContext(klog.NewContext(t.Context(), klog.LoggerWithName(klog.Background(), "n"))); logger != klog.Background() {
		t.Error("loggers are contextual although the feature is off")
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

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

// TestRegression_MaskWithoutContextualLogging writes one line with the feature off, in which
// klog's logger and the mask handed it to each other until the stack was full.
func TestRegression_MaskWithoutContextualLogging(t *testing.T) {
	gates := featuregate.NewFeatureGate()
	if err := logsapi.AddFeatureGates(gates); err != nil {
		t.Fatal(err)
	}
	if err := gates.Set("ContextualLogging=false"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		klog.ClearLogger()
		klog.EnableContextualLogging(true)
		if err := logsapi.ResetForTest(gates); err != nil {
			t.Error(err)
		}
		klog.StopFlushDaemon() // which all of these start
	})
	if err := applyLogging(logsapi.NewLoggingConfiguration(), gates); err != nil {
		t.Fatal(err)
	}
	klog.InfoS("One line")
	if logger := klog.FromContext(klog.NewContext(t.Context(), klog.LoggerWithName(klog.Background(), "n"))); logger != klog.Background() {
		t.Error("loggers are contextual although the feature is off")
	}
}

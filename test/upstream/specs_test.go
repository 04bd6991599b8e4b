// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	// What the framework does before and after each spec.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	// The specs.
	_ "k8s.io/kubernetes/test/e2e/scheduling"
)

// TestSpecs runs the specs. Each that fails fails it, and so does a choice of none.
func TestSpecs(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	progress.runs = true
	ginkgo.RunSpecs(t, "Kubernetes' specs of scheduling")
}

// terminal is the standard error of the process. While a spec runs, what is written to os.Stderr is kept with the spec.
var terminal = func() *os.File {
	fd, err := syscall.Dup(int(os.Stderr.Fd()))
	if err != nil {
		return os.Stderr
	}
	return os.NewFile(uintptr(fd), "terminal")
}()

// progress says how far the specs are. The framework looks through them once before they run.
var progress struct {
	runs       bool
	ended, all int
}

var _ = ginkgo.ReportBeforeSuite(func(report ginkgo.Report) { progress.all = report.PreRunStats.SpecsThatWillRun })

var _ = ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
	if !progress.runs || report.StartTime.IsZero() {
		return // it is looked through, or was not chosen
	}
	progress.ended++
	fmt.Fprintf(terminal, "upstream: %d of %d %s after %s: %s\n", progress.ended, progress.all, report.State, time.Since(report.StartTime).Round(100*time.Millisecond), report.FullText())
	if report.State.Is(types.SpecStateSkipped) {
		fmt.Fprintf(terminal, "upstream: it was skipped: %s\n", report.Failure.Message)
	}
})

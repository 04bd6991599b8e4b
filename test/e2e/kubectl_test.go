// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// drawings is what a command that goes on has printed so far.
type drawings struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *drawings) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *drawings) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// A tree that is watched is drawn again when pods have come, and ends well when it is interrupted.
func TestKubectlEspalierWatches(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.nodes(2, 50, zone("zone-a"))
	s.deployed("app", 2, "")
	binary, err := rig.Binary("kubectl-espalier", binFolder)
	s.must(err, "finding kubectl-espalier")
	cmd := exec.CommandContext(s.ctx, binary, "tree", "deployment/app", "--watch", "--kubeconfig", world.kubeconfig, "-n", s.ns)
	var out drawings
	cmd.Stdout, cmd.Stderr = &out, &out
	s.must(cmd.Start(), "starting kubectl espalier")
	all := regexp.MustCompile(`(?m)^all +([0-9]+) `)
	shows := func(pods string) {
		s.Helper()
		s.until("a tree of "+pods+" pods", func() error {
			drawn := all.FindAllStringSubmatch(out.String(), -1)
			if len(drawn) == 0 || drawn[len(drawn)-1][1] != pods {
				return fmt.Errorf("it is drawn\n%s", out.String())
			}
			return nil
		})
	}
	shows("2")
	s.scale("app", 5)
	shows("5")
	s.must(cmd.Process.Signal(os.Interrupt), "interrupting kubectl espalier")
	s.must(cmd.Wait(), "waiting for kubectl espalier to end")
}

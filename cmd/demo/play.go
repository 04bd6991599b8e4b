// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// closedZone is the zone that is cordoned and returns.
const closedZone = "zone-b"

// play is the acts on a stage, and what was judged in them.
type play struct {
	*stage
	say *narrator

	// finished says that all acts were played.
	finished bool
	judged   int
	// failures says what is uneven where, a sentence each; names says only where.
	failures, names []string
}

func (p *play) acts(ctx context.Context) error {
	for _, act := range []func(context.Context) error{p.create, p.scaleUp, p.cordon, p.uncordon, p.roll} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) create(ctx context.Context) error {
	p.say.act("1  the example workloads are created")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := p.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	for _, w := range workloads {
		if err := p.apply(ctx, w); err != nil {
			return err
		}
	}
	return p.show(ctx, "after create", workloads, func(w workload) int { return w.created }, nil)
}

func (p *play) scaleUp(ctx context.Context) error {
	p.say.act("2  they are scaled up")
	for _, w := range lasting() {
		if err := p.scale(ctx, w, w.scaled); err != nil {
			return err
		}
	}
	return p.show(ctx, "after scale-up", lasting(), func(w workload) int { return w.scaled }, nil)
}

func (p *play) cordon(ctx context.Context) error {
	p.say.act("3  %s is cordoned, and they are scaled up again: its pods stay and count, it gets no more", closedZone)
	before, err := p.where(ctx)
	if err != nil {
		return err
	}
	if err := p.close(ctx, closedZone, true); err != nil {
		return err
	}
	for _, w := range lasting() {
		if err := p.scale(ctx, w, w.cordoned); err != nil {
			return err
		}
	}
	return p.show(ctx, "while "+closedZone+" is cordoned", lasting(), func(w workload) int { return w.cordoned }, before)
}

func (p *play) uncordon(ctx context.Context) error {
	p.say.act("4  %s returns, and they are scaled up again: it catches up", closedZone)
	before, err := p.where(ctx)
	if err != nil {
		return err
	}
	if err := p.close(ctx, closedZone, false); err != nil {
		return err
	}
	for _, w := range lasting() {
		if err := p.scale(ctx, w, w.returned); err != nil {
			return err
		}
	}
	return p.show(ctx, "after "+closedZone+" returned", lasting(), func(w workload) int { return w.returned }, before)
}

func (p *play) roll(ctx context.Context) error {
	p.say.act("5  a rolling update replaces every pod")
	for _, w := range lasting() {
		if err := p.restart(ctx, w); err != nil {
			return err
		}
	}
	for _, w := range lasting() {
		if err := p.rolledOut(ctx, w); err != nil {
			return err
		}
	}
	return p.show(ctx, "after a rolling update", lasting(), func(w workload) int { return w.returned }, nil)
}

// where is the pods of the lasting workloads by node, so that what comes next is judged by what it adds.
func (p *play) where(ctx context.Context) (map[string]map[string]int, error) {
	places := map[string]map[string]int{}
	for _, w := range lasting() {
		o, err := rig.Observe(ctx, p.client, rig.Workload{Namespace: namespace, Selector: w.selector, Levels: w.levels})
		if err != nil {
			return nil, err
		}
		places[w.name] = o.OnNodes()
	}
	return places, nil
}

// show waits until each workload has its pods where they will stay, judges it and draws it.
func (p *play) show(ctx context.Context, when string, list []workload, pods func(workload) int, before map[string]map[string]int) error {
	for _, w := range list {
		o, err := p.settled(ctx, w, pods(w))
		if err != nil {
			return fmt.Errorf("%s %s: %w", w.name, when, err)
		}
		o.Fix(before[w.name])
		verdict := "as even as it can be"
		findings := o.Check()
		p.judged++
		if len(findings) > 0 {
			verdict = "NOT EVEN"
			p.names = append(p.names, w.name+" "+when)
			p.failures = append(p.failures, fmt.Sprintf("%s %s: %s", w.name, when, strings.Join(findings, "; ")))
		}
		head := fmt.Sprintf("%s: %d pods, %s", w.name, len(o.Pods), w.about)
		p.say.text("\n" + draw(head, verdict, p.onTopology(o)))
	}
	return nil
}

// onTopology is what was observed, by zone and rack whatever the workload's own levels are.
func (p *play) onTopology(o *rig.Observation) []evenness.Node {
	nodes := make([]evenness.Node, len(o.Nodes))
	for i, n := range o.Nodes {
		labels := p.labels[n.Name]
		n.Values = []string{labels[byZone.Name], labels[byRack.Name]}
		nodes[i] = n
	}
	return nodes
}

// apply creates the workload from its file in manifests/examples.
func (p *play) apply(ctx context.Context, w workload) error {
	objects, err := rig.Decode(manifests.Files, "examples/"+w.file)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if obj.GetKind() == job {
			if err := runsFor(obj, jobRuns); err != nil {
				return err
			}
		}
		if err := p.applier.ApplyObject(ctx, obj, namespace); err != nil {
			return fmt.Errorf("applying %s %s of %s: %w", obj.GetKind(), obj.GetName(), w.file, err)
		}
	}
	return nil
}

// next is what to try next.
const next = `
Try next:
  bin/demo --keep               leave the cluster up, and look at it after make build: bin/kubectl-espalier tree deployment/web -n demo
  docs/quick-start.md           Espalier in a cluster of kind
  docs/spread.md                ask for a spread: zones, racks, shares, packing
  docs/install.md               install it
`

// verdict prints the last line and returns the exit status.
func (p *play) verdict(took time.Duration) int {
	if len(p.failures) == 0 {
		p.say.text(next)
		p.say.text(fmt.Sprintf("\nPASS: %d spreads were judged, and every one is as even as it can be (%.1f s)\n", p.judged, took.Seconds()))
		return 0
	}
	// All of them are said above the verdict, which stays one line.
	p.say.text("\n" + strings.Join(p.failures, "\n") + "\n")
	p.say.text(fmt.Sprintf("\nFAIL: %d of %d spreads could be more even: %s (%.1f s)\n", len(p.failures), p.judged, strings.Join(p.names, ", "), took.Seconds()))
	return 1
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

func (c *common) newSimulate() *cobra.Command {
	var out output
	var files []string
	var replicas int
	var change inspect.Change
	var add []string
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Show where pods would go",
		Long: "Show where the pods of a manifest would go, or those of drained nodes, and how even the workloads would be. Preemption is not simulated: " +
			"a pod that would take the place of others stays pending.",
		Example: "  kubectl espalier simulate -f web.yaml --replicas 30\n  kubectl espalier simulate --drain node-a\n" +
			"  kubectl espalier simulate -f web.yaml --add-nodes 2,like=node-a,topology.kubernetes.io/zone=zone-c",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			for _, text := range add {
				nodes, err := parseNodes(text)
				if err != nil {
					return err
				}
				change.Add = append(change.Add, nodes)
			}
			if len(files)+len(change.Drain)+len(change.Cordon)+len(change.Add) == 0 {
				return errors.New("nothing to simulate: give a manifest with -f, or change the nodes with --drain, --cordon or --add-nodes")
			}
			if cmd.Flags().Changed("replicas") && replicas < 0 {
				return fmt.Errorf("--replicas=%d: write a number, 0 or more", replicas)
			}
			namespace, err := c.namespace()
			if err != nil {
				return err
			}
			m, err := readManifests(cmd.InOrStdin(), files, namespace)
			if err != nil {
				return err
			}
			s, configuration, err := c.source(cmd)
			if err != nil {
				return err
			}
			c.bar(cmd).Show(0, 0, fmt.Sprintf("having a scheduler look at %d objects", len(s.Objects)))
			result, err := inspect.Simulate(cmd.Context(), s, configuration, change, m, replicas, func(done, all int) { c.bar(cmd).Show(done, all, "placing pods") })
			c.bar(cmd).End()
			if err != nil {
				return err
			}
			warn(cmd, result.Unread)
			names := namesOf(result.Pods, func(p *inspect.Placed) string { return "pod/" + p.Name })
			return out.write(cmd.OutOrStdout(), result, names, func(p *printer) { drawSimulation(p, result) })
		},
	}
	c.addSource(cmd)
	out.add(cmd)
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "manifest of Deployments, StatefulSets, ReplicaSets or Pods; - for the standard input; may be repeated")
	cmd.Flags().IntVar(&replicas, "replicas", -1, "how many pods each of them is to have, in place of what the manifest says")
	cmd.Flags().StringSliceVar(&change.Cordon, "cordon", nil, "nodes that are cordoned first")
	cmd.Flags().StringSliceVar(&change.Drain, "drain", nil, "nodes that are drained first: their pods are placed anew")
	complete(cmd, "cordon", c.completeNodes)
	complete(cmd, "drain", c.completeNodes)
	cmd.Flags().StringArrayVar(&add, "add-nodes", nil, "empty nodes that come first: COUNT,like=NODE[,LABEL=VALUE...]")
	return cmd
}

// readManifests reads several files as one manifest.
func readManifests(in io.Reader, files []string, namespace string) (*inspect.Manifest, error) {
	all := &inspect.Manifest{}
	for _, file := range files {
		m, err := readManifest(in, file, namespace)
		if err != nil {
			return nil, err
		}
		all.Merge(m)
	}
	if len(files) > 0 && all.Empty() {
		return nil, fmt.Errorf("%s: no Deployment, StatefulSet, ReplicaSet, Pod or policy is in it", strings.Join(files, ", "))
	}
	return all, nil
}

// readManifest reads a file, or the standard input.
func readManifest(in io.Reader, file, namespace string) (*inspect.Manifest, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, plain(err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	m, err := inspect.ReadManifest(in, namespace)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// parseNodes reads "2,like=node-a,topology.kubernetes.io/zone=zone-c".
func parseNodes(text string) (inspect.AddNodes, error) {
	parts := strings.Split(text, ",")
	count, err := strconv.Atoi(parts[0])
	if err != nil || count < 1 || count > 10000 {
		return inspect.AddNodes{}, fmt.Errorf("--add-nodes=%s: it begins with how many, 1 to 10000: COUNT,like=NODE[,LABEL=VALUE...]", text)
	}
	nodes := inspect.AddNodes{Count: count, Labels: make(map[string]string)}
	for _, part := range parts[1:] {
		key, value, found := strings.Cut(part, "=")
		if !found || key == "" {
			return inspect.AddNodes{}, fmt.Errorf("--add-nodes=%s: %q is no LABEL=VALUE", text, part)
		}
		if key == "like" {
			nodes.Like = value
			continue
		}
		nodes.Labels[key] = value
	}
	if nodes.Like == "" {
		return inspect.AddNodes{}, fmt.Errorf("--add-nodes=%s: say which node they are like: COUNT,like=NODE[,LABEL=VALUE...]", text)
	}
	return nodes, nil
}

// drawSimulation says what came of a simulation.
func drawSimulation(out *printer, s *inspect.Simulation) {
	for _, why := range []struct{ is, words string }{{inspect.WhyPending, "pending before"}, {inspect.WhyDrained, "drained"}, {inspect.WhyManifest, "manifest"}} {
		placed, all := 0, 0
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Why == why.is {
				all++
				if p.Node != "" {
					placed++
				}
			}
		}
		if all > 0 {
			m := good
			if placed < all {
				m = bad
			}
			fmt.Fprintln(out, out.mark(m, fmt.Sprintf("%s: %d of %d pods placed", why.words, placed, all)))
		}
	}
	said := make(map[string]int)
	var order []string
	for i := range s.Pods {
		p := &s.Pods[i]
		switch {
		case p.Node == "" && said[p.Message] == 0:
			order = append(order, p.Message)
			fallthrough
		case p.Node == "":
			said[p.Message]++
		case out.wide || p.Why == inspect.WhyDrained:
			fmt.Fprintf(out, "  %s/%s on %s\n", p.Namespace, p.Name, p.Node)
		}
	}
	if len(s.Pods) == 0 && len(s.Notes) == 0 {
		fmt.Fprintln(out, "Nothing to place: no pod of these schedulers is pending, and the cluster has all pods of the manifest.")
	}
	for _, note := range s.Notes {
		fmt.Fprintf(out, "%s %s\n", out.mark(odd, "note:"), note)
	}
	for _, message := range order {
		fmt.Fprintf(out, "%s %s\n", out.mark(bad, fmt.Sprintf("pending, %d:", said[message])), message)
	}
	if len(s.Ignored) > 0 {
		fmt.Fprintf(out, "not simulated: %s\n", strings.Join(s.Ignored, ", "))
	}
	for i := range s.Trees {
		fmt.Fprintln(out)
		drawTree(out, &s.Trees[i], false)
	}
}

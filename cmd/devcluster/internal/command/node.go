// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/kwok"
)

// requestLimit bounds the commands that talk to a running cluster.
const requestLimit = time.Minute

// nodeCommand makes a command that does one thing to nodes of a running cluster, which
// are named or selected, and says in a line each what it did.
func nodeCommand(cmd *cobra.Command, do func(ctx context.Context, control *kwok.Control, node string) (string, error)) *cobra.Command {
	var kubeconfig, selector string
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig that `devcluster up` printed (default: $KUBECONFIG)")
	cmd.Flags().StringVar(&selector, "nodes", "", "label selector of nodes, instead of names: a zone is topology.kubernetes.io/zone=NAME")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && selector == "":
			return fmt.Errorf("%s takes the names of nodes, or --nodes and a label selector", cmd.Name())
		case len(args) > 0 && selector != "":
			return fmt.Errorf("%s takes the names of nodes or --nodes=%q, not both", cmd.Name(), selector)
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if kubeconfig == "" {
			return errors.New("--kubeconfig is missing and KUBECONFIG is not set: give the path that `devcluster up` printed")
		}
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return fmt.Errorf("--kubeconfig=%s: %w", kubeconfig, err)
		}
		config.QPS = -1
		control, err := kwok.NewControl(config)
		if err != nil {
			return fmt.Errorf("--kubeconfig=%s: %w", kubeconfig, err)
		}
		return eachNode(cmd, control, args, selector, do)
	}
	return cmd
}

// eachNode does one thing to all nodes that are named or selected, one after the
// other, and stops at the first that it cannot be done to.
func eachNode(cmd *cobra.Command, control *kwok.Control, names []string, selector string,
	do func(ctx context.Context, control *kwok.Control, node string) (string, error),
) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
	defer cancel()
	if selector != "" {
		var err error
		if names, err = control.Select(ctx, selector); err != nil {
			return fmt.Errorf("--nodes=%q: %w", selector, err)
		}
	}
	for _, name := range names {
		ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
		done, err := do(ctx, control, name)
		cancel()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), done); err != nil {
			return err
		}
	}
	return nil
}

func newFail() *cobra.Command {
	var as, reason, selector string
	var running bool
	var kinds strings.Builder
	for _, kind := range kwok.FailureKinds() {
		fmt.Fprintf(&kinds, "  %-10s %s\n", kind.Name, kind.Help)
	}
	cmd := &cobra.Command{
		Use:   "fail NODE...",
		Short: "Make pods fail on nodes",
		Long: `fail makes the pods that start on a node fail, until heal or the end of the run. It
returns when it is in force. The ways to fail:

` + kinds.String() + `
A pod that is to fail on any node says so itself, with the annotation
` + kwok.FailAnnotation + ` and one of these names.`,
		Example: `  devcluster fail node-003 --as rejected
  devcluster fail --nodes topology.kubernetes.io/zone=zone-a --as rejected --reason OutOfcpu
  devcluster fail node-003 --as crashloop --selector app=web --running`,
	}
	cmd.Flags().StringVar(&as, "as", "rejected", "the way to fail")
	cmd.Flags().StringVar(&reason, "reason", "", "the kubelet's word for it, in the ways that have several, such as OutOfcpu or NodePorts of a rejected pod")
	cmd.Flags().StringVar(&selector, "selector", "", "only pods with these labels (key=value,…)")
	cmd.Flags().BoolVar(&running, "running", false, "also pods that run on the node already")
	return nodeCommand(cmd, func(ctx context.Context, control *kwok.Control, node string) (string, error) {
		kind, err := kwok.FailureKindNamed(as)
		if err != nil {
			return "", fmt.Errorf("--as: %w", err)
		}
		if reason != "" {
			if kind, err = kind.Because(reason); err != nil {
				return "", fmt.Errorf("--reason: %w", err)
			}
		}
		only, err := labels.ConvertSelectorToLabelsMap(selector)
		if err != nil {
			return "", fmt.Errorf("--selector=%q: %w", selector, err)
		}
		return fmt.Sprintf("pods fail on %s: %s", node, kind.Help), control.Fail(ctx, node, kind, only, running)
	})
}

func newHeal() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "heal NODE...",
		Short: "Let pods on a node be well again",
		Long: `heal ends what fail began. Pods on the node that hang in Pending or in a crash loop
run; pods that have ended stay ended.`,
	}
	return nodeCommand(cmd, func(ctx context.Context, control *kwok.Control, node string) (string, error) {
		return "pods run on " + node, control.Heal(ctx, node)
	})
}

func newStopNode() *cobra.Command {
	var atOnce bool
	cmd := &cobra.Command{
		Use:   "stop-node NODE...",
		Short: "Let a node fall silent, as if its machine had lost power",
		Long: `stop-node ends the node's heartbeat. After the grace period (see up --node-grace) the
node is not Ready and tainted, and its pods are evicted when they tolerate that no longer.`,
	}
	cmd.Flags().BoolVar(&atOnce, "at-once", false, "the node reports itself not Ready, as at an orderly shutdown, without a grace period")
	return nodeCommand(cmd, func(ctx context.Context, control *kwok.Control, node string) (string, error) {
		return node + " is silent", control.StopNode(ctx, node, atOnce)
	})
}

func newStartNode() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start-node NODE...",
		Short: "Bring a stopped node back",
	}
	return nodeCommand(cmd, func(ctx context.Context, control *kwok.Control, node string) (string, error) {
		return node + " is back", control.StartNode(ctx, node)
	})
}

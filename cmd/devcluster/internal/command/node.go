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

// nodeCommand makes a command that does one thing to one node of a running cluster
// and says in a line what it did.
func nodeCommand(cmd *cobra.Command, do func(ctx context.Context, control *kwok.Control, node string) (string, error)) *cobra.Command {
	var kubeconfig string
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig that `devcluster up` printed (default: $KUBECONFIG)")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes the name of one node, got %d", cmd.Name(), len(args))
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
		ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
		defer cancel()
		done, err := do(ctx, control, args[0])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
		return err
	}
	return cmd
}

func newFail() *cobra.Command {
	var as, selector string
	var running bool
	var kinds strings.Builder
	for _, kind := range kwok.FailureKinds() {
		fmt.Fprintf(&kinds, "  %-10s %s\n", kind.Name, kind.Help)
	}
	cmd := &cobra.Command{
		Use:   "fail NODE",
		Short: "Make pods fail on a node",
		Long: `fail makes the pods that start on a node fail, until heal or the end of the run. It
returns when it is in force. The ways to fail:

` + kinds.String() + `
A pod that is to fail on any node says so itself, with the annotation
` + kwok.FailAnnotation + ` and one of these names.`,
		Example: `  devcluster fail node-003 --as rejected
  devcluster fail node-003 --as crashloop --selector app=web --running`,
	}
	cmd.Flags().StringVar(&as, "as", "rejected", "the way to fail")
	cmd.Flags().StringVar(&selector, "selector", "", "only pods with these labels (key=value,…)")
	cmd.Flags().BoolVar(&running, "running", false, "also pods that run on the node already")
	return nodeCommand(cmd, func(ctx context.Context, control *kwok.Control, node string) (string, error) {
		kind, err := kwok.FailureKindNamed(as)
		if err != nil {
			return "", fmt.Errorf("--as: %w", err)
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
		Use:   "heal NODE",
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
		Use:   "stop-node NODE",
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
		Use:   "start-node NODE",
		Short: "Bring a stopped node back",
	}
	return nodeCommand(cmd, func(ctx context.Context, control *kwok.Control, node string) (string, error) {
		return node + " is back", control.StartNode(ctx, node)
	})
}

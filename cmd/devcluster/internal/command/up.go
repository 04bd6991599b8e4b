// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/cluster"
	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/inventory"
	"github.com/espalier-scheduler/espalier/internal/progress"
)

// exitForced is the status after a second Ctrl-C: 128 + SIGINT, as a shell would say.
const exitForced = 130

// endLimit is how long a command may take to end once it is terminated, before it is killed.
const endLimit = 30 * time.Second

type upFlags struct {
	grid             inventory.Grid
	nodesFile        string
	dir              string
	kubeconfigOut    string
	nodeGrace        time.Duration
	startLimit       time.Duration
	untilStdinCloses bool
	bare             bool
	kubernetes       string
	featureGates     string
	runtimeConfig    string
	auditLog         string
	verbose          bool
}

func newUp() *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up [flags] [-- COMMAND [ARG...]]",
		Short: "Run a control plane in the foreground until Ctrl-C",
		Long: `up runs a control plane in the foreground until it is interrupted. Progress goes to
stderr. When all nodes are Ready it prints one line on stdout:

  kubeconfig: /path/of/the/kubeconfig

Everything is on 127.0.0.1 with ports of the kernel's choice, and all state is in
one folder. A node that anybody creates through the API comes alive too.

With a COMMAND, up runs it beside the control plane, with KUBECONFIG set and no standard input, and
ends with it and with its status. Ctrl-C terminates the command, and what it has started; the control
plane ends when the command has.

With --until-stdin-closes, lines on standard input are orders. There is one: "restart PART"
ends PART as a crash does, starts it again, and prints "restarted: PART" when the API server is ready.
PART is one of ` + strings.Join(cluster.Restartable(), ", ") + `.`,
		Example: `  devcluster up --nodes 24 --zones 3 --racks 2
  kubectl get nodes -o yaml > nodes.yaml; devcluster up --nodes-file nodes.yaml
  devcluster up --nodes 3 -- kubectl get nodes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("unexpected argument %q: write -- before a command to run", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.grid.Nodes, "nodes", 24, "number of nodes, dealt round robin to zones and racks")
	flags.IntVar(&f.grid.Zones, "zones", 3, "number of zones (label topology.kubernetes.io/zone: zone-a, zone-b, …)")
	flags.IntVar(&f.grid.Racks, "racks", 2, "number of racks in each zone (label "+inventory.RackLabel+": zone-a-rack-1, …)")
	flags.StringVar(&f.grid.CPU, "node-cpu", "32", "CPU of every node")
	flags.StringVar(&f.grid.Memory, "node-memory", "256Gi", "memory of every node")
	flags.StringVar(&f.grid.Pods, "node-pods", "110", "pods that fit on every node")
	flags.StringVar(&f.nodesFile, "nodes-file", "", "file of Node objects (YAML or JSON, lists too) instead of --nodes, --zones and --racks")
	flags.StringVar(&f.dir, "dir", "", "state folder, kept at the end and continued with next time (default: a temporary one, removed at the end)")
	flags.StringVar(&f.kubeconfigOut, "kubeconfig-out", "", "write the kubeconfig to this file (removed at the end) instead of into the state folder only")
	flags.DurationVar(&f.nodeGrace, "node-grace", 0, "how long a silent node stays Ready (default: 20s, more from 100 nodes on)")
	flags.DurationVar(&f.startLimit, "start-limit", 5*time.Minute, "give up if the cluster is not ready after this time")
	flags.BoolVar(&f.untilStdinCloses, "until-stdin-closes", false, "take orders on standard input, and end when it is closed, as it is when the process that holds it dies")
	flags.BoolVar(&f.bare, "bare", false, "etcd and the API server alone: no nodes, no KWOK, no controllers")
	flags.StringVar(&f.kubernetes, "kubernetes", os.Getenv("DEVCLUSTER_KUBERNETES"), "folder of kube-apiserver and kube-controller-manager of another version, to run in place of those built in (default: $DEVCLUSTER_KUBERNETES)")
	flags.StringVar(&f.featureGates, "feature-gates", "", "feature gates of kube-apiserver and the controllers, for example GenericWorkload=true")
	flags.StringVar(&f.runtimeConfig, "runtime-config", "", "APIs that kube-apiserver serves beside the usual ones, for example scheduling.k8s.io/v1beta1=true")
	flags.StringVar(&f.auditLog, "audit-log", "", "write a line for each change of an object to this file: who has made it, and of what (Kubernetes' audit log, level Metadata)")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print the logs of all parts, and more of them")
	return cmd
}

func (f *upFlags) run(cmd *cobra.Command, command []string) error {
	nodes, err := f.nodes(cmd)
	if err != nil {
		return err
	}
	if f.nodeGrace < 0 || (f.nodeGrace > 0 && f.nodeGrace < 4*time.Second) {
		return fmt.Errorf("--node-grace=%s: must be at least 4s, four renewals of a lease", f.nodeGrace)
	}
	restart := make(chan string)
	ctx, cancel := f.untilStopped(cmd, restart)
	defer cancel()
	begin := time.Now()
	bar := progress.New(cmd.ErrOrStderr())
	defer bar.End()
	say := func(format string, args ...any) {
		bar.Line(fmt.Sprintf("[%5.1fs] %s", time.Since(begin).Seconds(), fmt.Sprintf(format, args...)))
	}
	// The control plane is there until the command has ended, which may have to clean up.
	run, end := context.WithCancel(context.Background())
	defer end()
	started := make(chan struct{})
	context.AfterFunc(ctx, func() {
		select {
		case <-started:
		default:
			end()
		}
	})
	var ended chan error // nil until the command has started
	err = cluster.Run(run, cluster.Options{
		Dir: f.dir, KubeconfigOut: f.kubeconfigOut, Nodes: nodes, NodeGrace: f.nodeGrace,
		StartLimit: f.startLimit, Verbose: f.verbose, Bare: f.bare, Say: say, Progress: bar.Show,
		Kubernetes: f.kubernetes, FeatureGates: f.featureGates, RuntimeConfig: f.runtimeConfig, AuditLog: f.auditLog,
		Ready: func(kubeconfig string) {
			say("ready, Ctrl-C to end")
			fmt.Fprintf(cmd.OutOrStdout(), "kubeconfig: %s\n", kubeconfig)
			if len(command) > 0 {
				close(started)
				ended = make(chan error, 1)
				go func() {
					ended <- beside(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), kubeconfig, command)
					end()
				}()
			}
		},
		Restart: restart,
		Restarted: func(part string) {
			say("%s is up again", part)
			fmt.Fprintf(cmd.OutOrStdout(), "restarted: %s\n", part)
		},
	})
	cancel()
	if ended != nil {
		err = errors.Join(err, <-ended)
	}
	return err
}

// commandError is why a command has ended.
type commandError struct{ *exec.ExitError }

// besideGroup is the process group of the command that beside runs, 0 while it runs none: a second signal ends this process with no time to end that.
var besideGroup atomic.Int64

// beside runs a command that finds the cluster by KUBECONFIG. When ctx ends it terminates the command and all that it has started: a shell
// alone would go on with the next line when what it waits for has ended. Of what a script runs in the background nobody may be interrupted.
// Whatever is left after endLimit is killed.
func beside(ctx context.Context, stdout, stderr io.Writer, kubeconfig string, command []string) error {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	c.Stdout, c.Stderr = stdout, stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = endLimit
	err := c.Start()
	if err == nil {
		besideGroup.Store(int64(c.Process.Pid))
		err = c.Wait()
		besideGroup.Store(0)
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // most often there is nobody
	}
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		err = commandError{exit}
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", command[0], err)
	}
	return nil
}

func (f *upFlags) nodes(cmd *cobra.Command) ([]*corev1.Node, error) {
	if f.bare {
		for _, name := range []string{"nodes", "nodes-file"} {
			if cmd.Flags().Changed(name) {
				return nil, fmt.Errorf("--%s and --bare exclude each other: a bare cluster has no kubelets", name)
			}
		}
		return nil, nil
	}
	if f.nodesFile == "" {
		return f.grid.Generate()
	}
	for _, name := range []string{"nodes", "zones", "racks", "node-cpu", "node-memory", "node-pods"} {
		if cmd.Flags().Changed(name) {
			return nil, fmt.Errorf("--%s and --nodes-file exclude each other: the file says what the nodes are", name)
		}
	}
	return inventory.ReadFile(f.nodesFile)
}

// untilStopped returns a context that ends with the first SIGINT or SIGTERM, or when
// standard input closes if that was asked for. A second signal ends the process at once.
func (f *upFlags) untilStopped(cmd *cobra.Command, restart chan<- string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // the last when a terminal is closed
	go func() {
		<-signals
		cancel()
		<-signals
		fmt.Fprintln(cmd.ErrOrStderr(), "devcluster: ended by force")
		if group := besideGroup.Load(); group != 0 {
			_ = syscall.Kill(-int(group), syscall.SIGKILL)
		}
		os.Exit(exitForced)
	}()
	if f.untilStdinCloses {
		go func() {
			f.takeOrders(ctx, cmd.InOrStdin(), cmd.ErrOrStderr(), restart)
			cancel()
		}()
	}
	return ctx, cancel
}

// takeOrders passes on what is to be restarted, until the input is closed. A line that
// is no order is complained of and ends nothing.
func (f *upFlags) takeOrders(ctx context.Context, in io.Reader, complaints io.Writer, restart chan<- string) {
	lines := bufio.NewReader(in)
	for {
		line, err := nextLine(lines)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				fmt.Fprintln(complaints, "devcluster: reading standard input:", err)
			}
			return
		}
		words := strings.Fields(line)
		if len(words) != 2 || words[0] != "restart" {
			fmt.Fprintf(complaints, "devcluster: standard input: %.60q is no order: the one there is reads restart PART\n", line)
			continue
		}
		if err := cluster.CheckRestartable(words[1], f.bare); err != nil {
			fmt.Fprintln(complaints, "devcluster: standard input:", err)
			continue
		}
		select {
		case restart <- words[1]:
		case <-ctx.Done():
			return
		}
	}
}

// nextLine reads a line, or as much of a longer one as the buffer takes: no order is that long, and one that is must not end the others.
func nextLine(in *bufio.Reader) (string, error) {
	line, more, err := in.ReadLine()
	begin := string(line)
	for more && err == nil {
		_, more, err = in.ReadLine()
	}
	return begin, err
}

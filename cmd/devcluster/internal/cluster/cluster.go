// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/inventory"
	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/kwok"
	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/pki"
	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/statedir"
)

// Options say which cluster to run.
type Options struct {
	// Dir is the state folder; "" is a temporary one that is removed at the end.
	Dir string
	// KubeconfigOut, if set, is one more place for the kubeconfig; removed at the end.
	KubeconfigOut string
	// Nodes are made at the start. On a kept folder those that exist stay as they are.
	Nodes []*corev1.Node
	// NodeGrace is how long a silent node stays Ready; 0 chooses by the number of nodes.
	NodeGrace time.Duration
	// Bare runs etcd and the API server alone. Nobody plays nodes and nobody makes or
	// removes pods; nodes that are made Ready stay Ready, and Nodes must be empty.
	Bare bool
	// Kubernetes, if set, is the folder of a kube-apiserver and a kube-controller-manager of another version, which run in place of those that
	// are built in. What is there is looked up at each start of a part: when the folder is a symbolic link that is changed, a restart is an upgrade.
	Kubernetes string
	// FeatureGates and RuntimeConfig are kube-apiserver's flags of these names. The gates are the controllers' as well.
	FeatureGates, RuntimeConfig string
	// AuditLog, if set, is the file that gets a line for each change of an object.
	AuditLog string
	// StartLimit bounds the time until ready.
	StartLimit time.Duration
	// Verbose sends the logs of the parts to the terminal too.
	Verbose bool

	// Say tells a person what has been done, and Progress how far what takes longer is. Ready is called once, with the path of the kubeconfig.
	Say      func(format string, args ...any)
	Progress func(done, all int, what string)
	Ready    func(kubeconfig string)

	// Restart takes the names of parts to restart, one after the other, once the cluster
	// is ready; see Restartable. Restarted is called when one has started and the API server is ready.
	Restart   <-chan string
	Restarted func(part string)
}

// cluster is one run. Parts are filled in as they start and stopped in stop.
type cluster struct {
	Options
	dir  *statedir.Dir
	keys pki.PKI

	config     *rest.Config // admin's, without limits
	client     kubernetes.Interface
	etcd       *etcd
	endpoint   string // etcd's
	endKWOK    part
	endWaker   part
	listener   *listener // the API server's
	endAPI     part
	apiReady   bool
	endManager part

	failed chan error // what ended by itself; buffered, so that no part waits to report
}

// Run runs a cluster until ctx ends, which is the good end, or until a part of it
// fails. Everything is stopped and, if temporary, removed when it returns; after a
// failure the folder stays, for the sake of the logs.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.findBinaries(); err != nil {
		return err
	}
	if o.KubeconfigOut != "" {
		if _, err := os.Lstat(o.KubeconfigOut); err == nil {
			return fmt.Errorf("--kubeconfig-out=%s: the file is there, and would be removed at the end: name another one, or remove it", o.KubeconfigOut)
		}
	}
	c := &cluster{Options: o, failed: make(chan error, 8)}
	if c.dir, err = statedir.Open(o.Dir); err != nil {
		return err
	}
	defer c.dir.Close()
	defer c.stop()
	defer func() {
		if err != nil {
			c.dir.Keep()
		}
	}()
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // asked to end while it started
		}
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.failed:
			return err
		case part := <-c.Restart:
			err := c.within(ctx, func(ctx context.Context) error { return c.restart(ctx, part) })
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("restarting %s: %w", part, err)
			}
		}
	}
}

// start brings all parts up in order and calls Ready.
func (c *cluster) start(ctx context.Context) error {
	return c.within(ctx, func(ctx context.Context) error { return c.startParts(ctx) })
}

// within does what waits for parts, for as long as a cluster may take to start.
func (c *cluster) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.StartLimit,
		fmt.Errorf("not ready within %s; the logs are in %s", c.StartLimit, c.dir.File("logs")))
	defer cancel()
	// A part that fails while others are waited for must end the wait.
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	watching, watched := make(chan struct{}), make(chan struct{})
	var failed error // set before watched is closed
	go func() {
		defer close(watched)
		select {
		case failed = <-c.failed:
			fail(failed)
		case <-watching:
		}
	}()
	err := do(ctx)
	close(watching)
	<-watched
	if err == nil {
		return failed
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}

func (c *cluster) startParts(ctx context.Context) error {
	if c.dir.Continued {
		c.Say("continuing with the cluster in %s", c.dir.Path())
	}
	if err := redirectLogs(c.dir.File("logs", "kubernetes.log"), c.Verbose); err != nil {
		return err
	}
	if err := c.startServers(ctx); err != nil {
		return err
	}
	if c.Bare {
		return c.announce()
	}
	if err := c.keys.WriteKubeconfig(c.dir.File(managerKubeconfig), "controllers", c.config.Host); err != nil {
		return err
	}
	c.startManager()
	grace, lease := silence(len(c.Nodes), c.NodeGrace)
	if err := c.startNodes(ctx, lease); err != nil {
		return err
	}
	if err := waitNamespace(ctx, c.client); err != nil {
		return err
	}
	count, err := waitNodes(ctx, c.client, c.Progress)
	if err != nil {
		return err
	}
	c.Say("%d nodes are Ready, a silent node is noticed after %s", count, grace)
	return c.announce()
}

// startServers starts etcd and the API server and waits for them.
func (c *cluster) startServers(ctx context.Context) error {
	err := c.listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	if c.keys, err = pki.Ensure(c.dir.File("pki"), serviceIP); err != nil {
		return err
	}
	server := "https://" + c.listener.Addr().String()
	admin := c.dir.File("admin.kubeconfig")
	if err := c.keys.WriteKubeconfig(admin, "admin", server); err != nil {
		return err
	}
	if c.config, err = clientcmd.BuildConfigFromFlags("", admin); err != nil {
		return err
	}
	c.config.QPS = -1
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	if c.Kubernetes != "" {
		c.Say("kube-apiserver and kube-controller-manager are those in %s", c.Kubernetes)
	}
	if err := c.startEtcd(); err != nil {
		return err
	}
	c.Say("etcd is up")
	c.startAPIServer()
	if err := waitAPIServer(ctx, c.client); err != nil {
		return err
	}
	c.apiReady = true
	c.Say("kube-apiserver is up on %s", server)
	return nil
}

// startEtcd starts etcd on what it has stored before, if anything.
func (c *cluster) startEtcd() (err error) {
	if c.etcd, c.endpoint, err = startEtcd(c.dir.File("etcd"), c.dir.File("logs", "etcd.log")); err != nil {
		return err
	}
	go func(failed <-chan error) {
		if err, open := <-failed; open {
			c.failed <- fmt.Errorf("running etcd: %w", err)
		}
	}(c.etcd.Err())
	return nil
}

// startAPIServer starts the API server on its listener and does not wait for it.
func (c *cluster) startAPIServer() {
	listener := c.listener
	c.endAPI = c.run(func(ctx context.Context) error {
		return c.runAPIServer(ctx, listener)
	})
}

// managerKubeconfig is what the controllers connect with, in the cluster's folder.
const managerKubeconfig = "controllers.kubeconfig"

// startManager starts the controllers and does not wait for them.
func (c *cluster) startManager() {
	grace, _ := silence(len(c.Nodes), c.NodeGrace)
	c.endManager = c.run(func(ctx context.Context) error {
		return c.runControllers(ctx, c.dir.File(managerKubeconfig), grace)
	})
}

// startNodes makes the nodes and has kwok play them.
func (c *cluster) startNodes(ctx context.Context, leaseSeconds uint) error {
	stages, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	if err := kwok.InstallNodes(ctx, stages); err != nil {
		return err
	}
	if c.dir.Continued {
		// The leases are held by the kwok of the run before, which is gone: until
		// they end, ours would leave the nodes alone. Stopped nodes stay stopped.
		err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).
			DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "!" + kwok.StoppedLabel})
		if err != nil {
			return fmt.Errorf("clearing the leases of the nodes: %w", err)
		}
	}
	kubeconfig := c.dir.File("kwok", "kubeconfig")
	if err := c.keys.WriteKubeconfig(kubeconfig, "kwok", c.config.Host); err != nil {
		return err
	}
	c.endKWOK = c.run(func(ctx context.Context) error {
		return kwok.Run(ctx, kwok.Options{
			Kubeconfig: kubeconfig, LeaseSeconds: leaseSeconds, LogFile: c.dir.File("logs", "kwok.log"), Verbose: c.Verbose,
		})
	})
	c.endWaker = c.run(func(ctx context.Context) error { return kwok.Wake(ctx, c.client) })
	c.Say("kwok is up, making %d nodes", len(c.Nodes))
	err = inventory.Create(ctx, c.client, c.Nodes, func(made int) { c.Progress(made, len(c.Nodes), "nodes made") })
	if err != nil {
		return err
	}
	if err := waitTakenUp(ctx, c.client); err != nil {
		return err
	}
	return kwok.InstallPods(ctx, stages)
}

// announce writes the kubeconfig, now that it is good for something, and says so.
func (c *cluster) announce() error {
	if err := c.dir.MarkMade(); err != nil {
		return fmt.Errorf("marking the state folder: %w", err)
	}
	path := c.dir.File("kubeconfig")
	paths := []string{path}
	if c.KubeconfigOut != "" {
		out, err := filepath.Abs(c.KubeconfigOut)
		if err != nil {
			return fmt.Errorf("--kubeconfig-out: %w", err)
		}
		c.KubeconfigOut, path = out, out
		paths = append(paths, out)
	}
	for _, p := range paths {
		if err := c.keys.WriteKubeconfig(p, "admin", c.config.Host); err != nil {
			return err
		}
	}
	c.Ready(path)
	return nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Devcluster is a running devcluster.
type Devcluster struct {
	*Process
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string

	stdin     *os.File    // closing it ends devcluster; the kernel closes it if we die
	restarted chan string // the names of parts that are ready again
}

// DevclusterOptions is what to start.
type DevclusterOptions struct {
	// Binary is the path of devcluster.
	Binary string
	// Dir takes its log.
	Dir string
	// Args follow `up`, for example --nodes 24.
	Args []string
	// Progress gets its progress lines, nil for nobody.
	Progress io.Writer
	// Timeout is how long it may take to be ready. Default 2 minutes.
	Timeout time.Duration
}

// StartDevcluster starts a devcluster and returns when it is ready.
func StartDevcluster(ctx context.Context, o DevclusterOptions) (*Devcluster, error) {
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting devcluster: %w", err)
	}
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting devcluster: %w", err)
	}
	p, err := Start(Command{
		Name: "devcluster", Path: o.Binary, Args: append([]string{"up", "--until-stdin-closes"}, o.Args...), Dir: o.Dir,
		Stdin: inRead, Stdout: outWrite, Stderr: o.Progress,
	})
	_, _ = inRead.Close(), outWrite.Close()
	if err != nil {
		_, _ = inWrite.Close(), outRead.Close()
		return nil, err
	}
	d := &Devcluster{Process: p, stdin: inWrite, restarted: make(chan string, 1)}
	path := make(chan string, 1)
	go func() {
		defer func() { _ = outRead.Close() }()
		for lines := bufio.NewScanner(outRead); lines.Scan(); {
			if rest, ok := strings.CutPrefix(lines.Text(), "kubeconfig: "); ok {
				path <- strings.TrimSpace(rest)
			}
			if part, ok := strings.CutPrefix(lines.Text(), "restarted: "); ok {
				d.restarted <- strings.TrimSpace(part)
			}
		}
	}()
	select {
	case d.Kubeconfig = <-path:
		return d, nil
	case <-p.Done():
		_ = inWrite.Close()
		return nil, p.Err()
	case <-ctx.Done():
		_ = d.Stop(20 * time.Second)
		return nil, fmt.Errorf("starting devcluster: %w", context.Cause(ctx))
	case <-time.After(o.Timeout):
		tail := p.Tail(12)
		_ = d.Stop(20 * time.Second)
		return nil, fmt.Errorf("devcluster was not ready after %s; the end of %s:\n%s", o.Timeout, p.Log, tail)
	}
}

// Restart has devcluster end a part of the control plane, kube-apiserver, etcd or kube-controller-manager, as a
// crash does, and start it again. It returns when the API server is ready again.
func (d *Devcluster) Restart(part string, timeout time.Duration) error {
	if _, err := fmt.Fprintln(d.stdin, "restart", part); err != nil {
		return fmt.Errorf("restarting %s: %w", part, err)
	}
	select {
	case <-d.restarted:
		return nil
	case <-d.Done():
		return fmt.Errorf("restarting %s: %w", part, d.Err())
	case <-time.After(timeout):
		return fmt.Errorf("restarting %s: it was not ready again after %s; the end of %s:\n%s", part, timeout, d.Log, d.Tail(12))
	}
}

// Stop ends devcluster and waits until it is gone. That it had ended before is an error, and so
// is that it could not end what it had started.
func (d *Devcluster) Stop(timeout time.Duration) error {
	err := d.StopCleanly(timeout)
	_ = d.stdin.Close()
	return err
}

// Client makes a client from a kubeconfig, without the client's own rate limit, and with protobuf in place of
// JSON: the rig and its stories must not be what is slow. The config is for kinds that have no protobuf, too.
func Client(kubeconfig string) (*rest.Config, kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	binary := rest.CopyConfig(config)
	binary.ContentType, binary.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client from kubeconfig %s: %w", kubeconfig, err)
	}
	return config, client, nil
}

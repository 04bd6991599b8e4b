// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/cache"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const serviceCIDR = "10.96.0.0/16"

// serviceIP is the first address of serviceCIDR, which the API server takes for
// its own service.
var serviceIP = net.IPv4(10, 96, 0, 1)

// apiServerArgs are kube-apiserver's flags. What is not here is Kubernetes'
// default, above all the admission plugins.
func (c *cluster) apiServerArgs(port int) []string {
	keys := c.keys
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--etcd-servers=" + c.endpoint,
		"--tls-cert-file=" + keys.Cert("apiserver"),
		"--tls-private-key-file=" + keys.Key("apiserver"),
		"--client-ca-file=" + keys.Cert("ca"),
		"--requestheader-client-ca-file=" + keys.Cert("front-proxy-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + keys.Cert("front-proxy"),
		"--proxy-client-key-file=" + keys.Key("front-proxy"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + keys.Key("service-account"),
		"--service-account-signing-key-file=" + keys.Key("service-account"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		// A loopback address may not be an endpoint of the kubernetes service, and
		// no pod here could dial it.
		"--endpoint-reconciler-type=none",
		// One person's machine: fairness between tenants would only queue a burst
		// of a thousand pods behind itself.
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=2000",
		// kwok and the schedulers under test go through plain client certificates
		// and tokens; there is nobody else to shut down for.
		"--shutdown-delay-duration=0s",
		"--feature-gates=" + c.FeatureGates,
		"--runtime-config=" + c.RuntimeConfig,
	}
	if c.Bare {
		// It taints every new node until a controller has seen it Ready.
		args = append(args, "--disable-admission-plugins=TaintNodesByCondition")
	}
	return args
}

// runAPIServer serves on listener until ctx ends. The listener is handed over
// open: a port that was only looked up could be taken by somebody else meanwhile.
func (c *cluster) runAPIServer(ctx context.Context, listener net.Listener) error {
	audit, err := c.auditArgs()
	if err != nil {
		return err
	}
	args := append(c.apiServerArgs(listener.Addr().(*net.TCPAddr).Port), audit...)
	if c.Kubernetes != "" {
		older, err := c.betaArgs(ctx)
		if err != nil {
			return err
		}
		args = append(args, older...)
		_ = listener.Close() // another program takes no listener
		return c.runBinary(ctx, "kube-apiserver", args)
	}
	server := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range server.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("arguments of kube-apiserver: %w", err)
	}
	server.SecureServing.Listener = listener
	registry := server.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return fmt.Errorf("feature gates of kube-apiserver: %w", err)
	}
	registry.FeatureGateFor(basecompatibility.DefaultKubeComponent).(featuregate.MutableFeatureGate).AddMetrics()
	completed, err := server.Complete(ctx)
	if err != nil {
		return fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("configuring kube-apiserver: %w", utilerrors.NewAggregate(errs))
	}
	// Upstream's own registration outlives the server, and a restarted one would be refused.
	if completed.InformerName, err = cache.NewInformerName("kube-apiserver"); err != nil {
		return fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	defer completed.InformerName.Release()
	if err := app.Run(ctx, completed); err != nil {
		return fmt.Errorf("running kube-apiserver: %w", err)
	}
	return nil
}

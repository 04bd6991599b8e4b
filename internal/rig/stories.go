// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Main tells the stories of a folder, and returns the status that their process is to end with.
func Main(name string, tell func() (code int, err error)) int {
	code, err := tell()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return code
}

// Listing says that the process is only asked which stories it has (go test -list), for which nothing need be there.
// The flags must have been parsed.
func Listing() bool {
	list := flag.Lookup("test.list")
	return list != nil && list.Value.String() != ""
}

// InFolder gives stories a folder for logs and kubeconfigs. It is kept if one of them fails.
func InFolder(name string, tell func(dir string) (code int, err error)) (code int, err error) {
	dir, err := os.MkdirTemp("", "espalier-"+name+"-")
	if err != nil {
		return 1, err
	}
	code, err = tell(dir)
	if code == 0 && err == nil {
		return 0, os.RemoveAll(dir)
	}
	fmt.Fprintf(os.Stderr, "%s: logs are in %s\n", name, dir)
	return code, err
}

// OnDevcluster gives stories a devcluster of their own, which ends with them. Its binary
// is looked for in a folder, its log goes to another.
func OnDevcluster(ctx context.Context, name, binFolder, dir string, args []string, tell func(*Devcluster) (code int, err error)) (code int, err error) {
	binary, err := Binary("devcluster", binFolder)
	if err != nil {
		return 1, err
	}
	fmt.Fprintf(os.Stderr, "%s: starting a devcluster\n", name)
	d, err := StartDevcluster(ctx, DevclusterOptions{Binary: binary, Dir: dir, Args: args, Progress: os.Stderr})
	if err != nil {
		return 1, err
	}
	code, err = tell(d)
	return code, errors.Join(err, d.Stop(30*time.Second))
}

// UntilInterrupted runs tests, which cannot be interrupted themselves: their own timeout bounds
// them, and an interrupt must still not leave processes behind.
func UntilInterrupted(ctx context.Context, tests interface{ Run() int }) (code int, err error) {
	ended := make(chan int, 1)
	go func() { ended <- tests.Run() }()
	select {
	case code = <-ended:
		return code, nil
	case <-ctx.Done():
		return 1, errors.New("interrupted")
	}
}

// Entitle applies what the manifests let the scheduler and the controller do, and writes a
// kubeconfig with the scheduler's rights. The Applier is for whatever else is to be there.
func Entitle(ctx context.Context, config *rest.Config, client kubernetes.Interface, manifests fs.FS, kubeconfig string) (*Applier, error) {
	applier, err := NewApplier(config)
	if err != nil {
		return nil, err
	}
	if err := applier.Rights(ctx, manifests); err != nil {
		return nil, err
	}
	return applier, WriteSchedulerKubeconfig(ctx, config, client, kubeconfig)
}

// Establish is Entitle, with the definitions of our kinds.
func Establish(ctx context.Context, config *rest.Config, client kubernetes.Interface, manifests fs.FS, kubeconfig string) (*Applier, error) {
	applier, err := Entitle(ctx, config, client, manifests, kubeconfig)
	if err == nil {
		err = applier.Definitions(ctx, manifests)
	}
	return applier, err
}

// Singly rewrites rules to one for each verb of each resource. Those of paths are left out.
func Singly(rules []rbacv1.PolicyRule) (single []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					single = append(single, rbacv1.PolicyRule{
						APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames,
					})
				}
			}
		}
	}
	return single
}

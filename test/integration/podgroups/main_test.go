// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroups

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

const (
	// binFolder is where make build puts the binaries, seen from this folder.
	binFolder = "../../../bin"
	// timeout bounds anything that a test waits for.
	timeout = 60 * time.Second
	// gates are what docs/operations.md gives to the API server and to the scheduler.
	gates = "--feature-gates=GenericWorkload=true"
	// api is what it gives to the API server beside them.
	api = "--runtime-config=scheduling.k8s.io/v1beta1=true"
	// role is the cluster's role that it has bound to the scheduler's account.
	role = "system:kube-scheduler"
)

// cluster is six nodes in three zones, an API server that serves PodGroups, and no scheduler.
var cluster struct {
	client kubernetes.Interface
	// account is the path of the scheduler's own kubeconfig.
	account, binary string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Main("podgroups", func() (int, error) {
		return rig.InFolder("podgroups", func(dir string) (int, error) {
			args := []string{"--nodes=6", "--zones=3", "--racks=1", gates, api}
			return rig.OnDevcluster(context.Background(), "podgroups", binFolder, dir, args, func(d *rig.Devcluster) (int, error) {
				if err := prepare(context.Background(), d.Kubeconfig, dir); err != nil {
					return 1, err
				}
				return m.Run(), nil
			})
		})
	}))
}

// prepare gives the scheduler the rights of the manifests, and what pod groups need beside them.
func prepare(ctx context.Context, kubeconfig, dir string) (err error) {
	if cluster.binary, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return err
	}
	config, client, err := rig.Client(kubeconfig)
	if err != nil {
		return err
	}
	cluster.client, cluster.account = client, filepath.Join(dir, "scheduler.kubeconfig")
	if _, err := rig.Entitle(ctx, config, client, manifests.Files, cluster.account); err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "espalier-scheduler-features"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rig.SchedulerNamespace, Name: rig.SchedulerName}},
	}, metav1.CreateOptions{})
	return err
}

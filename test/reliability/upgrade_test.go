// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// upgradeFlag are the control planes of TestKubernetesIsUpgraded.
var upgradeFlag = flag.String("upgrade", "", "folders of control planes to upgrade to, one after the other, with commas between them; DEVCLUSTER_KUBERNETES is a symbolic link to the first control plane, and is led on")

// The control plane is upgraded by one minor version after the other while pods wait and are bound, in the order of kubeadm: the API server
// before the controllers. Both replicas of the scheduler go on, without a restart, as schedulers of the version that they found at their start.
func TestKubernetesIsUpgraded(t *testing.T) {
	if *upgradeFlag == "" {
		t.Skip("it takes control planes of several versions: make e2e-versions builds them and tells it")
	}
	if os.Getenv("DEVCLUSTER_KUBERNETES") == "" {
		t.Fatal("-upgrade goes with DEVCLUSTER_KUBERNETES, a symbolic link")
	}
	s := begin(t)
	folders := strings.Split(*upgradeFlag, ",")
	leader, _, _ := s.pair(world.kubeconfig, perSecond)
	s.apps = nil
	each := replicas / (len(folders) + 1)
	replicas = each * (len(folders) + 1)
	at := s.version()
	for i, folder := range folders {
		s.apps = append(s.apps, fmt.Sprint("app-", i))
		s.deploy(s.apps[i], int32(each))
		s.Until("the pods to be made and some of them to be bound", func() error {
			if pods, bound := s.seen.Bound(); pods < each*(i+1) || bound < each*i+each/4 {
				return fmt.Errorf("of %d pods %d are bound", pods, bound)
			}
			return nil
		})
		if _, bound := s.seen.Bound(); bound >= each*(i+1) {
			t.Fatalf("all pods were bound before the upgrade to %s, though bindings are limited to %d a second: this told nothing", folder, perSecond)
		}
		s.leadTo(folder)
		s.Must(world.Restart("kube-apiserver", timeout), "upgrading kube-apiserver")
		s.Must(world.Restart("kube-controller-manager", timeout), "upgrading kube-controller-manager")
		if now := s.version(); now.Minor() != at.Minor()+1 {
			t.Fatalf("with %s the API server went from %s to %s, want the next minor version", folder, at, now)
		}
		at = s.version()
		t.Logf("upgraded to %s", at)
		for _, finding := range s.even(each * (i + 1)) {
			t.Error(finding)
		}
	}
	s.apps = append(s.apps, "last")
	s.deploy("last", int32(each)) // by controllers of the last version
	for _, finding := range s.even(replicas) {
		t.Error(finding)
	}
	if pods, bound := s.seen.Bound(); pods != replicas || bound != replicas {
		t.Errorf("there were %d pods, %d of them bound, want %d of each: a pod was lost and replaced", pods, bound, replicas)
	}
	s.announcedOnce()
	// That both are still there is seen when the story ends them.
	s.says(leader, "The API server is of a newer version")
}

// leadTo leads the symbolic link that the devcluster takes its control plane from to another folder.
func (s *story) leadTo(folder string) {
	s.Helper()
	link := os.Getenv("DEVCLUSTER_KUBERNETES")
	s.Must(os.Symlink(folder, link+".new"), "making a symbolic link")
	s.Must(os.Rename(link+".new", link), "putting it in the place of the last")
}

// version asks the API server.
func (s *story) version() *version.Version {
	s.Helper()
	v, err := rig.ServerVersion(world.client)
	s.Must(err, "asking for the version")
	return v
}

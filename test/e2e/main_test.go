// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var (
	kubeconfigFlag = flag.String("kubeconfig", os.Getenv("ESPALIER_E2E_KUBECONFIG"), "administrator's kubeconfig of the cluster to tell the stories on; empty starts a devcluster")
	schedulerFlag  = flag.String("scheduler", "process", "process: start bin/espalier-scheduler with the rights of manifests/; deployed: the cluster runs it already")
	wholeFlag      = flag.Bool("whole", false, "tell the stories at their whole length, as make e2e-nightly does: minutes of silence and of stillness, and all repetitions of what depends on chance")
	graceFlag      = flag.String("node-grace", "20s", "how long a node is silent until devcluster's controllers say so; Kubernetes' own period is 50s")
	nodesFlag      = flag.String("nodes", "devcluster", "who plays the nodes that stories make. devcluster: on demand they fail; kwok: KWOK by its own stages, which nothing fails in")
)

// binFolder is where make build puts the binaries, seen from this folder.
const binFolder = "../../bin"

// parallelStories is how many stories run at once where -parallel does not say. They mostly wait, so that many do not need as many cores;
// but beyond this one story's pods wait long enough for another's to miss deadlines.
const parallelStories = "8"

// world is the cluster that all stories share. It is set up once and then only read.
var world struct {
	config *rest.Config
	client kubernetes.Interface
	// objects is a client for objects of any kind, ours too.
	objects client.Client
	// kubeconfig is the administrator's.
	kubeconfig string
	// dir takes logs and kubeconfigs; it is kept if a story fails.
	dir string
	// auditLog has the changes of all objects. It is "" on a cluster that was there before.
	auditLog string
	// schedulerKubeconfig holds the service account's token.
	schedulerKubeconfig string
	// scheduler and controller are nil if the cluster runs them itself.
	scheduler, controller *rig.Process
	// controllerMetrics is where the controller serves its metrics, "" if the cluster runs it itself.
	controllerMetrics string
	// metricsToken is for whoever asks for metrics.
	metricsToken string
	// stock is nil until a story wants the stock scheduler, and on a cluster that has one. So is the scheduler of tenants.
	stock, tenants *rig.Process
	// tenantsMetrics is where that serves its metrics.
	tenantsMetrics string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if rig.Listing() {
		os.Exit(m.Run())
	}
	if _, err := selectedLabels(*labelsFlag); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(2)
	}
	if !given("test.parallel") {
		_ = flag.Set("test.parallel", parallelStories)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := rig.Main("e2e", func() (int, error) {
		return rig.InFolder("e2e", func(dir string) (int, error) {
			world.dir = dir
			if *kubeconfigFlag != "" {
				return tell(ctx, *kubeconfigFlag, m)
			}
			world.auditLog = filepath.Join(dir, "audit.log")
			args := []string{"--nodes=0", "--audit-log=" + world.auditLog, "--node-grace=" + *graceFlag}
			return rig.OnDevcluster(ctx, "e2e", binFolder, dir, args, func(d *rig.Devcluster) (int, error) {
				return tell(ctx, d.Kubeconfig, m)
			})
		})
	})
	cancel()
	os.Exit(code)
}

// tell prepares a cluster, tells the stories on it, and ends what it has started.
func tell(ctx context.Context, kubeconfig string, m *testing.M) (code int, err error) {
	world.kubeconfig = kubeconfig
	if world.config, world.client, err = rig.Client(kubeconfig); err != nil {
		return 1, err
	}
	if err := placementv1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return 1, err
	}
	if world.objects, err = client.New(world.config, client.Options{}); err != nil {
		return 1, err
	}
	// One of them may have started where the other did not.
	defer func() {
		for _, p := range []*rig.Process{world.scheduler, world.controller, world.tenants} {
			if p != nil {
				err = errors.Join(err, p.StopCleanly(15*time.Second))
			}
		}
		if world.stock != nil {
			err = errors.Join(err, world.stock.Stop(15*time.Second)) // without a lease it never ends with success
		}
	}()
	if err := prepareScheduler(ctx); err != nil {
		return 1, err
	}
	if code, err = rig.UntilInterrupted(ctx, m); err != nil {
		return code, err
	}
	line, err := tally()
	if err != nil {
		return 1, err
	}
	fmt.Println(line)
	if code == 0 {
		err = writeEvenness()
	}
	return code, err
}

// prepareScheduler starts the scheduler with the rights of the manifests, unless the cluster runs it already. Then it has been installed
// with all that it needs, which is what the stories are about: to apply the manifests would put their rights in the place of those.
func prepareScheduler(ctx context.Context) error {
	world.schedulerKubeconfig = filepath.Join(world.dir, "scheduler.kubeconfig")
	switch *schedulerFlag {
	case "deployed":
		return rig.WriteSchedulerKubeconfig(ctx, world.config, world.client, world.schedulerKubeconfig)
	case "process":
	default:
		return fmt.Errorf("-scheduler=%s: it is process or deployed", *schedulerFlag)
	}
	applier, err := rig.Establish(ctx, world.config, world.client, manifests.Files, world.schedulerKubeconfig)
	if err != nil {
		return err
	}
	for _, folder := range []string{
		"components/move-drained", "components/rebalance", "components/restart-elsewhere", "components/keep-disconnected", "components/repair-deletion-costs",
		"components/renew-leases", "components/node-claims", "components/stagger-ends", "components/arbiter", "components/tenants", "overlays/leases",
	} {
		if err := applier.Apply(ctx, manifests.Files, folder+"/rbac.yaml", ""); err != nil {
			return err
		}
	}
	// Restarts elsewhere read the record of each scheduler, and the manifests know of one.
	records := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}, ResourceNames: []string{leasesScheduler + "-failures", tenantsScheduler + "-failures"}}}
	for _, o := range entitled(rig.SchedulerNamespace, rig.ControllerName, records) {
		if err := client.IgnoreAlreadyExists(world.objects.Create(ctx, o)); err != nil {
			return err
		}
	}
	if world.controller, err = startController(ctx); err != nil {
		return err
	}
	is, err := rig.ServerVersion(world.client)
	if err != nil {
		return err
	}
	var gates []string
	if is.Minor() >= rig.LifecycleSince { // a scheduler that emulates an older version refuses the gate
		gates = append(gates, lifecycleGate)
	}
	world.scheduler, err = startScheduler(rig.SchedulerName, gates...)
	return err
}

// lifecycleGate has the scheduler and the controller go by what conditions say of the end of a node. No other story has such nodes.
const lifecycleGate = "--feature-gates=NodeLifecycleConditions=true"

// startScheduler starts one more scheduler process, its log named after it.
func startScheduler(name string, args ...string) (*rig.Process, error) {
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return nil, err
	}
	return rig.StartScheduler(rig.SchedulerOptions{Name: name, Binary: binary, Kubeconfig: world.schedulerKubeconfig, Dir: world.dir, Args: args})
}

// entitled are a role of a namespace, and a binding of it to one of our service accounts.
func entitled(namespace, account string, rules []rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "e2e-" + account}
	return []client.Object{&rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rig.SchedulerNamespace, Name: account}},
	}}
}

func given(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// must ends the test if there is an error.
var must = placementtest.Must

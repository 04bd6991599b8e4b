// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/arbiter"
	"github.com/espalier-scheduler/espalier/internal/controllers/deletioncost"
	"github.com/espalier-scheduler/espalier/internal/controllers/disconnect"
	"github.com/espalier-scheduler/espalier/internal/controllers/drain"
	"github.com/espalier-scheduler/espalier/internal/controllers/policy"
	"github.com/espalier-scheduler/espalier/internal/controllers/rebalance"
	"github.com/espalier-scheduler/espalier/internal/controllers/restart"
	"github.com/espalier-scheduler/espalier/internal/controllers/suspect"
	"github.com/espalier-scheduler/espalier/internal/informersync"
	"github.com/espalier-scheduler/espalier/internal/tokenmask"
)

const description = `espalier-controller writes the status of PlacementPolicies: how many pods each
governs, and whether another policy or an annotation comes before it. With
--taint-suspects it taints the nodes on which unrelated workloads fail. With
--arbiter it checks bindings before they are made.

Pods are placed without it. Without --kubeconfig it uses the credentials of the
pod that it runs in. It waits for the kinds of policies to be installed.`

// options are the flags.
type options struct {
	kubeconfig string
	logging    *logsapi.LoggingConfiguration
	schedulers []string
	// elect, namespace and lease are about the election.
	elect            bool
	namespace, lease string
	probes, metrics  string
	// effect is that of the taint of suspects, "" for no taint.
	effect   string
	suspects suspect.Options
	// drain.Pods is "" for none, and rebalance.Mode likewise.
	drain     drain.Options
	drainIn   string
	rebalance rebalance.Options
	// costs.Mode is "" for none to be changed. costsIn is read into it.
	costs   deletioncost.Options
	costsIn string
	// restart.Mode is "" for none.
	restart restart.Options
	// disconnects is whether pods are kept whose nodes do not answer.
	disconnects bool
	disconnect  disconnect.Options
	// arbitrates is whether bindings are checked.
	arbitrates bool
	arbiter    arbiter.Options
	// tenants is whether Partitions and Allocations have statuses.
	tenants bool
	// restartIn is read into that, and namespaces and windows into rebalance.
	restartIn  string
	namespaces string
	windows    []string

	lifetimes lifetimes

	// informers are those of the process. They are set when it runs.
	informers *informersync.Tracker
}

func newCommand(version string) *cobra.Command {
	o := &options{logging: logsapi.NewLoggingConfiguration()}
	cmd := &cobra.Command{
		Use: "espalier-controller", Long: description, Version: version, Args: cobra.NoArgs,
		// Help is a page long. After a mistyped flag you want to read which one it was.
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "The path of the kubeconfig file that says where the API server is and who asks. Without one, the credentials of the pod are used.")
	flags.StringSliceVar(&o.schedulers, "scheduler-names", []string{"espalier-scheduler"}, "The schedulerNames of the pods that policies are for.")
	flags.BoolVar(&o.elect, "leader-elect", true, "Whether only one of several controllers writes.")
	flags.StringVar(&o.namespace, "leader-elect-resource-namespace", "kube-system", "The namespace of the Lease that they elect by.")
	flags.StringVar(&o.lease, "leader-elect-resource-name", "espalier-controller", "The name of the Lease that they elect by.")
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served, 0 for nowhere.")
	flags.StringVar(&o.metrics, "metrics-bind-address", "0", "Where /metrics is served, by TLS and to whom the API server lets get that path, 0 for nowhere.")
	flags.StringVar(&o.effect, "taint-suspects", "", "PreferNoSchedule or NoSchedule taints the nodes on which unrelated workloads fail with "+clusterview.SuspectTaint+", until they no longer do. Empty taints none.")
	flags.IntVar(&o.suspects.MaxPerHour, "taint-suspects-per-hour", 2, "How many nodes are tainted in one hour at most, 1 to 1000. If more nodes than this are suspect, the cause is probably not the nodes.")
	flags.IntVar(&o.suspects.MaxNodes, "taint-suspects-at-once", 3, "How many nodes are tainted at once at most, 1 to 1000.")
	flags.StringVar(&o.drain.Pods, "move-drained", "", "Which pods of Deployments are replaced before they are evicted from nodes that somebody is about to remove, cordoned ones among them. Blocked is those that a disruption budget keeps there, All is all, and evicts pods that no other one can be ready beside, such as those of StatefulSets. ByPolicy is none; moves.drained of a policy comes before it. Empty replaces none, whatever policies say.")
	flags.StringVar(&o.drainIn, "move-drained-namespace-selector", "", "The namespaces in which pods are replaced for this reason, as a selector of their labels, such as team=web. Empty is all.")
	flags.IntVar(&o.drain.AtOnce, "moves-at-once", 5, "How many pods are replaced at once at most, 1 to 1000. Of one Deployment it is no more than its maxSurge.")
	o.rebalanceFlags(flags)
	o.restartFlags(flags)
	flags.BoolVar(&o.disconnects, "keep-disconnected", false, "Whether pods on nodes that do not answer are kept, and those of Deployments replaced, where their policies have a disconnect.")
	o.costFlags(flags)
	o.lifetimeFlags(flags)
	o.arbiterFlags(flags)
	flags.BoolVar(&o.tenants, "allocations", false, "Whether the statuses of Partitions and Allocations are written, Events that say why their pods wait, and pods evicted that must not run: those beyond the maxUtilizationPercent of their allocation, and those whose identity group has become smaller.")
	flags.StringVar(&o.suspects.Namespace, "failure-record-namespace", "kube-system", "The namespace of the ConfigMaps SCHEDULERNAME-failures, in which schedulers name the suspects.")
	utilfeature.DefaultMutableFeatureGate.AddFlag(flags) // the filters of kube-scheduler have some
	flags.VarP(logsapi.VerbosityLevelPflag(&o.logging.Verbosity), "v", "v", "How much is written into the log. 0 is the least.")
	return cmd
}

// run runs until the context ends, which is no failure.
func (o *options) run(ctx context.Context) error {
	if len(o.schedulers) == 0 {
		return errors.New("--scheduler-names: name at least one scheduler")
	}
	o.suspects.Schedulers, o.suspects.Effect = o.schedulers, corev1.TaintEffect(o.effect)
	if o.effect != "" {
		if err := o.suspects.Validate(); err != nil {
			return fmt.Errorf("--taint-suspects: %w", err)
		}
	}
	if err := errors.Join(o.readDrain(), o.readRebalance(), o.readRestart(), o.readDisconnect(), o.readCosts(), o.readLifetimes(), o.readArbiter()); err != nil {
		return err
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	if err := o.log(); err != nil {
		return err
	}
	o.informers = informersync.New(clock.RealClock{}, informersync.Options{Optional: func(of schema.GroupVersionResource) bool {
		// Moves begin when policies are installed, and nothing else waits for them.
		return !o.moves() && of.Group == placementv1alpha1.GroupName && slices.ContainsFunc(policy.Kinds, func(kind string) bool {
			resource, _ := meta.UnsafeGuessKindToResource(placementv1alpha1.SchemeGroupVersion.WithKind(kind))
			return of == resource
		})
	}})
	config.Wrap(o.informers.Wrap)
	m, err := o.manager(config)
	if err != nil {
		return err
	}
	reviewer, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	// Also while another replica leads: the informers run then, too.
	go o.informers.Run(ctx)
	go o.informers.FollowRights(ctx, reviewer.SelfSubjectRulesReviews().Create, reviewer.SelfSubjectAccessReviews().Create)
	return m.Start(ctx)
}

// log has the log written as it is to be. Whoever asks for /metrics has a token, which is sent to the API server and must not be in the log.
func (o *options) log() error {
	gates := featuregate.NewFeatureGate()
	if err := logsapi.AddFeatureGates(gates); err != nil {
		return fmt.Errorf("features of the log: %w", err)
	}
	return tokenmask.Apply(o.logging, gates)
}

// config is how the API server is reached.
func (o *options) config() (*rest.Config, error) {
	config, err := o.credentials()
	if err != nil {
		return nil, err
	}
	// Each Move is looked at by the second, with some requests: of the client's 20 a second four Moves would leave nothing. The API server has
	// its own limits, and shares them fairly.
	config.QPS, config.Burst = 200, 400
	// As kube-scheduler and kube-controller-manager have it: the API server would compress each event of a watch that has begun with all objects, which takes
	// both sides longer than to send it.
	config.DisableCompression = true
	return config, nil
}

// credentials are those of the flags, or of the pod.
func (o *options) credentials() (*rest.Config, error) {
	if o.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("cannot find the API server: set --kubeconfig, or run in a pod")
	}
	return config, err
}

func (o *options) manager(config *rest.Config) (ctrl.Manager, error) {
	ctrl.SetLogger(klog.Background())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, policyv1.AddToScheme, placementv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: cache.Options{ByObject: o.cached()},
		// Policies are read as the API server has them, and from the cache like all else.
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		LeaderElection: o.elect, LeaderElectionID: o.lease, LeaderElectionNamespace: o.namespace,
		// The process ends when it is told to, so the next one need not wait for the Lease to run out.
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        o.probes,
		// The certificate is its own, made at each start.
		Metrics: metricsserver.Options{BindAddress: o.metrics, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
	})
	if err != nil {
		return nil, fmt.Errorf("API server at %s: %w", config.Host, err)
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("ping", healthz.Ping),
		m.AddReadyzCheck(informersync.Check, o.informers.Ready), metrics.Registry.Register(o.informers)); err != nil {
		return nil, err
	}
	if o.effect != "" {
		if err := m.Add(&suspect.Controller{Records: m.GetAPIReader(), Nodes: m.GetClient(), Clock: clock.RealClock{}, Options: o.suspects}); err != nil {
			return nil, err
		}
	}
	if o.costs.Mode != "" {
		if err := m.Add(&deletioncost.Controller{Client: m.GetClient(), Clock: clock.RealClock{}, Options: o.costs}); err != nil {
			return nil, err
		}
	}
	if err := o.addLifetimes(m); err != nil {
		return nil, err
	}
	arbitrates, err := o.newArbiter(m)
	if err != nil {
		return nil, err
	}
	if o.tenants {
		if err := o.addTenants(m); err != nil {
			return nil, err
		}
	}
	reconciler := &policy.Reconciler{Client: m.GetClient(), Schedulers: o.schedulers, Clock: clock.RealClock{}, Flags: policy.Flags{
		Disconnect: o.disconnects, Drained: o.drain.Pods != "", Restart: o.restart.Mode != "",
		Rebalance: o.rebalance.Mode != "" && o.rebalance.Mode != rebalance.DryRun,
	}}
	// Leader elected, as all of a manager's runnables are that do not say otherwise.
	return m, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if there, err := installed(ctx, m.GetRESTMapper(), policy.Kinds, o.informers); !there {
			return err
		}
		if err := reconciler.AddTo(m); err != nil {
			return err
		}
		if arbitrates != nil {
			if err := arbitrates.FollowPolicies(ctx); err != nil {
				return err
			}
		}
		if !o.moves() {
			return nil
		}
		return o.addMoves(ctx, m)
	}))
}

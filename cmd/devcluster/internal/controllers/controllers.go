// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1beta1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	kubecontroller "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/podgc"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/scheduling/podgroupprotection"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/quota/v1/install"
	"k8s.io/kubernetes/pkg/serviceaccount"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// controller is one of kube-controller-manager's.
type controller struct {
	name string
	// agent is the user agent of its requests.
	agent string
	// gates are the feature gates without which it does not run.
	gates []featuregate.Feature
	build func(context.Context, share) (loops, error)
}

// share is what a controller gets: what all have, and a client of its own.
type share struct {
	*manager
	own    *rest.Config
	client kubernetes.Interface
}

// controllers are those that make, count and remove pods, those that watch nodes, and those that volumes and resource claims of pending pods wait for.
// Services, load balancers and certificates have nothing behind them here, so nothing plays them. Autoscalers of pods need metrics, which somebody
// has to play: the first that asks for them in the API finds the controller there.
//
// Each is made as cmd/kube-controller-manager/app makes it. The collector of garbage and the remover of namespaces have no higher limits than the
// others, as they have there: those of the configuration are more than this machine answers.
var controllers = []controller{
	{name: names.DeploymentController, agent: "deployment-controller", build: func(ctx context.Context, s share) (loops, error) {
		c, err := deployment.NewDeploymentController(ctx, s.Apps().V1().Deployments(), s.Apps().V1().ReplicaSets(), s.Core().V1().Pods(), s.client)
		return workers(c, s.config.DeploymentController.ConcurrentDeploymentSyncs), err
	}},
	{name: names.ReplicaSetController, agent: "replicaset-controller", build: func(ctx context.Context, s share) (loops, error) {
		c := replicaset.NewReplicaSetController(ctx, s.Apps().V1().ReplicaSets(), s.Core().V1().Pods(), s.client, replicaset.BurstReplicas)
		return workers(c, s.config.ReplicaSetController.ConcurrentRSSyncs), nil
	}},
	{name: names.ReplicationControllerController, agent: "replication-controller", build: func(ctx context.Context, s share) (loops, error) {
		c := replication.NewReplicationManager(ctx, s.Core().V1().Pods(), s.Core().V1().ReplicationControllers(), s.client, replication.BurstReplicas)
		return workers(c, s.config.ReplicationController.ConcurrentRCSyncs), nil
	}},
	{name: names.StatefulSetController, agent: "statefulset-controller", build: func(ctx context.Context, s share) (loops, error) {
		c := statefulset.NewStatefulSetController(ctx, s.Core().V1().Pods(), s.Apps().V1().StatefulSets(), s.Core().V1().PersistentVolumeClaims(),
			s.Apps().V1().ControllerRevisions(), s.client)
		return workers(c, s.config.StatefulSetController.ConcurrentStatefulSetSyncs), nil
	}},
	{name: names.DaemonSetController, agent: "daemon-set-controller", build: func(ctx context.Context, s share) (loops, error) {
		c, err := daemon.NewDaemonSetsController(ctx, s.Apps().V1().DaemonSets(), s.Apps().V1().ControllerRevisions(), s.Core().V1().Pods(),
			s.Core().V1().Nodes(), s.client, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
		return workers(c, s.config.DaemonSetController.ConcurrentDaemonSetSyncs), err
	}},
	{name: names.JobController, agent: "job-controller", build: func(ctx context.Context, s share) (loops, error) {
		var workloads schedulinginformers.WorkloadInformer
		var groups schedulinginformers.PodGroupInformer
		if feature.DefaultFeatureGate.Enabled(features.WorkloadWithJob) {
			workloads, groups = s.Scheduling().V1beta1().Workloads(), s.Scheduling().V1beta1().PodGroups()
		}
		c, err := job.NewController(ctx, s.client, s.Core().V1().Pods(), s.Batch().V1().Jobs(), workloads, groups)
		return workers(c, s.config.JobController.ConcurrentJobSyncs), err
	}},
	{name: names.CronJobController, agent: "cronjob-controller", build: func(ctx context.Context, s share) (loops, error) {
		c, err := cronjob.NewControllerV2(ctx, s.Batch().V1().Jobs(), s.Batch().V1().CronJobs(), s.client)
		return workers(c, s.config.CronJobController.ConcurrentCronJobSyncs), err
	}},
	{name: names.TTLAfterFinishedController, agent: "ttl-after-finished-controller", build: func(ctx context.Context, s share) (loops, error) {
		c := ttlafterfinished.New(ctx, s.Batch().V1().Jobs(), s.client)
		return workers(c, s.config.TTLAfterFinishedController.ConcurrentTTLSyncs), nil
	}},
	{name: names.DisruptionController, agent: "disruption-controller", build: func(ctx context.Context, s share) (loops, error) {
		scales, err := s.scales()
		if err != nil {
			return nil, err
		}
		c := disruption.NewDisruptionController(ctx, s.Core().V1().Pods(), s.Policy().V1().PodDisruptionBudgets(),
			s.Core().V1().ReplicationControllers(), s.Apps().V1().ReplicaSets(), s.Apps().V1().Deployments(), s.Apps().V1().StatefulSets(),
			s.client, s.mapper, scales, s.client.Discovery())
		return workers(c, s.config.DisruptionController.ConcurrentDisruptionSyncs), nil
	}},
	{name: names.HorizontalPodAutoscalerController, agent: "horizontal-pod-autoscaler", build: autoscaler},
	{name: names.ResourceQuotaController, agent: "resourcequota-controller", build: quotas},
	{name: names.GarbageCollectorController, agent: "generic-garbage-collector", build: func(ctx context.Context, s share) (loops, error) {
		graph := garbagecollector.NewDependencyGraphBuilder(ctx, s.metadata, s.mapper, garbagecollector.DefaultIgnoredResources(), s.anyKind, s.started)
		client, err := metadata.NewForConfig(s.own)
		if err != nil {
			return nil, err
		}
		c, err := garbagecollector.NewComposedGarbageCollector(ctx, s.client, client, s.mapper, graph)
		return loops{
			func(ctx context.Context) {
				c.Run(ctx, int(s.config.GarbageCollectorController.ConcurrentGCSyncs), kindsPeriod)
			},
			func(ctx context.Context) { c.Sync(ctx, s.client.Discovery(), kindsPeriod) },
		}, err
	}},
	{name: names.NamespaceController, agent: "namespace-controller", build: func(ctx context.Context, s share) (loops, error) {
		client, err := metadata.NewForConfig(s.own)
		if err != nil {
			return nil, err
		}
		c := namespace.NewNamespaceController(ctx, s.client, client, s.client.Discovery().ServerPreferredNamespacedResources, s.Core().V1().Namespaces(),
			s.config.NamespaceController.NamespaceSyncPeriod.Duration, corev1.FinalizerKubernetes)
		return workers(c, s.config.NamespaceController.ConcurrentNamespaceSyncs), nil
	}},
	{name: names.PodGarbageCollectorController, agent: "pod-garbage-collector", build: func(ctx context.Context, s share) (loops, error) {
		c := podgc.NewPodGC(ctx, s.client, s.Core().V1().Pods(), s.Core().V1().Nodes(), int(s.config.PodGCController.TerminatedPodGCThreshold))
		return loops{c.Run}, nil
	}},
	{name: names.NodeLifecycleController, agent: "node-controller", build: func(ctx context.Context, s share) (loops, error) {
		given := s.config.NodeLifecycleController
		c, err := nodelifecycle.NewNodeLifecycleController(ctx, s.Coordination().V1().Leases(), s.Core().V1().Pods(), s.Core().V1().Nodes(),
			s.Apps().V1().DaemonSets(), s.client, given.NodeMonitorPeriod.Duration, given.NodeStartupGracePeriod.Duration,
			given.NodeMonitorGracePeriod.Duration, given.NodeEvictionRate, given.SecondaryNodeEvictionRate, given.LargeClusterSizeThreshold,
			given.UnhealthyZoneThreshold)
		return loops{c.Run}, err
	}},
	{
		name: names.TaintEvictionController, agent: "node-controller", gates: []featuregate.Feature{features.SeparateTaintEvictionController},
		build: func(ctx context.Context, s share) (loops, error) {
			c, err := tainteviction.New(ctx, s.client, s.Core().V1().Pods(), s.Core().V1().Nodes(), names.TaintEvictionController)
			return loops{c.Run}, err
		},
	},
	{name: names.ServiceAccountController, agent: "service-account-controller", build: func(ctx context.Context, s share) (loops, error) {
		c, err := serviceaccountcontroller.NewServiceAccountsController(klog.FromContext(ctx), s.Core().V1().ServiceAccounts(), s.Core().V1().Namespaces(),
			s.client, serviceaccountcontroller.DefaultServiceAccountsControllerOptions())
		return workers(c, 1), err
	}},
	{name: names.ServiceAccountTokenController, agent: "tokens-controller", build: tokens},
	{name: names.RootCACertificatePublisherController, agent: "root-ca-cert-publisher", build: func(_ context.Context, s share) (loops, error) {
		rootCA, err := os.ReadFile(s.config.SAController.RootCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the root certificate: %w", err)
		}
		c, err := rootcacertpublisher.NewPublisher(s.Core().V1().ConfigMaps(), s.Core().V1().Namespaces(), s.client, rootCA)
		return workers(c, 1), err
	}},
	{name: names.ClusterRoleAggregationController, agent: "clusterrole-aggregation-controller", build: func(_ context.Context, s share) (loops, error) {
		return workers(clusterroleaggregation.NewClusterRoleAggregation(s.Rbac().V1().ClusterRoles(), s.client.RbacV1()), 5), nil
	}},
	{name: names.PersistentVolumeBinderController, agent: "persistent-volume-binder", build: func(ctx context.Context, s share) (loops, error) {
		given := s.config.PersistentVolumeBinderController
		c, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
			KubeClient: s.client, SyncPeriod: given.PVClaimBinderSyncPeriod.Duration,
			VolumeInformer: s.Core().V1().PersistentVolumes(), ClaimInformer: s.Core().V1().PersistentVolumeClaims(),
			ClassInformer: s.Storage().V1().StorageClasses(), PodInformer: s.Core().V1().Pods(), NodeInformer: s.Core().V1().Nodes(),
			EnableDynamicProvisioning: given.VolumeConfiguration.EnableDynamicProvisioning,
			// There are no plugins, which would empty and remove the volumes of host paths and NFS: nothing is behind a volume here, and a path
			// would be one of this machine. Volumes of CSI drivers are removed by whoever plays the driver, and local ones by who has made them.
		})
		return loops{c.Run}, err
	}},
	{name: names.PersistentVolumeClaimProtectionController, agent: "pvc-protection-controller", build: func(ctx context.Context, s share) (loops, error) {
		c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), s.Core().V1().PersistentVolumeClaims(), s.Core().V1().Pods(), s.client)
		return workers(c, 1), err
	}},
	{name: names.PersistentVolumeProtectionController, agent: "pv-protection-controller", build: func(ctx context.Context, s share) (loops, error) {
		c, err := pvprotection.NewPVProtectionController(klog.FromContext(ctx), s.Core().V1().PersistentVolumes(), s.client)
		return workers(c, 1), err
	}},
	{name: names.EphemeralVolumeController, agent: "ephemeral-volume-controller", build: func(ctx context.Context, s share) (loops, error) {
		c, err := ephemeral.NewController(ctx, s.client, s.Core().V1().Pods(), s.Core().V1().PersistentVolumeClaims())
		return workers(c, s.config.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs), err
	}},
	{
		name: names.ResourceClaimController, agent: "resource-claim-controller", gates: []featuregate.Feature{features.DynamicResourceAllocation},
		build: func(ctx context.Context, s share) (loops, error) {
			c, err := resourceclaim.NewController(klog.FromContext(ctx), s.client, s.Core().V1().Pods(), s.Scheduling().V1beta1().PodGroups(),
				s.Resource().V1().ResourceClaims(), s.Resource().V1().ResourceClaimTemplates())
			return workers(c, s.config.ResourceClaimController.ConcurrentSyncs), err
		},
	},
	{ // without it a PodGroup is never gone
		name: names.PodGroupProtectionController, agent: names.PodGroupProtectionController, gates: []featuregate.Feature{features.GenericWorkload},
		build: func(ctx context.Context, s share) (loops, error) {
			c, err := podgroupprotection.NewPodGroupProtectionController(klog.FromContext(ctx), s.Scheduling().V1beta1().PodGroups(),
				s.Core().V1().Pods(), s.client)
			return workers(c, 1), err
		},
	},
}

// workers runs a controller with so many at work at once.
func workers(c interface{ Run(context.Context, int) }, n int32) loops {
	return loops{func(ctx context.Context) { c.Run(ctx, int(n)) }}
}

// scales returns a client of the scales of whatever can be scaled.
func (s share) scales() (scale.ScalesGetter, error) {
	return scale.NewForConfig(s.own, s.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(s.client.Discovery()))
}

func autoscaler(ctx context.Context, s share) (loops, error) {
	scales, err := s.scales()
	if err != nil {
		return nil, err
	}
	usage, err := metricsclient.NewForConfig(s.own)
	if err != nil {
		return nil, err
	}
	external, err := external_metrics.NewForConfig(s.own)
	if err != nil {
		return nil, err
	}
	versions := custom_metrics.NewAvailableAPIsGetter(s.client.Discovery())
	given := s.config.HPAController
	c := podautoscaler.NewHorizontalController(ctx, s.client.CoreV1(), scales, s.client.AutoscalingV2(), s.mapper,
		metrics.NewRESTMetricsClient(usage, custom_metrics.NewForConfig(s.own, s.mapper, versions), external),
		s.Autoscaling().V2().HorizontalPodAutoscalers(), s.Core().V1().Pods(), given.HorizontalPodAutoscalerSyncPeriod.Duration,
		given.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration, given.HorizontalPodAutoscalerTolerance,
		given.HorizontalPodAutoscalerCPUInitializationPeriod.Duration, given.HorizontalPodAutoscalerInitialReadinessDelay.Duration)
	return append(workers(c, given.ConcurrentHorizontalPodAutoscalerSyncs), func(ctx context.Context) {
		custom_metrics.PeriodicallyInvalidate(versions, given.HorizontalPodAutoscalerSyncPeriod.Duration, ctx.Done())
	}), nil
}

func quotas(ctx context.Context, s share) (loops, error) {
	kinds, err := install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(s.ForResource), s.manager)
	if err != nil {
		return nil, err
	}
	discovered := s.client.Discovery().ServerPreferredNamespacedResources
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient: s.client.CoreV1(), ResourceQuotaInformer: s.Core().V1().ResourceQuotas(),
		ResyncPeriod:    kubecontroller.StaticResyncPeriodFunc(s.config.ResourceQuotaController.ResourceQuotaSyncPeriod.Duration),
		InformerFactory: s.anyKind, ReplenishmentResyncPeriod: kubecontroller.StaticResyncPeriodFunc(s.config.Generic.MinResyncPeriod.Duration),
		DiscoveryFunc: discovered, IgnoredResourcesFunc: kinds.IgnoredResources, InformersStarted: s.started,
		Registry: generic.NewRegistry(kinds.Evaluators()), UpdateFilter: install.DefaultUpdateFilter(),
	})
	return append(workers(c, s.config.ResourceQuotaController.ConcurrentResourceQuotaSyncs), func(ctx context.Context) {
		c.Sync(ctx, discovered, kindsPeriod)
	}), err
}

// tokens makes the controller of the tokens that secrets have.
func tokens(ctx context.Context, s share) (loops, error) {
	key, err := keyutil.PrivateKeyFromFile(s.config.SAController.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the key of service accounts: %w", err)
	}
	rootCA, err := os.ReadFile(s.config.SAController.RootCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the root certificate: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	c, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), s.Core().V1().ServiceAccounts(), s.Core().V1().Secrets(), s.client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA})
	return workers(c, s.config.SAController.ConcurrentSATokenSyncs), err
}

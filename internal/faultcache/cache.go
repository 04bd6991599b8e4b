// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// Options are what a cache goes by.
type Options struct {
	// SchedulerName is the scheduler whose pods count.
	SchedulerName string
	// Rule holds for pods whose policy says nothing.
	Rule failure.Rule
	// HalfOpen lets one unproven pod at a time onto a node that has only failed.
	HalfOpen bool
	// OwnErrors marks no node for errors that show on most nodes, nor for those of a
	// revision that was tried on one node only.
	OwnErrors bool
	// ProvenAfter is how long a pod is Ready when it proves its node.
	ProvenAfter time.Duration
	// RecordNamespace is where the record is kept; "" for none.
	RecordNamespace string
	// Suspects is how many workloads a node is faulty for when it is suspect.
	Suspects int
}

// Sources are what a cache learns from and speaks through.
type Sources struct {
	// Client is the API server's; without one there are no events, no pods that have
	// ended and no record, as in a simulation.
	Client kubernetes.Interface
	// Informers are the scheduler's.
	Informers informers.SharedInformerFactory
	// Policy tells the policy that governs a pod, nil for none.
	Policy func(*corev1.Pod) *clusterview.Policy
	// Policies waits, not for ever, until Policy knows; it may be nil.
	Policies func(context.Context)
	// Recorder takes the Events for people; it may be nil.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.Clock
}

// Cache remembers how revisions have done on nodes. It is safe for concurrent use.
type Cache struct {
	// logger is for what the informers call, which have no context to bring one.
	logger  klog.Logger
	options Options
	Sources
	identifier *clusterview.Identifier
	// maxFailures and maxEntries are the constants, but for tests.
	maxFailures, maxEntries int
	pods                    cache.SharedIndexInformer
	ended                   cache.SharedIndexInformer // nil without a client
	nodes                   corelisters.NodeLister
	configMap               *record.ConfigMap // nil without a record
	forgivenAt              forgivenNodes

	// active says that this scheduler places pods: it writes and announces.
	active atomic.Bool
	// unreadable and unwritable say that the log has it already.
	unreadable, unwritable atomic.Bool
	// ready is closed when all that there was at the start has been read, or cannot be.
	ready chan struct{}
	// woken and unwritten hold a token when something is to be looked at, or written.
	woken, unwritten chan struct{}
	// urgent holds a token when what is unwritten has in it a new mark.
	urgent chan struct{}

	// known are the revisions in the ledger, by failure.Revision. It is written under the lock
	// and read without: a pod is signed under the lock of the scheduling queue, which must
	// not wait for our lock.
	known sync.Map

	mu sync.Mutex // guards what follows
	// begun says that pods are observed. Before the nodes, their annotations and the policies
	// are known, observations would be lost or wrong.
	begun bool
	// ledger has the failures.
	ledger *failure.Ledger
	// tracked are the revisions in the ledger.
	tracked map[failure.Revision]*tracked
	// podStates are the pods in the ledger.
	podStates map[types.UID]*podState
	// assumed are the pods for which a node was chosen and that are not yet seen to
	// have one, of all revisions.
	assumed map[types.UID]*podState
	// pending are the warnings of pods whose ReplicaSet is not seen yet.
	pending map[types.UID]*pendingWarnings
	// marks and suspects are what Events announce.
	marks    map[markKey]*mark
	suspects map[string]*suspect
	// swept is when absence was last looked for.
	swept time.Time
	// recordRead says that the record of the last scheduler is known; only then may
	// it be replaced.
	recordRead bool
}

// tracked is what a revision in the ledger is beyond it.
type tracked struct {
	// family has all its pods.
	family string
	// regarding is the object that Events about it are for.
	regarding corev1.ObjectReference
	governed
	// own are the kinds of failures that were last seen to be its own.
	own map[string]bool
	// absent is since when it has no pods, zero if it has.
	absent time.Time
	// orphaned says that the ReplicaSet of its pods is gone: there will be no more.
	orphaned bool
	// failed is when it last failed.
	failed time.Time
}

// podState is a pod in the ledger, or one that would be if its revision were.
type podState struct {
	of             failure.Revision
	key, node, uid string
	// reported is since when the pod does well by its node's clock, and since by ours.
	reported, since time.Time
	// proof is when it proves its node if nothing happens, zero if that is not in sight.
	proof time.Time
	// leaving is until when a pod that has vanished may still turn out to have ended.
	leaving time.Time
}

// New returns a cache, which learns nothing before Run. It logs to the context's logger.
func New(ctx context.Context, o Options, from Sources) (*Cache, error) {
	begin(o.SchedulerName)
	c := &Cache{
		logger: klog.FromContext(ctx), options: o, Sources: from, maxFailures: maxFailures, maxEntries: maxEntries,
		ready: make(chan struct{}), woken: make(chan struct{}, 1), unwritten: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		tracked: make(map[failure.Revision]*tracked), podStates: make(map[types.UID]*podState), assumed: make(map[types.UID]*podState),
		pending: make(map[types.UID]*pendingWarnings),
		marks:   make(map[markKey]*mark), suspects: make(map[string]*suspect),
		forgivenAt: forgivenNodes{byNode: make(map[string]forgiveness)},
	}
	c.ledger = failure.New(failure.Options{Rule: o.Rule, OwnErrors: o.OwnErrors, Class: podoutcome.KindClass, Known: c.know})
	var err error
	if c.identifier, err = clusterview.WatchingIdentifier(from.Informers.Apps().V1().ReplicaSets()); err != nil {
		return nil, err
	}
	c.pods = from.Informers.Core().V1().Pods().Informer()
	c.nodes = from.Informers.Core().V1().Nodes().Lister()
	if err := index(c.pods, o.SchedulerName); err != nil {
		return nil, err
	}
	if from.Client != nil {
		if c.ended, err = newEndedPods(from.Client, o.SchedulerName); err != nil {
			return nil, fmt.Errorf("an informer of pods that have ended: %w", err)
		}
		if o.RecordNamespace != "" {
			c.configMap = record.NewConfigMap(from.Client, o.RecordNamespace, o.SchedulerName)
		}
	}
	if err := c.handle(); err != nil {
		return nil, err
	}
	return c, nil
}

// Run learns until the context ends, and returns when all it has started has ended.
func (c *Cache) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	if c.ended != nil {
		all.Go(func() { c.ended.RunWithContext(ctx) })
	}
	all.Go(func() { c.begin(ctx) })
	all.Go(func() { c.keepTime(ctx) })
	all.Go(func() { c.keepRecord(ctx) })
}

// begin reads what there is at the start, and then follows the warnings of kubelets:
// the pods after the nodes, which say what is forgiven, the record after the pods, of
// which its revisions want to know, and the warnings after the pods that they are of.
func (c *Cache) begin(ctx context.Context) {
	synced := []cache.InformerSynced{
		c.pods.HasSynced, c.Informers.Core().V1().Nodes().Informer().HasSynced, c.Informers.Apps().V1().ReplicaSets().Informer().HasSynced,
	}
	if c.ended != nil {
		synced = append(synced, c.ended.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return
	}
	if c.Policies != nil {
		// Under a shorter window than its own a failure is dropped, and not observed again.
		c.Policies(ctx)
	}
	c.observeAll()
	c.readRecord(ctx)
	ready := sync.OnceFunc(func() { close(c.ready) })
	if c.Client == nil {
		ready()
		return
	}
	w := &warnings{client: c.Client, profile: c.options.SchedulerName, clock: c.Clock, seen: c.onWarning, listed: ready}
	w.watch(ctx)
}

// lock takes the lock and brings the ledger to the present.
func (c *Cache) lock() time.Time {
	c.mu.Lock()
	now := c.Clock.Now()
	c.ledger.Advance(now)
	return now
}

// know notes that a revision is in the ledger, or is not any more. The caller holds the lock.
func (c *Cache) know(of failure.Revision, known bool) {
	if known {
		c.known.Store(of, nil)
	} else {
		c.known.Delete(of)
	}
}

// wake has what has changed looked at.
func (c *Cache) wake() { token(c.woken) }

func token(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

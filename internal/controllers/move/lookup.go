// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/notices"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// refusedFor is how long a pod that may not be moved is left alone. To find out why takes requests, and controllers look every two seconds at what
// may be all pods of a cluster. What refuses a pod lasts for longer than that, and somebody who ends it has half a minute.
const refusedFor = 30 * time.Second

// maxNames is how much of the names of disruption budgets a message has. An Event and the status of a Move may have a kilobyte in all.
const maxNames = 300

// Lookup reads from the API server which pods may be moved, for a controller that looks at the same pods again and again. In one look it reads each
// ReplicaSet and the disruption budgets of each namespace once, and nothing of pods that were refused a moment ago. The zero Lookup has refused
// none. It is not safe for concurrent use.
type Lookup struct {
	api client.Reader
	// events say of pods that they can never be evicted, nil for who says it otherwise.
	events events.EventRecorder
	now    time.Time
	// owners and pods are by the controller, budgets by the namespace, and claims by their names: those that were read since the look began.
	owners  map[types.UID]owners
	pods    map[types.UID]pods
	budgets map[string]budgets
	claims  map[types.NamespacedName]claim
	// refused is when pods were.
	refused map[types.UID]time.Time
	// said is what Events have said of pods within the last hour.
	said map[types.UID]withheld
}

// withheld is why a pod is not moved, and when an Event said so.
type withheld struct {
	why string
	at  time.Time
}

type owners struct {
	Owner
	ok  bool
	err error
}

type pods struct {
	all []corev1.Pod
	err error
}

// claim says whether a PersistentVolumeClaim is there, and whether pods of one node alone can have it.
type claim struct {
	ok, oneNode bool
	err         error
}

type budgets struct {
	all []budget
	err error
}

type budget struct {
	name     string
	selector labels.Selector
	// blocks says that no pod that is ready may be evicted now, and blocksUnready that no other one may either.
	blocks, blocksUnready bool
	// unsynced says that Kubernetes cannot tell how many pods it allows to go.
	unsynced bool
	// wanted is how many pods are to be ready, of so many in all.
	wanted, all int32
}

// budgetFrom is what the API server goes by. Of a budget that allows none it evicts a pod that is not ready if the budget says so, or if as many others are
// ready as it wants.
func budgetFrom(b *policyv1.PodDisruptionBudget, selector labels.Selector) budget {
	blocks, is := b.Status.DisruptionsAllowed < 1, &b.Status
	always := ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow
	c := meta.FindStatusCondition(is.Conditions, policyv1.DisruptionAllowedCondition)
	return budget{
		name: b.Name, selector: selector, blocks: blocks, blocksUnready: blocks && !always && (is.DesiredHealthy < 1 || is.CurrentHealthy < is.DesiredHealthy),
		unsynced: c != nil && c.Reason == policyv1.SyncFailedReason, wanted: is.DesiredHealthy, all: is.ExpectedPods,
	}
}

// never says why a budget that keeps a pod does not let it go even if another one is ready in its place, "" if it does. How many are ready now does not
// matter: others may be soon. What Kubernetes cannot tell, and why, is in the condition alone, as its words may change from look to look.
func (b *budget) never() string {
	switch {
	case b.unsynced:
		return fmt.Sprintf("Kubernetes cannot tell how many pods the disruption budget %s allows to go, see its condition %s", b.name, policyv1.DisruptionAllowedCondition)
	case b.wanted > b.all:
		return fmt.Sprintf("the disruption budget %s wants more ready pods than there are in all", b.name)
	}
	return ""
}

// Evictable is what becomes of a request to evict a pod.
type Evictable struct {
	// Never says why the API server would refuse it even if another pod were ready in its place, "" if it would not.
	Never string
	// Blocked says that a disruption budget keeps the pod now.
	Blocked bool
}

// evictableBy is what disruption budgets of its namespace say of a pod. None keeps one that has not started. The API server evicts no pod that several
// select, however many are ready.
func evictableBy(budgets []budget, pod *corev1.Pod) (is Evictable) {
	ready, selecting := readyFor(pod, 0, time.Time{}), []string{}
	if !ready && pod.Status.Phase == corev1.PodPending {
		return is
	}
	for i := range budgets {
		b := &budgets[i]
		if !b.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		selecting = append(selecting, b.name)
		if b.blocks && ready || b.blocksUnready {
			is.Blocked, is.Never = true, cmp.Or(is.Never, b.never())
		}
	}
	if len(selecting) > 1 {
		names := syntax.CutTo(strings.Join(selecting, ", "), maxNames)
		is.Never = "several disruption budgets select the pod, and Kubernetes evicts no such pod: " + names
	}
	return is
}

// Begin begins a look. What the last one has read may have changed. Events say of pods that they can never be evicted; they are nil for a controller that
// says it otherwise.
func (l *Lookup) Begin(api client.Reader, events events.EventRecorder, now time.Time) {
	l.events = events
	l.api, l.now, l.owners, l.budgets, l.claims = api, now, make(map[types.UID]owners), make(map[string]budgets), make(map[types.NamespacedName]claim)
	l.pods = make(map[types.UID]pods)
	if l.refused == nil {
		l.refused, l.said = make(map[types.UID]time.Time), make(map[types.UID]withheld)
	}
	maps.DeleteFunc(l.said, func(_ types.UID, is withheld) bool { return now.Sub(is.at).Abs() >= time.Hour })
	maps.DeleteFunc(l.refused, func(_ types.UID, at time.Time) bool { return now.Sub(at).Abs() >= refusedFor }) // also where a clock has jumped back
}

// Refuse notes that a pod may not be moved.
func (l *Lookup) Refuse(pod *corev1.Pod) { l.refused[pod.UID] = l.now }

// RefuseUntil notes that a pod may not be moved before a time. It does not rest if that would be for longer.
func (l *Lookup) RefuseUntil(pod *corev1.Pod, at time.Time) {
	if at.Sub(l.now) >= refusedFor {
		l.Refuse(pod)
	}
}

// Rests reports that a pod was refused a moment ago.
func (l *Lookup) Rests(pod *corev1.Pod) bool {
	_, rests := l.refused[pod.UID]
	return rests
}

// Owners are those of a pod, as the function Owners reads them. It refuses a pod that has none, and one that no other one can be ready beside, and is
// false for it.
func (l *Lookup) Owners(ctx context.Context, pod *corev1.Pod) (set *appsv1.ReplicaSet, deployment *appsv1.Deployment, ok bool, err error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		l.Refuse(pod)
		return nil, nil, false, nil
	}
	o, ok, err := l.Owner(ctx, pod)
	if ok && o.EvictFirst {
		l.Refuse(pod)
	}
	return o.Set, o.Deployment, ok && !o.EvictFirst, err
}

// Owner is what a pod is of, and whether the pod must be evicted first: it is of a StatefulSet, of a ReplicaSet alone, or of a Deployment that allows no
// surge, or has a volume that pods of one node alone can have. It refuses a pod of anything else, and one that shares such a volume with others of its
// workload, and is false for it.
func (l *Lookup) Owner(ctx context.Context, pod *corev1.Pod) (Owner, bool, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		l.Refuse(pod)
		return Owner{}, false, nil
	}
	o, known := l.owners[owner.UID]
	if !known {
		o.Owner, o.ok, o.err = ownerOf(ctx, l.api, pod)
		o.ok = o.ok && o.err == nil
		l.owners[owner.UID] = o
	}
	if o.ok {
		var oneNode bool
		oneNode, o.ok, o.err = l.onOneNode(ctx, pod)
		// The others that have it keep it on their node. Another pod would never start elsewhere, and none of them would be ready enough to go.
		o.ok = o.ok && (!oneNode || o.replicas() < 2)
		o.EvictFirst = o.EvictFirst || oneNode
	}
	if !o.ok && o.err == nil {
		l.Refuse(pod)
	}
	return o.Owner, o.ok, o.err
}

// onOneNode reports that a pod has a volume that pods of one node alone can have, and that others of its workload may have too. Ephemeral volumes are the
// pod's own: another one gets others. So are those that a StatefulSet makes for it, called after it. It is not ok if a claim is gone: no other pod would start.
func (l *Lookup) onOneNode(ctx context.Context, pod *corev1.Pod) (is, ok bool, err error) {
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil || strings.HasSuffix(source.ClaimName, "-"+pod.Name) {
			continue
		}
		name := types.NamespacedName{Namespace: pod.Namespace, Name: source.ClaimName}
		c, known := l.claims[name]
		if !known {
			c = readClaim(ctx, l.api, name)
			l.claims[name] = c
		}
		if !c.ok || c.err != nil {
			return false, false, c.err
		}
		is = is || c.oneNode
	}
	return is, true, nil
}

func readClaim(ctx context.Context, api client.Reader, name types.NamespacedName) claim {
	var c corev1.PersistentVolumeClaim
	if err := api.Get(ctx, name, &c); apierrors.IsNotFound(err) {
		return claim{}
	} else if err != nil {
		return claim{err: fmt.Errorf("reading PersistentVolumeClaim %s: %w", name, err)}
	}
	many := func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	}
	return claim{ok: true, oneNode: !slices.ContainsFunc(c.Spec.AccessModes, many)}
}

// Evictable is what becomes of a request to evict a pod. A pod that can never be evicted is refused, and an Event of the pod says why.
func (l *Lookup) Evictable(ctx context.Context, pod *corev1.Pod) (Evictable, error) {
	in, known := l.budgets[pod.Namespace]
	if !known {
		in.all, in.err = budgetsIn(ctx, l.api, pod.Namespace)
		l.budgets[pod.Namespace] = in
	}
	if in.err != nil {
		return Evictable{}, in.err
	}
	is := evictableBy(in.all, pod)
	if is.Never != "" {
		l.Refuse(pod)
		l.say(pod, is.Never)
	}
	return is, nil
}

// say says in an Event of a pod why it is not moved: once, each hour, and another reason when it can be written.
func (l *Lookup) say(pod *corev1.Pod, why string) {
	last, is := l.said[pod.UID]
	if l.events == nil || is && (last.why == why || l.now.Sub(last.at).Abs() < notices.Apart) {
		return
	}
	l.said[pod.UID] = withheld{why, l.now}
	l.events.Eventf(pod, nil, corev1.EventTypeWarning, "MoveWithheld", "Move", "The pod is not moved: %s.", why)
}

// budgetsIn reads the disruption budgets of a namespace, but for those that select nothing.
func budgetsIn(ctx context.Context, api client.Reader, namespace string) (all []budget, err error) {
	var list policyv1.PodDisruptionBudgetList
	if err := api.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing disruption budgets: %w", err)
	}
	for i := range list.Items {
		b := &list.Items[i]
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil {
			all = append(all, budgetFrom(b, selector))
		}
	}
	return all, nil
}

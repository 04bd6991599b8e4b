// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// The reasons of the events that the plugin writes.
const (
	// reasonIgnored says what of a pod's placement has no effect.
	reasonIgnored = "PlacementIgnored"
	// reasonForeignCost says that the pods of an owner get no deletion costs.
	reasonForeignCost = "DeletionCostForeign"
)

// maxLooked bounds the owners that are remembered. The pods of one that is forgotten are looked at again.
const maxLooked = 4096

// looked is whose pods were looked at for what has no effect, over which topology.
type looked struct {
	regarding, revision string
	topology            *tree.Topology
}

// notifyLocked says in an event on a pod's owner what of the pod's placement has no effect, once. One pod of a
// revision is looked at, and another when the nodes are other ones.
func (pl *SpreadTree) notifyLocked(pod *corev1.Pod, id clusterview.Identity, levels clusterview.Levels, t *tally) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		last := looked{string(owner.UID), id.Revision, t.Topology()}
		if t.looked == last {
			return // as most pods of a batch, without asking for what is above their ReplicaSet
		}
		t.looked = last
	}
	regarding := pl.identifier.Regarding(pod)
	at := looked{string(regarding.UID), id.Revision, t.Topology()}
	if _, seen := pl.looked.Get(at); seen {
		return
	}
	pl.looked.Add(at, nil)
	sentences := clusterview.Ignored(pod, levels)
	if levels.Source != clusterview.FromDefaults { // which nobody has asked for
		sentences = append(sentences, t.undecided...)
	}
	if len(sentences) > 0 {
		pl.notices.Give(&regarding, corev1.EventTypeWarning, reasonIgnored, strings.Join(sentences, " "))
	}
}

// notifyForeignLocked says in an event on a pod's owner, once, that its pods get no deletion cost.
func (pl *SpreadTree) notifyForeignLocked(pod *corev1.Pod) {
	pl.gauges.foreignCosts.Inc()
	regarding := pl.identifier.Regarding(pod)
	pl.notices.Give(&regarding, corev1.EventTypeNormal, reasonForeignCost,
		"Somebody else sets the annotation "+corev1.PodDeletionCost+" on pods of this owner. They are left alone, and to remove some may leave the others uneven.")
}

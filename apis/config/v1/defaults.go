// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every default is made anew at each call. A pointer to a package variable would
// let one changed object change the defaults of all that come after it.

// SetDefaults_PreferencesArgs fills in the levels of pods that ask for nothing: what kube-scheduler's own default
// constraints are about. An empty list is one: it says that there are none.
func SetDefaults_PreferencesArgs(in *PreferencesArgs) {
	if in.DefaultLevels == nil {
		in.DefaultLevels = []Level{{TopologyKey: corev1.LabelTopologyZone}, {TopologyKey: corev1.LabelHostname}}
	}
}

// SetDefaults_Level fills in what a level leaves open.
func SetDefaults_Level(in *Level) {
	if in.Strategy == "" {
		in.Strategy = StrategySpread
	}
	if in.NodesWithoutKey == "" {
		in.NodesWithoutKey = NodesWithoutKeyLastResort
	}
}

// SetDefaults_SpreadTreeArgs fills in which revisions count, that nodes are proposed, that what is left of a workload is even, and that
// decisions are written down.
func SetDefaults_SpreadTreeArgs(in *SpreadTreeArgs) {
	if in.CountRevisions == "" {
		in.CountRevisions = CountNewest
	}
	if in.NodeHint == "" {
		in.NodeHint = NodeHintEnabled
	}
	if in.ScaleDown == "" {
		in.ScaleDown = ScaleDownEven
	}
	if in.DecisionRecord == "" {
		in.DecisionRecord = DecisionRecordEnabled
	}
}

// SetDefaults_NodeLifetimeArgs fills in that nothing is a lease.
func SetDefaults_NodeLifetimeArgs(in *NodeLifetimeArgs) {
	if in.Leases == "" {
		in.Leases = LeasesDisabled
	}
}

// SetDefaults_RecordingBinderArgs fills in that a refused pod is bound to two more nodes, and that all pods get their event.
func SetDefaults_RecordingBinderArgs(in *RecordingBinderArgs) {
	if in.Candidates == nil {
		in.Candidates = new(int32(3))
	}
	if in.ScheduledEvents == "" {
		in.ScheduledEvents = ScheduledEventsAll
	}
}

// SetDefaults_FaultyNodeArgs fills in SwarmKit's rule, and what goes beyond it.
func SetDefaults_FaultyNodeArgs(in *FaultyNodeArgs) {
	if in.Threshold == nil {
		in.Threshold = new(int32(5))
	}
	if in.WindowSeconds == nil {
		in.WindowSeconds = new(int32(300))
	}
	if in.HalfOpen == nil {
		in.HalfOpen = new(true)
	}
	if in.ProvenAfterSeconds == nil {
		in.ProvenAfterSeconds = new(int32(10))
	}
	if in.OwnErrors == "" {
		in.OwnErrors = OwnErrorsForgive
	}
}

// SetDefaults_Record fills in that a record is kept, and where.
func SetDefaults_Record(in *Record) {
	if in.Enabled == nil {
		in.Enabled = new(true)
	}
	if in.Namespace == "" {
		in.Namespace = metav1.NamespaceSystem
	}
}

// SetDefaults_Suspects fills in when a node is suspect.
func SetDefaults_Suspects(in *Suspects) {
	if in.Workloads == nil {
		in.Workloads = new(int32(3))
	}
}

// SetDefaults_NodeSamplingArgs fills in a tenth of the nodes of every zone.
func SetDefaults_NodeSamplingArgs(in *NodeSamplingArgs) {
	if in.TopologyKey == "" {
		in.TopologyKey = corev1.LabelTopologyZone
	}
	if in.GroupsBasisPoints == nil {
		in.GroupsBasisPoints = new(int32(10000))
	}
	if in.NodesBasisPoints == nil {
		in.NodesBasisPoints = new(int32(1000))
	}
	if in.Strategy == "" {
		in.Strategy = SamplingRandom
	}
	if in.TimeoutMilliseconds == nil {
		in.TimeoutMilliseconds = new(int32(100))
	}
}

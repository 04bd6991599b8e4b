// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

var (
	noon  = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	later = metav1.NewTime(noon.Add(time.Hour))
)

// made is a policy over zones for the pods with tier=TIER, made some minutes after noon.
func made(name, tier string, minute int) placementv1alpha1.PlacementPolicy {
	p := placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Generation: 3, CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))},
		Spec:       placementv1alpha1.PlacementPolicySpec{Levels: []placementv1alpha1.Level{{TopologyKey: "zone"}}},
	}
	if tier != "" {
		p.Spec.PodSelector.MatchLabels = map[string]string{"tier": tier}
	}
	return p
}

func pods(n int, tier string, annotations ...string) []corev1.Pod {
	var list []corev1.Pod
	for range n {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"tier": tier}, Annotations: map[string]string{}}}
		for _, key := range annotations {
			pod.Annotations[key] = ""
		}
		list = append(list, pod)
	}
	return list
}

// placedBy are pods of the web that are bound.
func placedBy(n int, by string) []corev1.Pod {
	list := pods(n, "web", clusterview.PlacedByAnnotation)
	for i := range list {
		list[i].Annotations[clusterview.PlacedByAnnotation] = by
	}
	return list
}

// Beyond so many policies of a namespace the younger ones have no say, and are told so.
func TestTooManyPolicies(t *testing.T) {
	var policies []placementv1alpha1.PlacementPolicy
	for i := range clusterview.MaxPolicies + 2 {
		policies = append(policies, made(fmt.Sprintf("p%03d", i), fmt.Sprint("tier", i), i))
	}
	last := len(policies) - 1
	got := computed(policies, append(pods(1, "tier0"), pods(1, fmt.Sprint("tier", last))...), noon)
	if b := brief(got[0]); b != "1 1 Valid! NoConflict InForce!" {
		t.Errorf("the oldest: %q", b)
	}
	if b := brief(got[last]); b != "0 0 TooMany NoConflict NotAccepted" {
		t.Errorf("the youngest: %q", b)
	}
}

// A policy that says something that no pod says itself is in force, whatever that is.
func TestPoliciesWithoutLevels(t *testing.T) {
	for name, say := range map[string]func(*placementv1alpha1.PlacementPolicySpec){
		"faults":     func(s *placementv1alpha1.PlacementPolicySpec) { s.Faults = &placementv1alpha1.Faults{} },
		"scale-down": func(s *placementv1alpha1.PlacementPolicySpec) { s.ScaleDown = placementv1alpha1.ScaleDownAny },
		"disconnect": func(s *placementv1alpha1.PlacementPolicySpec) { s.Disconnect = &placementv1alpha1.Disconnect{} },
		"moves":      func(s *placementv1alpha1.PlacementPolicySpec) { s.Moves = &placementv1alpha1.Moves{} },
	} {
		p := made(name, "web", 1)
		p.Spec.Levels = nil
		say(&p.Spec)
		got := computed([]placementv1alpha1.PlacementPolicy{p}, append(pods(1, "web"), pods(1, "web", clusterview.PlacementAnnotation)...), noon)
		if b := brief(got[0]); b != "2 2 Valid! NoConflict InForce!" {
			t.Errorf("%s: %q", name, b)
		}
	}
}

// computed are the statuses of policies of one namespace among pods.
func computed(policies []placementv1alpha1.PlacementPolicy, pods []corev1.Pod, now metav1.Time) (statuses []placementv1alpha1.PlacementPolicyStatus) {
	for i, s := range compute(readAll(policies...), nil, pods) {
		statuses = append(statuses, s.status(policies[i].Status, now))
	}
	return statuses
}

func readAll(policies ...placementv1alpha1.PlacementPolicy) (read []*clusterview.Policy) {
	for i := range policies {
		read = append(read, clusterview.ReadPolicy(&policies[i]))
	}
	return read
}

// brief is a status in one line: selected, governed, and the conditions' reasons.
func brief(s placementv1alpha1.PlacementPolicyStatus) string {
	text := fmt.Sprintf("%d %d", *s.SelectedPods, *s.GovernedPods)
	for _, kind := range []string{placementv1alpha1.ConditionAccepted, placementv1alpha1.ConditionConflicted, placementv1alpha1.ConditionReady} {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil || c.ObservedGeneration != s.ObservedGeneration || c.Message == "" {
			return kind + " is missing or stale"
		}
		text += fmt.Sprintf(" %s", c.Reason)
		if c.Status == metav1.ConditionTrue {
			text += "!"
		}
	}
	return text
}

func TestCompute(t *testing.T) {
	bad := made("bad", "web", 0)
	bad.Spec.Levels[0].TopologyKey = "node.id"
	limited := made("limited", "web", 0)
	limited.Spec.DomainLimits = []placementv1alpha1.DomainLimit{{TopologyKey: "zone", MaxPods: 1}}
	overriding := made("a", "web", 0)
	overriding.Spec.Mode = placementv1alpha1.ModeOverride
	for name, tc := range map[string]struct {
		policies []placementv1alpha1.PlacementPolicy
		pods     []corev1.Pod
		want     []string
	}{
		"no policies": {nil, pods(3, "web"), nil},
		"no pods":     {[]placementv1alpha1.PlacementPolicy{made("a", "web", 0)}, nil, []string{"0 0 Valid! NoConflict InForce!"}},
		"its pods":    {[]placementv1alpha1.PlacementPolicy{made("a", "web", 0)}, append(pods(3, "web"), pods(2, "db")...), []string{"3 3 Valid! NoConflict InForce!"}},
		"the older wins": {
			[]placementv1alpha1.PlacementPolicy{made("a", "web", 1), made("b", "", 0)}, append(pods(3, "web"), pods(2, "db")...),
			[]string{"3 0 Valid! PolicyBefore! Overruled", "5 5 Valid! PolicyAfter! InForce!"},
		},
		"between two": {
			[]placementv1alpha1.PlacementPolicy{made("a", "web", 0), made("b", "", 1), made("c", "db", 2)}, append(pods(3, "web"), pods(2, "db")...),
			[]string{"3 3 Valid! PolicyAfter! InForce!", "5 2 Valid! PolicyBefore! InForce!", "2 0 Valid! PolicyBefore! Overruled"},
		},
		"no pod in common": {
			[]placementv1alpha1.PlacementPolicy{made("a", "web", 0), made("b", "db", 1)}, append(pods(3, "web"), pods(2, "db")...),
			[]string{"3 3 Valid! NoConflict InForce!", "2 2 Valid! NoConflict InForce!"},
		},
		"annotations": {
			[]placementv1alpha1.PlacementPolicy{made("a", "web", 0)}, append(pods(3, "web"), pods(2, "web", clusterview.PlacementAnnotation)...),
			[]string{"5 3 Valid! NoConflict InForce!"},
		},
		"an annotation for a part": {
			[]placementv1alpha1.PlacementPolicy{limited}, append(pods(1, "web", clusterview.DomainLimitsAnnotation), pods(1, "web", clusterview.DomainLimitsAnnotation, clusterview.PlacementAnnotation)...),
			[]string{"2 1 Valid! NoConflict InForce!"},
		},
		"an annotation for what it does not say": {
			[]placementv1alpha1.PlacementPolicy{made("a", "web", 0)}, pods(1, "web", clusterview.DomainLimitsAnnotation), []string{"1 1 Valid! NoConflict InForce!"},
		},
		"what the scheduler has written": {
			[]placementv1alpha1.PlacementPolicy{made("a", "web", 0), made("b", "web", 1)},
			slices.Concat(placedBy(1, "policy/a@3 spread=zone"), placedBy(2, "policy/b@1"), placedBy(4, "constraints spread=rack"), pods(8, "web")),
			[]string{"15 9 Valid! PolicyAfter! InForce!", "15 2 Valid! PolicyBefore! Overruled"},
		},
		"an annotation that is overridden": {
			[]placementv1alpha1.PlacementPolicy{overriding}, pods(2, "web", clusterview.PlacementAnnotation, clusterview.DomainLimitsAnnotation),
			[]string{"2 2 Valid! NoConflict InForce!"},
		},
		"an annotation for everything": {
			[]placementv1alpha1.PlacementPolicy{made("a", "web", 0)}, pods(2, "web", clusterview.PlacementAnnotation), []string{"2 0 Valid! NoConflict Overruled"},
		},
		"one that cannot be read": {[]placementv1alpha1.PlacementPolicy{bad}, pods(1, "web"), []string{"1 1 Invalid NoConflict NotAccepted"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := computed(tc.policies, tc.pods, noon)
			if len(got) != len(tc.want) {
				t.Fatalf("got %d statuses, want %d", len(got), len(tc.want))
			}
			for i := range got {
				if b := brief(got[i]); b != tc.want[i] {
					t.Errorf("%s: got %q, want %q", tc.policies[i].Name, b, tc.want[i])
				}
			}
		})
	}
}

func TestMessages(t *testing.T) {
	policies := []placementv1alpha1.PlacementPolicy{made("old", "web", 0), made("new", "", 1)}
	for i := range 5 {
		policies = append(policies, made(fmt.Sprintf("newer-%d", i), "db", 2+i))
	}
	bad := made("bad", "none", 9)
	bad.Spec.Levels[0].TopologyKey = "node.id"
	withFaults := made("faults", "none", 10)
	withFaults.Spec.Faults = &placementv1alpha1.Faults{}
	policies = append(policies, bad, withFaults)
	statuses := computed(policies, append(append(pods(2, "web"), pods(3, "db")...), pods(1, "x", clusterview.PlacementAnnotation)...), noon)
	message := func(i int, kind string) string { return meta.FindStatusCondition(statuses[i].Conditions, kind).Message }
	for _, tc := range []struct{ got, want string }{
		{message(0, placementv1alpha1.ConditionConflicted),
			`other policies select some of the same pods: after this one: "new" (2 pods); mode Override comes first, then the higher priority, then the older policy, then the name`},
		{message(1, placementv1alpha1.ConditionConflicted),
			`other policies select some of the same pods: before this one: "old" (2 pods); ` +
				`after this one: "newer-0" (3 pods), "newer-1" (3 pods), "newer-2" (3 pods), 2 more; mode Override comes first, then the higher priority, then the older policy, then the name`},
		{message(1, placementv1alpha1.ConditionReady),
			`in force for some of the selected pods: policies that come before this one govern some of the selected pods: "old" (2 pods); ` +
				`1 pod with annotations or constraints of their own, which come before a policy whose mode is Default`},
		{message(0, placementv1alpha1.ConditionAccepted), "the policy can be read"},
		{message(8, placementv1alpha1.ConditionAccepted), "the policy can be read"},
		{message(0, placementv1alpha1.ConditionReady), "nothing comes before this policy for any of the selected pods"},
	} {
		if tc.got != tc.want {
			t.Errorf("got  %s\nwant %s", tc.got, tc.want)
		}
	}
	for _, part := range []string{`"node.id"`, "use the key of a node label", "stay Pending"} {
		if m := message(7, placementv1alpha1.ConditionAccepted); !strings.Contains(m, part) {
			t.Errorf("the message does not say %q: %s", part, m)
		}
	}
}

// A status that says the same must be the same, or it would be patched for ever.
func TestComputeIsStable(t *testing.T) {
	policies := []placementv1alpha1.PlacementPolicy{made("a", "web", 0), made("b", "web", 1)}
	for i, s := range computed(policies, pods(2, "web"), noon) {
		policies[i].Status = s
	}
	for i, s := range computed(policies, pods(2, "web"), later) {
		if !equality.Semantic.DeepEqual(s, policies[i].Status) {
			t.Errorf("got %v after %v", s, policies[i].Status)
		}
	}
	s := computed(policies[1:], pods(2, "web"), later)[0]
	if c := meta.FindStatusCondition(s.Conditions, placementv1alpha1.ConditionConflicted); c.Status != metav1.ConditionFalse || !c.LastTransitionTime.Equal(&later) {
		t.Errorf("after the other policy is gone: %v", c)
	}
	if c := meta.FindStatusCondition(s.Conditions, placementv1alpha1.ConditionAccepted); !c.LastTransitionTime.Equal(&noon) {
		t.Errorf("a condition that did not change: %v", c)
	}
}

// Each pod that is selected is governed by exactly one policy, unless an annotation
// comes before all; and a conflict is known to both sides.
func TestStatusesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tiers := rapid.SampledFrom([]string{"", "web", "db"})
		var policies []placementv1alpha1.PlacementPolicy
		for i := range rapid.IntRange(1, 6).Draw(t, "policies") {
			policies = append(policies, made(fmt.Sprintf("p%d", i), tiers.Draw(t, "tier"), rapid.IntRange(0, 2).Draw(t, "minute")))
		}
		var all []corev1.Pod
		want := int32(0)
		for range rapid.IntRange(0, 10).Draw(t, "pods") {
			tier := rapid.SampledFrom([]string{"web", "db", "x"}).Draw(t, "pod")
			all = append(all, pods(1, tier)...)
			for _, p := range policies {
				if m := p.Spec.PodSelector.MatchLabels; len(m) == 0 || m["tier"] == tier {
					want++
					break
				}
			}
		}
		got, gives, takes := int32(0), 0, 0
		for i, s := range computed(policies, all, noon) {
			got += *s.GovernedPods
			c := meta.FindStatusCondition(s.Conditions, placementv1alpha1.ConditionConflicted)
			for j := range policies {
				if i == j || !strings.Contains(c.Message, `"`+policies[j].Name+`"`) {
					continue
				}
				gives++
			}
			takes += strings.Count(c.Message, " pods)") + strings.Count(c.Message, "1 pod)")
		}
		if got != want {
			t.Fatalf("%d pods are governed, want %d", got, want)
		}
		if gives != takes {
			t.Fatalf("conflicts name %d policies, and count the pods of %d", gives, takes)
		}
	})
}

// A message that the API server would refuse would keep the whole status from being written.
func TestRegression_MessagesAreBounded(t *testing.T) {
	got := condition("Accepted", metav1.ConditionFalse, "Invalid", strings.Repeat("ä", 40000)).Message
	if len(got) > maxMessage+len("…") || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä…") {
		t.Errorf("it has %d bytes and ends in %q", len(got), got[len(got)-10:])
	}
}

// What a policy says of pods that run is done by the controller, if its flags let it. The status says which one is missing.
func TestMissingFlags(t *testing.T) {
	type moves = placementv1alpha1.Moves
	all := moves{Drained: "All", Rebalance: "Enabled", Restart: "Enabled"}
	none := moves{Drained: "None", Rebalance: "Disabled", Restart: "Disabled"}
	for name, tc := range map[string]struct {
		moves  *moves
		change func(*placementv1alpha1.PlacementPolicySpec)
		flags  Flags
		want   []string // the flags that are missing
		ready  string   // with ! if it is
	}{
		"nothing of the kind":       {nil, func(s *placementv1alpha1.PlacementPolicySpec) { s.Faults = &placementv1alpha1.Faults{} }, Flags{}, nil, "InForce!"},
		"all, and no flag":          {&all, nil, Flags{}, []string{"--move-drained", "--rebalance", "--restart-elsewhere"}, "NotEnabled"},
		"all, and one flag":         {&all, nil, Flags{Rebalance: true}, []string{"--move-drained", "--restart-elsewhere"}, "InForce!"},
		"all, and all flags":        {&all, nil, Flags{Drained: true, Rebalance: true, Restart: true}, nil, "InForce!"},
		"none, and no flag":         {&none, nil, Flags{}, nil, "InForce!"},
		"blocked, and no flag":      {&moves{Drained: "Blocked"}, nil, Flags{Rebalance: true}, []string{"--move-drained"}, "NotEnabled"},
		"disconnect, and no flag":   {nil, func(s *placementv1alpha1.PlacementPolicySpec) { s.Disconnect = &placementv1alpha1.Disconnect{} }, Flags{}, []string{"--keep-disconnected"}, "NotEnabled"},
		"disconnect, and its flag":  {nil, func(s *placementv1alpha1.PlacementPolicySpec) { s.Disconnect = &placementv1alpha1.Disconnect{} }, Flags{Disconnect: true}, nil, "InForce!"},
		"levels beside, no flag":    {&all, func(s *placementv1alpha1.PlacementPolicySpec) { s.Levels = made("", "", 0).Spec.Levels }, Flags{}, []string{"--move-drained", "--rebalance", "--restart-elsewhere"}, "InForce!"},
		"scale-down beside, no one": {&all, func(s *placementv1alpha1.PlacementPolicySpec) { s.ScaleDown = "Any" }, Flags{}, []string{"--move-drained", "--rebalance", "--restart-elsewhere"}, "InForce!"},
	} {
		t.Run(name, func(t *testing.T) {
			p := made("p", "web", 0)
			p.Spec.Levels, p.Spec.Moves = nil, tc.moves
			if tc.change != nil {
				tc.change(&p.Spec)
			}
			s := compute(readAll(p), nil, pods(1, "web"))[0]
			s.missing, s.idle = tc.flags.missing(s.policy)
			status := s.status(p.Status, noon)
			if got := strings.Fields(brief(status)); got[len(got)-1] != tc.ready {
				t.Errorf("it is %v, want %s", got, tc.ready)
			}
			message := meta.FindStatusCondition(status.Conditions, placementv1alpha1.ConditionReady).Message
			for _, flag := range []string{"--keep-disconnected", "--move-drained", "--rebalance", "--restart-elsewhere"} {
				if strings.Contains(message, "needs "+flag) != slices.Contains(tc.want, flag) {
					t.Errorf("it says %q", message)
				}
			}
		})
	}
}

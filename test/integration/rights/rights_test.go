// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// listing has a program list what it would otherwise have streamed, as it does where an API server
// has no streams to give.
const listing = "--feature-gates=WatchListClient=false"

// need is the story that breaks without a right.
type need struct {
	name string
	tell story
	args []string
}

// schedulerNeeds are the stories of the scheduler's rights to do something, by resource and verb.
var schedulerNeeds = map[string]need{
	"create pods/binding":           {"places", places, nil},
	"list placementpolicies":        {"obeys", obeys, []string{listing}},
	"list clusterplacementpolicies": {"obeys the cluster", obeysCluster, []string{listing}},
	"get pods":                      {"confirms", confirms, nil},
	"patch pods/status":             {"explains", explains, nil},
	"delete pods":                   {"preempts", preempts, nil},
	"create events.k8s.io/events":   {"reports", reports, nil},
	"patch events.k8s.io/events":    {"repeats", repeats, nil},
	"update persistentvolumes":      {"promises", promises, nil},
	"update persistentvolumeclaims": {"orders", orders, nil},
	"update resourceclaims":         {"allocates", allocates, nil},
	"update resourceclaims/status":  {"allocates", allocates, nil},
	"update resourceclaims/binding": {"allocates", allocates, nil},
	"get resourceclaims":            {"persists", persists, nil},
	"patch resourceclaims/status":   {"releases", releases, nil},
	"patch resourceclaims/binding":  {"releases", releases, nil},
	"create resourceclaims":         {"lends", lends, nil},
	"delete resourceclaims":         {"clears", clears, nil},
	"create tokenreviews":           {"serves", serves, nil},
	"create subjectaccessreviews":   {"serves", serves, nil},
	authority:                       {"recognizes", recognizes, nil},
	"create leases":                 {"elects", elects, nil},
	"get leases":                    {"elects", elects, nil},
	"update leases":                 {"elects", elects, nil},
	"create events":                 {"takes over", takesOver, nil},
	"get configmaps":                {"remembers", remembers, nil},
	"patch configmaps":              {"remembers", remembers, nil},
	"create configmaps":             {"suspects", suspects, nil},
	"list events":                   {"listens", listens, []string{listing}},
	"watch events":                  {"listens", listens, nil},
}

// needOf is the story of a right, as far as there is one.
func needOf(r right, needs map[string]need) (need, bool) {
	if n, ok := needs[r.key()]; ok {
		return n, ok
	}
	switch r.verb {
	case "list": // no pod is placed before all has been looked at
		return need{"places", places, []string{listing}}, true
	case "watch":
		return need{"hears", hears(r.question), nil}, true
	}
	return need{}, false
}

// key is how needs are found.
func (r right) key() string {
	switch {
	case r.verb == "":
		return authority
	case r.group == "events.k8s.io":
		return r.verb + " " + r.group + "/" + r.resource
	}
	return r.verb + " " + r.resource
}

// schedulerRights are those of the manifests, with those of the overlay that has leases.
func schedulerRights(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return slices.Concat(roleObjects(t, "base/serviceaccount.yaml"), roleObjects(t, "base/rbac.yaml"), roleObjects(t, "overlays/leases/rbac.yaml"))
}

// TestSchedulerWithAllRights wants all stories to go as told, and nothing to be refused.
func TestSchedulerWithAllRights(t *testing.T) {
	objects := schedulerRights(t)
	for name, args := range map[string][]string{"streamed": nil, "listed": {listing}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := build(t, objects, rig.SchedulerName, nil)
			s.startScheduler(args...)
			told := map[string]bool{}
			for _, r := range rightsIn(t, objects) {
				n, ok := needOf(r, schedulerNeeds)
				if !ok || (n.name != "hears" && told[n.name]) {
					continue
				}
				told[n.name] = true
				if err := n.tell(s); err != nil {
					t.Fatalf("%s: %v", n.name, err)
				}
			}
			if refused := s.proxy.refusals(); len(refused) > 0 {
				t.Errorf("the roles do not give what it asks for: %v", refused)
			}
			s.asked(objects, name == "listed")
		})
	}
}

// asked wants each right to have been made use of.
func (s *stage) asked(objects []*unstructured.Unstructured, listed bool) {
	s.Helper()
	for _, r := range rightsIn(s.T, objects) {
		// Who binds claims is asked by the API server alone; and only without streams is anything listed.
		if r.verb == "" || strings.HasSuffix(r.resource, "/binding") && r.resource != "pods/binding" || r.verb == "list" && !listed {
			continue
		}
		if r.resource == "configmaps" && r.verb == "create" {
			continue // a patch that makes its object, of which the API server asks both
		}
		// What was done is seen before the answer is noted.
		s.until(r.String()+" to be asked for", func() error {
			if !s.proxy.asked(r.question) {
				return errors.New("nobody has")
			}
			return nil
		})
	}
}

// TestSchedulerWithoutARight takes each right away in turn, and wants its story to break.
func TestSchedulerWithoutARight(t *testing.T) {
	withoutEach(t, nil, schedulerRights(t), rig.SchedulerName, schedulerNeeds, func(s *stage, n need) { s.startScheduler(n.args...) })
}

// withoutEach starts a program without each of some rights in turn, and tells the story that needs it. It has those that are given beside.
func withoutEach(t *testing.T, given, objects []*unstructured.Unstructured, program string, needs map[string]need, start func(*stage, need)) {
	t.Helper()
	for _, r := range rightsIn(t, objects) {
		n, ok := needOf(r, needs)
		if !ok {
			t.Errorf("no story needs the right %v: tell one that breaks without, or take it out of the role", r)
			continue
		}
		t.Run(strings.ReplaceAll(fmt.Sprintf("%v breaks %s", r, n.name), "/", "."), func(t *testing.T) {
			t.Parallel()
			s := build(t, slices.Concat(given, objects), program, &r)
			start(s, n)
			s.breaks(n)
		})
	}
}

// breaks wants the story not to go as told, because of the right that is missing.
func (s *stage) breaks(n need) {
	s.Helper()
	err := n.tell(s)
	switch {
	case err == nil:
		s.Errorf("%s goes as told without %v: the right is not needed", n.name, s.without)
	case !s.wasRefused():
		s.Errorf("%s breaks, and %v was never asked for: %v", n.name, s.without, err)
	default:
		s.Logf("without %v: %v", s.without, err)
	}
}

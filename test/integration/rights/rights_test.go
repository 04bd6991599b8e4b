// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// listing has a program list what it would otherwise have streamed, as it does where an API server has no streams to give.
const listing = "--feature-gates=WatchListClient=false"

// need is the story that breaks without a right.
type need struct {
	name string
	tell story
	args []string
}

// part is a program of the manifests, or a component that gives it more rights, with the stories that need them.
type part struct {
	name, program string
	// base are the files of rights that it has anyway, own those that it is about; of leaves some of them to another part, unless it is nil.
	base, own []string
	of        func(right) bool
	needs     map[string]need
	// tells is the only story, for a part without needs.
	tells need
	start func(s *stage, args ...string)
	// alone says that none of its kind may run beside it; aloneWhole, not while it has all rights.
	alone, aloneWhole bool
}

// parts are all that the manifests give rights to.
func parts() []part {
	scheduler, controller := []string{"base/serviceaccount.yaml", "base/rbac.yaml", "overlays/leases/rbac.yaml"}, []string{"base/controller-rbac.yaml"}
	all := []part{
		{name: "scheduler", program: rig.SchedulerName, own: scheduler, needs: schedulerNeeds, start: (*stage).startScheduler},
		{
			name: "active replica", program: rig.SchedulerName, base: scheduler, own: []string{"components/active-active/rbac.yaml"},
			tells: need{name: "joins", tell: joins}, start: func(s *stage, args ...string) { s.startScheduler(append(args, "--active-active")...) },
		},
		{
			name: "scheduler of tenants", program: rig.SchedulerName, base: scheduler, own: []string{"components/tenants/rbac.yaml"},
			needs: tenantsSchedulerNeeds, start: (*stage).startTenantsScheduler,
		},
		{
			// Each writes the statuses of all policies, those that govern another's pods included, and says of these that they govern none.
			name: "controller", program: rig.ControllerName, own: append(controller, "components/taint-suspects/rbac.yaml"),
			needs: controllerNeeds, start: (*stage).startTainting, aloneWhole: true,
		},
		{
			name: "controller of tenants", program: rig.ControllerName, base: controller, own: []string{"components/tenants/rbac.yaml"},
			needs: tenantsControllerNeeds, start: (*stage).startTenantsController,
		},
		{
			name: "arbiter", program: rig.ControllerName, base: controller, own: []string{"components/arbiter/rbac.yaml"},
			of:    func(r right) bool { return r.resource != "endpointslices" },
			needs: arbiterNeeds, start: (*stage).startArbiter, alone: true,
		},
		{
			name: "arbiter by a Service", program: rig.ControllerName, base: controller, own: []string{"components/arbiter/rbac.yaml"},
			of:    func(r right) bool { return r.resource == "endpointslices" },
			needs: serviceNeeds, start: (*stage).startArbiterByService, alone: true,
		},
	}
	for folder, c := range components {
		all = append(all, part{
			name: folder, program: rig.ControllerName, base: controller, own: []string{"components/" + folder + "/rbac.yaml"},
			tells: need{name: c.name, tell: c.tell}, start: func(s *stage, args ...string) { s.startMoving(append(c.flags(s), args...)...) },
		})
	}
	return all
}

// objects are those of the files, as far as they are the program's.
func (p *part) objects(t *testing.T, files []string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, file := range files {
		for _, o := range roleObjects(t, file) {
			if strings.HasPrefix(o.GetName(), p.program) {
				all = append(all, o)
			}
		}
	}
	return all
}

// rights are those that the part is about.
func (p *part) rights(t *testing.T) []right {
	t.Helper()
	return slices.DeleteFunc(rightsIn(t, p.objects(t, p.own)), func(r right) bool { return p.of != nil && !p.of(r) })
}

// need is the story of a right, as far as there is one.
func (p *part) need(r right) (need, bool) {
	if n, ok := p.needs[r.key()]; ok {
		return n, ok
	}
	listed := r.verb == "list" && r.resource != "leases" // these are listed in any case
	switch only := p.tells; {
	case only.tell != nil && r.verb == "watch": // some begin when there is something to do
		return need{only.name + " and hears", func(s *stage) error {
			if err := only.tell(s); err != nil {
				return err
			}
			return hears(r.question)(s)
		}, nil}, true
	case only.tell != nil && listed:
		return need{only.name, only.tell, []string{listing}}, true
	case only.tell != nil:
		return only, true
	case r.verb == "list" && r.group == "storage.k8s.io": // pods without volumes are placed without
		return need{"orders", orders, []string{listing}}, true
	case r.verb == "list" && r.group == "resource.k8s.io": // and those without devices
		return need{"allocates", allocates, []string{listing}}, true
	case r.verb == "list": // no pod is placed before all has been looked at
		return need{"places", places, []string{listing}}, true
	case r.verb == "watch":
		return need{"hears", hears(r.question), nil}, true
	}
	return need{}, false
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

// TestWithAllRights wants all stories to go as told, and nothing to be refused.
func TestWithAllRights(t *testing.T) {
	for _, p := range parts() {
		for name, args := range map[string][]string{"streamed": nil, "listed": {listing}} {
			t.Run(p.name+" "+name, func(t *testing.T) {
				if !p.alone && !p.aloneWhole {
					t.Parallel()
				}
				s := build(t, slices.Concat(p.objects(t, p.base), p.objects(t, p.own)), p.program, nil)
				p.start(s, args...)
				told := map[string]bool{}
				for _, r := range p.rights(t) {
					n, ok := p.need(r)
					if p.tells.tell != nil {
						n = p.tells
					}
					if !ok {
						t.Errorf("no story needs the right %v: tell one that breaks without, or take it out of the role", r)
						continue
					}
					if n.name != "hears" && told[n.name] {
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
				s.asked(p.rights(t), name == "listed")
			})
		}
	}
}

// asked wants each right to have been made use of.
func (s *stage) asked(rights []right, listed bool) {
	s.Helper()
	for _, r := range rights {
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

// TestWithoutARight takes each right away in turn, and wants its story to break.
func TestWithoutARight(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes, and is left out with -short: `make nightly PARTS=rights` runs it")
	}
	for _, p := range parts() {
		t.Run(p.name, func(t *testing.T) {
			for _, r := range p.rights(t) {
				n, ok := p.need(r)
				if !ok {
					continue // TestWithAllRights fails
				}
				t.Run(strings.ReplaceAll(fmt.Sprintf("%v breaks %s", r, n.name), "/", "."), func(t *testing.T) {
					if !p.alone {
						t.Parallel()
					}
					s := build(t, slices.Concat(p.objects(t, p.base), p.objects(t, p.own)), p.program, &r)
					p.start(s, n.args...)
					s.breaks(n)
				})
			}
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

// right is one verb on one resource, as a role gives it; or, with neither, what a binding to a role of the cluster's own gives.
type right struct {
	question
	// names are the objects that it is for, "" for all.
	names string
	from  string
}

func (r right) String() string {
	if r.verb == "" {
		return r.from
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s %s", r.from, r.question, r.names), " ")
}

// authority is the cluster's own role for who reads which authority signs clients. It is in kube-system.
const authority = "extension-apiserver-authentication-reader"

// roleObjects are the objects of a file of rights.
func roleObjects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := rig.Decode(manifests.Files, file)
	must(t, err)
	return objects
}

// expand rewrites a rule to one for each verb of each resource.
func expand(from string, rules []rbacv1.PolicyRule) (rights []right, single []rbacv1.PolicyRule) {
	single = rig.Singly(rules)
	for _, r := range single {
		rights = append(rights, right{question{r.APIGroups[0], r.Resources[0], r.Verbs[0]}, strings.Join(r.ResourceNames, " "), from})
	}
	return rights, single
}

// rulesOf are the rules of a role.
func rulesOf(t *testing.T, o *unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	var role rbacv1.ClusterRole // a Role has the same rules
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
	return role.Rules
}

// rightsIn are all rights that the objects give.
func rightsIn(t *testing.T, objects []*unstructured.Unstructured) []right {
	t.Helper()
	var all []right
	for _, o := range objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
			rights, _ := expand(o.GetName(), rulesOf(t, o))
			all = append(all, rights...)
		case "RoleBinding", "ClusterRoleBinding":
			if !ours(objects, o) {
				all = append(all, right{from: o.GetName()})
			}
		}
	}
	return all
}

// ours says whether the role that is bound is one of the objects.
func ours(objects []*unstructured.Unstructured, binding *unstructured.Unstructured) bool {
	role, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetName() == role && strings.HasSuffix(o.GetKind(), "Role")
	})
}

// grant applies the rights under another name and in the namespace of that name, but for one of them.
func grant(t *testing.T, objects []*unstructured.Unstructured, old, name string, without right) {
	t.Helper()
	for _, o := range objects {
		if without.verb == "" && o.GetName() == without.from {
			continue
		}
		o = o.DeepCopy()
		if o.GetKind() == "Role" || o.GetKind() == "ClusterRole" {
			rights, single := expand(o.GetName(), rulesOf(t, o))
			if i := slices.Index(rights, without); i >= 0 {
				single = slices.Delete(single, i, i+1)
			}
			setRules(t, o, single, old, name)
		}
		role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		if o.GetNamespace() != "" && role != authority {
			o.SetNamespace(name)
		}
		o.SetName(strings.Replace(o.GetName(), old, name, 1))
		if role != "" {
			_ = unstructured.SetNestedField(o.Object, strings.Replace(role, old, name, 1), "roleRef", "name")
			_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"kind": "ServiceAccount", "namespace": name, "name": name}}, "subjects")
		}
		if err := cluster.applier.ApplyObject(t.Context(), o, name); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// renamed is an object's name for a program of another name, or for a scheduler of that name.
func renamed(object, old, name string) string {
	return strings.NewReplacer(old, name, rig.SchedulerName, name).Replace(object)
}

// setRules gives a role its rules, for objects of the other name.
func setRules(t *testing.T, o *unstructured.Unstructured, rules []rbacv1.PolicyRule, old, name string) {
	t.Helper()
	list := []any{}
	for i := range rules {
		for j, object := range rules[i].ResourceNames {
			rules[i].ResourceNames = slices.Clone(rules[i].ResourceNames)
			rules[i].ResourceNames[j] = renamed(object, old, name)
		}
		rule, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i])
		must(t, err)
		list = append(list, rule)
	}
	must(t, unstructured.SetNestedSlice(o.Object, list, "rules"))
}

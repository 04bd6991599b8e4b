// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	componentversion "k8s.io/component-base/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/serverversion"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Finding is what one check found.
type Finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	// Found says what is so.
	Found string `json:"found"`
	// Fix says what to do if it is not OK.
	Fix string `json:"fix,omitempty"`
}

// Checks are what is looked at.
type Checks struct {
	API      client.Reader
	Snapshot *snapshot.Snapshot
	// Definitions are the CustomResourceDefinitions of this release, and Version is its version.
	Definitions []*unstructured.Unstructured
	Version     string
	// Rights are what the scheduler of this release does in the whole cluster.
	Rights []rbacv1.PolicyRule
	// Lease is the name of that of the scheduler, and Schedulers are the names that it serves.
	Lease      string
	Schedulers []string
	Now        time.Time
	// Ready asks the pods of Espalier.
	Ready Ready
}

// appName is the label that says of which component a Deployment is, and schedulerApp is that of the scheduler.
const (
	appName      = "app.kubernetes.io/name"
	schedulerApp = "espalier-scheduler"
)

// overdue is for how long a pod may be pending before somebody must have said why.
const overdue = time.Minute

// Run makes all checks.
func (c *Checks) Run(ctx context.Context) ([]Finding, error) {
	findings := append([]Finding{c.version()}, c.installed()...)
	definitions, err := c.definitions(ctx)
	if err != nil {
		return nil, err
	}
	rights, err := c.rights(ctx)
	if err != nil {
		return nil, err
	}
	leader, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	findings = append(slices.Concat(findings, definitions, rights, c.informers(ctx)), leader, c.unserved(), c.shared(ctx))
	for _, what := range c.Snapshot.Unread {
		findings = append(findings, Finding{"rights", false, what, "ask for the right to list it: the other checks are without it"})
	}
	return findings, nil
}

// version says whether this release runs with the API server.
func (c *Checks) version() Finding {
	f := Finding{Check: "API server", OK: true, Found: c.Snapshot.Server}
	server := serverversion.Read(&apimachineryversion.Info{GitVersion: c.Snapshot.Server})
	if server == nil {
		f.Found = cmp.Or(f.Found, "not known: who asks has no right to get /version")
		f.OK, f.Fix = false, "its version cannot be read: see docs/versions.md for the versions that this release runs with"
	} else if err := serverversion.Of(utilversion.MustParse(componentversion.DefaultKubeBinaryVersion)).Check(server); err != nil {
		f.OK, f.Fix = false, err.Error()+": see docs/versions.md"
	}
	return f
}

// installed says of each Deployment of the scheduler and of the controller whether it has its replicas, and whether it is of this release. There need be none: the
// scheduler may run in another way, and whether it does the Lease says.
func (c *Checks) installed() []Finding {
	var all []Finding
	for _, d := range snapshot.Of[*appsv1.Deployment](c.Snapshot) {
		if name := d.Labels[appName]; name != schedulerApp && name != "espalier-controller" || len(d.Spec.Template.Spec.Containers) == 0 {
			continue
		}
		image := d.Spec.Template.Spec.Containers[0].Image
		wanted := ptr.Deref(d.Spec.Replicas, 1)
		f := Finding{Check: "Deployment " + d.Namespace + "/" + d.Name, OK: true, Found: fmt.Sprintf("image %s, %d of %d replicas available", image, d.Status.AvailableReplicas, wanted)}
		switch {
		case d.Status.AvailableReplicas < wanted:
			f.OK, f.Fix = false, fmt.Sprintf("see why: kubectl -n %s describe deployment %s", d.Namespace, d.Name)
		case otherRelease(image, c.Version):
			f.OK, f.Fix = false, fmt.Sprintf("this command is of %s, and computes what that release would: use the one of the release that runs, or upgrade", c.Version)
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		all = append(all, Finding{"Deployment", true, "none of Espalier: it runs in another way, if there is a leader", ""})
	}
	return all
}

// otherRelease reports whether the tag of an image is of another minor version than this. Versions between releases are not compared.
func otherRelease(image, version string) bool {
	_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	is, err := utilversion.ParseSemantic(tag)
	this, err2 := utilversion.ParseSemantic(version)
	if err != nil || err2 != nil || is.Major()+is.Minor() == 0 || this.Major()+this.Minor() == 0 {
		return false
	}
	return is.Major() != this.Major() || is.Minor() != this.Minor()
}

// definitions say whether the kinds are those of this release.
func (c *Checks) definitions(ctx context.Context) ([]Finding, error) {
	var all []Finding
	for _, want := range c.Definitions {
		f := Finding{Check: "CRD " + want.GetName(), OK: true, Found: "as in this release"}
		is := &unstructured.Unstructured{}
		is.SetGroupVersionKind(want.GroupVersionKind())
		err := c.API.Get(ctx, client.ObjectKeyFromObject(want), is)
		switch {
		case apierrors.IsNotFound(err):
			f.OK, f.Found, f.Fix = false, "not installed", "apply it, if you want policies or Moves"
		case apierrors.IsForbidden(err):
			f.OK, f.Found, f.Fix = false, "not known", "ask for the right to get CustomResourceDefinitions"
		case err != nil:
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", want.GetName(), err)
		case !equality.Semantic.DeepEqual(schemas(is), schemas(want)):
			f.OK, f.Found, f.Fix = false, "another one than in this release", "apply that of the release that runs: helm installs a CRD once and never again"
		}
		all = append(all, f)
	}
	return all, nil
}

// schemas are those of the versions of a definition. All else has defaults.
func schemas(definition *unstructured.Unstructured) map[string]any {
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return nil
	}
	by := make(map[string]any)
	for _, v := range versions {
		if version, is := v.(map[string]any); is {
			by[fmt.Sprint(version["name"])] = version["schema"]
		}
	}
	return by
}

// ofReplica is what follows the name of the scheduler's Lease in those of replicas that are active at once.
var ofReplica = regexp.MustCompile(`^-[0-9]$`)

// leader says which replica decides, or which of several that are active at once.
func (c *Checks) leader(ctx context.Context) (Finding, error) {
	f := Finding{Check: "leader"}
	var leases coordinationv1.LeaseList
	if err := c.API.List(ctx, &leases); err != nil {
		if apierrors.IsForbidden(err) {
			f.Found, f.Fix = "not known", "ask for the right to list Leases"
			return f, nil
		}
		return f, fmt.Errorf("listing Leases: %w", err)
	}
	f.Found, f.Fix = fmt.Sprintf("no Lease is called %s", c.Lease), "see whether the scheduler runs, and give its Lease with --lease if it has another name"
	var holders []string
	for i := range leases.Items {
		l := &leases.Items[i]
		after, is := strings.CutPrefix(l.Name, c.Lease)
		if !is || after != "" && !ofReplica.MatchString(after) {
			continue
		}
		holder, renewed := ptr.Deref(l.Spec.HolderIdentity, ""), ptr.Deref(l.Spec.RenewTime, metav1.NewMicroTime(l.CreationTimestamp.Time))
		lasts := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 15)) * time.Second
		age := c.Now.Sub(renewed.Time)
		if holder != "" && age <= lasts {
			holders = append(holders, fmt.Sprintf("%s, by the Lease %s/%s", holder, l.Namespace, l.Name))
			continue
		}
		f.Found = fmt.Sprintf("the Lease %s/%s was renewed %s ago, by %q", l.Namespace, l.Name, age.Round(time.Second), holder)
		f.Fix = "see the logs of the scheduler's pods"
	}
	if len(holders) > 0 {
		slices.Sort(holders)
		return Finding{"leader", true, strings.Join(holders, "; "), ""}, nil
	}
	return f, nil
}

// unserved are the pods that no scheduler has looked at.
func (c *Checks) unserved() Finding {
	by := make(map[string]int)
	for _, p := range snapshot.Of[*corev1.Pod](c.Snapshot) {
		said := slices.ContainsFunc(p.Status.Conditions, func(is corev1.PodCondition) bool { return is.Type == corev1.PodScheduled })
		if p.Spec.NodeName == "" && !said && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 && c.Now.Sub(p.CreationTimestamp.Time) > overdue {
			by[p.Spec.SchedulerName]++
		}
	}
	if len(by) == 0 {
		return Finding{"schedulerName", true, "every pending pod was evaluated", ""}
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		words = append(words, fmt.Sprintf("%d of %q", by[name], name))
	}
	return Finding{
		"schedulerName", false, "pods that no scheduler has evaluated: " + strings.Join(words, ", "),
		fmt.Sprintf("run a scheduler of that name, or correct the pods' owners: the configuration has %q", c.Schedulers),
	}
}

// shared says on how many nodes pods of other schedulers are beside those of this one.
func (c *Checks) shared(ctx context.Context) Finding {
	ours, others := make(map[string]bool), make(map[string]string)
	for _, p := range snapshot.Of[*corev1.Pod](c.Snapshot) {
		switch {
		case p.Spec.NodeName == "" || ended(p) || isDaemon(p):
		case slices.Contains(c.Schedulers, p.Spec.SchedulerName):
			ours[p.Spec.NodeName] = true
		default:
			others[p.Spec.NodeName] = cmp.Or(others[p.Spec.NodeName], p.Spec.SchedulerName)
		}
	}
	both := 0
	for node := range ours {
		if others[node] != "" {
			both++
		}
	}
	if both == 0 {
		return Finding{"nodes", true, "no node has pods of two schedulers", ""}
	}
	if c.arbitrated(ctx) {
		return Finding{"nodes", true, fmt.Sprintf("nodes with pods of two schedulers, whose bindings the arbiter checks: %d", both), ""}
	}
	return Finding{
		"nodes", false, fmt.Sprintf("nodes with pods of two schedulers, which may promise the same capacity: %d", both),
		"switch the arbiter on (docs/several-schedulers.md), or give Espalier nodes of its own, or the place of the default scheduler: the chart's value mode",
	}
}

// arbitrated reports that the API server asks an arbiter about bindings. Whoever may not read that is told of the danger.
func (c *Checks) arbitrated(ctx context.Context) bool {
	var configurations admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := c.API.List(ctx, &configurations); err != nil {
		return false
	}
	return slices.ContainsFunc(configurations.Items, func(is admissionregistrationv1.ValidatingWebhookConfiguration) bool {
		return slices.ContainsFunc(is.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return w.Name == arbiter && len(w.ClientConfig.CABundle) > 0
		})
	})
}

// arbiter is the name of its webhook in the manifests.
const arbiter = "bindings.espalier.dev"

func isDaemon(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" || o.Kind == "Node" })
}

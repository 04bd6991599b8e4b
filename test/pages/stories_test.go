// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/pages"
)

// story is what a page takes for granted.
type story struct {
	// before and after are commands around those of the page. What is in the namespace default is removed after each page.
	before, after string
	// names are what a reader fills in, each with the word that stands for it.
	names [][2]string
}

// withWeb is for pages that speak of a Deployment web that there is.
const withWeb = "kubectl apply -f web.yaml; kubectl rollout status deployment/web --timeout=1m"

// node, pod and web are what readers fill in.
var (
	node    = [2]string{"NODE", "espalier-worker2"}
	pod     = [2]string{"NAME", "$(kubectl get pods -l app=web -o jsonpath={.items[0].metadata.name})"}
	ofShop  = [2]string{"NAMESPACE", "default"}
	ofOwner = [2]string{"deployment NAME", "deployment web"}
	policy  = [2]string{"placementpolicy NAME", "placementpolicy frontend"}
)

// frontend is the policy of docs/policies.md.
const frontend = `kubectl apply -f - <<'END'
{apiVersion: placement.espalier.dev/v1alpha1, kind: PlacementPolicy, metadata: {name: frontend}, spec: {mode: Override, podSelector: {matchLabels: {tier: frontend}},
 levels: [{topologyKey: topology.kubernetes.io/zone}, {topologyKey: example.com/rack}]}}
END
`

var stories = map[string]story{
	"docs/quick-start.md":        {},
	"docs/faulty-nodes.md":       {before: withWeb, names: [][2]string{node}, after: "kubectl annotate node espalier-worker2 espalier.dev/failures-forgiven-"},
	"docs/lifetimes.md":          {before: withWeb, names: [][2]string{node, pod}, after: "kubectl annotate node espalier-worker2 espalier.dev/valid-until-"},
	"docs/operations.md":         {before: withWeb, names: [][2]string{ofOwner, ofShop, node, pod}, after: "kubectl annotate node espalier-worker2 espalier.dev/failures-forgiven-; kubectl -n kube-system delete serviceaccount metrics-reader; kubectl delete clusterrole,clusterrolebinding metrics-reader"},
	"docs/policies.md":           {before: frontend + withWeb, names: [][2]string{pod}, after: "kubectl delete placementpolicy frontend"},
	"docs/spread.md":             {before: withWeb, names: [][2]string{node, pod}, after: "kubectl label node espalier-worker2 example.com/rack-"},
	"docs/troubleshooting.md":    {before: frontend + withWeb, names: [][2]string{policy, ofShop, pod}, after: "kubectl delete placementpolicy frontend"},
	"docs/limits-and-filters.md": {before: withWeb, names: [][2]string{node, pod}, after: "kubectl annotate node espalier-worker2 espalier.dev/reserved-host-ports-"},
	"docs/from-docker-swarm.md":  {names: [][2]string{node}, after: "kubectl label node espalier-worker2 zone- rack- disk-; kubectl annotate node espalier-worker2 espalier.dev/reserved-host-ports-"},
	"docs/from-topology-spread-constraints.md": {
		before: "kubectl create namespace shop",
		after:  "kubectl delete namespace shop; kubectl delete -f manifests/admission/scheduler-name.yaml",
	},
	"docs/install.md":          {names: [][2]string{node}, after: "kubectl label node espalier-worker2 espalier.dev/node-pool-; kubectl taint node espalier-worker2 espalier.dev/node-pool-"},
	"docs/kubectl-espalier.md": {before: withWeb, names: [][2]string{{"node-a", "espalier-worker"}}},
}

// TestPages does what every page says, but for the commands that are listed in unrun with the reason.
func TestPages(t *testing.T) {
	all, err := pages.All(os.DirFS(world.root))
	fatal(t, err)
	used, blocks := make(map[int]bool), 0
	known := make(map[string]bool)
	for i := range all {
		p := &all[i]
		known[p.Path] = true
		has := slices.ContainsFunc(p.Blocks(), func(b pages.Block) bool { return b.Lang == "sh" })
		if _, is := stories[p.Path]; !has && !is {
			continue
		}
		blocks++
		t.Run(strings.ReplaceAll(strings.TrimSuffix(p.Path, ".md"), "/", "-"), func(t *testing.T) {
			r := &reader{T: t, page: p, story: stories[p.Path], dir: t.TempDir(), used: used}
			t.Cleanup(func() { clean(t) })
			r.read()
		})
	}
	for page := range stories {
		if !known[page] {
			t.Errorf("there is no page %s", page)
		}
	}
	for n := range unrun {
		if !used[n] {
			t.Errorf("%s has no command that begins with %q any more: remove it from the list of those that are not run", unrun[n].page, unrun[n].begins)
		}
	}
	if blocks < 15 {
		t.Errorf("%d pages have commands", blocks)
	}
}

// clean removes what a page has left.
func clean(t *testing.T) {
	t.Helper()
	err := shell(context.WithoutCancel(t.Context()), "kubectl delete deployments,statefulsets,daemonsets,jobs,replicasets,pods,placementpolicies --all --wait --timeout=1m")
	if err != nil {
		t.Error(err)
	}
}

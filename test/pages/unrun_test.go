// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unrun are the commands of the pages that TestPages does not run: those of a page that begin so. Where a test elsewhere runs them, or what
// they stand for, it is named.
var unrun = []struct{ page, begins, why, test string }{
	{"README.md", "helm install", "it is installed here already", "TestInstallAsDocumented"},
	{"CONTRIBUTING.md", "make build", "it has been run: this test starts what it builds", ""},
	{"CONTRIBUTING.md", "make generate", "it changes the tree; make verify runs each of its scripts in a copy", ""},
	{"CONTRIBUTING.md", "make test", "it takes longer than all pages; CI runs it for each change", ""},
	{"CONTRIBUTING.md", "hack/update-kubernetes.sh", "there is no such version of Kubernetes yet; make verify has all go.mod files name the one there is", ""},
	{"CONTRIBUTING.md", "go test ./test/e2e", "make test tells it", "TestSharesAndPack"},
	{"CONTRIBUTING.md", "go test ./pkg", "make test runs it", ""},
	{"CONTRIBUTING.md", "ESPALIER_SEED=random", "what it finds would not be this change's fault; make soak is for it", ""},
	{"SECURITY.md", "cosign", "it asks the network about a release that is published", ""},
	{"SECURITY.md", "sha256sum", "it is about a release that was downloaded; the sums of one that is made here are compared", "TestRelease"},
	{"docs/evenness.md", "make evenness", "takes three minutes, and writes the page; make e2e-nightly tells its stories", "TestStock"},
	{"docs/parity.md", "go test -v", "takes an hour; make test tries 2,000 clusters", "TestRandomClusters"},
	{"docs/performance.md", "make perf", "takes two hours of a machine on which nothing else runs", "TestSmoke"},
	{"docs/performance.md", "make bench", "takes half an hour of a machine on which nothing else runs", ""},
	{"docs/quick-start.md", "git clone", "it needs the network", ""},
	{"docs/quick-start.md", "cd espalier", "the reader of this test is there already", ""},
	{"docs/quick-start.md", "make image", "it takes minutes; the images of a release are made each time", "TestRelease"},
	{"docs/quick-start.md", "kind create", "it needs a Docker engine; the nodes are those of the page all the same, and make e2e-kind makes such a cluster", ""},
	{"docs/quick-start.md", "for name in", "it needs a Docker engine", ""},
	{"docs/quick-start.md", "kind delete", "it needs a Docker engine", ""},
	{"docs/install.md", "make image", "it takes minutes; the images of a release are made each time", "TestRelease"},
	{"docs/install.md", "for name in", "it needs a Docker engine, and a registry", ""},
	{"docs/install.md", "for target in", "it needs a Docker engine, and a registry", "TestDockerfileSaysTheSame"},
	{"docs/install.md", "make deploy", "this test has run it, and what flags make of it is tested", "TestDeployAndUndeploy"},
	{"docs/install.md", "helm install", "it is installed here already", "TestInstallAsDocumented"},
	{"docs/install.md", "kubectl apply -k .", "it is installed here already", "TestInstallAsDocumented"},
	{"docs/install.md", "make bin/kubectl-espalier", "it has been run: this test uses what it builds", ""},
	{"docs/install.md", "cp bin/kubectl-espalier", "it changes the machine", ""},
	{"docs/install.md", "kubectl espalier doctor --lease kube-scheduler", "it is for another mode than the one that is installed here", ""},
	{"docs/install.md", "make build", "it has been run: this test starts what it builds", ""},
	{"docs/install.md", "bin/devcluster up", "it stays in the foreground; this test has started one", ""},
	{"docs/install.md", "export KUBECONFIG", "this test's cluster has another", ""},
	{"docs/install.md", "bin/espalier-scheduler", "it stays in the foreground; this test has started one", ""},
	{"docs/kubectl-espalier.md", "make bin/kubectl-espalier", "it has been run: this test uses what it builds", ""},
	{"docs/kubectl-espalier.md", "cp bin/kubectl-espalier", "it changes the machine", "TestBelowKubectl"},
	{"docs/operations.md", "kubectl -n kube-system port-forward", "nobody forwards ports to pods that are played", ""},
	{"docs/operations.md", "curl", "it goes through the port that is not forwarded; the same is asked of a scheduler's own port", "TestServesHealthAndMetrics"},
	{"docs/versions.md", "kubectl apply --server-side", "it is about a release that was downloaded", "TestUpgradeAsDocumented"},
	{"docs/versions.md", "helm upgrade", "it is about a release that was downloaded", "TestUpgradeAsDocumented"},
	{"manifests/charts/espalier/README.md", "helm install", "it is installed here already", "TestInstallAsDocumented"},
}

// mayFail are commands that may end with status 1, as their page says.
var mayFail = map[string]string{
	"kubectl espalier doctor": "in mode Shared pods of two schedulers are on one node, as docs/install.md says",
	"kubectl auth can-i":      "no ends with 1",
}

// illustrates are blocks behind commands that show what another cluster prints, by their page and first line.
var illustrates = map[string]string{
	"docs/operations.md: policy/frontend@3 spread=topology.kubernetes.io/zone;weight.zone-a=70;weight.zone-b=30;nodesWithoutKey=LastResort":                             "an example with all parts",
	"docs/operations.md: fast: zone zone-a=3 before zone-b=4; rack r1=1/2 tied with r2=1/2; node n7=0 before n9=0 (soft taint)":                                         "an example with all parts",
	"docs/troubleshooting.md: 0/5 nodes are available: 2 node(s) were unschedulable, 3 Insufficient cpu.":                                                               "the pod of the test is not Pending",
	"docs/faulty-nodes.md: node node-7 deprioritized for shop/Deployment.apps/web, revision 6c9f7d5b8: 5 failures within 5m0s (5 OutOfcpu); used only as a last resort": "no node of the test is faulty",
	"docs/from-topology-spread-constraints.md: deployment/web in namespace shop, by espalier-scheduler":                                                                 "the page's cluster has five nodes of other names",
	"docs/policies.md: NAME       MODE      GOVERNED   SELECTED   READY   CONFLICTED   AGE":                                                                             "the page's policy has more pods, and another mode",
}

// unrunOf returns which entry of the list a command of a page is, -1 for none.
func unrunOf(page, command string) int {
	for n, u := range unrun {
		if u.page == page && strings.HasPrefix(command, u.begins) {
			return n
		}
	}
	return -1
}

// Each command that is not run says why, and the tests that it names are there.
func TestUnrun(t *testing.T) {
	var text strings.Builder
	err := filepath.WalkDir(world.root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_")) && path != world.root:
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			content, err := os.ReadFile(path)
			text.Write(content)
			return err
		}
		return nil
	})
	fatal(t, err)
	for _, u := range unrun {
		if len(u.why) < 10 {
			t.Errorf("%s: %s: say why it is not run", u.page, u.begins)
		}
		if u.test != "" && !regexp.MustCompile(`func `+u.test+`[A-Z(]`).MatchString(text.String()) {
			t.Errorf("%s: %s: there is no test %s", u.page, u.begins, u.test)
		}
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/browser"
	"github.com/espalier-scheduler/espalier/internal/pages"
)

// units are the commands of a block: a line each, with the lines that it goes on in.
func units(block string) (all []string) {
	unit, loops := "", 0
	for line := range strings.Lines(block) {
		unit += line
		switch first, _, _ := strings.Cut(strings.TrimSpace(line), " "); first {
		case "for":
			loops++
		case "done":
			loops--
		}
		if loops == 0 && !strings.HasSuffix(line, "\\\n") {
			if strings.TrimSpace(unit) != "" {
				all = append(all, unit)
			}
			unit = ""
		}
	}
	return all
}

func TestUnits(t *testing.T) {
	got := units("a\nfor x in y; do\n  b\ndone\n\nc \\\n  d\ne\n")
	if want := []string{"a\n", "for x in y; do\n  b\ndone\n", "c \\\n  d\n", "e\n"}; !slices.Equal(got, want) {
		t.Errorf("the commands are %q, want %q", got, want)
	}
}

// reader does what a page says, in a folder of its own.
type reader struct {
	*testing.T
	page  *pages.Page
	story story
	dir   string
	// used are the entries of unrun that this page has commands of.
	used map[int]bool
}

// read runs all blocks of a page.
func (r *reader) read() {
	r.prepare()
	blocks := r.page.Blocks()
	for i := range blocks {
		b := &blocks[i]
		switch {
		case b.Name != "":
			r.save(b.Name, b.Text)
		case b.Lang == "sh":
			var run []string
			for _, unit := range units(b.Text) {
				if n := unrunOf(r.page.Path, unit); n >= 0 {
					r.used[n] = true
					continue
				}
				run = append(run, r.fill(unit))
			}
			if len(run) == 0 {
				continue
			}
			out := r.run(b.Line, run...)
			if i+1 < len(blocks) && shows(r.page, b, &blocks[i+1]) {
				r.compare(b.Line, blocks[i+1].Text, out)
			}
		}
	}
	if r.story.after != "" {
		r.run(0, r.story.after+"\n")
	}
}

// prepare makes a folder that looks like a clone of the repository, with what the page needs before.
func (r *reader) prepare() {
	entries, err := os.ReadDir(world.root)
	fatal(r, err)
	for _, e := range entries {
		fatal(r, os.Symlink(filepath.Join(world.root, e.Name()), filepath.Join(r.dir, e.Name())))
	}
	web, err := os.ReadFile("testdata/web.yaml")
	fatal(r, err)
	r.save("web.yaml", string(web))
	if r.story.before != "" {
		r.run(0, r.story.before+"\n")
	}
}

func (r *reader) save(name, text string) {
	fatal(r, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
}

// fill replaces what a reader has to fill in.
func (r *reader) fill(unit string) string {
	for _, name := range r.story.names {
		unit = regexp.MustCompile(`\b`+name[0]+`\b`).ReplaceAllLiteralString(unit, name[1])
	}
	return unit
}

// border is between what commands print.
const border = "@@@ the next command @@@\n"

// run runs commands in one shell, and returns what the last one prints. What a block exports is known to the next.
func (r *reader) run(line int, commands ...string) string {
	r.Helper()
	script := "if [[ -f .exported ]]; then source ./.exported; fi\nset -euo pipefail\n"
	for _, c := range commands {
		script += "printf '" + strings.TrimSuffix(border, "\n") + "\\n'\n" + r.tolerate(c) + "\n"
	}
	script += "export -p >.exported\n"
	ctx, cancel := context.WithTimeout(r.Context(), hung)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = r.dir, environment()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		r.Fatalf("%s:%d: %v\n%s\nprints\n%s\nand says\n%s", r.page.Path, line, err, strings.Join(commands, ""), out.String(), said.String())
	}
	parts := strings.Split(out.String(), border)
	return parts[len(parts)-1]
}

// tolerate lets a command end with status 1 where the page says that it may.
func (r *reader) tolerate(command string) string {
	for prefix := range mayFail {
		if strings.HasPrefix(command, prefix) {
			return strings.TrimSuffix(command, "\n") + " || [[ $? == 1 ]]"
		}
	}
	return command
}

// shows reports whether a block is what the commands of the one before print: it follows at once, and is text.
func shows(p *pages.Page, commands, next *pages.Block) bool {
	if next.Lang != "text" || illustrates[fmt.Sprintf("%s: %s", p.Path, strings.TrimSpace(strings.SplitN(next.Text, "\n", 2)[0]))] != "" {
		return false
	}
	lines := strings.Split(p.Text, "\n")
	between := lines[commands.Line+strings.Count(commands.Text, "\n")+1 : next.Line-1]
	return strings.TrimSpace(strings.Join(between, "")) == ""
}

// differing is what differs from cluster to cluster: ages, and the version of the nodes.
var differing = regexp.MustCompile(`\b(\d+[dhms])+\b|\bv1\.37\.\d+\b`)

// alike is a text as it is compared: without the width of columns, which is that of what differs.
func alike(text string) string {
	text = differing.ReplaceAllString(strings.TrimSpace(text), "*")
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(regexp.MustCompile(`[ \t]+(\n|$)`).ReplaceAllString(text, "$1"), " ")
}

// twigs are what a tree is drawn with.
var twigs = strings.NewReplacer("├", "", "└", "", "│", "", "─", "")

// anyOrder are the lines of a tree without its drawing, sorted: domains that tie come in the order of their load, which is not that of the page.
func anyOrder(text string) string {
	lines := strings.Split(alike(twigs.Replace(text)), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// compare wants the page to show what is printed.
func (r *reader) compare(line int, shown, printed string) {
	r.Helper()
	if strings.Contains(shown, "├") && anyOrder(shown) == anyOrder(printed) {
		return
	}
	if alike(shown) != alike(printed) {
		r.Errorf("%s: the commands in line %d print\n%s\nand the page shows\n%s", r.page.Path, line, printed, shown)
	}
}

// viewBox is the size of a picture, which fills a window of that size.
var viewBox = regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)"`)

// The pictures of the pages can be read: no label lies on another one, and they are light or dark as one likes.
func TestPicturesOfPages(t *testing.T) {
	b, err := browser.Find()
	if err != nil {
		t.Skip(err)
	}
	pictures, err := filepath.Glob(filepath.Join(world.root, "docs", "*.svg"))
	if err != nil || len(pictures) == 0 {
		t.Fatalf("there are no pictures: %v", err)
	}
	dir := t.TempDir()
	for _, picture := range pictures {
		svg, err := os.ReadFile(picture)
		fatal(t, err)
		name := filepath.Base(picture)
		if name != "demo.svg" { // its lines come and go, see cmd/demo
			labels, wrong, err := b.Labels(t.Context(), append([]byte("<!DOCTYPE html><body>"), svg...), 1000, 700)
			fatal(t, err)
			for _, w := range wrong {
				t.Errorf("%s: %s", name, w)
			}
			if labels < 10 {
				t.Errorf("%s has %d labels", name, labels)
			}
		}
		size := viewBox.FindSubmatch(svg)
		if size == nil {
			t.Fatalf("%s has no viewBox", name)
		}
		width, _ := strconv.Atoi(string(size[1])) // digits, as the height
		height, _ := strconv.Atoi(string(size[2]))
		if err := b.Look(t.Context(), picture, width, height, dir); err != nil {
			t.Error(err)
		}
	}
}

// The site can be read from its folder, without a network: pages, navigation, and what is found by a word.
func TestSiteInABrowser(t *testing.T) {
	b, err := browser.Find()
	if err != nil {
		t.Skip(err)
	}
	site := filepath.Join(t.TempDir(), "site")
	fatal(t, shell(t.Context(), "hack/site.sh "+site))
	dir := t.TempDir()
	for _, page := range []string{"index.html", "spread.html", "reference/policies.html"} {
		if err := b.Look(t.Context(), filepath.Join(site, page), 1280, 1000, dir); err != nil {
			t.Error(err)
		}
	}
	// What is typed into the search is looked for in all pages.
	page, err := os.ReadFile(filepath.Join(site, "index.html"))
	fatal(t, err)
	file := filepath.Join(site, "search-test.html")
	page = append(page, `<script>addEventListener("load", () => { const i = document.getElementById("find"); i.value = "kustomize overlay"; i.focus(); i.dispatchEvent(new Event("input"));
		setTimeout(() => { const pre = document.createElement("pre"); pre.id = "espalier-found"; pre.textContent = JSON.stringify([...document.querySelectorAll("#found a")].map(a => a.textContent)); document.body.append(pre); }, 2000); })</script>`...)
	fatal(t, os.WriteFile(file, page, 0o600))
	var found []string
	fatal(t, b.Found(t.Context(), browser.Page{File: file, Width: 1280, Height: 1000}, &found))
	if len(found) == 0 || found[0] != "Install" {
		t.Errorf("kustomize overlay is found in %q", found)
	}
}

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

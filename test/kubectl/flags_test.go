// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// clusters writes a kubeconfig with the cluster as one of its contexts, and another one, which is current, that nobody answers at.
func clusters(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(world.kubeconfig)
	fatal(t, err)
	there := config.Contexts[config.CurrentContext]
	there.Namespace = namespace
	config.Contexts = map[string]*clientcmdapi.Context{"there": there, "gone": {Cluster: "gone", AuthInfo: there.AuthInfo, Namespace: namespace}}
	config.Clusters["gone"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.CurrentContext = "gone"
	file := filepath.Join(t.TempDir(), "config")
	fatal(t, clientcmd.WriteToFile(*config, file))
	return file
}

// Each command takes the kubeconfig, the context and the namespace by flags, as kubectl does.
func TestKubeconfigContextNamespace(t *testing.T) {
	file := clusters(t)
	for _, name := range []string{"tree", "explain", "balance", "simulate", "lint", "faults", "moves", "doctor", "snapshot"} {
		args, is := printed[name]
		if !is {
			args = name
		}
		full := append(strings.Fields(args), "--kubeconfig", file)
		if out, said, status := run(t, append(full, "--context", "there")...); status != 0 || out == "" {
			t.Errorf("%s: with the context it ends with %d and says %q", name, status, said)
		}
		if out, said, status := run(t, full...); status != 1 || out != "" || !strings.Contains(said, "127.0.0.1:1") {
			t.Errorf("%s: with the current context, which is gone, it ends with %d, prints %q and says %q", name, status, out, said)
		}
	}
	for args, want := range map[string]string{
		"tree deployment/web -n default":                     `no deployment/web in namespace "default"`,
		"explain pod/db-0 -n default":                        `no pod/db-0 in namespace "default"`,
		"balance -n default -o name":                         "",
		"moves -n default -o name":                           "",
		"faults -n default -o name":                          "",
		"balance -n default -A -o name":                      "deployment/api\ndeployment/web\nstatefulset/db\n",
		"moves -n default -A -o name":                        "move.placement.espalier.dev/web-2\nmove.placement.espalier.dev/web-1\n",
		"faults -n default -A -o name":                       "node/node-001\nnode/node-002\n",
		"doctor -o name":                                     "",
		"simulate --drain node-011 -n default -o name":       "",
		"lint -f testdata/api.yaml -n other -o name":         "deployment/api\n",
		"tree deployment/web --cluster gone":                 "127.0.0.1:1",
		"tree deployment/web --server https://127.0.0.1:2":   "127.0.0.1:2",
		"tree deployment/web --user none":                    "none",
		"tree deployment/web --as nobody --as-group nogroup": "nobody",
	} {
		out, said, _ := run(t, append(strings.Fields(args), "--kubeconfig", file, "--context", "there")...)
		if !strings.Contains(out+said, want) || want == "" && out != "" && !strings.HasPrefix(out, "pod/choosy") {
			t.Errorf("%s prints %q and says %q, want %q", args, out, said, want)
		}
	}
}

// Shells complete what there is: commands, workloads, pods, nodes, namespaces, contexts and formats.
func TestCompletion(t *testing.T) {
	file := clusters(t)
	for args, want := range map[string][]string{
		"sim":                                   {"simulate"},
		"tree ":                                 {"deployment/api", "deployment/web", "statefulset/db"},
		"tree deploy/w":                         {"deploy/web"},
		"tree sts/":                             {"sts/db"},
		"explain pod/d":                         {"pod/db-0", "pod/db-1", "pod/db-2", "pod/db-3", "pod/db-4"},
		"simulate --drain node-01":              {"node-010", "node-011"},
		"simulate --cordon node-001,node-01":    {"node-001,node-010", "node-001,node-011"},
		"tree deployment/web -n sh":             {"shop"},
		"balance --namespace sh":                {"shop"},
		"tree deployment/web --context ":        {"there", "gone"},
		"tree deployment/web -o ":               {"json", "yaml", "name", "wide", "svg", "html", "dot"},
		"moves --output ":                       {"json", "yaml", "name", "wide"},
		"tree deployment/web --snapshot x dep":  nil,
		"tree job/":                             nil,
		"tree --context gone ":                  nil,
		"tree deployment/web --context there x": nil,
	} {
		words := strings.Split(args, " ") // the last is what is completed
		command := len(words) - 1
		flags := []string{"--kubeconfig", file}
		if !strings.Contains(args, "--context") {
			flags = append(flags, "--context", "there")
		}
		out, _, status := run(t, slices.Concat([]string{"__complete"}, words[:min(command, 1)], flags, words[min(command, 1):])...)
		for _, name := range want {
			if !strings.Contains("\n"+out, "\n"+name) {
				t.Errorf("%q is completed by %q, and not by %s", args, out, name)
			}
		}
		if offered := strings.Contains(out, "/") || strings.HasPrefix(out, "node-"); status != 0 || want == nil && offered {
			t.Errorf("%q is completed by %q, status %d", args, out, status)
		}
	}
}

// kubectl itself finds the plugin, and completes for it where its completion script is in the PATH too.
func TestBelowKubectl(t *testing.T) {
	kubectl, err := filepath.Abs(filepath.Join(toolsFolder, "kubectl"))
	if err == nil {
		_, err = os.Stat(kubectl)
	}
	if err != nil {
		t.Fatalf("kubectl: %v: run `make tools`", err)
	}
	scripts, err := filepath.Abs("../../hack")
	fatal(t, err)
	for want, args := range map[string]string{
		"deployment/web in namespace shop": "espalier tree deployment/web -n shop",
		"statefulset/db\n":                 "__complete espalier tree -n shop statefulset/",
	} {
		cmd := exec.CommandContext(t.Context(), kubectl, strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+world.kubeconfig, "PATH="+filepath.Dir(world.binary)+":"+scripts+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("kubectl %s: %v: %s", args, err, out)
		}
	}
}

// account makes a service account that may list these resources and nothing else, and writes a kubeconfig of it.
func account(t *testing.T, name string, resources ...string) string {
	t.Helper()
	api := world.client
	meta := metav1.ObjectMeta{Name: name}
	_, err := api.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err == nil && len(resources) > 0 {
		rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: resources, Verbs: []string{"list"}}
		_, err = api.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	}
	if err == nil && len(resources) > 0 {
		_, err = api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		}, metav1.CreateOptions{})
	}
	file := filepath.Join(t.TempDir(), "config")
	if err == nil {
		err = rig.WriteKubeconfigIn(t.Context(), world.config, api, namespace, name, file)
	}
	fatal(t, err)
	return file
}

// Bad input ends with a status that is not 0, prints nothing, and is told in one line: what is wrong, and what to do. This is about the API server,
// whoever asks it and how; mistakes of other kinds are told of a snapshot alike (cmd/kubectl-espalier).
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		fatal(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	nobody := account(t, "nobody")
	expired := file("expired", `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"`+world.config.Host+`","insecure-skip-tls-verify":true}}],"users":[{"name":"x","user":{"token":"expired"}}]}`)
	typo := file("typo.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicaz: 1}\n")
	cut := file("cut.json", `{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v1alpha1","objects":[{"kind":"No`)
	none := filepath.Join(dir, "none")
	for args, parts := range map[string][]string{
		// No such object.
		"tree deployment/none -n shop":                       {"there is no deployment/none", "-n names another namespace"},
		"tree deployment/web -n none":                        {`in namespace "none"`, "-n names another namespace"},
		"explain pod/none -n shop":                           {"there is no pod/none", "-n names another namespace"},
		"simulate -f testdata/web.yaml -n shop --replicas 3": {"has 14 pods, and is to have 3"},
		// No permission.
		"tree deployment/web -n shop --kubeconfig " + nobody:  {"listing pods", "forbidden", "ask for this right", "--snapshot"},
		"balance --kubeconfig " + nobody:                      {"forbidden", "ask for this right"},
		"snapshot --kubeconfig " + nobody:                     {"forbidden", "ask for this right"},
		"faults --kubeconfig " + nobody:                       {"listing ConfigMaps", "forbidden", "ask for this right"},
		"moves -n shop --kubeconfig " + nobody:                {"listing Moves", "forbidden", "ask for this right"},
		"doctor --kubeconfig " + nobody:                       {"forbidden", "ask for this right"},
		"tree deployment/web -n shop --kubeconfig " + expired: {"asking the API server for its version", "log in again"},
		"tree deployment/web --server https://127.0.0.1:1":    {"127.0.0.1:1", "--kubeconfig and --context choose it"},
		"tree deployment/web --context none":                  {"none", "get-contexts"},
		"tree deployment/web --kubeconfig " + none:            {none},
		// Files, commands and flags.
		"lint -f " + typo: {typo, "replicaz"},
		"convert --from swarm -f testdata/compose.yaml":          {"--from=swarm", "compose or constraints"},
		"snapshot --file " + filepath.Join(none, "cluster.json"): {none},
		"balance --snapshot " + cut:                              {cut, "take it again"},
		"balance --snapshot testdata/web.yaml":                   {"testdata/web.yaml", "`kubectl espalier snapshot` writes"},
		"doctor --snapshot " + cut:                               {"--snapshot: doctor looks at a cluster"},
		"balance --nope":                                         {"--nope", "--help"},
		"balance web":                                            {`"web"`},
	} {
		out, said, status := run(t, strings.Fields(args)...)
		if status != 1 || out != "" || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "error: ") {
			t.Errorf("%s ends with %d, prints %q and says\n%s", args, status, out, said)
		}
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Errorf("%s: it does not say %q: %s", args, part, said)
			}
		}
	}
}

// Who may list pods and nodes alone is answered, and warned of each kind that could not be read.
func TestFewRights(t *testing.T) {
	few := account(t, "few", "pods", "nodes")
	out, said, status := run(t, "explain", "pod/choosy", "-n", namespace, "--kubeconfig", few)
	if status != 0 || !strings.Contains(out, "pending: fits on 0 of 12 nodes") || !strings.Contains(said, "warning: not read: replicasets") {
		t.Errorf("it ends with %d, prints %s and says %s", status, out, said)
	}
}

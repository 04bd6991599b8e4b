// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

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

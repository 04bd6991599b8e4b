// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// secret is what nobody may read in a log, by a name to say instead.
type secret struct{ name, text string }

// secretsOf are the secrets of a kubeconfig, as they are and as they are written in it: the token, and the lines of keys and certificates.
func secretsOf(t *testing.T, kubeconfig string) []secret {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	fatal(t, err)
	fatal(t, rest.LoadTLSFiles(config))
	var all []secret
	add := func(name string, content []byte) {
		if len(content) == 0 {
			return
		}
		all = append(all, secret{name, string(content)}, secret{name + " in base64", base64.StdEncoding.EncodeToString(content)},
			secret{name + " in base64 for addresses", base64.RawURLEncoding.EncodeToString(content)})
	}
	add("the token", []byte(config.BearerToken))
	if parts := strings.Split(config.BearerToken, "."); len(parts) == 3 {
		add("the signature of the token", []byte(parts[2]))
	}
	for name, content := range map[string][]byte{"the client's key": config.KeyData, "the client's certificate": config.CertData} {
		add(name, content)
		// A part of it is as bad, but for what is also in the certificate of the authority, which the
		// API server publishes in a ConfigMap: both begin alike.
		for line := range bytes.Lines(content) {
			if line = bytes.TrimSpace(line); len(line) > 40 && !bytes.Contains(line, []byte("-----")) && !bytes.Contains(config.CAData, line) {
				add("a line of "+name, line)
			}
		}
	}
	return all
}

// leaks are the names of the secrets that are in a log, also those that are broken over
// lines there, or whose line breaks are written out, as all are in JSON.
func leaks(log []byte, secrets []secret) []string {
	together := strings.NewReplacer("\n", "", "\r", "", `\n`, "", " ", "", "\t", "")
	unquoted := strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(string(log))
	text := together.Replace(string(log)) + together.Replace(undumped(log)) + together.Replace(undumped([]byte(unquoted)))
	var found []string
	for _, s := range secrets {
		if strings.Contains(text, together.Replace(s.text)) {
			found = append(found, s.name)
		}
	}
	return found
}

// undumped is what can be read of the dumps in a log: what is not text is written as sixteen bytes a line.
func undumped(log []byte) string {
	var all strings.Builder
	for _, line := range dumpLine.FindAllSubmatch(log, -1) {
		all.Write(line[1])
	}
	return all.String()
}

var dumpLine = regexp.MustCompile(`(?m)(?:^\s*|")[0-9a-f]{8}  [0-9a-f ]{48,49} \|(.{1,16})\|$`)

// TestLeaksAreFound makes sure that the tests below can fail.
func TestLeaksAreFound(t *testing.T) {
	for name, kubeconfig := range map[string]string{"token": cluster.account, "certificate": cluster.admin} {
		secrets := secretsOf(t, kubeconfig)
		if len(secrets) < 3 {
			t.Fatalf("%s: there are %d secrets only", name, len(secrets))
		}
		for _, s := range secrets {
			middle, dump := len(s.text)/2, hex.Dump([]byte(`k8s\"`+s.text))
			for _, shown := range []string{s.text, s.text[:middle] + "\n" + s.text[middle:], strings.ReplaceAll(s.text, "\n", `\n`), "\n" + dump, strconv.Quote(dump)} {
				if len(leaks([]byte("I1120 curl -v "+shown+" and more"), secrets)) == 0 {
					t.Errorf("%s is not found in a log that has it", s.name)
				}
			}
		}
		content, err := os.ReadFile(kubeconfig)
		fatal(t, err)
		if len(leaks(content, secrets)) == 0 {
			t.Errorf("%s: the kubeconfig itself, in a log, is not found", name)
		}
	}
}

// silent wants a log to be as long as one of everything, to have the requests, and no secret.
func silent(t *testing.T, p *rig.Process, secrets []secret, masked bool) {
	t.Helper()
	log, err := os.ReadFile(p.Log)
	fatal(t, err)
	t.Logf("%s wrote %d bytes", p.Name, len(log))
	// The client writes each request out as a command, and masks its token.
	if !bytes.Contains(log, []byte("curl -v")) || bytes.Contains(log, []byte("Bearer <masked>")) != masked {
		t.Errorf("the log of %s has no requests, or whether they have a masked token is not %t: then this shows nothing", p.Name, masked)
	}
	if found := leaks(log, secrets); len(found) > 0 {
		t.Errorf("in the log of %s is %s", p.Name, strings.Join(found, ", "))
	}
}

// askForMetrics waits for /metrics, and returns what nobody may read in the log of who serves them: the token of who asks.
func askForMetrics(t *testing.T, ns, port string) []secret {
	t.Helper()
	token := metricsToken(t, ns)
	says(t, "https://127.0.0.1:"+port+"/metrics", token, http.StatusOK, "")
	return []secret{{"the token of who asks", token}, {"its signature", token[strings.LastIndex(token, ".")+1:]}}
}

// The scheduler writes no secret into its log, as much as it may write there: neither its own, nor those of whoever asks it.
func TestSchedulerLogsNoSecret(t *testing.T) {
	for name, tc := range map[string]struct{ kubeconfig, format string }{
		"token": {cluster.account, "text"}, "certificate": {cluster.admin, "text"}, "token in JSON": {cluster.account, "json"},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig := tc.kubeconfig
			ns, port := namespace(t), freePort(t)
			p := start(t, "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
				"--bind-address=127.0.0.1", "--secure-port="+port, "--v=10", "--logging-format="+tc.format)
			pods(t, ns, rig.SchedulerName, 7)
			settled(t, ns, rig.SchedulerName, 7)
			secrets := append(secretsOf(t, kubeconfig), askForMetrics(t, ns, port)...)
			stop(t, p)
			silent(t, p, secrets, kubeconfig == cluster.account)
		})
	}
}

// Nor does the controller.
func TestControllerLogsNoSecret(t *testing.T) {
	t.Cleanup(func() { removePolicies(t) })
	for name, kubeconfig := range map[string]string{"token": controllerKubeconfig(t), "certificate": cluster.admin} {
		t.Run(name, func(t *testing.T) {
			ns, port := namespace(t), freePort(t)
			installPolicies(t, ns)
			pods(t, ns, rig.SchedulerName, 3)
			p := startController(t, kubeconfig, "--metrics-bind-address=127.0.0.1:"+port, "-v=10")
			logs(t, p, "/namespaces/"+ns+"/placementpolicies/zones/status") // it writes the status of the policy
			asks := askForMetrics(t, ns, port)
			stop(t, p)
			silent(t, p, append(secretsOf(t, kubeconfig), asks...), name == "token")
		})
	}
}

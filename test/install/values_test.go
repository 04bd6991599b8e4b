// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// schema is what of a JSON schema the chart's uses to describe values.
type schema struct {
	Description          string             `json:"description"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties any                `json:"additionalProperties"`
	Required             []string           `json:"required"`
	Items                *schema            `json:"items"`
}

// walk calls f with each value that is described: with its path, and its default.
func (s *schema) walk(t *testing.T, path string, defaults any, f func(path, description string, value any)) {
	t.Helper()
	if s.AdditionalProperties != false {
		t.Errorf("the schema lets anything into %q", path)
	}
	s.requires(t, path)
	have, _ := defaults.(map[string]any)
	have = maps.Clone(have)
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		sub, name := s.Properties[key], strings.TrimPrefix(path+"."+key, ".")
		if name == "global" { // which helm itself gives to every chart
			continue
		}
		value, ok := have[key]
		if !ok {
			t.Errorf("values.yaml has no %s, which the schema has", name)
			continue
		}
		delete(have, key)
		if sub.Description != "" {
			f(name, sub.Description, value)
			if sub.Items != nil && sub.Items.Properties != nil {
				sub.Items.walk(t, name+"[]", value.([]any)[0], f)
			}
			continue
		}
		sub.walk(t, name, value, f)
	}
	for key := range have {
		t.Errorf("values.yaml has %s.%s, which the schema has not", path, key)
	}
}

// requires wants an object to require all that it may have. Each has a default, so only one that is null
// can be missing, which helm has taken away, default and all.
func (s *schema) requires(t *testing.T, path string) {
	t.Helper()
	want := slices.Sorted(maps.Keys(s.Properties))
	switch path {
	case "": // global is helm's own
		want = slices.DeleteFunc(want, func(key string) bool { return key == "global" })
	case "scheduler": // the templates have better words
		want = slices.DeleteFunc(want, func(key string) bool { return key == "profiles" })
	case "scheduler.profiles[]": // each is made from the shipped one
		want = nil
	}
	if got := slices.Sorted(slices.Values(s.Required)); !slices.Equal(got, want) {
		t.Errorf("the schema requires %q in %q, want %q", got, path, want)
	}
}

// described are the values that the schema describes, by path.
func described(t *testing.T) (descriptions map[string]string, defaults map[string]any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	fatal(t, err)
	var root schema
	fatal(t, json.Unmarshal(content, &root))
	descriptions, defaults = map[string]string{}, map[string]any{}
	shipped := values(t, filepath.Join(chart, "values.yaml"))
	root.walk(t, "", shipped, func(path, description string, value any) {
		descriptions[path], defaults[path] = description, value
	})
	return descriptions, defaults
}

// TestEveryValueIsDocumented wants the table of the README to hold every value with
// the default of values.yaml and the description of the schema, and nothing else.
func TestEveryValueIsDocumented(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(chart, "README.md"))
	fatal(t, err)
	rows := map[string]string{}
	for _, line := range strings.Split(string(readme), "\n") {
		if cells := strings.SplitN(line, "`", 3); len(cells) == 3 && cells[0] == "| " {
			rows[cells[1]] = line
		}
	}
	descriptions, defaults := described(t)
	for path, description := range descriptions {
		row, ok := rows[path]
		delete(rows, path)
		cells := strings.SplitN(row, " | ", 3)
		if !ok || len(cells) != 3 {
			t.Errorf("README.md has no row for %s", path)
			continue
		}
		var value any
		if err := json.Unmarshal([]byte(strings.Trim(cells[1], "`")), &value); err != nil {
			t.Errorf("%s: its default %s is no JSON: %v", path, cells[1], err)
		}
		if fmt.Sprint(value) != fmt.Sprint(normal(t, defaults[path])) {
			t.Errorf("%s: README.md has the default %v, values.yaml %v", path, value, defaults[path])
		}
		if got := strings.TrimSuffix(cells[2], " |"); got != description {
			t.Errorf("%s: README.md says %q, the schema %q", path, got, description)
		}
	}
	for path := range rows {
		t.Errorf("README.md has a row for %s, which is no value", path)
	}
}

// normal brings a value to the types of JSON.
func normal(t *testing.T, value any) (out any) {
	t.Helper()
	text, err := json.Marshal(value)
	fatal(t, err)
	fatal(t, json.Unmarshal(text, &out))
	return out
}

// TestEveryValueDoesSomething renders every case without each of the values that it
// sets: what comes out must be something else. Together the cases set all values.
func TestEveryValueDoesSomething(t *testing.T) {
	_, left := described(t)
	all := maps.Clone(left)
	for _, file := range cases(t) {
		whole := template(t, "espalier", "espalier-system", "--values", file)
		for path := range all {
			v := values(t, file)
			if !remove(v, strings.Split(path, ".")) {
				continue
			}
			delete(left, path)
			if without := template(t, "espalier", "espalier-system", "--values", write(t, v)); without == whole {
				t.Errorf("%s: %s changes nothing", file, path)
			}
		}
	}
	for path := range left {
		t.Errorf("no file in testdata/values sets %s", path)
	}
}

// remove takes a value out of a document, the first one of a list, and says whether it was there.
func remove(v map[string]any, path []string) bool {
	key, list := strings.CutSuffix(path[0], "[]")
	value, ok := v[key]
	if len(path) == 1 {
		delete(v, key)
		return ok
	}
	if items, isList := value.([]any); list && isList {
		value = items[0]
	}
	next, ok := value.(map[string]any)
	return ok && remove(next, path[1:])
}

// TestChartRefuses wants mistakes to be told before anything is installed.
func TestChartRefuses(t *testing.T) {
	for set, want := range map[string]string{
		`mode="Sharing"`:                             "/mode",
		`scheduler.replica=2`:                        "additional properties 'replica' not allowed",
		`scheduler.replicas="two"`:                   "/scheduler/replicas",
		`scheduler.profiles=[]`:                      "minItems",
		`scheduler.profiles=[{"name":"a"}]`:          "additional properties 'name' not allowed",
		`scheduler.client.burst=0`:                   "/scheduler/client/burst",
		`scheduler.client.qps=0`:                     "/scheduler/client/qps",
		`scheduler.leaderElection.retryPeriod="two"`: "/scheduler/leaderElection/retryPeriod",
		`scheduler.image.digest="latest"`:            "/scheduler/image/digest",
		`controller.image.pullPolicy="Sometimes"`:    "/controller/image/pullPolicy",
		`networkPolicy.apiServerPorts=[0]`:           "/networkPolicy/apiServerPorts/0",
		// A rule without ports is one for all of them.
		`networkPolicy.apiServerPorts=[]`: "/networkPolicy/apiServerPorts",
		`leaderElection.enabled=false`:    "additional properties 'leaderElection' not allowed",
		// An empty one allows no replica to go, and every drain waits for ever.
		`scheduler.podDisruptionBudget.maxUnavailable=""`:     "/scheduler/podDisruptionBudget/maxUnavailable",
		`scheduler.podDisruptionBudget.maxUnavailable="101%"`: "/scheduler/podDisruptionBudget/maxUnavailable",
		`scheduler.podDisruptionBudget.maxUnavailable=-1`:     "/scheduler/podDisruptionBudget/maxUnavailable",
		`scheduler.priorityClassName="High"`:                  "/scheduler/priorityClassName",
		`controller.schedulerNames=["a,b"]`:                   "/controller/schedulerNames/0",
		`controller.taintSuspects.effect="NoExecute"`:         "/controller/taintSuspects/effect",
		`scheduler.topologySpread=[{"topologyKey":"zone","maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{}}]`: "/scheduler/topologySpread/0",
		// The name of a Service has no dot.
		`fullnameOverride="batch.v1"`: "/fullnameOverride",
		`nameOverride="batch.v1"`:     "/nameOverride",
		// Helm takes a value that is null away before it validates, and what it is without is not safe:
		// all ports are open, nothing is confined, Kubernetes' own limits hold.
		`networkPolicy.apiServerPorts=null`:                 "missing property 'apiServerPorts'",
		`scheduler.podSecurityContext=null`:                 "missing property 'podSecurityContext'",
		`controller.securityContext=null`:                   "missing property 'securityContext'",
		`scheduler.client.qps=null`:                         "missing property 'qps'",
		`scheduler.client=null`:                             "missing property 'client'",
		`scheduler.podDisruptionBudget.maxUnavailable=null`: "missing property 'maxUnavailable'",
		`scheduler.port=null`:                               "missing property 'port'",
		`scheduler.configuration=null`:                      "missing property 'configuration'",
		`controller.schedulerNames=null`:                    "missing property 'schedulerNames'",
		`networkPolicy=null`:                                "missing property 'networkPolicy'",
		// What the schema cannot tell, the templates have words for: values that it does not see, as null is the lack of a value, and what is
		// inside of a configuration.
		`mode="NodePool",scheduler.configuration={"profiles":[{}]}`:       "mode NodePool changes the profiles",
		`scheduler.profiles=null`:                                         "scheduler.profiles is empty",
		`scheduler.configuration={"parallelism":8}`:                       "scheduler.configuration has no profiles",
		`scheduler.configuration={"profiles":[]}`:                         "scheduler.configuration has no profiles",
		`scheduler.profiles=[{},{"schedulerName":"espalier-scheduler"}]`:  "two profiles are named espalier-scheduler",
		`scheduler.configuration={"profiles":[{"schedulerName":"a"},{}]}`: "scheduler.configuration.profiles[1] has no schedulerName",
		`controller.taintSuspects.effect="NoSchedule",scheduler.profiles=[{"pluginArgs":{"FaultyNode":{"record":{"enabled":false}}}}]`: "the profiles keep theirs in 0",
		`tenants.enabled=true,scheduler.activeActive=true`:     "tenants.enabled has one scheduler keep one order of all pods",
		`controller.arbiter.enabled=true,controller.port=9443`: "controller.port is 9443, at which the API server asks about bindings",
	} {
		_, _, err := tool(t, "", "helm", "template", "espalier", chart, "--set-json", set)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q, got %v", set, want, err)
		}
	}
}

// TestNullInsideTakesAway wants a part of a default to go as helm's users know it, where that is safe.
func TestNullInsideTakesAway(t *testing.T) {
	whole, without := template(t, "espalier", "kube-system"), template(t, "espalier", "kube-system", "--set-json", `scheduler.resources.requests=null`)
	if strings.Count(whole, " requests:\n") != strings.Count(without, " requests:\n")+1 {
		t.Errorf("requests that are null are not gone:\n%s", without)
	}
}

// TestVersions wants the chart to say on which versions of Kubernetes it can be installed, and with what.
func TestVersions(t *testing.T) {
	for _, c := range []struct{ version, set, want string }{
		{"1.33.9", "fullnameOverride=", "chart requires kubeVersion"},
		{"1.34.0", "fullnameOverride=", ""},
		{"1.38.2-eks-1", "fullnameOverride=", ""},
		{"1.39.0", "fullnameOverride=", "chart requires kubeVersion"},
		{"1.35.4", "admissionPolicies.annotations=true", ""},
		{"1.35.4", "admissionPolicies.nativeTwins=true", "admissionPolicies.nativeTwins changes new pods"},
		{"1.35.4", "admissionPolicies.schedulerName=true", "admissionPolicies.schedulerName changes new pods"},
		{"1.36.0", "admissionPolicies.nativeTwins=true,admissionPolicies.schedulerName=true", ""},
	} {
		_, _, err := tool(t, "", "helm", "template", "espalier", chart, "--kube-version", c.version, "--set", c.set)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("Kubernetes %s, %s: want an error with %q, got %v", c.version, c.set, c.want, err)
		}
	}
}

// TestTheNameThatKubernetesGives wants a profile without a name to be told to the controller by the name that the scheduler gives it.
func TestTheNameThatKubernetesGives(t *testing.T) {
	text := template(t, "espalier", "espalier-system", "--set-json", `scheduler.configuration={"profiles":[{}]}`)
	for _, want := range []string{"\"--scheduler-names=default-scheduler\"\n", "schedulerName: default-scheduler\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

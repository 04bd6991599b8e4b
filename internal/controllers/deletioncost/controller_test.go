// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package deletioncost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func options(mode string) Options {
	return Options{Mode: mode, Schedulers: []string{"espalier-scheduler"}, Namespaces: labels.Everything(), Quiet: time.Minute}
}

func TestOptions(t *testing.T) {
	controllertest.Must(t, options(Backfill).Validate())
	controllertest.WantInvalid(t, func() Options { return options(Repair) }, map[string]func(*Options){
		`"All" is no mode: use Repair or Backfill`:                        func(o *Options) { o.Mode = "All" },
		"-1s is no time that pods must have been the same: use 0s to 24h": func(o *Options) { o.Quiet = -time.Second },
	})
}

// repaired has a controller look at the pods of a ReplicaSet, a letter for the zone of each and its annotations: its ordinal and its cost. It returns
// both as they are when it has looked.
func repaired(t *testing.T, o Options, placedBy string, change func(*corev1.Pod), pods ...string) string {
	t.Helper()
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
	for _, zone := range []string{"a", "b"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{"zone": zone}}})
	}
	for i, text := range pods {
		zone, ordinal, _ := strings.Cut(text, " ")
		p := &corev1.Pod{ObjectMeta: controllertest.Named(fmt.Sprint(i)), Spec: corev1.PodSpec{SchedulerName: "espalier-scheduler", NodeName: "node-" + zone}}
		p.CreationTimestamp, p.OwnerReferences = metav1.NewTime(begin.Add(time.Duration(i)*time.Second)), controllertest.OwnedBy("ReplicaSet", "web")
		p.Annotations = map[string]string{"espalier.dev/placed-by": placedBy}
		if n, cost, found := strings.Cut(ordinal, " "); found {
			p.Annotations["espalier.dev/deletion-ordinal"], p.Annotations[corev1.PodDeletionCost] = n, cost
		}
		change(p)
		objects = append(objects, p)
	}
	r := controllertest.New(t, begin.Add(time.Hour), controllertest.Builder(t, objects...))
	c := &Controller{Client: r.Server, Clock: r.Time, Options: o}
	c.reset()
	look := func() string {
		r.Must(c.look(t.Context()))
		var list corev1.PodList
		r.Must(r.Server.List(t.Context(), &list))
		var is []string
		for _, p := range list.Items {
			is = append(is, p.Annotations["espalier.dev/deletion-ordinal"]+" "+p.Annotations[corev1.PodDeletionCost])
		}
		return strings.Join(is, ", ")
	}
	before := look()
	r.Time.Step(o.Quiet - time.Second)
	if early := look(); early != before {
		t.Errorf("too early there is %s", early)
	}
	r.Time.Step(time.Second)
	return look()
}

func TestRepairs(t *testing.T) {
	const even, weighted = "defaults spread=zone", "annotation spread=zone;weight.a=70;weight.b=30"
	plain := func(*corev1.Pod) {}
	for name, tc := range map[string]struct {
		mode, placedBy string
		change         func(*corev1.Pod)
		pods           []string
		want           string
	}{
		"nothing is missing":    {Repair, even, plain, []string{"a 1 -1", "b 1 -1", "a 2 -2"}, "1 -1, 1 -1, 2 -2"},
		"one is missing":        {Repair, even, plain, []string{"a 1 -1", "b 1 -1", "a 4 -4"}, "1 -1, 1 -1, 2 -2"},
		"one has none":          {Repair, even, plain, []string{"a 1 -1", "a", "b"}, "1 -1, 2 -2, 1 -1"},
		"none has one":          {Repair, even, plain, []string{"a", "a", "b"}, " ,  ,  "},
		"all get one":           {Backfill, even, plain, []string{"a", "a", "b"}, "1 -1, 2 -2, 1 -1"},
		"in shares":             {Backfill, weighted, plain, []string{"a", "a", "b"}, "1@70/100 -715, 2@70/100 -2143, 1@30/100 -1667"},
		"another's cost":        {Backfill, even, plain, []string{"a 1 -1", "a 2 7", "a"}, "1 -1, 2 7,  "},
		"a pod is moved":        {Backfill, even, func(p *corev1.Pod) { p.Annotations["espalier.dev/cost-before-move"] = "" }, []string{"a", "a"}, " ,  "},
		"another scheduler's":   {Backfill, even, func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }, []string{"a", "a"}, " ,  "},
		"a pod has no node":     {Backfill, even, func(p *corev1.Pod) { p.Spec.NodeName = "" }, []string{"a", "a"}, " ,  "},
		"the first level packs": {Backfill, "annotation pack=zone", plain, []string{"a", "a"}, " ,  "},
		"placed by nobody":      {Backfill, "", plain, []string{"a", "a"}, " ,  "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := repaired(t, options(tc.mode), tc.placedBy, tc.change, tc.pods...); got != tc.want {
				t.Errorf("there is %q, want %q", got, tc.want)
			}
		})
	}
}

// A look changes 50 pods at the most, and the next ones go on.
func TestRepairsAreBounded(t *testing.T) {
	pods := strings.Split(strings.Repeat("a,", 60), ",")[:60]
	got := repaired(t, options(Backfill), "defaults spread=zone", func(*corev1.Pod) {}, pods...)
	if n := strings.Count(got, "-"); n != burst {
		t.Errorf("%d pods have got a cost at once", n)
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

// askers are who a index is asked for: the revisions of a Deployment, of a ReplicaSet
// that is not known at first, of a named workload with two owners, and a lone pod.
func askers() []clusterview.Identity {
	workload := func(kind, name string) clusterview.Workload {
		return clusterview.Workload{Namespace: "ns", Kind: kind, Name: name}
	}
	deployment := workload("Deployment.apps", "web")
	shop := workload(clusterview.KindLabel, "shop")
	return []clusterview.Identity{
		{Workload: deployment, Revision: "1"},
		{Workload: deployment, Revision: "2"},
		{Workload: workload("ReplicaSet.apps", "web-3"), Revision: "3"},
		{Workload: shop, Owner: "Deployment.apps/web", Revision: "2"},
		{Workload: shop, Owner: "ReplicaSet.apps/web-3", Revision: "3"},
		{Workload: workload(clusterview.KindPod, "bare-1")},
	}
}

// cluster is a view with what a random walk over it has to know.
type cluster struct {
	*view
	t *rapid.T
	// told is what Since and On have said so far, by asker; since is up to when.
	told  []map[string][2]int64
	since []uint64
}

// some draws a node and one of its pods, and says if there is any.
func (c *cluster) some() (info *framework.NodeInfo, p *corev1.Pod, ok bool) {
	var with []*framework.NodeInfo
	for _, i := range c.infos {
		if len(i.GetPods()) > 0 {
			with = append(with, i.(*framework.NodeInfo))
		}
	}
	if len(with) == 0 {
		return nil, nil, false
	}
	info = rapid.SampledFrom(with).Draw(c.t, "node")
	return info, rapid.SampledFrom(info.GetPods()).Draw(c.t, "pod").GetPod(), true
}

func (c *cluster) step() {
	switch rapid.SampledFrom([]string{"put", "put", "put", "bare", "change", "change", "remove", "join", "leave", "shuffle", "clone", "learn"}).Draw(c.t, "step") {
	case "put":
		node := rapid.SampledFrom(c.infos).Draw(c.t, "on").Node().Name
		p := st.MakePod()
		if rapid.Bool().Draw(c.t, "named") {
			p.Label(clusterview.WorkloadLabel, "shop")
		}
		c.inService(p)
		c.put(node, fmt.Sprint("web-", rapid.IntRange(1, 3).Draw(c.t, "revision")), p)
	case "bare":
		c.uid++
		rapid.SampledFrom(c.infos).Draw(c.t, "on").(*framework.NodeInfo).AddPod(
			plugintest.Pod(c.inService(st.MakePod().Name(fmt.Sprint("bare-", c.uid%3)).UID(fmt.Sprint("bare-", c.uid)))))
	case "change":
		if info, p, ok := c.some(); ok {
			remove(c.t, info, p)
			info.AddPod(c.another(p))
		}
	case "remove":
		if info, p, ok := c.some(); ok {
			remove(c.t, info, p)
		}
	case "join":
		c.uid++
		c.join(st.MakeNode().Name(fmt.Sprint("joined-", c.uid)).Obj())
	case "leave":
		if len(c.infos) > 1 {
			c.leave(rapid.SampledFrom(c.infos).Draw(c.t, "who").Node().Name)
		}
	case "shuffle":
		c.infos = rapid.Permutation(c.infos).Draw(c.t, "order")
	case "clone":
		for i := range c.infos {
			c.infos[i] = c.infos[i].Snapshot()
		}
	case "learn":
		c.rs.Add(plugintest.ReplicaSet("web-3", "web-3-uid", plugintest.Owner("apps/v1 Deployment web web-uid")))
	}
}

// inService labels some pods for selectors.
func (c *cluster) inService(p *st.PodWrapper) *st.PodWrapper {
	if service := rapid.SampledFrom([]string{"", "x", "x", "y"}).Draw(c.t, "service"); service != "" {
		p.Label("svc", service)
	}
	return p
}

// another is a pod after something has happened to it.
func (c *cluster) another(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	switch rapid.SampledFrom([]string{"label", "service", "revision", "phase", "deletion", "nothing"}).Draw(c.t, "change") {
	case "label":
		metav1.SetMetaDataLabel(&p.ObjectMeta, clusterview.WorkloadLabel, "shop")
	case "service":
		metav1.SetMetaDataLabel(&p.ObjectMeta, "svc", rapid.SampledFrom([]string{"x", "y"}).Draw(c.t, "service"))
	case "revision":
		metav1.SetMetaDataLabel(&p.ObjectMeta, "pod-template-hash", "1")
	case "phase":
		p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed}).Draw(c.t, "phase")
	case "deletion":
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return p
}

// check holds the index, which remembers, to one that has seen nothing before.
func (c *cluster) check() {
	c.index.Refresh(podcount.Snapshot{Nodes: c.infos})
	anew := podcount.NewIndex(c.rs.Identifier())
	anew.Refresh(podcount.Snapshot{Nodes: c.infos})
	for i, of := range askers() {
		if d := gocmp.Diff(talliesOf(anew, of), talliesOf(c.index, of)); d != "" {
			c.t.Fatalf("%v: want -, got +:\n%s", of, d)
		}
		nodes, now, known := c.index.Since(of.Workload, c.since[i])
		if !known {
			clear(c.told[i])
			nodes, _, _ = c.index.Since(of.Workload, 0)
		}
		c.since[i] = now
		for _, node := range nodes {
			revision, workload := c.index.On(of, node)
			c.told[i][c.index.Nodes().Name(node)] = [2]int64{revision, workload}
		}
		maps.DeleteFunc(c.told[i], func(name string, pods [2]int64) bool { return !c.has(name) || pods == [2]int64{} })
		want := make(map[string][2]int64)
		for name, tally := range talliesOf(anew, of) {
			if tally.Workload > 0 {
				want[name] = [2]int64{tally.Revision, tally.Workload}
			}
		}
		if !maps.Equal(want, c.told[i]) {
			c.t.Fatalf("%v: was told of %v, want %v", of, c.told[i], want)
		}
		if want, got := revisions(anew, of), revisions(c.index, of); !maps.Equal(want, got) {
			c.t.Fatalf("%v: the revision stands on %v, want %v", of, got, want)
		}
		if want, got := anew.Counts(of.Workload), c.index.Counts(of.Workload); want != got {
			c.t.Fatalf("%v: that pods count is %t, want %t", of, got, want)
		}
		c.checkUnder(anew, of)
	}
}

func revisions(index *podcount.Index, of clusterview.Identity) map[string]int64 {
	counts := make(map[string]int64)
	for node, pods := range index.Revision(of) {
		counts[node.Name] += pods
	}
	return counts
}

// A index that remembers pods says the same as one that counts all of them anew, whatever has happened in between.
func TestIndexSaysWhatOneMadeAnewSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &cluster{view: newView("n1", "n2", "n3"), t: rt, since: make([]uint64, len(askers()))}
		for range askers() {
			c.told = append(c.told, make(map[string][2]int64))
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			c.step()
			if rapid.Bool().Draw(rt, "look") {
				c.check()
			}
		}
		c.check()
	})
}

// A index may rest while the pods of a cluster are replaced one by one.
func TestIndexKeepsNoPods(t *testing.T) {
	v := newView("n1").put("n1", "web-2", st.MakePod(), st.MakePod(), st.MakePod())
	v.index.Refresh(podcount.Snapshot{Nodes: v.infos})
	first := weak.Make(v.info("n1").GetPods()[0].GetPod())
	// The index still knows its nodes by the snapshot that it saw; this one is in use.
	info := v.info("n1")
	for _, p := range slices.Clone(info.GetPods()) {
		remove(t, info, p.GetPod())
	}
	for range 3 {
		runtime.GC()
	}
	if first.Value() != nil {
		t.Error("a pod that is gone is kept in memory")
	}
	runtime.KeepAlive(v)
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// stage is a program under test with rights of its own, in a namespace of its own, and with a node that is for its pods.
type stage struct {
	*testing.T
	// name is the namespace, the account, the scheduler, the Lease and the node.
	name  string
	proxy *proxy
	// without is the right that is missing, nil if none is.
	without *right
	process *rig.Process
	dir     string
	port    string
}

var stages atomic.Int32

// build makes everything but the program itself.
func build(t *testing.T, objects []*unstructured.Unstructured, old string, without *right) *stage {
	t.Helper()
	s := &stage{T: t, name: fmt.Sprintf("stage-%d", stages.Add(1)), proxy: startProxy(t), without: without, dir: t.TempDir()}
	var err error
	s.port, err = rig.FreePort()
	must(s, err)
	core := cluster.client.CoreV1()
	for _, namespace := range []string{s.name, s.name + "-b"} {
		made(s, core.Namespaces().Create, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		// No controller is there to make the account that pods run as.
		made(s, core.ServiceAccounts(namespace).Create, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	}
	missing := right{from: "nothing"}
	if without != nil {
		missing = *without
	}
	grant(t, objects, old, s.name, missing)
	s.effective(objects, old, missing)
	config := rest.AnonymousClientConfig(cluster.config)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.proxy.Certificate().Raw})
	config.TLSClientConfig, config.Host = rest.TLSClientConfig{CAData: authority}, s.proxy.URL
	must(s, s.kubeconfig(config))
	return s
}

func (s *stage) kubeconfig(config *rest.Config) error {
	return rig.WriteKubeconfigIn(s.Context(), config, cluster.client, s.name, s.name, s.path("kubeconfig"))
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// effective waits until the API server has heard of every role and binding.
func (s *stage) effective(objects []*unstructured.Unstructured, old string, missing right) {
	s.Helper()
	user := "system:serviceaccount:" + s.name + ":" + s.name
	seen := map[string]bool{}
	for _, r := range rightsIn(s.T, objects) {
		if seen[r.from] || r == missing || r.verb == "" {
			continue
		}
		seen[r.from] = true
		group, _, _ := strings.Cut(r.resource, "/")
		_, sub, _ := strings.Cut(r.resource, "/")
		name, _, _ := strings.Cut(renamed(r.names, old, s.name), " ") // one of them is enough: they are granted together
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: s.name, Verb: r.verb, Group: r.group, Resource: group, Subresource: sub, Name: name,
		}}}
		s.until(r.String()+" to be granted", func() error {
			answer, err := cluster.client.AuthorizationV1().SubjectAccessReviews().Create(s.Context(), review, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				err = errors.New(answer.Status.Reason)
			}
			return err
		})
	}
}

// stockProfile is the stock scheduler's beside ours: it asks for what the in-tree defaults of topology spread need.
const stockProfile = `- schedulerName: NAME-stock
  plugins:
    queueSort:
      enabled: [{name: PreassignedFirst}]
      disabled: [{name: PrioritySort}]
`

// configuration is the shipped one under the stage's name, with every part of it on.
func (s *stage) configuration() string {
	content := string(manifests.SchedulerConfig) + stockProfile
	for _, change := range [][2]string{
		{rig.SchedulerName, s.name},
		{"NAME", s.name},
		{"amespace: kube-system", "amespace: " + s.name},
		{"threshold: 5", "threshold: 2"},
		{"suspects:\n        workloads: 3", "suspects:\n        workloads: 2"},
		{"provenAfterSeconds: 10", "provenAfterSeconds: 0"},
		{"leases: Disabled", "leases: AnnotationsAndDeadlines"},
	} {
		if !strings.Contains(content, change[0]) {
			s.Fatalf("%q is not in the configuration", change[0])
		}
		content = strings.ReplaceAll(content, change[0], change[1])
	}
	return content
}

// startScheduler starts the scheduler on a node of its own.
func (s *stage) startScheduler(args ...string) { s.startWith(s.configuration(), args...) }

// startWith starts it with another configuration.
func (s *stage) startWith(configuration string, args ...string) {
	s.Helper()
	s.node(s.name)
	must(s, os.WriteFile(s.path("config.yaml"), []byte(configuration), 0o600))
	kubeconfig := s.path("kubeconfig")
	s.start(cluster.scheduler, append([]string{
		"--config=" + s.path("config.yaml"), "--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port=" + s.port, "--leader-elect-retry-period=1s", "-v=2",
	}, args...)...)
}

func (s *stage) start(binary string, args ...string) {
	s.Helper()
	p, err := rig.Start(rig.Command{Name: s.name, Path: binary, Args: args, Dir: s.dir})
	must(s, err)
	s.process = p
	s.Cleanup(func() {
		p.Kill()
		if s.Failed() {
			s.Logf("the end of the log:\n%s", p.Tail(30))
		}
	})
}

// node makes a node that is ready, and is gone with the test.
func (s *stage) node(name string) {
	s.Helper()
	nodes := cluster.client.CoreV1().Nodes()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("50")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: room, Capacity: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	made(s, nodes.Create, node)
	s.Cleanup(func() {
		if err := nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
}

// lull is how long a story may still go well after the missing right was refused. With all rights none of them takes so long from there.
const lull = 3 * time.Second

// wait polls until there is no error. Without a right it gives up soon after that was refused.
func (s *stage) wait(what string, check func() error) error {
	begin := time.Now()
	var refused time.Time
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Done():
			return fmt.Errorf("%s: it ended: %w", what, s.process.Err())
		case <-time.After(20 * time.Millisecond):
		}
		if s.without != nil && refused.IsZero() && s.wasRefused() {
			refused = time.Now()
		}
		if time.Since(begin) > timeout || (!refused.IsZero() && time.Since(refused) > lull) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// wasRefused says whether the missing right was asked for in vain.
func (s *stage) wasRefused() bool {
	refused := s.proxy.refusals()
	if s.without.verb == "" {
		return len(refused) > 0
	}
	return slices.ContainsFunc(refused, func(q question) bool {
		missing := s.without.question
		switch {
		case missing.resource == "resourceclaims/binding":
			// The API server itself asks for it, when a claim's status is written.
			return q.group == missing.group && q.resource == "resourceclaims/status"
		case missing.verb == "create" && q.verb == "patch":
			// A patch that makes its object, of which the API server asks both.
			return q.group == missing.group && q.resource == missing.resource
		}
		return q == missing
	})
}

// sees waits until an object is as it is to be.
func sees[T any](s *stage, what string, get func(context.Context, string, metav1.GetOptions) (T, error), name string, is func(T) bool) error {
	s.Helper()
	return s.wait(what, func() error {
		now, err := get(s.Context(), name, metav1.GetOptions{})
		if err == nil && !is(now) {
			err = fmt.Errorf("it is not: %.500v", now)
		}
		return err
	})
}

// made makes an object.
func made[T any](s *stage, create func(context.Context, T, metav1.CreateOptions) (T, error), object T) T {
	s.Helper()
	created, err := create(s.Context(), object, metav1.CreateOptions{})
	must(s, err)
	return created
}

// until is wait for what must come.
func (s *stage) until(what string, check func() error) {
	s.Helper()
	must(s, rig.Poll(s.Context(), timeout, 10*time.Millisecond, what, check))
}

// fail answers every binding with an error, as an API server in trouble does.
func fail(w http.ResponseWriter) bool {
	http.Error(w, "in trouble", http.StatusInternalServerError)
	return true
}

const (
	// binFolder is where make build puts the binaries, seen from this folder.
	binFolder = "../../../bin"
	// timeout bounds what is to come.
	timeout = 60 * time.Second
	// together is how many schedulers run at once: they mostly wait.
	together = "6"
)

// cluster is shared by all tests: an API server, and nobody else.
var cluster struct {
	config                *rest.Config
	client                kubernetes.Interface
	applier               *rig.Applier
	scheduler, controller string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", together); err != nil {
		panic(err) // it is a flag of go test
	}
	os.Exit(rig.Suite{Name: "rights", Bin: binFolder, Args: func(string) []string { return []string{"--bare"} }}.Main(m, prepare))
}

func prepare(ctx context.Context, d *rig.Devcluster, _ string) (end func() error, err error) {
	if cluster.scheduler, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return nil, err
	}
	if cluster.controller, err = rig.Binary("espalier-controller", binFolder); err != nil {
		return nil, err
	}
	if cluster.config, cluster.client, err = rig.Client(d.Kubeconfig); err != nil {
		return nil, err
	}
	if cluster.applier, err = rig.NewApplier(cluster.config); err != nil {
		return nil, err
	}
	return nil, cluster.applier.Definitions(ctx, manifests.Files)
}

// must ends the test if there is an error.
var must = placementtest.Must

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/test/fixture"
)

var movesResource = schema.GroupVersionResource{Group: "placement.espalier.dev", Version: "v1alpha1", Resource: "moves"}

// oneCall is a way to the API server that is gone after one change: it is made, and nobody is told. An event is none, nor a question about rights.
type oneCall struct {
	*httptest.Server
	what string
	done chan struct{}
}

// newOneCall leads to the API server with the rights of a kubeconfig.
func (s *story) newOneCall(config *rest.Config) *oneCall {
	s.Helper()
	target, err := url.Parse(config.Host)
	s.Must(err, "reading the API server's address")
	transport, err := rest.TransportFor(config)
	s.Must(err, "making a way to the API server")
	c := &oneCall{done: make(chan struct{})}
	var gone atomic.Bool
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
		},
		Transport: transport, FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if m, path := r.Request.Method, r.Request.URL.Path; m == http.MethodGet || r.StatusCode >= 300 || strings.Contains(path, "/events") || strings.HasSuffix(path, "reviews") {
				return nil
			}
			if gone.CompareAndSwap(false, true) {
				c.what = r.Request.Method + " " + r.Request.URL.Path
				close(c.done)
			}
			return errors.New("the answer is lost")
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	return c
}

// small is a Deployment of some pods, none of which may be missed.
func (s *story) small(app string, pods int32, change func(*corev1.PodSpec)) []corev1.Pod {
	s.Helper()
	d := fixture.Deployment(app, pods)
	change(&d.Spec.Template.Spec)
	s.Deploy(d)
	_, err := world.client.PolicyV1().PodDisruptionBudgets(s.NS).Create(s.Ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0)), Selector: d.Spec.Selector},
	}, metav1.CreateOptions{})
	s.Must(err, "creating PodDisruptionBudget "+app)
	return s.ready(app, int(pods))
}

// ready waits until an app has so many pods, all of them ready, and no others.
func (s *story) ready(app string, n int) (pods []corev1.Pod) {
	s.Helper()
	s.Until(fmt.Sprintf("%d ready pods of %s", n, app), func() error {
		list, err := world.client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if !rig.IsReady(&list.Items[i]) {
				return fmt.Errorf("pod %s is not ready", list.Items[i].Name)
			}
		}
		if pods = list.Items; len(pods) != n {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	return pods
}

// lowest watches the pods of an app until the returned function is called, which returns how many were ready when fewest were.
func (s *story) lowest(app string, n int) func() int {
	s.Helper()
	list, err := world.client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	s.Must(err, "listing pods")
	w, err := world.client.CoreV1().Pods(s.NS).Watch(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app, ResourceVersion: list.ResourceVersion})
	s.Must(err, "watching pods")
	ready, lowest, done := make(map[types.UID]bool), n, make(chan struct{})
	for i := range list.Items {
		ready[list.Items[i].UID] = true
	}
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if p, is := e.Object.(*corev1.Pod); is {
				if delete(ready, p.UID); e.Type != "DELETED" && rig.IsReady(p) {
					ready[p.UID] = true
				}
				lowest = min(lowest, len(ready))
			}
		}
	}()
	return func() int {
		w.Stop()
		<-done
		return lowest
	}
}

// The controller dies after every single change that it makes, before it hears what came of it, from the making of a Move to its end. One pod
// is replaced all the same, another one that cannot be is handed back, at no time is one missed, and no Move is left over.
func TestControllerKilledAfterEachCall(t *testing.T) {
	s := begin(t)
	applier, err := rig.NewApplier(world.config)
	s.Must(err, "applying manifests")
	for _, file := range []string{"base/controller-rbac.yaml", "components/move-drained/rbac.yaml"} {
		s.Must(applier.Apply(s.Ctx, manifests.Files, file, ""), "applying "+file)
	}
	binary, err := rig.Binary("espalier-controller", binFolder)
	s.Must(err, "finding the controller")
	s.scheduler("only", world.kubeconfig, perSecond)
	of := filepath.Join(t.TempDir(), "controller")
	s.Must(rig.WriteKubeconfig(s.Ctx, world.config, world.client, rig.ControllerName, of), "writing a kubeconfig")
	config, err := clientcmd.BuildConfigFromFlags("", of)
	s.Must(err, "reading a kubeconfig")

	// Two pods of one have no room on one node: they want the same port of it.
	app := s.small("app", 3, func(*corev1.PodSpec) {})
	only := s.small("only", 1, func(spec *corev1.PodSpec) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 18123, HostPort: 18123}}
		spec.NodeSelector = map[string]string{corev1.LabelHostname: app[0].Spec.NodeName}
	})
	client, err := dynamic.NewForConfig(world.config)
	s.Must(err, "making a client")
	s.known(client)
	moves := client.Resource(movesResource).Namespace(s.NS)
	set := metav1.GetControllerOf(&only[0])
	_, err = moves.Create(s.Ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "placement.espalier.dev/v1alpha1", "kind": "Move", "metadata": map[string]any{"name": only[0].Name},
		"spec": map[string]any{
			"pod":        map[string]any{"name": only[0].Name, "uid": string(only[0].UID)},
			"replicaSet": map[string]any{"name": set.Name, "uid": string(set.UID)},
			"reason":     "Drain", "deadlineSeconds": int64(60), // the Move is to be begun by then, however slowly controllers start
		},
	}}, metav1.CreateOptions{})
	s.Must(err, "creating a Move")
	s.Cordon(app[0].Spec.NodeName, true) // for the controller to make the other Move
	defer s.Cordon(app[0].Spec.NodeName, false)
	lowestOfApp, lowestOfOnly := s.lowest("app", 3), s.lowest("only", 1)

	phase := func(pod *corev1.Pod) string {
		m, err := moves.Get(s.Ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "not made"
		}
		s.Must(err, "reading a Move")
		is, _, _ := unstructured.NestedString(m.Object, "status", "phase")
		return is
	}
	deaths := 0
	for last := time.Now(); phase(&app[0]) != "Done" || phase(&only[0]) != "Undone"; {
		if time.Since(last) > timeout {
			s.Fatalf("after %d deaths one pod is %s and the other %s, and nothing has changed for %s", deaths, phase(&app[0]), phase(&only[0]), timeout)
		}
		if s.dies(binary, config, deaths) {
			deaths++
			last = time.Now()
		}
	}
	if low := lowestOfApp(); low < 3 {
		t.Errorf("at the lowest %d of 3 pods were ready", low)
	}
	if low := lowestOfOnly(); low < 1 {
		t.Error("the only pod was not ready")
	}
	for _, p := range s.ready("app", 3) {
		if p.UID == app[0].UID {
			t.Error("the pod is still there")
		}
	}
	after := s.ready("only", 1)[0]
	if after.UID != only[0].UID || !after.Status.StartTime.Equal(only[0].Status.StartTime) || metav1.GetControllerOf(&after).Kind != "ReplicaSet" {
		t.Errorf("the only pod is %s of %v, started at %s", after.UID, after.OwnerReferences, after.Status.StartTime)
	}
	if len(after.Annotations) != len(only[0].Annotations) {
		t.Errorf("the only pod has the annotations %v, and had %v", after.Annotations, only[0].Annotations)
	}
	if all, err := moves.List(s.Ctx, metav1.ListOptions{}); err != nil || len(all.Items) != 2 {
		t.Errorf("two Moves were to be made, and no others: %v, %v", all, err)
	}
	s.Logf("the controller died %d times", deaths)
	if deaths < 10 {
		t.Error("two Moves are more changes")
	}
}

// known waits until the controllers know the kind of Moves: devcluster's look for new ones every two seconds. A disruption budget that is counted
// before that is not counted again until one of the pods changes.
func (s *story) known(client dynamic.Interface) {
	s.Helper()
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definition, err := definitions.Get(s.Ctx, movesResource.Resource+"."+movesResource.Group, metav1.GetOptions{})
	s.Must(err, "reading the definition of Moves")
	time.Sleep(time.Until(definition.GetCreationTimestamp().Add(5 * time.Second)))
}

// dies has a controller run until it has made one change, and kills it. It is false if the controller found nothing to change for a while.
func (s *story) dies(binary string, config *rest.Config, serial int) bool {
	s.Helper()
	way := s.newOneCall(config)
	defer func() {
		way.CloseClientConnections()
		way.Close()
	}()
	kubeconfig := filepath.Join(s.TempDir(), "kubeconfig")
	s.Must(rig.WriteKubeconfig(s.Ctx, &rest.Config{Host: way.URL}, world.client, rig.ControllerName, kubeconfig), "writing a kubeconfig")
	p, err := rig.Start(rig.Command{
		Name: fmt.Sprint("controller-", serial), Path: binary, Dir: world.dir,
		Args: []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--health-probe-bind-address=0", "--move-drained=Blocked"},
	})
	s.Must(err, "starting the controller")
	defer p.Kill()
	select {
	case <-way.done:
		s.Logf("it died after %s", way.what)
		return true
	case <-time.After(10 * time.Second):
		return false
	case <-p.Done():
		s.Fatalf("the controller ended by itself: %v", p.Err())
		return false
	}
}

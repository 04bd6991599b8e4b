// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// traffic is what the API server makes of the requests of a scheduler, and sees of it.
type traffic struct {
	// cycles are the times that the scheduler has asked for its next pod.
	cycles atomic.Int64
	// binding are the bindings that are under way.
	binding atomic.Int64
	// tried are the refused pods for which it was looked whether the next one is taken up while they are written down, beside those of which it was.
	tried, beside atomic.Int64

	mu sync.Mutex // guards what follows
	// fates draws what becomes of bindings, nil if all go well.
	fates *rand.Rand
	// held: bindings wait until it is closed. Nil for none.
	held chan struct{}
	// lost are the pods whose binding had no answer, asked those that somebody asked about.
	lost, asked sets.Set[string]
}

// Of so many bindings one is refused for want of room, one in a conflict, and one is made without an answer.
const (
	oneRefused  = 10
	oneConflict = 40
	oneLost     = 20
)

// errLost is what a client is told when the API server goes away in the middle.
var errLost = errors.New("connection reset by peer")

// fickle has bindings come to all that they may come to from now on, as random numbers say; with nil, all go well.
func (t *traffic) fickle(fates *rand.Rand) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fates = fates
}

// oneIn draws whether a binding is one of so many.
func (t *traffic) oneIn(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fates != nil && t.fates.IntN(n) == 0
}

// hold has bindings wait until it is let go.
func (t *traffic) hold() (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := make(chan struct{})
	t.held = held
	return func() { close(held) }
}

// bind plays what may become of a binding beside that it is made.
func (t *traffic) bind(b *corev1.Binding, bind func() error) error {
	t.binding.Add(1)
	defer t.binding.Add(-1)
	t.mu.Lock()
	held := t.held
	t.mu.Unlock()
	if held != nil {
		<-held
	}
	switch {
	case t.oneIn(oneRefused): // as the arbiter does
		return noRoom(b)
	case t.oneIn(oneConflict):
		return apierrors.NewConflict(pods.GroupResource(), b.Name, errors.New("it has changed"))
	case t.oneIn(oneLost):
		if err := bind(); err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lost.Insert(b.Name)
		return errLost
	}
	return bind()
}

// write looks whether the scheduler asks for its next pod before it is answered that a pod was refused. It is not looked at for ever: a scheduler
// that does not ask loses that time.
func (t *traffic) write(status []byte) {
	// That a pod is nominated, or no longer is, must be written before.
	if !bytes.Contains(status, []byte(`"reason":"`+corev1.PodReasonUnschedulable+`"`)) || bytes.Contains(status, []byte(`nominatedNodeName`)) {
		return
	}
	if before := t.cycles.Load(); t.tried.Add(1) <= 50 && within(100*time.Millisecond, func() bool { return t.cycles.Load() != before }) {
		t.beside.Add(1)
	}
}

// within waits for something, and reports whether it has come.
func within(bound time.Duration, come func() bool) bool {
	for begun := time.Now(); time.Since(begun) < bound; time.Sleep(time.Millisecond) {
		if come() {
			return true
		}
	}
	return false
}

// client is the server's client with other requests for pods. It says of itself what that says, as that it is no server that streams lists.
type client struct {
	*apiServer
	pods func(corev1client.PodInterface) corev1client.PodInterface
}

// CoreV1 is beside the others.
func (c client) CoreV1() corev1client.CoreV1Interface {
	return coreClient{c.apiServer.CoreV1(), c.pods}
}

type coreClient struct {
	corev1client.CoreV1Interface
	pods func(corev1client.PodInterface) corev1client.PodInterface
}

// Pods has the other requests.
func (c coreClient) Pods(namespace string) corev1client.PodInterface {
	return c.pods(c.CoreV1Interface.Pods(namespace))
}

// scheduling is the client of a scheduler. Its requests for pods go through traffic outside of the server, which answers one at a time.
func (s *apiServer) scheduling() kubernetes.Interface {
	return client{s, func(p corev1client.PodInterface) corev1client.PodInterface { return schedulingPods{p, &s.traffic} }}
}

type schedulingPods struct {
	corev1client.PodInterface
	*traffic
}

// Bind binds a pod, or does not.
func (p schedulingPods) Bind(ctx context.Context, b *corev1.Binding, o metav1.CreateOptions) error {
	return p.bind(b, func() error { return p.PodInterface.Bind(ctx, b, o) })
}

// Patch writes the status of a pod.
func (p schedulingPods) Patch(ctx context.Context, name string, by types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	p.write(data)
	return p.PodInterface.Patch(ctx, name, by, data, o, subresources...)
}

// asking is the client by which a scheduler asks what became of bindings.
func (s *apiServer) asking() kubernetes.Interface {
	return client{s, func(p corev1client.PodInterface) corev1client.PodInterface { return askingPods{p, &s.traffic} }}
}

type askingPods struct {
	corev1client.PodInterface
	*traffic
}

// Get asks about a pod.
func (p askingPods) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Pod, error) {
	p.mu.Lock()
	p.asked.Insert(name)
	p.mu.Unlock()
	return p.PodInterface.Get(ctx, name, o)
}

var (
	known  = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(known)

	pods      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	policies  = placementv1alpha1.SchemeGroupVersion.WithResource(placementv1alpha1.PlacementPolicyResource)
	ofPolicy  = placementv1alpha1.SchemeGroupVersion.WithKind("PlacementPolicy")
	groupPath = "/apis/" + placementv1alpha1.SchemeGroupVersion.String()
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(known))
	utilruntime.Must(placementv1alpha1.AddToScheme(known))
}

// served are our own kinds, by their resources.
var served = map[string]metav1.APIResource{
	placementv1alpha1.PlacementPolicyResource:        {Kind: "PlacementPolicy", Namespaced: true},
	placementv1alpha1.ClusterPlacementPolicyResource: {Kind: "ClusterPlacementPolicy"},
	placementv1alpha1.PartitionResource:              {Kind: "Partition"},
	placementv1alpha1.AllocationResource:             {Kind: "Allocation"},
}

// ourKinds answers who reads our own kinds, which plugins do by themselves over HTTP.
func (s *apiServer) ourKinds() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(groupPath, func(w http.ResponseWriter, _ *http.Request) {
		list := &metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: placementv1alpha1.SchemeGroupVersion.String(),
		}
		for name, resource := range served {
			resource.Name = name
			list.APIResources = append(list.APIResources, resource)
		}
		answer(w, http.StatusOK, list)
	})
	for name := range served {
		mux.HandleFunc(groupPath+"/"+name, func(w http.ResponseWriter, r *http.Request) {
			switch q := r.URL.Query(); {
			case q.Get("sendInitialEvents") == "true":
				// As an API server that is older than such watches: the client then lists.
				answer(w, http.StatusUnprocessableEntity, &metav1.Status{
					TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
					Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
				})
			case q.Get("watch") != "":
				s.watchOurs(name, w, r)
			default:
				s.listOurs(name, w)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			http.Error(w, "etcd is away", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, code int, obj any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(obj)
}

func (s *apiServer) listOurs(resource string, w http.ResponseWriter) {
	version := placementv1alpha1.SchemeGroupVersion
	list, err := s.store.List(version.WithResource(resource), version.WithKind(served[resource].Kind), metav1.NamespaceAll)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	list.GetObjectKind().SetGroupVersionKind(version.WithKind(served[resource].Kind + "List"))
	answer(w, http.StatusOK, list)
}

func (s *apiServer) watchOurs(resource string, w http.ResponseWriter, r *http.Request) {
	options := metav1.ListOptions{ResourceVersion: r.URL.Query().Get("resourceVersion")}
	from, err := s.store.Watch(placementv1alpha1.SchemeGroupVersion.WithResource(resource), metav1.NamespaceAll, options)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer from.Stop()
	w.Header().Set("Content-Type", "application/json")
	flush := w.(http.Flusher).Flush
	flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		case e := <-from.ResultChan():
			if json.NewEncoder(w).Encode(map[string]any{"type": e.Type, "object": e.Object}) != nil {
				return
			}
			flush()
		}
	}
}

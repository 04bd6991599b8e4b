// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

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

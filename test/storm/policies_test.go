// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
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

// policies answers whoever reads policies, which plugins do by themselves over HTTP.
func (s *apiServer) policies() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(groupPath, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, &metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: placementv1alpha1.SchemeGroupVersion.String(),
			APIResources: []metav1.APIResource{{Name: placementv1alpha1.PlacementPolicyResource, Kind: ofPolicy.Kind, Namespaced: true}},
		})
	})
	mux.HandleFunc(groupPath+"/"+placementv1alpha1.PlacementPolicyResource, func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("sendInitialEvents") == "true":
			// As an API server that is older than such watches: the client then lists.
			answer(w, http.StatusUnprocessableEntity, &metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
			})
		case q.Get("watch") != "":
			s.watchPolicies(w, r)
		default:
			s.listPolicies(w)
		}
	})
	return mux
}

func answer(w http.ResponseWriter, code int, obj any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(obj)
}

func (s *apiServer) listPolicies(w http.ResponseWriter) {
	list, err := s.store.List(policies, ofPolicy, metav1.NamespaceAll)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if l, err := meta.ListAccessor(list); err == nil {
		answer(w, http.StatusOK, &placementv1alpha1.PlacementPolicyList{
			TypeMeta: metav1.TypeMeta{Kind: ofPolicy.Kind + "List", APIVersion: placementv1alpha1.SchemeGroupVersion.String()},
			ListMeta: metav1.ListMeta{ResourceVersion: l.GetResourceVersion()},
			Items:    list.(*placementv1alpha1.PlacementPolicyList).Items,
		})
	}
}

func (s *apiServer) watchPolicies(w http.ResponseWriter, r *http.Request) {
	from, err := s.store.Watch(policies, metav1.NamespaceAll, metav1.ListOptions{ResourceVersion: r.URL.Query().Get("resourceVersion")})
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

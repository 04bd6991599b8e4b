// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
)

// failing is a cluster with an API server that fails.
type failing struct {
	*plugintest.Cluster
	url string
}

func (c failing) KubeConfig() *rest.Config { return &rest.Config{Host: c.url} }

// While policies cannot be read pods stay Pending, and not those of a DaemonSet, which no
// policy places: in the place of the default scheduler a new node would get no network.
func TestRegression_DaemonSetsWhilePoliciesCannotBeRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	cluster := failing{plugintest.NewCluster(), server.URL}
	levels := plugintest.New[fwk.Plugin](t, preferences.New, &config.PreferencesArgs{}, cluster)
	limits := plugintest.New[fwk.Plugin](t, domainlimits.New, &config.DomainLimitsArgs{}, cluster)
	web := st.MakePod().Namespace("ns").Name("web").UID("web").Obj()
	daemon := st.MakePod().Namespace("ns").Name("cni").UID("cni").OwnerReference("cni", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}).Obj()
	for _, plugin := range []fwk.Plugin{levels, limits} {
		t.Run(plugin.Name(), func(t *testing.T) {
			filter, signer := plugin.(fwk.PreFilterPlugin), plugin.(fwk.SignPlugin)
			_, status := filter.PreFilter(t.Context(), framework.NewCycleState(), web, nil)
			if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), "see whether the API server answers") {
				t.Errorf("of any other pod PreFilter says %v", status)
			}
			if _, status := filter.PreFilter(t.Context(), framework.NewCycleState(), daemon, nil); !status.IsSkip() {
				t.Errorf("PreFilter says %v", status)
			}
			if _, status := signer.SignPod(t.Context(), daemon); !status.IsSuccess() {
				t.Errorf("SignPod says %v", status)
			}
		})
	}
}

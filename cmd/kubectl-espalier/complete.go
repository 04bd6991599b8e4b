// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

// completing bounds how long a shell waits for names. Without an answer there are none.
const completing = 3 * time.Second

// completeWorkloads completes the names of a kind that is begun, in whatever form, and of Deployments and StatefulSets otherwise.
func (c *common) completeWorkloads(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	lists := map[string]client.ObjectList{
		"Deployment": &appsv1.DeploymentList{}, "StatefulSet": &appsv1.StatefulSetList{}, "ReplicaSet": &appsv1.ReplicaSetList{},
		"ReplicationController": &corev1.ReplicationControllerList{},
	}
	kinds := map[string]client.ObjectList{"deployment": lists["Deployment"], "statefulset": lists["StatefulSet"]}
	if kind, _, named := strings.Cut(begun, "/"); named {
		of, err := inspect.ParseRef("", kind+"/any")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		kinds = map[string]client.ObjectList{kind: lists[of.Kind]}
	}
	return c.complete(cmd, args, begun, kinds)
}

// completePods completes pod/NAME.
func (c *common) completePods(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, args, begun, map[string]client.ObjectList{"pod": &corev1.PodList{}})
}

func (c *common) complete(cmd *cobra.Command, args []string, begun string, kinds map[string]client.ObjectList) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 || c.file != "" {
		return nil, directive
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, directive
	}
	api, err := c.api()
	if err != nil {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completing)
	defer cancel()
	var names []string
	for kind, list := range kinds {
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			cobra.CompErrorln(err.Error())
			continue
		}
		for _, name := range namesOf(list) {
			if full := kind + "/" + name; strings.HasPrefix(full, begun) {
				names = append(names, full)
			}
		}
	}
	slices.Sort(names)
	return names, directive
}

// namesOf are those of the objects of a list.
func namesOf(list client.ObjectList) (names []string) {
	_ = meta.EachListItem(list, func(o runtime.Object) error { // of a list that a client has filled it has no error
		if m, is := o.(metav1.Object); is {
			names = append(names, m.GetName())
		}
		return nil
	})
	return names
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

// completing bounds how long a shell waits for names. Without an answer there are none.
const completing = 3 * time.Second

// names completes by names that begin with what is begun.
type names = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// complete has the values of a flag completed.
func complete(cmd *cobra.Command, flag string, by names) {
	if err := cmd.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // there is no such flag, or it is completed already
	}
}

// completeKubeFlags has the flags completed that all commands have: by the cluster, and by the kubeconfig.
func (c *common) completeKubeFlags(cmd *cobra.Command) {
	complete(cmd, "namespace", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return c.list(cmd, "", "", begun, &corev1.NamespaceList{})
	})
	for flag, of := range map[string]func(*clientcmdapi.Config) []string{
		"context": func(k *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(k.Contexts)) },
		"cluster": func(k *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(k.Clusters)) },
		"user":    func(k *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(k.AuthInfos)) },
	} {
		complete(cmd, flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			kubeconfig, err := c.kube.ToRawKubeConfigLoader().RawConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return begins(of(&kubeconfig), begun), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// completeNodes completes a list of nodes, with commas between them.
func (c *common) completeNodes(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	before := begun[:strings.LastIndexByte(begun, ',')+1]
	return c.list(cmd, "", before, begun, &corev1.NodeList{})
}

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
	return c.completeKinds(cmd, args, begun, kinds)
}

// completePods completes pod/NAME.
func (c *common) completePods(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return c.completeKinds(cmd, args, begun, map[string]client.ObjectList{"pod": &corev1.PodList{}})
}

// completeKinds completes the one argument of a command, kind/NAME of the namespace.
func (c *common) completeKinds(cmd *cobra.Command, args []string, begun string, kinds map[string]client.ObjectList) (all []string, directive cobra.ShellCompDirective) {
	directive = cobra.ShellCompDirectiveNoFileComp
	namespace, err := c.namespace()
	if err != nil || len(args) > 0 || c.file != "" {
		return nil, directive
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		found, _ := c.list(cmd, namespace, kind+"/", begun, kinds[kind])
		all = append(all, found...)
	}
	return all, directive
}

// list completes by the names of objects, with something before each.
func (c *common) list(cmd *cobra.Command, namespace, before, begun string, list client.ObjectList) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	api, err := c.api()
	if err != nil {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completing)
	defer cancel()
	if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		cobra.CompErrorln(err.Error())
		return nil, directive
	}
	var all []string
	_ = meta.EachListItem(list, func(o runtime.Object) error { // of a list that a client has filled it has no error
		if m, is := o.(metav1.Object); is {
			all = append(all, before+m.GetName())
		}
		return nil
	})
	slices.Sort(all)
	return begins(all, begun), directive
}

// begins leaves the names that begin so.
func begins(all []string, begun string) []string {
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, begun) })
}

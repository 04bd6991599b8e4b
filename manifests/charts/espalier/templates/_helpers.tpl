{{/*
Copyright 2026 The Espalier Authors.
SPDX-License-Identifier: Apache-2.0

Every name begins with that of the release, so that two releases never share an object.
*/}}

{{/* Room is left for the longest suffix. A release may have a dot in its name, a Service may not. */}}
{{- define "espalier.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The parts that the release runs, with a space between. */}}
{{- define "espalier.components" -}}
scheduler{{ if .Values.controller.enabled }} controller{{ end }}
{{- end -}}

{{/* What a Deployment selects by. Takes (list . COMPONENT). */}}
{{- define "espalier.selector" -}}
app.kubernetes.io/name: espalier-{{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
{{- end -}}

{{/* What a Deployment selects by, and more labels that are given. Takes (list . COMPONENT LABELS). */}}
{{- define "espalier.podLabels" -}}
{{- merge (include "espalier.selector" . | fromYaml) (index . 2) | toYaml -}}
{{- end -}}

{{/* No label is there twice: ours stay. Takes (list . COMPONENT), and more labels if there are. */}}
{{- define "espalier.labels" -}}
{{- $top := index . 0 -}}
{{- $labels := include "espalier.selector" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/version" ($top.Chart.AppVersion | replace "+" "_") -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "espalier" -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $top.Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $top.Chart.Name $top.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- if gt (len .) 2 -}}{{- $labels = merge $labels (index . 2) -}}{{- end -}}
{{- merge $labels $top.Values.commonLabels | toYaml -}}
{{- end -}}

{{/* Takes (list . IMAGE). A digest wins over a tag: it cannot move. A tag has no plus, which a version may have. */}}
{{- define "espalier.image" -}}
{{- $top := index . 0 -}}{{- $image := index . 1 -}}
{{- with $top.Values.imageRegistry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default ($top.Chart.AppVersion | replace "+" "_") $image.tag }}{{ end -}}
{{- end -}}

{{/* In place of the default scheduler the Lease is that of kube-scheduler: only one of the two ever schedules. */}}
{{- define "espalier.leaseName" -}}
{{- $name := ternary "kube-scheduler" (printf "%s-scheduler" (include "espalier.fullname" .)) (eq .Values.mode "ReplaceDefault") -}}
{{- default $name .Values.scheduler.leaderElection.resourceName -}}
{{- end -}}

{{- define "espalier.leaseNamespace" -}}
{{- $namespace := ternary "kube-system" .Release.Namespace (eq .Values.mode "ReplaceDefault") -}}
{{- default $namespace .Values.scheduler.leaderElection.resourceNamespace -}}
{{- end -}}

{{/* The values of the scheduler that a mode has defaults of its own for. */}}
{{- define "espalier.byMode" -}}
{{- $v := pick .Values.scheduler "strategy" "nodeSelector" "tolerations" -}}
{{- if eq .Values.mode "ReplaceDefault" -}}
{{- /* Nothing here asks for the control plane to be there: the replicas stay on a node that is cut off. */ -}}
{{- $tolerations := list (dict "key" "node-role.kubernetes.io/control-plane" "effect" "NoSchedule") (dict "operator" "Exists" "effect" "NoExecute") -}}
{{- $v = dict
  "strategy" (default (dict "rollingUpdate" (dict "maxUnavailable" 0 "maxSurge" 1)) $v.strategy)
  "nodeSelector" (default (dict "node-role.kubernetes.io/control-plane" "") $v.nodeSelector)
  "tolerations" (default $tolerations $v.tolerations) -}}
{{- end -}}
{{- toYaml $v -}}
{{- end -}}

{{/* The profiles as they are given, and what the mode adds to them. */}}
{{- define "espalier.givenProfiles" -}}
{{- $profiles := list -}}
{{- $named := list -}}
{{- range .Values.scheduler.profiles -}}
{{- $profile := deepCopy (default dict .) -}}
{{- if and (eq $.Values.mode "NodePool") (not $profile.addedAffinity) (not (dig "pluginArgs" "NodeAffinity" "addedAffinity" dict $profile)) -}}
{{- $pool := dict "key" "espalier.dev/node-pool" "operator" "In" "values" (list "espalier") -}}
{{- $terms := list (dict "matchExpressions" (list $pool)) -}}
{{- $_ := set $profile "addedAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms)) -}}
{{- end -}}
{{- $named = append $named $profile.schedulerName -}}
{{- $profiles = append $profiles $profile -}}
{{- end -}}
{{- if and (eq .Values.mode "ReplaceDefault") (not (has "default-scheduler" $named)) -}}
{{- $profiles = append $profiles (merge (dict "schedulerName" "default-scheduler") (deepCopy (default dict (first $profiles)))) -}}
{{- end -}}
{{- dict "profiles" $profiles | toYaml -}}
{{- end -}}

{{/*
A profile: the shipped one under another name, with arguments laid over. An argument that is
given replaces the shipped one whole. Takes (list SHIPPED NAME PROFILE).
*/}}
{{- define "espalier.profile" -}}
{{- $profile := deepCopy (index . 0) -}}
{{- $given := deepCopy (default dict (index . 2).pluginArgs) -}}
{{- with (index . 2).addedAffinity -}}
{{- $_ := set $given "NodeAffinity" (set (default dict $given.NodeAffinity) "addedAffinity" .) -}}
{{- end -}}
{{- $_ := set $profile "schedulerName" (index . 1) -}}
{{- $config := list -}}
{{- range $plugin := $profile.pluginConfig -}}
{{- range $key, $value := dig $plugin.name dict $given -}}{{- $_ := set $plugin.args $key $value -}}{{- end -}}
{{- $given = omit $given $plugin.name -}}
{{- $config = append $config $plugin -}}
{{- end -}}
{{- range $name, $args := $given -}}
{{- $typed := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" (printf "%sArgs" $name) -}}
{{- range $key, $value := $args -}}{{- $_ := set $typed $key $value -}}{{- end -}}
{{- $config = append $config (dict "name" $name "args" $typed) -}}
{{- end -}}
{{- $_ := set $profile "pluginConfig" $config -}}
{{- toYaml $profile -}}
{{- end -}}

{{/*
The shipped profile with the pods of each Partition in the order of its Allocations, as in the overlay tenants. Takes the profile.
*/}}
{{- define "espalier.tenantsProfile" -}}
{{- $profile := deepCopy . -}}
{{- $plugins := $profile.plugins -}}
{{- $order := dict "name" "AllocationOrder" -}}
{{- $_ := set $plugins.queueSort "enabled" (list $order) -}}
{{- $_ := set $plugins.multiPoint "enabled" (prepend $plugins.multiPoint.enabled $order) -}}
{{- $_ := set $plugins.filter "enabled" (concat (list (first $plugins.filter.enabled) $order) (rest $plugins.filter.enabled)) -}}
{{- $remedies := dict "enabled" (list (dict "name" "DynamicResources") $order) -}}
{{- $_ := set $plugins "postFilter" $remedies -}}
{{- $_ := set $plugins "podGroupPostFilter" $remedies -}}
{{- toYaml $profile -}}
{{- end -}}

{{/* Whether a profile has the plugin FaultyNode. Empty is no. */}}
{{- define "espalier.watchesNodes" -}}
{{- range .plugins -}}
{{- range (default dict .).enabled -}}{{- if eq .name "FaultyNode" -}}yes{{- end -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether the deadlines of Jobs are leases in a profile. Empty is no. */}}
{{- define "espalier.readsJobs" -}}
{{- range (include "espalier.configuration" . | fromYaml).profiles -}}
{{- range .pluginConfig -}}
{{- if and (eq .name "NodeLifetime") (eq (dig "args" "leases" "" .) "AnnotationsAndDeadlines") -}}yes{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether the controller has pods replaced. Empty is no. */}}
{{- define "espalier.moves" -}}
{{- $v := .Values.controller -}}
{{- if or $v.moveDrained.pods $v.rebalance.mode $v.restartElsewhere.mode $v.keepDisconnected.enabled $v.renewLeases.enabled $v.staggerEnds.nodes -}}yes{{- end -}}
{{- end -}}

{{/*
The KubeSchedulerConfiguration. The Lease is the chart's also where the whole configuration is
given: the rights are to that Lease and no other. The record of failures is where the configuration
says, and in the release's namespace where it does not: the rights go with it.
*/}}
{{- define "espalier.configuration" -}}
{{- $v := .Values.scheduler -}}
{{- $config := deepCopy $v.configuration -}}
{{- if and $config (ne .Values.mode "Shared") -}}
{{- fail (printf "mode %s changes the profiles that the chart makes, and scheduler.configuration has its own: leave mode as it is, and write into the configuration what you want" .Values.mode) -}}
{{- end -}}
{{- if not $config -}}
{{- $config = .Files.Get "files/scheduler-config.yaml" | fromYaml -}}
{{- $_ := set $config "clientConnection" (dict "qps" $v.client.qps "burst" $v.client.burst) -}}
{{- $shipped := first $config.profiles -}}
{{- if and .Values.tenants.enabled $v.activeActive -}}
{{- fail "tenants.enabled has one scheduler keep one order of all pods, and with scheduler.activeActive there are several: the scheduler would not start. Leave one of the two false" -}}
{{- end -}}
{{- if .Values.tenants.enabled -}}{{- $shipped = include "espalier.tenantsProfile" $shipped | fromYaml -}}{{- end -}}
{{- range $shipped.pluginConfig -}}
{{- if eq .name "FaultyNode" -}}{{- $_ := unset .args.record "namespace" -}}{{- end -}}
{{- end -}}
{{- $name := printf "%s-scheduler" (include "espalier.fullname" .) -}}
{{- $profiles := list -}}
{{- /* The schema does not see a list that is null. */ -}}
{{- if not $v.profiles -}}
{{- fail "scheduler.profiles is empty, and without a profile the scheduler would run Kubernetes' own: give at least one, [{}] is the shipped one" -}}
{{- end -}}
{{- range (include "espalier.givenProfiles" . | fromYaml).profiles -}}
{{- $profiles = append $profiles (include "espalier.profile" (list $shipped (default $name .schedulerName) .) | fromYaml) -}}
{{- end -}}
{{- $_ := set $config "profiles" $profiles -}}
{{- end -}}
{{- $_ := set $config "leaderElection" (dict "leaderElect" true
  "resourceName" (include "espalier.leaseName" .) "resourceNamespace" (include "espalier.leaseNamespace" .)
  "leaseDuration" $v.leaderElection.leaseDuration "renewDeadline" $v.leaderElection.renewDeadline "retryPeriod" $v.leaderElection.retryPeriod) -}}
{{- if not $config.profiles -}}
{{- fail "scheduler.configuration has no profiles, and without one the scheduler would run Kubernetes' own: begin with a copy of files/scheduler-config.yaml" -}}
{{- end -}}
{{- range $at, $profile := $config.profiles -}}
{{- if not $profile.schedulerName -}}
{{- /* As Kubernetes does, which refuses it of several. */ -}}
{{- if gt (len $config.profiles) 1 -}}
{{- fail (printf "scheduler.configuration.profiles[%d] has no schedulerName, which only a profile that is alone may lack: give it one" $at) -}}
{{- end -}}
{{- $_ := set $profile "schedulerName" "default-scheduler" -}}
{{- end -}}
{{- end -}}
{{- $named := list -}}
{{- range $config.profiles -}}
{{- if has .schedulerName $named -}}
{{- fail (printf "two profiles are named %s, which the scheduler refuses: give each a schedulerName of its own" .schedulerName) -}}
{{- end -}}
{{- $named = append $named .schedulerName -}}
{{- if include "espalier.watchesNodes" . -}}
{{- $faultyNode := dict -}}
{{- range .pluginConfig -}}{{- if eq .name "FaultyNode" -}}{{- $faultyNode = . -}}{{- end -}}{{- end -}}
{{- if not $faultyNode -}}
{{- $faultyNode = dict "name" "FaultyNode" -}}
{{- $_ := set . "pluginConfig" (append (default list .pluginConfig) $faultyNode) -}}
{{- end -}}
{{- if not $faultyNode.args -}}
{{- $_ := set $faultyNode "args" (dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "FaultyNodeArgs") -}}
{{- end -}}
{{- $record := default dict $faultyNode.args.record -}}
{{- $_ := set $record "namespace" (default $.Release.Namespace $record.namespace) -}}
{{- $_ := set $faultyNode.args "record" $record -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
The records of failures that the profiles keep: the names of the ConfigMaps, by namespace.
*/}}
{{- define "espalier.records" -}}
{{- $records := dict -}}
{{- range $profile := (include "espalier.configuration" . | fromYaml).profiles -}}
{{- if include "espalier.watchesNodes" $profile -}}
{{- range $profile.pluginConfig -}}
{{- if and (eq .name "FaultyNode") (ne (toString .args.record.enabled) "false") -}}
{{- $name := printf "%s-failures" $profile.schedulerName -}}
{{- $_ := set $records .args.record.namespace (append (dig .args.record.namespace list $records) $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $records -}}
{{- end -}}

{{/*
The namespace of all records of failures, which the controller reads to taint suspects.
*/}}
{{- define "espalier.recordNamespace" -}}
{{- $namespaces := include "espalier.records" . | fromYaml | keys -}}
{{- if ne (len $namespaces) 1 -}}
{{- fail (printf "controller.taintSuspects reads the records of failures of one namespace, and the profiles keep theirs in %d: give all profiles one record.namespace, or leave taintSuspects.effect empty" (len $namespaces)) -}}
{{- end -}}
{{- first $namespaces -}}
{{- end -}}

{{/*
The names of the profiles, and of those of other releases that the controller counts for as well.
*/}}
{{- define "espalier.schedulerNames" -}}
{{- $names := list -}}
{{- range (include "espalier.configuration" . | fromYaml).profiles -}}{{- $names = append $names .schedulerName -}}{{- end -}}
{{- concat $names .Values.controller.schedulerNames | uniq | join "," -}}
{{- end -}}

{{/*
The objects of one file of manifests/base, which says what they may do. Names and namespaces become
the release's; only the binding that reads the client authority stays where that Role is, and the rights
to the Lease and to the records of failures go where the configuration has them.
Takes (list . COMPONENT FILE).
*/}}
{{- define "espalier.rights" -}}
{{- $top := index . 0 -}}{{- $component := index . 1 -}}
{{- $text := $top.Files.Get (index . 2) -}}
{{- $full := include "espalier.fullname" $top -}}
{{- /* All at once: the release's name may end in one of these itself. */ -}}
{{- $text = regexReplaceAll "espalier-(scheduler|controller|policies)" $text (printf "%s-${1}" $full) -}}
{{- range $document := splitList "\n---\n" $text -}}
{{- $object := fromYaml $document -}}
{{- $kept := omit (default dict $object.metadata.labels) "app.kubernetes.io/name" -}}
{{- $_ := set $object.metadata "labels" (merge $kept (include "espalier.labels" (list $top $component) | fromYaml)) -}}
{{- if hasKey $object.metadata "namespace" -}}{{- $_ := set $object.metadata "namespace" $top.Release.Namespace -}}{{- end -}}
{{- range $object.subjects -}}{{- $_ := set . "namespace" $top.Release.Namespace -}}{{- end -}}
{{- if eq $object.kind "ServiceAccount" -}}
{{- with (index $top.Values $component).serviceAccountAnnotations -}}{{- $_ := set $object.metadata "annotations" . -}}{{- end -}}
{{- end -}}
{{- if eq (dig "roleRef" "name" "" $object) "extension-apiserver-authentication-reader" -}}
{{- $_ := set $object.metadata "namespace" "kube-system" -}}
{{- end -}}
{{- if eq $object.metadata.name (printf "%s-scheduler-lease" $full) -}}
{{- $_ := set $object.metadata "namespace" (include "espalier.leaseNamespace" $top) -}}
{{- range $object.rules -}}
{{- if .resourceNames -}}{{- $_ := set . "resourceNames" (list (include "espalier.leaseName" $top)) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $objects := list $object -}}
{{- if eq $object.metadata.name (printf "%s-scheduler-failures" $full) -}}
{{- $objects = list -}}
{{- range $namespace, $names := include "espalier.records" $top | fromYaml -}}
{{- $there := deepCopy $object -}}
{{- $_ := set $there.metadata "namespace" $namespace -}}
{{- range $there.rules -}}{{- $_ := set . "resourceNames" $names -}}{{- end -}}
{{- $objects = append $objects $there -}}
{{- end -}}
{{- end -}}
{{- range $objects }}
---
{{ toYaml . }}
{{- end -}}
{{- end -}}
{{- end -}}

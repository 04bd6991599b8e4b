#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# k8s.io/client-go v0.37.2: a watch of the fake clientset hands out the objects that the clientset keeps, where they were there before it began.
#
# An object that comes after the watch has begun is handed out as a copy, and so is each object of Get and List. Those that came between a list and the
# watch after it, which an informer asks for in this order, are not. An informer with a transform that changes objects, as kube-scheduler's informer of pods,
# which takes off managed fields, then changes them in the clientset: without a lock, so that the race detector fails a test now and then. In a test, make
# objects once the watch has begun.
#
# Seen: both lines below. The script fails when they differ. It takes seconds, once its modules are there.

set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func main() {
	ctx := context.Background()
	pods := fake.NewClientset().CoreV1().Pods("ns")
	create := func(name string) {
		if _, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}, metav1.CreateOptions{}); err != nil {
			panic(err)
		}
	}
	create("before")
	watch, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	create("after")
	for range 2 {
		pod := (<-watch.ResultChan()).Object.(*corev1.Pod)
		pod.Labels = map[string]string{"changed": "yes"}
		kept, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			panic(err)
		}
		fmt.Printf("made %s the watch: the clientset keeps the labels %v\n", pod.Name, kept.Labels)
	}
}
GO
go mod init finding 2>/dev/null
go mod edit -go=1.26.0 -require=k8s.io/client-go@v0.37.2 -require=k8s.io/api@v0.37.2 -require=k8s.io/apimachinery@v0.37.2
go mod tidy 2>/dev/null
seen=$(CGO_ENABLED=0 go run .)
echo "$seen"
want="made before the watch: the clientset keeps the labels map[changed:yes]
made after the watch: the clientset keeps the labels map[]"
if [[ $seen != "$want" ]]; then
  echo "This is no longer so. It was: $want" >&2
  exit 1
fi

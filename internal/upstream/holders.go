// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"reflect"
	"strings"

	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// schedulerPackages begins the path of the packages of kube-scheduler.
const schedulerPackages = "k8s.io/kubernetes/pkg/scheduler"

// checkTracked refuses a scheduler that has its cache in a place besides the one that track has wrapped. What it assumes there no journal sees, the
// pod counts stay as they were, and pods are placed unevenly without a word. Kubernetes 1.37 has one place. From 1.38 on scheduler.New hands the cache
// to its algorithm, before anybody can wrap it.
func checkTracked(sched *Scheduler, bare internalcache.Cache) error {
	cache := reflect.ValueOf(bare)
	if cache.Kind() != reflect.Pointer {
		return fmt.Errorf("the cache of the scheduler is a %T, and not a pointer, so that nobody can tell where it is: Espalier does not run with this version of Kubernetes", bare)
	}
	if where := holders(reflect.ValueOf(sched), cache.UnsafePointer(), "Scheduler", map[any]bool{}); len(where) > 0 {
		return fmt.Errorf("the scheduler has a cache that is not tracked in %s: Espalier does not run with this version of Kubernetes", strings.Join(where, ", "))
	}
	return nil
}

// holders are the paths of fields below a value, of types of kube-scheduler, that hold a pointer.
func holders(v reflect.Value, pointer any, path string, seen map[any]bool) (all []string) {
	switch v.Kind() {
	case reflect.Interface:
		return holders(v.Elem(), pointer, path, seen)
	case reflect.Pointer:
		if v.UnsafePointer() == pointer {
			return []string{path}
		}
		if v.IsNil() || seen[v.UnsafePointer()] {
			return nil
		}
		seen[v.UnsafePointer()] = true
		return holders(v.Elem(), pointer, path, seen)
	case reflect.Struct:
		if !strings.HasPrefix(v.Type().PkgPath(), schedulerPackages) {
			return nil
		}
		for i := range v.NumField() {
			all = append(all, holders(v.Field(i), pointer, path+"."+v.Type().Field(i).Name, seen)...)
		}
	}
	return all
}

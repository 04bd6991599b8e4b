// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
)

// Records reads what schedulers have written down of failures, each in a ConfigMap of its own. Of other ConfigMaps it reads the names alone:
// anything may be in them.
func Records(ctx context.Context, api client.Reader) ([]*corev1.ConfigMap, error) {
	var keys []client.ObjectKey
	err := eachObject(ctx, api, func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		return list
	}, func(o runtime.Object) {
		if m, is := o.(*metav1.PartialObjectMetadata); is && strings.HasSuffix(m.Name, record.Suffix) {
			keys = append(keys, client.ObjectKeyFromObject(m))
		}
	}, func() {})
	if err != nil {
		return nil, err
	}
	var records []*corev1.ConfigMap
	for _, key := range keys {
		var m corev1.ConfigMap
		err := api.Get(ctx, key, &m)
		if apierrors.IsNotFound(err) {
			continue // it is gone by now
		}
		if err != nil {
			return nil, err
		}
		if text, is := m.Data[record.Key]; is {
			records = append(records, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}, Data: map[string]string{record.Key: text}})
		}
	}
	return records, nil
}

// readRecords adds the records of failures.
func (s *Snapshot) readRecords(ctx context.Context, api client.Reader) error {
	records, err := Records(ctx, api)
	for _, m := range records {
		s.Add(m)
	}
	return err
}

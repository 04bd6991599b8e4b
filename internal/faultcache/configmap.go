// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// recordSuffix follows the scheduler's name in that of the ConfigMap.
	recordSuffix = "-failures"
	// recordKey is where in the ConfigMap the record is.
	recordKey = "failures.json"
	// recordLimit bounds the record, in bytes. The API server takes objects of 1 MiB.
	recordLimit = 900 << 10
)

// configMap is where the record is kept between two schedulers.
type configMap struct {
	client          kubernetes.Interface
	namespace, name string
	// found says that there was a record when it was last read.
	found atomic.Bool
}

func newConfigMap(client kubernetes.Interface, namespace, schedulerName string) *configMap {
	return &configMap{client: client, namespace: namespace, name: schedulerName + recordSuffix}
}

func (c *configMap) String() string { return "ConfigMap " + c.namespace + "/" + c.name }

// read returns the record, nil if there is none.
func (c *configMap) read(ctx context.Context) ([]byte, error) {
	object, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %v: %w", c, err)
	}
	c.found.Store(true)
	text, ok := object.Data[recordKey]
	if !ok && len(object.Data)+len(object.BinaryData) > 0 {
		return nil, fmt.Errorf("%v is not ours: it has no %s; delete it, or name another namespace for the record", c, recordKey)
	}
	return []byte(text), nil
}

// write replaces the record. It is applied, not updated: to write it takes one call,
// whether it is there or not, and the last one to lead is right.
func (c *configMap) write(ctx context.Context, record []byte) error {
	object := applycorev1.ConfigMap(c.name, c.namespace).WithData(map[string]string{recordKey: string(record)})
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Apply(ctx, object, metav1.ApplyOptions{FieldManager: c.name, Force: true})
	if err != nil {
		return fmt.Errorf("writing %v: %w", c, err)
	}
	return nil
}

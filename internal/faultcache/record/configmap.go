// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package record

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
	// Suffix follows the scheduler's name in that of the ConfigMap.
	Suffix = "-failures"
	// Key is where in the ConfigMap the record is.
	Key = "failures.json"
	// Limit bounds the record, in bytes. The API server takes objects of 1 MiB.
	Limit = 900 << 10
)

// ConfigMap is where the record is kept between two schedulers.
type ConfigMap struct {
	client          kubernetes.Interface
	Namespace, Name string
	// Found says that there was a record when it was last read.
	Found atomic.Bool
}

// NewConfigMap returns the ConfigMap of a scheduler.
func NewConfigMap(client kubernetes.Interface, namespace, schedulerName string) *ConfigMap {
	return &ConfigMap{client: client, Namespace: namespace, Name: schedulerName + Suffix}
}

func (c *ConfigMap) String() string { return "ConfigMap " + c.Namespace + "/" + c.Name }

// Read returns the record, nil if there is none.
func (c *ConfigMap) Read(ctx context.Context) ([]byte, error) {
	object, err := c.client.CoreV1().ConfigMaps(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %v: %w", c, err)
	}
	c.Found.Store(true)
	text, ok := object.Data[Key]
	if !ok && len(object.Data)+len(object.BinaryData) > 0 {
		return nil, fmt.Errorf("%v is not ours: it has no %s; delete it, or name another namespace for the record", c, Key)
	}
	return []byte(text), nil
}

// Write replaces the record. It is applied, not updated: to write it takes one call,
// whether it is there or not, and the last one to lead is right.
func (c *ConfigMap) Write(ctx context.Context, record []byte) error {
	object := applycorev1.ConfigMap(c.Name, c.Namespace).WithData(map[string]string{Key: string(record)})
	_, err := c.client.CoreV1().ConfigMaps(c.Namespace).Apply(ctx, object, metav1.ApplyOptions{FieldManager: c.Name, Force: true})
	if err != nil {
		return fmt.Errorf("writing %v: %w", c, err)
	}
	return nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// What a file says that it is.
const (
	fileVersion = "snapshot.espalier.dev/v1alpha1"
	fileKind    = "ClusterSnapshot"
)

// file is a snapshot as JSON.
type file struct {
	metav1.TypeMeta `json:",inline"`

	Taken   metav1.Time       `json:"taken"`
	Server  string            `json:"server,omitempty"`
	Unread  []string          `json:"unread,omitempty"`
	Objects []json.RawMessage `json:"objects"`
}

// Write writes the snapshot as JSON.
func (s *Snapshot) Write(out io.Writer) error {
	f := file{TypeMeta: metav1.TypeMeta{APIVersion: fileVersion, Kind: fileKind}, Taken: metav1.Time{Time: s.Taken}, Server: s.Server, Unread: s.Unread}
	for _, o := range s.Objects {
		kind, err := apiutil.GVKForObject(o, Scheme())
		if err != nil {
			return fmt.Errorf("writing a snapshot: %w", err)
		}
		o = o.DeepCopyObject()
		o.GetObjectKind().SetGroupVersionKind(kind) // objects of a list have none
		if err := f.add(o); err != nil {
			return err
		}
	}
	for _, o := range s.Policies {
		if err := f.add(o); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(out).Encode(&f); err != nil {
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	return nil
}

func (f *file) add(o runtime.Object) error {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	f.Objects = append(f.Objects, text)
	return nil
}

// ReadFile reads what Write wrote.
func ReadFile(in io.Reader) (*Snapshot, error) {
	var f file
	if err := json.NewDecoder(in).Decode(&f); err != nil {
		return nil, fmt.Errorf("this is no snapshot, which `kubectl espalier snapshot` writes: %w", err)
	}
	if f.Kind != fileKind {
		return nil, fmt.Errorf("this is of kind %q, and no %s: `kubectl espalier snapshot` writes one", f.Kind, fileKind)
	}
	if f.APIVersion != fileVersion {
		return nil, fmt.Errorf("this snapshot is of version %q, and this command reads %q: take it again, or use the version that took it", f.APIVersion, fileVersion)
	}
	s := &Snapshot{Taken: f.Taken.Time, Server: f.Server, Unread: f.Unread}
	decode := serializer.NewCodecFactory(Scheme()).UniversalDeserializer()
	for i, text := range f.Objects {
		var is metav1.TypeMeta
		if err := json.Unmarshal(text, &is); err != nil {
			return nil, fmt.Errorf("object %d of this snapshot: %w", i, err)
		}
		if is.APIVersion == placementv1alpha1.SchemeGroupVersion.String() {
			policy := &unstructured.Unstructured{}
			if err := policy.UnmarshalJSON(text); err != nil {
				return nil, fmt.Errorf("object %d of this snapshot: %w", i, err)
			}
			s.Policies = append(s.Policies, policy)
			continue
		}
		o, _, err := decode.Decode(text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("object %d of this snapshot: %w", i, err)
		}
		s.Objects = append(s.Objects, o)
	}
	if len(s.Objects) == 0 {
		return nil, errors.New("this snapshot has no objects: take it again")
	}
	return s, nil
}

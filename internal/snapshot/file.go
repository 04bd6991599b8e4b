// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

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
	for _, o := range slices.Concat(s.Policies, s.Tenants) {
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

// ReadFile reads what Write wrote, one object at a time: a large cluster has hundreds of MiB of them.
func ReadFile(in io.Reader) (*Snapshot, error) {
	reader := json.NewDecoder(in)
	if err := begin(reader, '{'); err != nil {
		return nil, fmt.Errorf("this is no snapshot, which `kubectl espalier snapshot` writes: %w", err)
	}
	var f file
	s := &Snapshot{}
	for reader.More() {
		key, err := reader.Token()
		if err != nil {
			return nil, broken(err)
		}
		switch key {
		case "apiVersion":
			err = reader.Decode(&f.APIVersion)
		case "kind":
			err = reader.Decode(&f.Kind)
		case "taken":
			err = reader.Decode(&f.Taken)
		case "server":
			err = reader.Decode(&s.Server)
		case "unread":
			err = reader.Decode(&s.Unread)
		case "objects":
			if err := f.check(); err != nil {
				return nil, err
			}
			err = s.readObjects(reader)
		default:
			err = reader.Decode(new(json.RawMessage))
		}
		if err != nil {
			return nil, broken(err)
		}
	}
	if _, err := reader.Token(); err != nil {
		return nil, broken(err)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if len(s.Objects) == 0 {
		return nil, errors.New("this snapshot has no objects: take it again")
	}
	s.Taken = f.Taken.Time
	return s, nil
}

// begin reads the delimiter that something begins with.
func begin(reader *json.Decoder, with json.Delim) error {
	token, err := reader.Token()
	if err == nil && token != with {
		err = fmt.Errorf("it begins with %v, and not with %v", token, with)
	}
	return err
}

func broken(err error) error {
	return fmt.Errorf("this snapshot cannot be read: take it again: %w", err)
}

// check refuses what this version of the command cannot read. A file says what it is before it says more.
func (f *file) check() error {
	if f.Kind != fileKind {
		return fmt.Errorf("this is of kind %q, and no %s: `kubectl espalier snapshot` writes one", f.Kind, fileKind)
	}
	if f.APIVersion != fileVersion {
		return fmt.Errorf("this snapshot is of version %q, and this command reads %q: take it again, or use the version that took it", f.APIVersion, fileVersion)
	}
	return nil
}

// readObjects reads the array of objects.
func (s *Snapshot) readObjects(reader *json.Decoder) error {
	if err := begin(reader, '['); err != nil {
		return fmt.Errorf("its objects: %w", err)
	}
	decode := serializer.NewCodecFactory(Scheme()).UniversalDeserializer()
	for i := 0; reader.More(); i++ {
		var text json.RawMessage
		if err := reader.Decode(&text); err != nil {
			return err
		}
		o, err := readObject(decode, text)
		if err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
		if object, is := o.(*unstructured.Unstructured); is {
			s.addOurs(object)
			continue
		}
		s.Objects = append(s.Objects, o)
	}
	_, err := reader.Token()
	return err
}

func readObject(decode runtime.Decoder, text []byte) (runtime.Object, error) {
	var is metav1.TypeMeta
	if err := json.Unmarshal(text, &is); err != nil {
		return nil, err
	}
	if is.APIVersion == placementv1alpha1.SchemeGroupVersion.String() {
		object := &unstructured.Unstructured{}
		err := object.UnmarshalJSON(text)
		return object, err
	}
	o, _, err := decode.Decode(text, nil, nil)
	return o, err
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What stories do with single objects. One of the cluster has no namespace, and the story's is not asked for.

// object is a pointer to an object of a kind.
type object[T any] interface {
	*T
	client.Object
}

// named is an object that has but a name, to be read, changed or deleted by it.
func named[T any, P object[T]](s *story, name string) P {
	o := P(new(T))
	o.SetNamespace(s.ns)
	o.SetName(name)
	return o
}

// title is what an object is called in messages.
func title(o client.Object) string { return reflect.TypeOf(o).Elem().Name() + " " + o.GetName() }

// make creates an object in the story's namespace.
func (s *story) make(o client.Object) {
	s.Helper()
	o.SetNamespace(s.ns)
	s.must(world.objects.Create(s.ctx, o), "creating "+title(o))
}

// create makes an object of the cluster that is deleted with the story. The first stories may come before its kind is served.
func (s *story) create(o client.Object) {
	s.Helper()
	s.until("creating "+title(o), func() error { return world.objects.Create(s.ctx, o) })
	s.Cleanup(func() {
		if err := world.objects.Delete(context.Background(), o); err != nil && !gone(err) {
			s.Errorf("deleting %s: %v", title(o), err)
		}
	})
}

// get reads an object.
func get[T any, P object[T]](s *story, name string) P {
	s.Helper()
	o := named[T, P](s, name)
	s.must(world.objects.Get(s.ctx, client.ObjectKeyFromObject(o), o), "reading "+title(o))
	return o
}

// becomes waits until an object is there and passes the check.
func becomes[T any, P object[T]](s *story, name, what string, check func(P) error) {
	s.Helper()
	s.until(what, func() error {
		o := named[T, P](s, name)
		if err := world.objects.Get(s.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return check(o)
	})
}

// goes waits until an object is not there any more.
func (s *story) goes(o client.Object) {
	s.Helper()
	s.until(title(o)+" to be gone", func() error {
		err := world.objects.Get(s.ctx, client.ObjectKeyFromObject(o), o)
		if gone(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is there"))
	})
}

// alter changes an object by a merge patch.
func (s *story) alter(o client.Object, format string, args ...any) {
	s.Helper()
	s.must(world.objects.Patch(s.ctx, o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))), "changing "+title(o))
}

// delete deletes an object, by its grace period or as the options say.
func (s *story) delete(o client.Object, options ...client.DeleteOption) {
	s.Helper()
	s.must(world.objects.Delete(s.ctx, o, options...), "deleting "+title(o))
}

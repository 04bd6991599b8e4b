// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stream is an API server of which nothing is there but the watches of nodes and pods, as bytes.
type stream struct {
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
	nodes  *io.PipeWriter
	pods   *io.PipeWriter
	bodies map[string]io.ReadCloser
}

func newStream(tb testing.TB) *stream {
	tb.Helper()
	s := &stream{scheme: runtime.NewScheme(), bodies: make(map[string]io.ReadCloser)}
	if err := corev1.AddToScheme(s.scheme); err != nil {
		tb.Fatal(err)
	}
	s.codecs = serializer.NewCodecFactory(s.scheme)
	for resource, to := range map[string]**io.PipeWriter{"nodes": &s.nodes, "pods": &s.pods} {
		s.bodies[resource], *to = io.Pipe()
	}
	return s
}

// RoundTrip answers a watch.
func (s *stream) RoundTrip(r *http.Request) (*http.Response, error) {
	body, there := s.bodies[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
	if !there || r.URL.Query().Get("watch") == "" {
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
	}
	return &http.Response{
		StatusCode: http.StatusOK, Body: body, Request: r,
		Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf + ";stream=watch"}},
	}, nil
}

// cache is one that follows it.
func (s *stream) cache(ctx context.Context, tb testing.TB) cache.Cache {
	tb.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	c, err := cache.New(&rest.Config{Host: "http://stream"}, cache.Options{
		Scheme: s.scheme, Mapper: mapper, HTTPClient: &http.Client{Transport: s},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Transform: cache.TransformStripManagedFields()}, &corev1.Node{}: {Transform: cache.TransformStripManagedFields()},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := Index(ctx, c); err != nil {
		tb.Fatal(err)
	}
	return c
}

// events are events as they are sent.
func (s *stream) events(tb testing.TB, kind watch.EventType, objects ...client.Object) []byte {
	tb.Helper()
	info, known := runtime.SerializerInfoForMediaType(s.codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !known {
		tb.Fatal("there is no such encoding")
	}
	var sent bytes.Buffer
	encoder := restwatch.NewEncoder(
		streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(&sent), info.StreamSerializer.Serializer),
		s.codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion),
	)
	for _, o := range objects {
		if err := encoder.Encode(&watch.Event{Type: kind, Object: o}); err != nil {
			tb.Fatal(err)
		}
	}
	return sent.Bytes()
}

// listed is what the API server sends when it has sent all that there is.
func (s *stream) listed(tb testing.TB, of client.Object) []byte {
	tb.Helper()
	of.SetResourceVersion("1")
	of.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return s.events(tb, watch.Bookmark, of)
}

// send sends events, and returns when they have been read.
func send(tb testing.TB, to *io.PipeWriter, events ...[]byte) {
	tb.Helper()
	for _, e := range events {
		if _, err := to.Write(e); err != nil {
			tb.Error(err)
			return
		}
	}
}

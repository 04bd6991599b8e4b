// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"
	"sync"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/espalier-scheduler/espalier/internal/informersync"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

// Informers tracks those of a scheduler.
type Informers struct {
	*informersync.Tracker
	enclosing sync.Once
	enclosed  error
}

// NewInformers returns a tracker that knows none.
func NewInformers(c clock.WithTicker) *Informers {
	return &Informers{Tracker: informersync.New(c, Options)}
}

// Before has the clients of a scheduler tracked before a plugin of it is made: a plugin of ours may watch our kinds from then on.
func (i *Informers) Before(factory plugins.Factory) plugins.Factory {
	return func(ctx context.Context, args apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if err := i.Enclose(handle.ClientSet(), handle.KubeConfig()); err != nil {
			return nil, err
		}
		return factory(ctx, args, handle)
	}
}

// Enclose has a client, and those that are made with a configuration, tracked, once. The informers of the client do not run yet.
func (i *Informers) Enclose(client kubernetes.Interface, config *rest.Config) error {
	i.enclosing.Do(func() {
		c, ok := client.CoreV1().RESTClient().(*rest.RESTClient)
		if !ok || c.Client == nil || c.Client.Transport == nil {
			i.enclosed = fmt.Errorf("the client of the API server is a %T without a transport, so that informers that cannot be filled would not be named; this is a fault of the program", client.CoreV1().RESTClient())
			return
		}
		c.Client.Transport = i.Wrap(c.Client.Transport) // all groups share it
		config.Wrap(i.Wrap)
	})
	return i.enclosed
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimachineryversion "k8s.io/apimachinery/pkg/version"

	"github.com/espalier-scheduler/espalier/internal/informersync"
	"github.com/espalier-scheduler/espalier/internal/serverversion"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// readyPorts are the ports at which the pods of a component say whether they are ready, as the manifests call them, and how they are spoken to.
var readyPorts = map[string]struct{ name, scheme string }{
	schedulerApp:          {"https", "https"},
	"espalier-controller": {"probes", "http"},
}

// Ready asks a pod of Espalier for a path, through the API server: the address is that of the pod as one of pods/proxy, such as https:NAME:PORT. The
// status is 0 where nobody answered.
type Ready func(ctx context.Context, namespace, address, path string) (status int, body string, err error)

// informers say of each running pod of Espalier which of its informers are not filled. There need be no pods.
func (c *Checks) informers(ctx context.Context) (all []Finding) {
	for _, p := range snapshot.Of[*corev1.Pod](c.Snapshot) {
		port, is := readyPorts[p.Labels[appName]]
		if !is || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		f := Finding{Check: "informers of Pod " + p.Namespace + "/" + p.Name}
		number := portOf(p, port.name)
		if number == 0 {
			f.Found, f.Fix = fmt.Sprintf("not known: it has no port %q", port.name), "read its log, which has a line a minute about each that is not filled"
			all = append(all, f)
			continue
		}
		address := fmt.Sprintf("%s:%s:%d", port.scheme, p.Name, number)
		status, body, err := c.Ready(ctx, p.Namespace, address, "readyz/"+informersync.Check)
		body = strings.TrimPrefix(strings.TrimSpace(body), "internal server error: ")
		switch status {
		case http.StatusOK:
			f.OK, f.Found = true, "all filled"
		case http.StatusInternalServerError:
			f.Found, f.Fix = body, "see docs/troubleshooting.md#informers-that-are-not-filled"
		case http.StatusNotFound:
			f.Found, f.Fix = "not known: it does not say it", "use the command of the release that runs, or upgrade"
		default:
			f.Found, f.Fix = fmt.Sprintf("not known: %v", err), "ask for the right to get pods/proxy, let the API server reach the pod if a NetworkPolicy keeps it out, or read its log, which has a line a minute about each that is not filled"
		}
		all = append(all, f)
		if p.Labels[appName] == schedulerApp && status != 0 {
			all = append(all, c.emulated(ctx, p, address))
		}
	}
	if len(all) == 0 {
		all = append(all, Finding{"informers", true, "not known, as no pod of Espalier runs in the cluster: /readyz/" + informersync.Check + " of the process names those that are not filled", ""})
	}
	return all
}

// emulated says whether a pod of the scheduler makes use of the version of the API server, which may have been upgraded since the pod started.
func (c *Checks) emulated(ctx context.Context, p *corev1.Pod, address string) Finding {
	f := Finding{Check: "version of Pod " + p.Namespace + "/" + p.Name}
	var info apimachineryversion.Info
	status, body, err := c.Ready(ctx, p.Namespace, address, "version")
	if status == http.StatusOK {
		err = json.Unmarshal([]byte(body), &info)
	}
	emulated, server := serverversion.Read(&info), serverversion.Read(&apimachineryversion.Info{GitVersion: c.Snapshot.Server})
	if err != nil || emulated == nil {
		f.Found, f.Fix = fmt.Sprintf("not known: %v", cmp.Or(err, errNoVersion)), "use the command of the release that runs, or upgrade"
		return f
	}
	f.OK, f.Found = true, "runs as one of Kubernetes "+emulated.String()
	if built := serverversion.Read(&apimachineryversion.Info{Major: info.Major, Minor: info.Minor}); server != nil && emulated.LessThan(server) && built != nil && emulated.LessThan(built) {
		f.OK, f.Fix = false, fmt.Sprintf("the API server is of %s now: restart the Deployment, or what else runs it, to use what that adds. With --emulated-version it stays as it is", server)
	}
	return f
}

// errNoVersion is of an answer that is none.
var errNoVersion = errors.New("it names no version of Kubernetes")

// portOf is the number of a port of a pod, 0 if it has none of that name.
func portOf(p *corev1.Pod, name string) int32 {
	for i := range p.Spec.Containers {
		ports := p.Spec.Containers[i].Ports
		if at := slices.IndexFunc(ports, func(is corev1.ContainerPort) bool { return is.Name == name }); at >= 0 {
			return ports[at].ContainerPort
		}
	}
	return 0
}

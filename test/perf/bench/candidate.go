// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/test/perf/judge"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

// QPS and Burst are every scheduler's limits at the API server: those of
// scheduler_perf, so high that none of them meets it.
const (
	QPS   = 5000
	Burst = 5000
)

// Profiled is the scheduler that is profiled, if any is.
const Profiled = judge.Ours

const (
	stockProfile = "default-scheduler"
	nullProfile  = "null-scheduler"
)

// Candidate is a scheduler to be measured.
type Candidate struct {
	// Name is one of judge.Schedulers.
	Name string
	// Binary is the path of its program.
	Binary string

	// tenants has ours run the profile of the overlay tenants.
	tenants bool
}

// profile is the schedulerName of pods that are for it.
func (c Candidate) profile() string {
	switch c.Name {
	case judge.Null:
		return nullProfile
	case judge.Ours:
		return rig.SchedulerName
	default:
		return stockProfile
	}
}

// The head of a configuration as the stock scheduler and the null scheduler get it. Ours
// runs the shipped one, with the same limits laid over it by flags, or that of an overlay with this head.
const configHead = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceNamespace: %s, resourceName: %s, leaseDuration: %s, renewDeadline: %s, retryPeriod: %s}
clientConnection: {kubeconfig: %q, qps: %d, burst: %d}
profiles:
- schedulerName: %s
`

// nullPlugins leaves what a profile must have, and the plugin that names a node.
const nullPlugins = `  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: InTurn}, {name: DefaultBinder}]
`

// otherwise is what the shipped configuration says, and what it is to say for a workload, in turn.
func otherwise(workload load.Workload) (texts []string) {
	if workload.Unrecorded {
		texts = append(texts, "decisionRecord: Enabled", "decisionRecord: Disabled")
	}
	if workload.ScaleDownAny {
		texts = append(texts, "scaleDown: Even", "scaleDown: Any")
	}
	if workload.Unannounced {
		texts = append(texts, "scheduledEvents: All", "scheduledEvents: Off")
	}
	return texts
}

// writeOtherwise writes the shipped configuration with other texts. Its election is not laid over by flags, as it is without a file.
func writeOtherwise(path string, texts []string) error {
	shipped := string(manifests.SchedulerConfig)
	for i := 0; i < len(texts); i += 2 {
		if !strings.Contains(shipped, texts[i]) {
			return fmt.Errorf("the shipped configuration does not say %s", texts[i])
		}
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(texts...).Replace(shipped)), &config); err != nil {
		return err
	}
	config["leaderElection"] = map[string]any{
		"leaderElect": true, "resourceNamespace": leaseNamespace, "resourceName": leaseName,
		"leaseDuration": leaseDuration.String(), "renewDeadline": leaseDeadline.String(), "retryPeriod": leaseRetry.String(),
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// args are the command line, with the configuration file written where it needs one: ours runs the shipped one, unless the workload has it
// write less.
func (c Candidate) args(kubeconfig, dir, port string, workload load.Workload) ([]string, error) {
	args := []string{
		"--bind-address=127.0.0.1", "--secure-port=" + port,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		// Who may read these is the API server's to say, which has other work to do.
		"--authorization-always-allow-paths=/metrics,/debug/pprof/*",
	}
	path := filepath.Join(dir, c.Name+".yaml")
	if texts := otherwise(workload); c.Name == judge.Ours && len(texts) > 0 {
		if err := writeOtherwise(path, texts); err != nil {
			return nil, fmt.Errorf("writing the configuration of %s: %w", c.Name, err)
		}
		return append(args, "--config="+path, "--kubeconfig="+kubeconfig, "--kube-api-qps="+strconv.Itoa(QPS), "--kube-api-burst="+strconv.Itoa(Burst)), nil
	}
	if c.Name == judge.Ours && !c.tenants {
		return append(args, "--kubeconfig="+kubeconfig, "--leader-elect=true", "--leader-elect-resource-namespace="+leaseNamespace,
			"--leader-elect-resource-name="+leaseName, "--leader-elect-lease-duration="+leaseDuration.String(),
			"--leader-elect-renew-deadline="+leaseDeadline.String(), "--leader-elect-retry-period="+leaseRetry.String(),
			"--kube-api-qps="+strconv.Itoa(QPS), "--kube-api-burst="+strconv.Itoa(Burst)), nil
	}
	config := fmt.Sprintf(configHead, leaseNamespace, leaseName, leaseDuration, leaseDeadline, leaseRetry, kubeconfig, QPS, Burst, c.profile())
	switch c.Name {
	case judge.Null:
		config += nullPlugins
	case judge.Ours:
		var err error
		if config, err = withHead(config, manifests.TenantsConfig); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of %s: %w", c.Name, err)
	}
	return append(args, "--config="+path), nil
}

// withHead is a configuration that ships, with the fields of a head in place of its own, but for the profiles.
func withHead(head string, shipped []byte) (string, error) {
	var fields, config map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(head), &fields), yaml.Unmarshal(shipped, &config)); err != nil {
		return "", fmt.Errorf("reading a configuration: %w", err)
	}
	profiles := config["profiles"]
	maps.Copy(config, fields)
	config["profiles"] = profiles
	text, err := yaml.Marshal(config)
	return string(text), err
}

// running is a candidate's process.
type running struct {
	*rig.Process
	// port is where it tells its metrics, as the beginning of a URL.
	port string
}

// start starts the candidate's process. It may not be ready yet.
func (c Candidate) start(kubeconfig, dir string, workload load.Workload) (*running, error) {
	port, err := rig.FreePort()
	if err != nil {
		return nil, err
	}
	args, err := c.args(kubeconfig, dir, port, workload)
	if err != nil {
		return nil, err
	}
	p, err := rig.Start(rig.Command{Name: c.Name, Path: c.Binary, Args: args, Dir: dir})
	if err != nil {
		return nil, err
	}
	return &running{p, "https://" + net.JoinHostPort("127.0.0.1", port)}, nil
}

func (r *running) stop() error { return r.Stop(15 * time.Second) }

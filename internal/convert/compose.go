// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
)

// Converted is what a workload says about placement, in Espalier's words.
type Converted struct {
	Name string `json:"name"`
	// Kind is what makes its pods: Deployment, DaemonSet for a global service, or Job.
	Kind     string `json:"kind"`
	Replicas *int   `json:"replicas,omitempty"`
	// Annotations are for its pod template.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Notes say what has no equivalent, or needs none.
	Notes []string `json:"notes,omitempty"`
}

// stack is as much of a stack file as says where tasks go.
type stack struct {
	Services map[string]service `json:"services"`
}

type service struct {
	Platform string `json:"platform"`
	Ports    []any  `json:"ports"`
	Deploy   struct {
		Mode      string `json:"mode"`
		Replicas  *int   `json:"replicas"`
		Placement struct {
			Constraints []string            `json:"constraints"`
			Preferences []map[string]string `json:"preferences"`
			MaxReplicas int                 `json:"max_replicas_per_node"`
		} `json:"placement"`
	} `json:"deploy"`
}

// Compose converts the services of a compose or stack file, by their names. An error says of each service that cannot be converted why, and
// the others are returned beside it.
func Compose(text []byte) ([]Converted, error) {
	var s stack
	if err := yaml.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("this is no compose file: %w", err)
	}
	if len(s.Services) == 0 {
		return nil, errors.New("this is no compose file: it has no services; --from constraints reads manifests of Kubernetes")
	}
	var all []Converted
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		one := s.Services[name]
		c, err := one.convert(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("service %s: %w", name, err))
			continue
		}
		all = append(all, c)
	}
	return all, errors.Join(errs...)
}

func (s *service) convert(name string) (Converted, error) {
	c := Converted{Name: name, Kind: "Deployment", Replicas: s.Deploy.Replicas}
	switch s.Deploy.Mode {
	case "", "replicated":
	case "replicated-job":
		c.Kind = "Job"
		c.Notes = append(c.Notes, "The replicas of a job are the completions of a Job.")
	case "global":
		c.Kind, c.Replicas = "DaemonSet", nil
	case "global-job":
		return c, errors.New("mode global-job: Kubernetes has no Job that runs once on each node")
	default:
		return c, fmt.Errorf("mode %q: it is replicated, global or replicated-job", s.Deploy.Mode)
	}
	var levels []string
	for _, p := range s.Deploy.Placement.Preferences {
		for _, strategy := range slices.Sorted(maps.Keys(p)) {
			levels = append(levels, strategy+"="+p[strategy])
		}
	}
	limits := ""
	if n := s.Deploy.Placement.MaxReplicas; n > 0 {
		limits = fmt.Sprintf("kubernetes.io/hostname=%d", n)
	}
	err := errors.Join(
		c.annotate(clusterview.PlacementAnnotation, strings.Join(levels, ","), func(s string) error { _, err := level.Parse(s); return err }),
		c.annotate(clusterview.ConstraintsAnnotation, strings.Join(s.Deploy.Placement.Constraints, ","), func(s string) error { _, err := constraint.Parse(s); return err }),
		c.annotate(clusterview.DomainLimitsAnnotation, limits, func(s string) error { _, err := limit.Parse(s); return err }),
		c.annotate(clusterview.PlatformsAnnotation, s.Platform, func(s string) error { _, err := platform.Parse(s); return err }),
	)
	if c.Kind == "DaemonSet" && c.Annotations[clusterview.PlacementAnnotation] != "" {
		delete(c.Annotations, clusterview.PlacementAnnotation)
		c.Notes = append(c.Notes, "A DaemonSet has a pod on each node: preferences mean nothing to it.")
	}
	if publishesOnHost(s.Ports) {
		c.Notes = append(c.Notes, "A port that is published in mode host is hostPort of the container.")
	}
	return c, err
}

// annotate adds an annotation if there is one, and if it can be read.
func (c *Converted) annotate(key, value string, parse func(string) error) error {
	if value == "" {
		return nil
	}
	if err := parse(value); err != nil {
		return err
	}
	if c.Annotations == nil {
		c.Annotations = make(map[string]string)
	}
	c.Annotations[key] = value
	return nil
}

// publishesOnHost reports whether a port is published on the node of the task.
func publishesOnHost(ports []any) bool {
	return slices.ContainsFunc(ports, func(p any) bool {
		long, is := p.(map[string]any)
		return is && long["mode"] == "host"
	})
}

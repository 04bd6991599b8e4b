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
	// Kind is what makes its pods: Deployment, or DaemonSet for a global service.
	Kind     string `json:"kind"`
	Replicas *int   `json:"replicas,omitempty"`
	// Annotations are for its pod template.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Notes say what has no equivalent, or needs none.
	Notes []string `json:"notes,omitempty"`
}

// stack is as much of a stack file as says where tasks go.
type stack struct {
	Services map[string]struct {
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
	} `json:"services"`
}

// Compose converts the services of a compose or stack file, by their names.
func Compose(text []byte) ([]Converted, error) {
	var s stack
	if err := yaml.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("this is no compose file: %w", err)
	}
	if len(s.Services) == 0 {
		return nil, errors.New("this is no compose file: it has no services; --from constraints reads manifests of Kubernetes")
	}
	var all []Converted
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service := s.Services[name]
		c := Converted{Name: name, Kind: "Deployment", Replicas: service.Deploy.Replicas}
		switch service.Deploy.Mode {
		case "", "replicated":
		case "global":
			c.Kind, c.Replicas = "DaemonSet", nil
		default:
			return nil, fmt.Errorf("service %s: mode %q: it is replicated or global", name, service.Deploy.Mode)
		}
		var levels []string
		for _, p := range service.Deploy.Placement.Preferences {
			for strategy, property := range p {
				levels = append(levels, strategy+"="+property)
			}
		}
		if err := c.annotate(clusterview.PlacementAnnotation, strings.Join(levels, ","), func(s string) error { _, err := level.Parse(s); return err }); err != nil {
			return nil, err
		}
		if err := c.annotate(clusterview.ConstraintsAnnotation, strings.Join(service.Deploy.Placement.Constraints, ","), func(s string) error { _, err := constraint.Parse(s); return err }); err != nil {
			return nil, err
		}
		if n := service.Deploy.Placement.MaxReplicas; n > 0 {
			if err := c.annotate(clusterview.DomainLimitsAnnotation, fmt.Sprintf("kubernetes.io/hostname=%d", n), func(s string) error { _, err := limit.Parse(s); return err }); err != nil {
				return nil, err
			}
		}
		if err := c.annotate(clusterview.PlatformsAnnotation, service.Platform, func(s string) error { _, err := platform.Parse(s); return err }); err != nil {
			return nil, err
		}
		if c.Kind == "DaemonSet" && c.Annotations[clusterview.PlacementAnnotation] != "" {
			delete(c.Annotations, clusterview.PlacementAnnotation)
			c.Notes = append(c.Notes, "A DaemonSet has a pod on each node: preferences mean nothing to it.")
		}
		if publishesOnHost(service.Ports) {
			c.Notes = append(c.Notes, "A port that is published in mode host is hostPort of the container.")
		}
		all = append(all, c)
	}
	return all, nil
}

// annotate adds an annotation if there is one, and if it can be read.
func (c *Converted) annotate(key, value string, parse func(string) error) error {
	if value == "" {
		return nil
	}
	if err := parse(value); err != nil {
		return fmt.Errorf("service %s: %w", c.Name, err)
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

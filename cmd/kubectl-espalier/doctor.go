// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/manifests"
)

func (c *common) newDoctor() *cobra.Command {
	var out output
	lease := "espalier-scheduler"
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with the installation",
		Long: "Look for what is wrong with the installation: a scheduler of another release or without its replicas, CRDs of another release, rights that it lacks, informers that are not filled, no leader, pods that no scheduler looks at, nodes that two schedulers share. It " +
			"ends with status 1 if it finds anything.",
		Example: "  kubectl espalier doctor",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if c.file != "" {
				return errors.New("--snapshot: doctor looks at a cluster, and not at a file")
			}
			definitions, err := definitions()
			if err != nil {
				return err
			}
			rights, err := rights()
			if err != nil {
				return err
			}
			api, err := c.api()
			if err != nil {
				return err
			}
			ready, err := c.ready()
			if err != nil {
				return err
			}
			cluster, err := c.open(cmd)
			if err != nil {
				return err
			}
			checks := inspect.Checks{
				API: api, Snapshot: cluster.Snapshot, Definitions: definitions, Rights: rights, Version: cmd.Root().Version, Lease: lease, Schedulers: cluster.Profiles(), Now: time.Now(), Ready: ready,
			}
			findings, err := checks.Run(cmd.Context())
			if err != nil {
				return err
			}
			wrong := slices.DeleteFunc(slices.Clone(findings), func(f inspect.Finding) bool { return f.OK })
			names := namesOf(wrong, func(f *inspect.Finding) string { return f.Check })
			if err := out.write(cmd.OutOrStdout(), findings, names, func(p *printer) { drawFindings(p, findings) }); err != nil {
				return err
			}
			if len(wrong) > 0 {
				return fmt.Errorf("%d of %d checks found something", len(wrong), len(findings))
			}
			return nil
		},
	}
	c.addSource(cmd)
	out.add(cmd)
	cmd.Flags().StringVar(&lease, "lease", lease, "name of the scheduler's Lease")
	return cmd
}

// ready asks pods of Espalier, as whoever runs the command.
func (c *common) ready() (inspect.Ready, error) {
	config, err := c.kube.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("API server at %s: %w", config.Host, err)
	}
	return func(ctx context.Context, namespace, address, path string) (status int, body string, err error) {
		answer := client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Name(address).SubResource("proxy").Suffix(path).Do(ctx)
		text, err := answer.StatusCode(&status).Raw()
		return status, string(text), err
	}, nil
}

// definitions are the CRDs of this release.
func definitions() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(manifests.Files, "crds/placement.*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := manifests.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		// Numbers are read as a client of the API reads them: an integer that became a fraction would differ from itself.
		definition := &unstructured.Unstructured{}
		asJSON, err := yaml.YAMLToJSON(text)
		if err == nil {
			err = definition.UnmarshalJSON(asJSON)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, definition)
	}
	return all, nil
}

// rights are what the scheduler of this release does in the whole cluster, by its roles.
func rights() ([]rbacv1.PolicyRule, error) {
	const file = "base/rbac.yaml"
	text, err := manifests.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	for {
		var role rbacv1.ClusterRole
		err := documents.Decode(&role)
		if errors.Is(err, io.EOF) {
			return rules, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if role.Kind == "ClusterRole" {
			rules = append(rules, role.Rules...)
		}
	}
}

// drawFindings writes a line for each check, and what to do below it.
func drawFindings(p *printer, findings []inspect.Finding) {
	for _, f := range findings {
		is := p.mark(good, "ok ")
		if !f.OK {
			is = p.mark(bad, "BAD")
		}
		fmt.Fprintf(p, "%s  %s: %s\n", is, f.Check, f.Found)
		if f.Fix != "" {
			fmt.Fprintf(p, "     %s\n", f.Fix)
		}
	}
}

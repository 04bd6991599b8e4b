// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

func (c *common) newSnapshot() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Write what decides where pods go into a file, without secrets",
		Long: "Write what decides where pods go into a file: nodes, pods, their owners, volumes, policies. Secrets are not read, and of ConfigMaps the schedulers' records of failures alone. Of " +
			"containers neither commands nor environments are written, and of annotations those of Kubernetes and Espalier only.",
		Example: "  kubectl espalier snapshot --file cluster.json\n  kubectl espalier tree deployment/web --snapshot cluster.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.read(cmd)
			if err != nil {
				return err
			}
			warn(cmd, s.Unread)
			if file == "" || file == "-" {
				return s.Write(cmd.OutOrStdout())
			}
			if is, err := os.Stat(file); err == nil && !is.Mode().IsRegular() {
				return writeTo(s, file) // a device or a pipe, which a file must not take the place of
			}
			// What is half written must not be taken for a snapshot.
			part, err := os.CreateTemp(filepath.Dir(file), ".snapshot-*")
			if err != nil {
				return plain(err)
			}
			defer func() { _ = os.Remove(part.Name()) }() // it is gone if all went well
			if err := s.Write(part); err != nil {
				return err
			}
			if err := part.Close(); err != nil {
				return plain(err)
			}
			return os.Rename(part.Name(), file)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the file; empty or - for the standard output")
	return cmd
}

// writeTo writes a snapshot into what is there already.
func writeTo(s *snapshot.Snapshot, file string) error {
	out, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return plain(err)
	}
	return errors.Join(s.Write(out), out.Close())
}

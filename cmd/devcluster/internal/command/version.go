// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of devcluster and of what it runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own := "unknown"
			modules := map[string]string{}
			if info, ok := debug.ReadBuildInfo(); ok {
				own = info.Main.Version
				for _, dep := range info.Deps {
					modules[dep.Path] = dep.Version
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "devcluster %s\nkubernetes %s\netcd %s\n%s %s/%s\n",
				own, modules["k8s.io/kubernetes"], modules["go.etcd.io/etcd/server/v3"],
				runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl is kubectl, pinned: what make deploy and the tests of what is
// installed run on a machine that has none. Kubernetes' own main cannot be built
// outside of its repository without replacing every one of its modules.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	os.Exit(0)
}

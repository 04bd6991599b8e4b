// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/util/compatibility"

	"github.com/espalier-scheduler/espalier/internal/serverversion"
)

// EmulatedVersion is the flag of kube-scheduler that names a version.
const EmulatedVersion = "emulated-version"

// emulate has the scheduler do as the one of the API server's version where that is older: a newer one waits for ever for kinds that the API
// server does not have. A version that is given wins. The error says that the API server cannot be reached, or is of no version that the
// scheduler runs with.
func emulate(ctx context.Context, flags *pflag.FlagSet, data []byte, out io.Writer) error {
	c, _, err := laidOver(flags, "", data)
	if err != nil {
		return nil //nolint:nilerr // configure says what is wrong
	}
	server, err := reach(ctx, out, c)
	if err != nil || flags.Changed(EmulatedVersion) {
		return err
	}
	built := compatibility.DefaultBuildEffectiveVersion().BinaryVersion()
	if server == nil {
		fmt.Fprintf(out, "Warning: the API server does not say of which version it is: Kubernetes %d.%d is assumed; give --%s if it is older\n",
			built.Major(), built.Minor(), EmulatedVersion)
		return nil
	}
	versions := serverversion.Of(built)
	if err := versions.Check(server); err != nil {
		return fmt.Errorf("the API server cannot be used: %w", err)
	}
	if server.LessThan(versions.Built) {
		return flags.Set(EmulatedVersion, "kube="+server.String())
	}
	return nil
}

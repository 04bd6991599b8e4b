// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"os"
	"path/filepath"
)

// BinEnv names the folder that holds espalier-scheduler, devcluster and kwok.
const BinEnv = "ESPALIER_BIN"

// Binary is the path of one of the project's binaries: in the folder that
// ESPALIER_BIN names, else in the given folder.
func Binary(name, folder string) (string, error) {
	if env := os.Getenv(BinEnv); env != "" {
		folder = env
	}
	return BinaryIn(folder, name)
}

// BinaryIn is the path of a program in a folder.
func BinaryIn(folder, name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(folder, name))
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%s is not there: run `make build`, or set %s to the folder that holds it: %w", path, BinEnv, err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is not a program: run `make build`, or set %s to the folder that holds it", path, BinEnv)
	}
	return path, nil
}

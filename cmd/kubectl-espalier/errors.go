// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// line is an error as people read it: one line, with what to do about it where a library says only what is wrong.
func line(err error) string {
	said := strings.Join(strings.Fields(err.Error()), " ") // libraries have errors of several lines
	if help := helpFor(err); help != "" {
		said += "; " + help
	}
	return said
}

// helpFor says what to do about an error of a library, "" for an error of ours, which says it.
func helpFor(err error) string {
	var refused *net.OpError
	var asked *url.Error
	switch {
	case apierrors.IsForbidden(err):
		return "ask for this right, or read the file of somebody who has it with --snapshot"
	case apierrors.IsUnauthorized(err):
		return "log in again, or choose another user of the kubeconfig with --user or --context"
	case errors.As(err, &refused), errors.As(err, &asked):
		return "see that this is the address of your API server: --kubeconfig and --context choose it"
	case clientcmd.IsContextNotFound(err), strings.HasSuffix(err.Error(), " does not exist"): // a context, a cluster or a user of a kubeconfig
		return "`kubectl config get-contexts` lists what there is"
	default:
		return ""
	}
}

// plain is an error of a file without the system call that failed.
func plain(err error) error {
	if of, is := errors.AsType[*fs.PathError](err); is {
		return fmt.Errorf("%s: %w", of.Path, of.Err)
	}
	return err
}

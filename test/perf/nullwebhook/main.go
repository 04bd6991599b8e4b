// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command nullwebhook allows all that it is asked about, without a look. What it costs, any webhook does: the call, its JSON and its TLS. It is
// served by the library that the arbiter is served by.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func main() {
	port := flag.Int("port", 0, "the port of 127.0.0.1 at which it is called")
	certificates := flag.String("cert-dir", "", "the folder with tls.crt and tls.key")
	flag.Parse()
	log.SetLogger(logr.Discard())
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certificates})
	server.Register("/", &webhook.Admission{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})})
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

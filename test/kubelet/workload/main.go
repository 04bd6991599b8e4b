// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command workload is what runs in the containers of the stories: it runs until it is
// terminated, or to fail. A file in a folder of the node tells all containers there to fail.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// lookEvery is how often the file is looked for. Pods are to fail soon, and dozens of
// them share a machine.
const lookEvery = 200 * time.Millisecond

func main() {
	listen := flag.String("listen", "", "answer HTTP requests at this address, with $NODE_NAME; end with an error if it is taken")
	failIf := flag.String("fail-if", "", "end with an error as soon as this file exists")
	flag.Parse()
	if err := run(*listen, *failIf); err != nil {
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
}

func run(listen, failIf string) error {
	served := make(chan error, 1)
	if listen != "" {
		listener, err := net.Listen("tcp", listen)
		if err != nil {
			return err
		}
		server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, os.Getenv("NODE_NAME"))
		})}
		go func() { served <- server.Serve(listener) }()
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if failIf != "" {
			if _, err := os.Stat(failIf); err == nil {
				return fmt.Errorf("%s exists", failIf)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		select {
		case <-told:
			return nil
		case err := <-served:
			return err
		case <-look.C:
		}
	}
}

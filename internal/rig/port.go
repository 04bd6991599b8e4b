// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"net"
)

// FreePort is a free port of the loopback address, kept for about a minute for who listens on it by
// number: kube-scheduler's flags take no 0 for "any".
//
// A port that is only looked for and let go belongs to the range of which every outgoing connection
// takes one, and is taken now and then before the program has started. One connection that its
// listener ends first stays in TIME_WAIT, and as long as it does the system gives the port to nobody
// who asks for any.
func FreePort() (string, error) {
	port, err := reservePort()
	if err != nil {
		return "", fmt.Errorf("looking for a free port on 127.0.0.1: %w", err)
	}
	return port, nil
}

func reservePort() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, connectOnce(listener), listener.Close())
}

// connectOnce makes a connection to the listener, and ends it from the listener's side.
func connectOnce(listener net.Listener) error {
	client, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		return err
	}
	server, err := listener.Accept()
	if err != nil {
		return errors.Join(err, client.Close())
	}
	err = server.Close()
	// The end of the stream has come: from here on the listener's side is the one that closed first.
	_, _ = client.Read(make([]byte, 1))
	return errors.Join(err, client.Close())
}

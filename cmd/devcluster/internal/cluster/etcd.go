// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

const etcdStartLimit = 30 * time.Second

// maxSocketPath is the shortest limit among the systems we run on (macOS; Linux has 107).
const maxSocketPath = 100

// etcd is one member, and the calls that it is answering.
type etcd struct {
	*embed.Etcd
	calls *calls
}

// crash ends it without waiting for those who watch. Asked to end in order it would wait seconds for the API server's watches.
func (e *etcd) crash() {
	e.calls.end()
	e.Server.HardStop()
	e.Close()
}

// startEtcd runs one etcd member on unix sockets in dir. Sockets and not ports:
// nothing to collide with, and the folder's mode keeps other users out without
// another set of certificates.
func startEtcd(dir string, logFile string) (*etcd, string, error) {
	socket := filepath.Join(dir, "client.sock")
	if len(socket) > maxSocketPath {
		return nil, "", fmt.Errorf("the state folder's path is too long for a unix socket (%s: %d bytes, at most %d): choose a shorter --dir",
			socket, len(socket), maxSocketPath)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("making the folder of etcd: %w", err)
	}
	config := embed.NewConfig()
	config.Name = "devcluster"
	config.Dir = filepath.Join(dir, "data")
	client := url.URL{Scheme: "unix", Path: socket}
	peer := url.URL{Scheme: "unix", Path: filepath.Join(dir, "peer.sock")}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// What a killed process wrote is safe in the page cache; only a crash of the
	// machine loses it, and a development cluster need not survive that.
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = false
	config.QuotaBackendBytes = 4 << 30
	config.AutoCompactionMode, config.AutoCompactionRetention = "periodic", "10m"
	config.LogLevel = "warn"
	config.LogOutputs = []string{logFile}
	calls := newCalls()
	// Close ends the store next after the connections. A watch that still sends reads the store, and the process
	// would die of it.
	config.GRPCAdditionalServerOptions = append(calls.options(), grpc.WaitForHandlers(true))

	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", fmt.Errorf("starting etcd in %s: %w", dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &etcd{server, calls}, client.String(), nil
	case err := <-server.Err():
		server.Close()
		return nil, "", fmt.Errorf("starting etcd in %s: %w", dir, err)
	case <-time.After(etcdStartLimit):
		server.Close()
		return nil, "", errors.New("etcd did not become ready; see " + logFile)
	}
}

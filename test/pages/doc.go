// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages does what the pages tell their readers to do: it runs their blocks of commands, in their order, in a cluster that is
// installed as the pages say, and compares what they show with what comes of it.
//
// The cluster is a devcluster of its own, with the nodes of docs/quick-start.md and no others, and the stock scheduler. `make deploy` installs the chart. What runs in
// its pods is played, so the scheduler and the controller run beside it as processes, with the service accounts of the chart.
//
//   - main_test.go: the cluster
//   - blocks_test.go: runs the blocks of a page, after what the page needs; the pictures and the site, in a browser; the commands that cannot be run here,
//     each with the reason
package pages

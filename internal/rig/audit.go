// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// Write is a request that has changed an object, or was to, as an audit log has it.
type Write struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	Answer struct {
		// Code is the HTTP status.
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Done reports that the API server has done what was asked.
func (w *Write) Done() bool { return w.Answer.Code < http.StatusMultipleChoices }

// Writes reads those of an audit log, which devcluster writes with --audit-log.
func Writes(path string) ([]Write, error) {
	log, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	var writes []Write
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return writes, nil // the last line is still being written
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var w Write
		if err := json.Unmarshal(line, &w); err != nil {
			return nil, fmt.Errorf("audit log %s, line %d: %w", path, len(writes)+1, err)
		}
		writes = append(writes, w)
	}
}

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
	"strings"
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
	// Annotations are what the API server notes about the request.
	Annotations map[string]string `json:"annotations"`
}

// Done reports that the API server has done what was asked.
func (w *Write) Done() bool { return w.Answer.Code < http.StatusMultipleChoices }

// Unanswered reports that a webhook that is called for the request did not answer in time, so that the API server went on without it.
func (w *Write) Unanswered() bool {
	for key := range w.Annotations {
		if strings.HasPrefix(key, "failed-open.validating.webhook.admission.k8s.io/") {
			return true
		}
	}
	return false
}

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

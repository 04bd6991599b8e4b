// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ReadFile returns the nodes described in a file: a YAML or JSON stream of Node
// objects, or lists of them, as `kubectl get nodes -o yaml` prints for any cluster.
// Taken over are name, labels, annotations, taints, cordon and room; whatever
// belongs to the cluster the file came from is dropped. An error names the file, the
// document in it (from 1) and the field.
func ReadFile(path string) ([]*corev1.Node, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nodes file: %w", err)
	}
	defer func() { _ = file.Close() }()
	nodes, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("nodes file %s: %w", path, err)
	}
	return nodes, nil
}

// Read is ReadFile on a stream; its errors do not name a file.
func Read(r io.Reader) ([]*corev1.Node, error) {
	next := documents(r)
	var nodes []*corev1.Node
	seen := map[string]string{}
	for number := 1; ; number++ {
		text, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		items, err := readDocument(text)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		for _, it := range items {
			where := fmt.Sprintf("document %d%s", number, it.place)
			if err := check(it.node); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
			if first, twice := seen[it.node.Name]; twice {
				return nil, fmt.Errorf("%s: metadata.name: node %q is already in %s", where, it.node.Name, first)
			}
			seen[it.node.Name] = where
			nodes = append(nodes, adopt(it.node))
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("holds no nodes")
	}
	return nodes, nil
}

// documents returns a function that reads one document after the other: of JSON, if
// the stream begins like JSON, where no separator is needed, else of YAML.
func documents(r io.Reader) func() ([]byte, error) {
	buffered := bufio.NewReader(r)
	for {
		first, err := buffered.Peek(1)
		if err != nil || !unicode.IsSpace(rune(first[0])) {
			break
		}
		_, _ = buffered.Discard(1)
	}
	if first, err := buffered.Peek(1); err != nil || first[0] != '{' {
		return utilyaml.NewYAMLReader(buffered).Read
	}
	decoder := json.NewDecoder(buffered)
	return func() ([]byte, error) {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		return raw, err
	}
}

// item is a node and where in its document it stood, such as `: items[3]`.
type item struct {
	place string
	node  *corev1.Node
}

func readDocument(text []byte) ([]item, error) {
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %s", oneLine(err))
	}
	if raw = bytes.TrimSpace(raw); bytes.Equal(raw, []byte("null")) {
		return nil, nil // only comments, or nothing between two separators
	}
	var head struct {
		metav1.TypeMeta
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, decodeError(err)
	}
	switch head.Kind {
	case "Node":
		node, err := decodeNode(raw)
		return []item{{"", node}}, err
	case "NodeList", "List":
		var items []item
		for i, rawItem := range head.Items {
			node, err := decodeNode(rawItem)
			if err != nil {
				return nil, fmt.Errorf("items[%d].%w", i, err)
			}
			items = append(items, item{fmt.Sprintf(": items[%d]", i), node})
		}
		return items, nil
	default:
		return nil, fmt.Errorf("kind: %q is neither Node nor NodeList nor List", head.Kind)
	}
}

func decodeNode(raw []byte) (*corev1.Node, error) {
	if err := checkRoom(raw); err != nil {
		return nil, err
	}
	node := &corev1.Node{}
	if err := json.Unmarshal(raw, node); err != nil {
		return nil, decodeError(err)
	}
	if node.Kind != "Node" && node.Kind != "" {
		return nil, fmt.Errorf("kind: %q is not Node", node.Kind)
	}
	return node, nil
}

// checkRoom finds quantities that are none. The decoder of quantities would not say
// which field it was at.
func checkRoom(raw []byte) error {
	var shape struct {
		Status struct {
			Capacity    map[string]any `json:"capacity"`
			Allocatable map[string]any `json:"allocatable"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return decodeError(err)
	}
	for _, room := range []struct {
		field      string
		quantities map[string]any
	}{{"capacity", shape.Status.Capacity}, {"allocatable", shape.Status.Allocatable}} {
		for _, name := range slices.Sorted(maps.Keys(room.quantities)) {
			value := fmt.Sprint(room.quantities[name])
			if _, err := resource.ParseQuantity(value); err != nil {
				return fmt.Errorf("status.%s[%s]: %q is no quantity such as 8 or 16Gi", room.field, name, value)
			}
		}
	}
	return nil
}

// decodeError names the field where the decoder knows it.
func decodeError(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return fmt.Errorf("%s: a %s where a %s belongs", wrongType.Field, wrongType.Value, wrongType.Type)
	}
	return errors.New(oneLine(err))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// check finds what the API server would refuse, before half the nodes are made.
func check(node *corev1.Node) error {
	if problems := validation.IsDNS1123Subdomain(node.Name); len(problems) > 0 {
		return fmt.Errorf("metadata.name: %q: %s", node.Name, problems[0])
	}
	for key, value := range node.Labels {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Errorf("metadata.labels: key %q: %s", key, problems[0])
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return fmt.Errorf("metadata.labels[%s]: value %q: %s", key, value, problems[0])
		}
	}
	for i, taint := range node.Spec.Taints {
		if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
			return fmt.Errorf("spec.taints[%d].key: %q: %s", i, taint.Key, problems[0])
		}
		switch taint.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			return fmt.Errorf("spec.taints[%d].effect: %q is none of NoSchedule, PreferNoSchedule, NoExecute", i, taint.Effect)
		}
	}
	return nil
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"sigs.k8s.io/yaml"

	_ "github.com/espalier-scheduler/espalier/apis/config/scheme" // the arguments of our plugins, which a configuration may hold
	"github.com/espalier-scheduler/espalier/internal/scheduler/replicas"
	"github.com/espalier-scheduler/espalier/internal/upstream"
)

// leaseName is the Lease of a configuration that names none.
const leaseName = "espalier-scheduler"

// overlays are the flags that are laid over the configuration, and the fields they
// are laid over. kube-scheduler ignores them beside --config; a flag that is given
// and does nothing is a trap, and without --config we have a configuration too.
var overlays = []struct {
	flag  string
	path  []string
	read  func(*pflag.FlagSet, string) (any, error)
	usage string
}{
	{
		"kubeconfig", []string{"clientConnection", "kubeconfig"}, readString,
		"The path of the kubeconfig file that says where the API server is and who asks. Without one, the credentials of the pod are used.",
	},
	{
		"kube-api-content-type", []string{"clientConnection", "contentType"}, readString,
		"The content type of requests to the API server.",
	},
	{
		"kube-api-qps", []string{"clientConnection", "qps"}, readFloat,
		"How many requests a second may be sent to the API server in the long run.",
	},
	{
		"kube-api-burst", []string{"clientConnection", "burst"}, readInt,
		"How many requests may be sent to the API server at once.",
	},
	{
		"profiling", []string{"enableProfiling"}, readBool,
		"Whether profiles are served at /debug/pprof/.",
	},
	{
		"contention-profiling", []string{"enableContentionProfiling"}, readBool,
		"Whether blocking is profiled, where profiles are served.",
	},
}

// Describe replaces the help of the flags that we give another meaning.
func Describe(flags *pflag.FlagSet) {
	for _, o := range overlays {
		f := flags.Lookup(o.flag)
		f.Usage = o.usage + " Overrides " + strings.Join(o.path, ".") + " of the configuration."
		// kube-scheduler's default does not apply: the configuration's does. Help
		// leaves out a default that is the type's zero.
		switch f.Value.Type() {
		case "bool":
			f.DefValue = "false"
		case "string":
			f.DefValue = ""
		default:
			f.DefValue = "0"
		}
	}
}

// connection is what of the configuration says where the API server is.
type connection struct {
	master     string
	kubeconfig string
}

// load returns the configuration to run as it was given: the file of --config, or shipped without one, whose path is "". The file is read
// once, so that a pipe will do.
func load(flags *pflag.FlagSet, shipped []byte) (path string, data []byte, err error) {
	if path, err = flags.GetString("config"); err != nil || path == "" {
		return "", shipped, err
	}
	if data, err = os.ReadFile(path); err != nil {
		return "", nil, fmt.Errorf("--config: %w", err)
	}
	return path, data, nil
}

// configure makes --config name the configuration to run, with the flags laid over. What was checked is what runs. Warnings are about a
// configuration that runs, but not as evenly as it could.
func configure(flags *pflag.FlagSet, path string, data []byte) (c connection, warnings []string, err error) {
	if path != "" {
		if warnings, err = check(data); err != nil {
			return c, nil, fmt.Errorf("--config %q: %w", path, err)
		}
	}
	if c, data, err = laidOver(flags, path, data); err != nil {
		return c, nil, err
	}
	if path, err = pipe(data); err != nil {
		return c, nil, err
	}
	return c, warnings, flags.Set("config", path)
}

// laidOver returns a configuration with the flags laid over it, and where that says that the API server is.
func laidOver(flags *pflag.FlagSet, path string, data []byte) (c connection, with []byte, err error) {
	var document map[string]any
	if err := yaml.Unmarshal(data, &document); err != nil {
		return c, nil, fmt.Errorf("--config %q: %w", path, err)
	}
	if err := overlay(flags, document); err != nil {
		return c, nil, err
	}
	if with, err = yaml.Marshal(document); err != nil {
		return c, nil, fmt.Errorf("writing the configuration: %w", err)
	}
	c, err = connectionOf(flags, with)
	return c, with, err
}

// check checks a configuration as it was given, so that what is wrong with it is said
// of that and not of what the flags made of it.
func check(data []byte) (warnings []string, err error) {
	if err := checkSingle(data); err != nil {
		return nil, err
	}
	path, err := pipe(data)
	if err != nil {
		return nil, err
	}
	config, err := options.LoadConfigFromFile(klog.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := upstream.ValidateConfiguration(config); err != nil {
		return nil, err
	}
	if err := validateProfiles(config.Profiles); err != nil {
		return nil, err
	}
	return warningsAbout(config), nil
}

// checkSingle refuses a second document, which kube-scheduler would pass over.
func checkSingle(data []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	documents := 0
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(document)) > 0 {
			documents++
		}
		if documents > 1 {
			return errors.New("there is a second document after ---: give one KubeSchedulerConfiguration")
		}
	}
}

// overlay sets the fields of a configuration for which flags are given. It also sets our
// Lease name if the configuration has none. With kube-scheduler's default name, we would
// compete with the default scheduler for one Lease and wait for ever.
func overlay(flags *pflag.FlagSet, config map[string]any) error {
	for _, o := range overlays {
		if !flags.Changed(o.flag) {
			continue
		}
		value, err := o.read(flags, o.flag)
		if err != nil {
			return err
		}
		if err := set(config, o.path, value); err != nil {
			return fmt.Errorf("--%s: %w", o.flag, err)
		}
	}
	if active, err := flags.GetBool(replicas.Flag); err == nil && active {
		if err := enable(config, replicas.Name); err != nil {
			return fmt.Errorf("--%s: %w", replicas.Flag, err)
		}
	}
	election, _ := config["leaderElection"].(map[string]any)
	if name, _ := election["resourceName"].(string); name != "" {
		return nil
	}
	return set(config, []string{"leaderElection", "resourceName"}, leaseName)
}

// enable enables a PreEnqueue plugin in all profiles of a configuration. One without profiles has one.
func enable(config map[string]any, plugin string) error {
	profiles, ok := config["profiles"].([]any)
	if config["profiles"] != nil && !ok {
		return fmt.Errorf("the configuration's profiles are a %T, not a list", config["profiles"])
	}
	if len(profiles) == 0 {
		profiles = []any{map[string]any{}}
	}
	for i := range profiles {
		profile, ok := profiles[i].(map[string]any)
		if !ok {
			return fmt.Errorf("the configuration's profiles[%d] is a %T, not a struct", i, profiles[i])
		}
		plugins, _ := profile["plugins"].(map[string]any)
		point, _ := plugins["preEnqueue"].(map[string]any)
		enabled, _ := point["enabled"].([]any)
		if err := set(profile, []string{"plugins", "preEnqueue", "enabled"}, append(enabled, map[string]any{"name": plugin})); err != nil {
			return err
		}
	}
	config["profiles"] = profiles
	return nil
}

// set sets a field of a configuration, growing the structs on its path.
func set(config map[string]any, path []string, value any) error {
	for _, key := range path[:len(path)-1] {
		next, ok := config[key].(map[string]any)
		if !ok {
			if config[key] != nil {
				return fmt.Errorf("the configuration's %s is a %T, not a struct", key, config[key])
			}
			next = make(map[string]any)
			config[key] = next
		}
		config = next
	}
	config[path[len(path)-1]] = value
	return nil
}

// pipe returns a path from which data can be read once. A temporary file would need
// a file system that can be written to, and somebody to remove it.
func pipe(data []byte) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("handing over the configuration: %w", err)
	}
	// A copy of the descriptor, which the garbage collector knows nothing of: it
	// closes files that nobody holds, and the path holds none.
	fd, err := syscall.Dup(int(r.Fd()))
	if err := errors.Join(err, r.Close()); err != nil {
		return "", fmt.Errorf("handing over the configuration: %w", err)
	}
	go func() {
		// Neither can fail but by a reader that closes early, and that one says why.
		_, _ = w.Write(data)
		_ = w.Close()
	}()
	return "/dev/fd/" + strconv.Itoa(fd), nil
}

func connectionOf(flags *pflag.FlagSet, data []byte) (connection, error) {
	var config configv1.KubeSchedulerConfiguration
	if err := yaml.Unmarshal(data, &config); err != nil {
		return connection{}, fmt.Errorf("reading clientConnection: %w", err)
	}
	master, err := flags.GetString("master")
	return connection{master: master, kubeconfig: config.ClientConnection.Kubeconfig}, err
}

func readString(flags *pflag.FlagSet, name string) (any, error) { return flags.GetString(name) }

// readFloat and readInt refuse 0, which would not be 0 but kube-scheduler's own default.
func readFloat(flags *pflag.FlagSet, name string) (any, error) {
	value, err := flags.GetFloat32(name)
	if err == nil && (value == 0 || math.IsNaN(float64(value)) || math.IsInf(float64(value), 0)) {
		err = fmt.Errorf("--%s: must not be %v; use a positive rate, or a negative number for no limit", name, value)
	}
	return value, err
}

func readInt(flags *pflag.FlagSet, name string) (any, error) {
	value, err := flags.GetInt32(name)
	if err == nil && value <= 0 {
		err = fmt.Errorf("--%s: %d is no number of requests: give 1 or more", name, value)
	}
	return value, err
}

func readBool(flags *pflag.FlagSet, name string) (any, error) { return flags.GetBool(name) }

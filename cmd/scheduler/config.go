// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulervalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
)

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

// describe replaces the help of the flags that we give another meaning.
func describe(flags *pflag.FlagSet) {
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

// configure makes --config name the configuration to run: the file given there, or
// shipped if none is, with the flags laid over. The command reads it once.
func configure(flags *pflag.FlagSet, shipped []byte) (connection, error) {
	path, err := flags.GetString("config")
	if err != nil {
		return connection{}, err
	}
	data := shipped
	if path != "" {
		if data, err = readConfig(path); err != nil {
			return connection{}, err
		}
	}
	var document map[string]any
	if err := yaml.Unmarshal(data, &document); err != nil {
		return connection{}, fmt.Errorf("reading configuration %q: %w", path, err)
	}
	changed, err := overlay(flags, document)
	if err != nil {
		return connection{}, err
	}
	if path == "" || changed {
		if data, err = yaml.Marshal(document); err != nil {
			return connection{}, fmt.Errorf("writing configuration: %w", err)
		}
		if path, err = pipe(data); err != nil {
			return connection{}, err
		}
		if err := flags.Set("config", path); err != nil {
			return connection{}, err
		}
	}
	return connectionOf(flags, data)
}

// readConfig reads a configuration file and checks it as a whole, so that what is
// wrong with it is said of the file and not of what the flags made of it.
func readConfig(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	config, err := options.LoadConfigFromFile(klog.Background(), path)
	if err != nil {
		return nil, fmt.Errorf("--config %q: %w", path, err)
	}
	if err := schedulervalidation.ValidateKubeSchedulerConfiguration(config); err != nil {
		return nil, fmt.Errorf("--config %q: %w", path, err)
	}
	if err := validateArgs(config); err != nil {
		return nil, fmt.Errorf("--config %q: %w", path, err)
	}
	return data, nil
}

// validateArgs checks the arguments of our plugins, which kube-scheduler leaves to
// the plugins: they would only complain after the API server has been reached, and
// could not say in which profile.
func validateArgs(c *schedulerconfig.KubeSchedulerConfiguration) error {
	var errs field.ErrorList
	for i, profile := range c.Profiles {
		for j, plugin := range profile.PluginConfig {
			path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
			switch args := plugin.Args.(type) {
			case *config.DomainLimitsArgs:
				errs = append(errs, validation.DomainLimitsArgs(path, args)...)
			case *config.PreferencesArgs:
				errs = append(errs, validation.PreferencesArgs(path, args)...)
			case *config.SpreadTreeArgs:
				errs = append(errs, validation.SpreadTreeArgs(path, args)...)
			}
		}
	}
	return errs.ToAggregate()
}

// overlay lays the flags that are given over a configuration.
func overlay(flags *pflag.FlagSet, config map[string]any) (changed bool, err error) {
	for _, o := range overlays {
		if !flags.Changed(o.flag) {
			continue
		}
		value, err := o.read(flags, o.flag)
		if err != nil {
			return false, err
		}
		if err := set(config, o.path, value); err != nil {
			return false, fmt.Errorf("--%s: %w", o.flag, err)
		}
		changed = true
	}
	return changed, nil
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
func readFloat(flags *pflag.FlagSet, name string) (any, error)  { return flags.GetFloat32(name) }
func readInt(flags *pflag.FlagSet, name string) (any, error)    { return flags.GetInt32(name) }
func readBool(flags *pflag.FlagSet, name string) (any, error)   { return flags.GetBool(name) }

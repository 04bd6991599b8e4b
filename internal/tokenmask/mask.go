// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokenmask masks the bodies of TokenReviews and TokenRequests in the log of a
// command, because they carry bearer tokens.
package tokenmask

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// masked stands for a body that nobody may read in a log.
const masked = "<masked>"

// Apply does what logsapi.ValidateAndApply does, and keeps the tokens of those who ask for /metrics
// out of the log. A command sends such a token to the API server in a TokenReview. From -v=8 on,
// the client logs the bodies of requests and responses. It uses the logger of the process, not one
// from the context of a request, so Apply replaces the logger of the process. Log lines are not
// buffered.
func Apply(config *logsapi.LoggingConfiguration, gates featuregate.FeatureGate) error {
	asked := unbuffer(config)
	if err := logsapi.ValidateAndApply(config, contextual{gates}); err != nil {
		return err
	}
	logger := klog.Background()
	options := []klog.LoggerOption{klog.ContextualLogger(true)}
	if writer, ok := logger.GetSink().(textlogger.KlogBufferWriter); ok {
		options = append(options, klog.WriteKlogBuffer(writer.WriteKlogBuffer))
	}
	klog.SetLoggerWithOptions(maskedLogger(logger), options...)
	klog.EnableContextualLogging(gates.Enabled(logsapi.ContextualLogging))
	for _, flag := range asked {
		klog.InfoS("Lines of the log are not buffered, whatever the flag says: what masks tokens in them cannot flush", "flag", flag)
	}
	return nil
}

// unbuffer switches off the buffering of log lines in config, because the logger that
// Apply sets cannot flush a buffer. It returns the flags that ask for a buffer, with their
// values.
func unbuffer(config *logsapi.LoggingConfiguration) (asked []string) {
	for _, buffer := range []struct {
		flag string
		size *resource.QuantityValue
	}{
		{"--log-text-info-buffer-size", &config.Options.Text.InfoBufferSize},
		{"--log-json-info-buffer-size", &config.Options.JSON.InfoBufferSize},
	} {
		if !buffer.size.IsZero() {
			asked = append(asked, buffer.flag+"="+buffer.size.String())
		}
		*buffer.size = resource.QuantityValue{}
	}
	return asked
}

// contextual is a feature gate with ContextualLogging enabled. While it is disabled,
// klog.Background returns a logger that calls the current logger of the process. The mask
// would then call itself without end.
type contextual struct{ featuregate.FeatureGate }

func (g contextual) Enabled(feature featuregate.Feature) bool {
	return feature == logsapi.ContextualLogging || g.FeatureGate.Enabled(feature)
}

// maskedLogger is a logger that masks tokens and is otherwise the given one.
func maskedLogger(logger klog.Logger) klog.Logger {
	return logger.WithSink(newMask(logger.GetSink()))
}

// mask is a sink in front of another.
type mask struct{ logr.LogSink }

var _ logr.CallDepthLogSink = mask{}

// newMask has the sink name the caller's line and not ours.
func newMask(sink logr.LogSink) mask {
	if s, ok := sink.(logr.CallDepthLogSink); ok {
		sink = s.WithCallDepth(1)
	}
	return mask{sink}
}

func (m mask) Info(level int, message string, keysAndValues ...any) {
	if strings.HasSuffix(message, " Body") {
		keysAndValues = slices.Clone(keysAndValues)
		for i, value := range keysAndValues {
			if body, ok := value.(string); ok && hasToken(body) {
				keysAndValues[i] = masked
			}
		}
	}
	m.LogSink.Info(level, message, keysAndValues...)
}

func (m mask) Enabled(level int) bool { return m.LogSink.Enabled(level) }

func (m mask) Error(err error, message string, keysAndValues ...any) {
	m.LogSink.Error(err, message, keysAndValues...)
}

func (m mask) WithValues(keysAndValues ...any) logr.LogSink {
	return mask{m.LogSink.WithValues(keysAndValues...)}
}

func (m mask) WithName(name string) logr.LogSink { return mask{m.LogSink.WithName(name)} }

func (m mask) WithCallDepth(depth int) logr.LogSink {
	if s, ok := m.LogSink.(logr.CallDepthLogSink); ok {
		return mask{s.WithCallDepth(depth)}
	}
	return m
}

// hasToken reports whether a body names a kind that carries tokens, TokenReview or
// TokenRequest. The client logs a binary body as a hex dump, in which each line ends with
// its readable characters between bars. A name may be split over two lines, so hasToken
// joins these characters before it searches them.
func hasToken(body string) bool {
	var dumped strings.Builder
	for line := range strings.Lines(body) {
		if parts := strings.Split(line, "|"); len(parts) > 2 {
			dumped.WriteString(strings.Join(parts[1:len(parts)-1], "|"))
		}
	}
	return slices.ContainsFunc([]string{"TokenReview", "TokenRequest"}, func(kind string) bool {
		return strings.Contains(body, kind) || strings.Contains(dumped.String(), kind)
	})
}

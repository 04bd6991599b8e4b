// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

// importRule bounds what the files of some rooms import. Rooms and our own
// packages are named relative to the module; see matches for patterns.
type importRule struct {
	name string
	// room is bound, without the rooms in except and the files in exceptFiles.
	room                string
	except, exceptFiles []string
	// tests says that test files are bound as well.
	tests bool
	// allow, unless nil, is all that may be imported; deny is what may not, even so.
	allow, deny []string
	why         string
	// broken is a file and an import of it that break the rule.
	broken [2]string
	// later says that the room is not there yet, so that nothing is bound so far.
	later bool
}

// impure are the packages whose answers depend on more than their arguments. Of net, netip is not one: it is the arithmetic of addresses.
var impure = []string{
	"context", "crypto/rand", "log/...", "math/rand/...", "net", "net/http/...", "net/rpc/...", "net/smtp", "os/...",
	"runtime/...", "sync/...", "syscall/...", "testing/...", "unsafe",
}

// scaffolding is what the commands and the tests that start whole clusters are helped by.
var scaffolding = []string{"internal/archtest", "internal/child", "internal/commandtest", "internal/evenness", "internal/rig", "manifests/..."}

// insides are the rooms of the product that nobody outside of it can import.
var insides = []string{
	"internal/claims", "internal/clusterview/...", "internal/controllers/...", "internal/controllertest", "internal/faultcache/...", "internal/feasibility", "internal/inspect", "internal/notices", "internal/optionalkind", "internal/picture", "internal/plugintest", "internal/policies/...",
	"internal/queueorder", "internal/refusal/...", "internal/scheduler/...", "internal/snapshot", "internal/tenants", "internal/tokenmask", "internal/upstream/...",
}

// product is all that is shipped.
var product = append([]string{"apis/...", "cmd/...", "pkg/..."}, insides...)

// above is what the packages below the plugins know nothing of.
var above = []string{
	"apis/config/...", "cmd/...", "internal/controllers/...", "internal/rig", "internal/scheduler/...", "pkg/plugins/...", "test/...",
	"k8s.io/kubernetes/...", "sigs.k8s.io/controller-runtime/...",
}

var importRules = []importRule{
	{
		name: "placement-is-pure", room: "pkg/placement/...", allow: []string{"std", "pkg/placement/..."},
		why:    "the algorithms must give the same answer for the same input, and be read without knowing Kubernetes",
		broken: [2]string{"pkg/placement/tree/x.go", "k8s.io/api/core/v1"},
	},
	{
		name: "placement-without-locks-and-clocks", room: "pkg/placement/...", deny: impure,
		// What random tests begin with is asked of the environment, in one place.
		exceptFiles: []string{"pkg/placement/placementtest/seed.go"},
		why:         "time, order and randomness are parameters; locks belong to who holds the tree", broken: [2]string{"pkg/placement/tree/x.go", "sync"},
	},
	{
		name: "placement-tests-are-light", room: "pkg/placement/...", tests: true,
		allow: []string{"std", "pkg/placement/...", "github.com/cockroachdb/datadriven", "github.com/google/go-cmp/...", "pgregory.net/rapid"},
		why:   "the pure core is tested by itself, in seconds", broken: [2]string{"pkg/placement/tree/x_test.go", "internal/clusterview"},
	},
	{
		name: "oracle-is-for-tests", room: "...", except: []string{"pkg/placement/oracle"}, deny: []string{"pkg/placement/oracle/..."},
		why: "the oracle is slow on purpose; it judges, it never places", broken: [2]string{"pkg/plugins/spreadtree/x.go", "pkg/placement/oracle"},
	},
	{
		name: "rooms-for-tests", room: "...", except: []string{"internal/browser", "internal/commandtest", "internal/controllertest", "internal/pages", "pkg/placement/placementtest", "internal/plugintest"},
		deny:   []string{"internal/browser", "internal/commandtest", "internal/controllertest", "internal/pages", "pkg/placement/placementtest", "internal/plugintest"},
		why:    "what tests share asks and judges; it is no part of what it judges",
		broken: [2]string{"pkg/placement/tree/x.go", "pkg/placement/placementtest"},
	},
	{
		name: "clusterview-translates-only", room: "internal/clusterview/...",
		deny:   append([]string{"internal/policies/...", "k8s.io/client-go/kubernetes/...", "k8s.io/client-go/rest"}, above...),
		why:    "the translator reads objects it is given; it never asks the API server and knows no plugin",
		broken: [2]string{"internal/clusterview/x.go", "k8s.io/client-go/kubernetes"},
	},
	{
		name: "policies-are-read-below-plugins", room: "internal/policies/...", deny: above,
		why:    "several plugins read the policies through it; it knows none of them",
		broken: [2]string{"internal/policies/x.go", "pkg/plugins/preferences"},
	},
	{
		name: "tenants-are-known-below-plugins", room: "internal/tenants", deny: append([]string{"internal/policies/..."}, above...),
		why:    "the profiles of a scheduler share it; it knows none of their plugins",
		broken: [2]string{"internal/tenants/x.go", "pkg/plugins/allocationorder"},
	},
	{
		name: "optional-kinds-know-no-kind", room: "internal/optionalkind",
		allow: []string{"std", "k8s.io/apimachinery/...", "k8s.io/client-go/...", "k8s.io/klog/v2"}, why: "it follows whatever kind it is told of",
		broken: [2]string{"internal/optionalkind/x.go", "apis/placement/v1alpha1"},
	},
	{
		name: "informers-are-tracked-without-kinds", room: "internal/informersync",
		allow: []string{
			"std", "github.com/prometheus/client_golang/prometheus", "k8s.io/api/authorization/v1", "k8s.io/apimachinery/...", "k8s.io/client-go/kubernetes/scheme", "k8s.io/klog/v2", "k8s.io/utils/clock",
		},
		why:    "the scheduler and the controller share it; it is told which kinds either goes on without",
		broken: [2]string{"internal/informersync/x.go", "apis/placement/v1alpha1"},
	},
	{
		name: "failures-are-known-below-plugins", room: "internal/faultcache/...",
		deny:   append([]string{"internal/policies/...", "k8s.io/kube-scheduler/..."}, above...),
		why:    "it is the room around the ledger; the plugin adapts it to the framework",
		broken: [2]string{"internal/faultcache/x.go", "pkg/plugins/faultynode"},
	},
	{
		name: "refusals-know-no-plugin", room: "internal/refusal/...",
		allow: []string{
			"std", "k8s.io/api/core/v1", "k8s.io/apimachinery/...", "k8s.io/client-go/listers/...", "k8s.io/client-go/tools/cache",
			"k8s.io/component-base/metrics/...", "k8s.io/klog/v2", "k8s.io/kube-scheduler/framework",
		},
		why:    "every plugin that refuses pods counts and answers through it; it is told why",
		broken: [2]string{"internal/refusal/x.go", "pkg/plugins/hostports"},
	},
	{
		name: "feasibility-knows-no-plugin", room: "internal/feasibility",
		allow: []string{
			"std", "internal/clusterview", "pkg/placement/tree", "k8s.io/api/core/v1", "k8s.io/component-helpers/scheduling/corev1", "k8s.io/kube-scheduler/framework",
		},
		why: "it asks whatever filters it is given, and keeps what they say", broken: [2]string{"internal/feasibility/x.go", "pkg/plugins/spreadtree"},
	},
	{
		name: "plugins-stay-below", room: "pkg/plugins/...", tests: true,
		deny:   []string{"cmd/...", "internal/controllers/...", "k8s.io/kubernetes/cmd/...", "sigs.k8s.io/controller-runtime/..."},
		why:    "plugins and controllers never meet, and neither knows the binary it is linked into",
		broken: [2]string{"pkg/plugins/spreadtree/x.go", "sigs.k8s.io/controller-runtime/pkg/client"},
	},
	{
		name: "plugins-do-not-know-the-list", room: "pkg/plugins/...", except: []string{"pkg/plugins"}, tests: true, deny: []string{"pkg/plugins"},
		why: "the list of plugins is above every plugin", broken: [2]string{"pkg/plugins/preferences/x.go", "pkg/plugins"},
	},
	{
		name: "plugintest-knows-no-plugin", room: "internal/plugintest",
		deny: []string{
			"apis/...", "cmd/...", "internal/rig", "internal/scheduler/...", "internal/controllers/...", "pkg/plugins/...", "internal/policies/...", "test/...",
		},
		why:    "it asks any plugin what the scheduler asks; what is to be answered stands in the plugin's own tests",
		broken: [2]string{"internal/plugintest/x.go", "pkg/plugins/preferences"},
	},
	{
		name: "upstream-knows-no-placement", room: "internal/upstream",
		deny: []string{
			"apis/...", "cmd/...", "internal/rig", "internal/scheduler/...", "internal/controllers/...", "pkg/placement/...", "pkg/plugins/...", "internal/policies/...", "test/...",
			"k8s.io/kubernetes/cmd/...", "sigs.k8s.io/controller-runtime/...",
		},
		why: "it adapts kube-scheduler, whatever its plugins do", broken: [2]string{"internal/upstream/x.go", "pkg/plugins/spreadtree"},
	},
	{
		name: "nobody-below-knows-upstream", room: "...", except: []string{"cmd/scheduler", "internal/scheduler/preflight", "internal/upstream/...", "test/storm"}, tests: true,
		deny: []string{"internal/upstream"}, why: "a plugin proposes nodes to whoever asks; it must work without",
		broken: [2]string{"pkg/plugins/spreadtree/x.go", "internal/upstream"},
	},
	{
		name: "one-adapter", room: "...", except: []string{"apis/config/...", "internal/plugintest", "internal/upstream/..."},
		deny:   []string{"k8s.io/kubernetes/pkg/scheduler/..."},
		why:    "what the next Kubernetes changes inside the scheduler is one package's concern; arguments of plugins are in its scheme",
		broken: [2]string{"cmd/scheduler/x.go", "k8s.io/kubernetes/pkg/scheduler/profile"},
	},
	{
		name: "filters-know-no-placement", room: "internal/upstream/filters",
		deny: []string{"apis/...", "cmd/...", "internal/...", "pkg/...", "test/...", "k8s.io/kubernetes/cmd/...", "sigs.k8s.io/controller-runtime/..."},
		why:  "it asks the filters of kube-scheduler, for whoever is no scheduler", broken: [2]string{"internal/upstream/filters/x.go", "pkg/placement"},
	},
	{
		name: "nodefit-knows-no-placement", room: "internal/upstream/nodefit",
		deny: []string{"apis/...", "cmd/...", "internal/...", "pkg/...", "test/...", "k8s.io/kubernetes/cmd/...", "sigs.k8s.io/controller-runtime/..."},
		why:  "it asks what a kubelet asks, for whoever is none", broken: [2]string{"internal/upstream/nodefit/x.go", "pkg/placement"},
	},
	{
		name: "keylock-is-a-lock", room: "internal/keylock", allow: []string{"std"}, why: "it knows neither nodes nor bindings",
		broken: [2]string{"internal/keylock/x.go", "internal/clusterview"},
	},
	{
		name: "simulator-knows-no-plugin", room: "internal/upstream/simulator",
		deny: []string{
			"apis/...", "cmd/...", "internal/controllers/...", "internal/policies/...", "internal/scheduler/...", "pkg/...", "test/...", "k8s.io/kubernetes/cmd/...",
		},
		why: "it runs a scheduler with whatever plugins it is given", broken: [2]string{"internal/upstream/simulator/x.go", "pkg/placement"},
	},
	{
		name: "snapshots-are-read-only", room: "internal/snapshot", deny: []string{"internal/controllers/...", "internal/policies/...", "internal/upstream/...", "pkg/...", "k8s.io/kubernetes/..."},
		why: "it is what an API server says, and knows nobody who asks about it", broken: [2]string{"internal/snapshot/x.go", "internal/policies"},
	},
	{
		name: "inspect-is-for-people", room: "...", except: []string{"cmd/kubectl-espalier", "internal/inspect", "internal/picture", "test/..."}, tests: true,
		deny: []string{"internal/inspect", "internal/snapshot"}, why: "nothing that runs in a cluster depends on what is drawn for people",
		broken: [2]string{"internal/controllers/move/x.go", "internal/inspect"},
	},
	{
		name: "controllers-stay-apart", room: "internal/controllers/...", tests: true,
		deny: []string{"pkg/plugins/...", "internal/policies/...", "k8s.io/kubernetes/..."}, why: "plugins and controllers never meet",
		broken: [2]string{"internal/controllers/policy/x.go", "pkg/plugins/preferences"},
	},
	{
		name: "args-know-only-levels", room: "apis/config/...", tests: true,
		deny:   []string{"cmd/...", "internal/...", "internal/clusterview/...", "internal/controllers/...", "pkg/plugins/...", "test/..."},
		why:    "arguments are below the plugins that take them; validation needs the pure levels and nothing else",
		broken: [2]string{"apis/config/validation/x.go", "pkg/plugins/spreadtree"},
	},
	{
		name: "global-scheme-in-one-place", room: "apis/config/...", except: []string{"apis/config/scheme"},
		exceptFiles: []string{"apis/config/register.go", "apis/config/v1/register.go"}, deny: []string{"k8s.io/kubernetes/..."},
		why:    "types and validation must be usable without kube-scheduler; its global scheme is touched in one place",
		broken: [2]string{"apis/config/validation/x.go", "k8s.io/kubernetes/pkg/scheduler/apis/config"},
	},
	{
		name: "crd-types-are-light", room: "apis/placement/...", tests: true,
		allow:  []string{"std", "apis/placement/...", "k8s.io/api/...", "k8s.io/apimachinery/..."},
		why:    "whoever writes a client for our API must not have to link a scheduler",
		broken: [2]string{"apis/placement/v1alpha1/x.go", "sigs.k8s.io/controller-runtime/pkg/scheme"},
	},
	{
		name: "commands-of-kubernetes-under-cmd", room: "...", except: []string{"cmd/...", "internal/scheduler/preflight", "test/perf/nullscheduler"}, tests: true,
		deny: []string{"k8s.io/kubernetes/cmd/..."}, why: "only our binaries are wired from Kubernetes' binaries, which are no library",
		broken: [2]string{"test/integration/x_test.go", "k8s.io/kubernetes/cmd/kube-scheduler/app"},
	},
	{
		name: "controllers-without-their-manager", room: "...", tests: true, deny: []string{"k8s.io/kubernetes/cmd/kube-controller-manager/app/..."},
		why:    "it compiles every controller that Kubernetes has; cmd/devcluster/internal/controllers makes those that run",
		broken: [2]string{"cmd/devcluster/internal/cluster/x.go", "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"},
	},
	{
		name: "commands-are-imported-by-nobody", room: "...", except: []string{"cmd/..."}, tests: true, deny: []string{"cmd/..."},
		why: "what others need is no part of a command", broken: [2]string{"internal/rig/x.go", "cmd/devcluster/internal/cluster"},
	},
	{
		name: "scheduler-command-is-wiring", room: "cmd/scheduler",
		deny: []string{
			"crypto/...", "net/...", "sync/...", "github.com/go-logr/...", "k8s.io/apimachinery/...", "k8s.io/client-go/kubernetes/...",
			"k8s.io/client-go/rest", "k8s.io/client-go/tools/leaderelection/...", "sigs.k8s.io/yaml",
		},
		why:    "what is more than wiring has a room below internal/scheduler, which is read and tested by itself",
		broken: [2]string{"cmd/scheduler/x.go", "net/http"},
	},
	{
		name: "scheduler-rooms-are-its-own", room: "...", except: []string{"cmd/scheduler", "internal/scheduler/..."}, tests: true,
		deny: []string{"internal/scheduler/..."}, why: "they serve one command; what others need is no part of it",
		broken: [2]string{"cmd/demo/x.go", "internal/scheduler/fence"},
	},
	{
		name: "tests-are-imported-by-tests", room: "...", except: []string{"test/..."}, tests: true, deny: []string{"test/..."},
		why: "nothing that is shipped depends on how it is tested", broken: [2]string{"pkg/plugins/x.go", "test/e2e"},
	},
	{
		name: "real-kubelets-from-outside", room: "test/kubelet/...", tests: true, deny: product,
		why:    "the stories of real kubelets know what an operator knows: the API, the engine and what we promise in writing",
		broken: [2]string{"test/kubelet/x_test.go", "internal/clusterview"},
	},
	{
		name: "reliability-from-outside", room: "test/reliability/...", tests: true, deny: product,
		why: "what becomes of the pods is told by the API alone", broken: [2]string{"test/reliability/x_test.go", "internal/upstream"},
	},
	{
		name: "contention-from-outside", room: "test/contention/...", tests: true, deny: product,
		why: "who has promised what twice is told by the API alone", broken: [2]string{"test/contention/x_test.go", "internal/controllers/arbiter"},
	},
	{
		name: "ecosystem-from-outside", room: "test/ecosystem/...", tests: true, deny: product,
		why: "neighbours see what Espalier does to pods, and no more of it", broken: [2]string{"test/ecosystem/x_test.go", "pkg/plugins"},
	},
	{
		name: "measured-from-outside", room: "test/perf/...", tests: true,
		// Its properties begin with the seed of all others.
		exceptFiles: []string{"test/perf/judge/main_test.go"}, deny: product,
		why:    "the benchmark treats our scheduler as it treats any other: it starts it and looks at what comes of it",
		broken: [2]string{"test/perf/bench/x.go", "pkg/plugins"},
	},
	{
		name: "judging-measures-nothing", room: "test/perf/judge", tests: true,
		deny: []string{"context", "k8s.io/...", "net/...", "os/...", "sync/...", "test/perf/bench"},
		why:  "whether a promise is kept must be told from the figures alone", broken: [2]string{"test/perf/judge/x.go", "test/perf/bench"},
	},
	{
		name: "no-testing-in-products", room: "...", except: []string{"internal/archtest", "internal/commandtest", "internal/controllertest", "internal/plugintest"},
		deny: []string{"testing/...", "pgregory.net/rapid", "k8s.io/kubernetes/pkg/scheduler/testing/..."},
		why:  "the test framework adds its flags to every binary it is linked into", broken: [2]string{"cmd/demo/x.go", "testing"},
	},
	{
		name: "scaffolding-stays-outside", room: "...", except: append([]string{"cmd/...", "test/...", "internal/scheduler/preflight"}, scaffolding...), tests: true,
		deny: scaffolding, why: "they serve the commands and the tests that start whole clusters; the product does not need them",
		broken: [2]string{"internal/clusterview/x.go", "internal/evenness"},
	},
}

// siblingRule keeps the folders directly below a parent from importing each other.
type siblingRule struct {
	name, parent, why string
	broken            [2]string
}

var siblingRules = []siblingRule{
	{
		name: "no-plugin-imports-another", parent: "pkg/plugins",
		why:    "what two plugins share is a noun below them; otherwise neither can be switched off",
		broken: [2]string{"pkg/plugins/spreadtree/x.go", "pkg/plugins/preferences"},
	},
	{
		name: "no-command-imports-another", parent: "cmd", why: "commands are started, not linked; the scheduler's binary must not carry an API server",
		broken: [2]string{"cmd/demo/x.go", "cmd/devcluster/internal/cluster"},
	},
}

// pureRule names what the pure core must not use of packages it may import.
var pureRule = struct {
	name, room, why string
	deny            []string
}{
	name: "placement-asks-no-clock", room: "pkg/placement/...", why: "time is a parameter, and the core prints nothing",
	deny: []string{
		"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.Tick", "time.Sleep",
		"time.NewTimer", "time.NewTicker", "fmt.Print", "fmt.Printf", "fmt.Println", "print", "println",
	},
}

// sizeRule bounds files that people write, in lines.
var sizeRule = struct {
	name, why    string
	source, test int
}{
	name: "a-file-is-about-one-thing", why: "split it by noun; cases of tests go to testdata", source: 400, test: 500,
}

// keyRule names the one room, and in it one file, that spells our keys.
var keyRule = struct{ name, room, prefix, why string }{
	name: "one-file-owns-the-keys", room: "internal/clusterview", prefix: "espalier.dev/",
	why: "a key spelled twice is sooner or later spelled in two ways; use the constant",
}

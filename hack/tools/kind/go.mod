// kind, which makes clusters of real kubelets in containers: see make e2e-kind.
module github.com/espalier-scheduler/espalier/hack/tools/kind

go 1.26.0

tool sigs.k8s.io/kind

require (
	al.essio.dev/pkg/shellescape v1.5.1 // indirect
	github.com/BurntSushi/toml v1.4.0 // indirect
	github.com/evanphx/json-patch/v5 v5.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/pelletier/go-toml v1.9.5 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/spf13/cobra v1.8.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/sys v0.21.0 // indirect
	sigs.k8s.io/kind v0.33.0 // indirect
	sigs.k8s.io/yaml v1.4.0 // indirect
)

// As in the project's own go.mod, to share what is compiled: see hack/modules.sh.
replace (
	github.com/evanphx/json-patch/v5 => github.com/evanphx/json-patch/v5 v5.9.11
	github.com/spf13/cobra => github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag => github.com/spf13/pflag v1.0.10
	go.yaml.in/yaml/v2 => go.yaml.in/yaml/v2 v2.4.4
	golang.org/x/sys => golang.org/x/sys v0.47.0
	sigs.k8s.io/yaml => sigs.k8s.io/yaml v1.6.0
)

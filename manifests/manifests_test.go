// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	admissionvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/node"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	nodevalidation "k8s.io/kubernetes/pkg/apis/node/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	"k8s.io/kubernetes/pkg/apis/storage"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	storagevalidation "k8s.io/kubernetes/pkg/apis/storage/validation"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"sigs.k8s.io/yaml"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
)

// files are those on disk and not the embedded ones: a file that was forgotten there must not be forgotten here as well.
var files = os.DirFS(".")

// strict decodes what an API server would take, and no field more.
var strict = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// TestEveryFile decodes every document under this folder strictly, gives it its
// defaults, and validates it as the API server or the scheduler would.
func TestEveryFile(t *testing.T) {
	seen := 0
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (name == "charts" || name == "monitoring") {
			// Templates are no YAML: test/install renders them. Alerts are no objects: they are
			// checked by Prometheus' own engine, in hack/tools/prometheus.
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || (path.Ext(name) != ".yaml" && path.Ext(name) != ".yml") {
			return err
		}
		seen++
		t.Run(name, func(t *testing.T) {
			for i, doc := range documents(t, name) {
				if err := check(name, doc); err != nil {
					t.Errorf("document %d: %v", i+1, err)
				}
			}
		})
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatalf("found %d files: %v", seen, err)
	}
}

// TestCheckRefuses makes sure that the check above can fail.
func TestCheckRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ doc, want string }{
		"unknown field":            {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {conainers: []}}", `unknown field "spec.conainers"`},
		"invalid object":           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}", "spec.containers: Required value"},
		"unknown kind":             {"{apiVersion: v1, kind: Pot}", `no kind "Pot"`},
		"unknown scheduler field":  {"{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profils: []}", `unknown field "profils"`},
		"invalid scheduler config": {"{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, parallelism: -1}", "parallelism"},
		"unknown argument": {`{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{schedulerName: a, pluginConfig: [
			{name: SpreadTree, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: SpreadTreeArgs, countRevision: All}}]}]}`, `unknown field "countRevision"`},
		"invalid argument": {`{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{schedulerName: a, pluginConfig: [
			{name: SpreadTree, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: SpreadTreeArgs, countRevisions: Some}}]}]}`, "countRevisions"},
		"missing resource": {"{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: [nothing.yaml]}", "nothing.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			// In flow style they are short to write, but only YAML proper is decoded as such.
			doc, err := yaml.YAMLToJSON([]byte(tc.doc))
			must(t, err)
			if err := check("base/test.yaml", doc); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}

// documents splits a file and drops what is only comments.
func documents(t *testing.T, name string) [][]byte {
	t.Helper()
	content, err := fs.ReadFile(files, name)
	must(t, err)
	var docs [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if asJSON, err := yaml.YAMLToJSON(doc); err != nil || !bytes.Equal(asJSON, []byte("null")) {
			docs = append(docs, doc)
		}
	}
	if len(docs) == 0 {
		t.Fatalf("%s holds no document", name)
	}
	return docs
}

// check sends a document to whoever knows its group.
func check(name string, doc []byte) error {
	var typeMeta metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &typeMeta); err != nil {
		return err
	}
	switch group, _, _ := strings.Cut(typeMeta.APIVersion, "/"); group {
	case "kubescheduler.config.k8s.io":
		_, err := schedulerConfig(doc)
		return err
	case "kustomize.config.k8s.io":
		_, err := kustomization(path.Dir(name), doc)
		return err
	default:
		_, err := object(doc)
		return err
	}
}

// object decodes, defaults and validates an object of the API.
func object(doc []byte) (runtime.Object, error) {
	versioned, _, err := strict.Decode(doc, nil, nil)
	if err != nil {
		return nil, err
	}
	switch own := versioned.(type) {
	case *placementv1alpha1.PlacementPolicy:
		return own, clusterview.ReadPolicy(own).Err()
	case *placementv1alpha1.ClusterPlacementPolicy:
		return own, clusterview.ReadClusterPolicy(own).Err()
	case *placementv1alpha1.Partition:
		return own, allocations.ReadPartition(own).Invalid()
	case *placementv1alpha1.Allocation:
		return own, allocations.ReadAllocation(own).Invalid()
	}
	legacyscheme.Scheme.Default(versioned)
	internal, err := legacyscheme.Scheme.ConvertToVersion(versioned, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(internal)
	if err != nil {
		return nil, err
	}
	if accessor.GetNamespace() == "" && !clusterScoped(internal) {
		accessor.SetNamespace("default")
	}
	return versioned, validate(internal).ToAggregate()
}

// create validates as the API server does on create, which generates some fields first.
func create(s rest.RESTCreateStrategy, obj runtime.Object) field.ErrorList {
	ctx := genericapirequest.WithNamespace(genericapirequest.NewContext(), "default")
	s.PrepareForCreate(ctx, obj)
	return s.Validate(ctx, obj)
}

func validate(obj runtime.Object) field.ErrorList {
	switch o := obj.(type) {
	case *apps.Deployment:
		return create(deployment.Strategy, o)
	case *apps.StatefulSet:
		return create(statefulset.Strategy, o)
	case *batch.Job:
		o.UID = "0"
		return create(job.Strategy, o)
	case *core.Pod:
		return create(pod.Strategy, o)
	case *core.Service:
		if o.Spec.ClusterIP != "" { // the API server fills these in from it before it validates
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		return corevalidation.ValidateServiceCreate(o)
	case *core.PersistentVolumeClaim:
		return corevalidation.ValidatePersistentVolumeClaim(o, corevalidation.ValidationOptionsForPersistentVolumeClaim(o, nil))
	case *core.ResourceQuota:
		return corevalidation.ValidateResourceQuota(o)
	case *node.RuntimeClass:
		return nodevalidation.ValidateRuntimeClass(o)
	case *storage.StorageClass:
		return storagevalidation.ValidateStorageClass(o)
	case *storage.CSIDriver:
		return storagevalidation.ValidateCSIDriver(o)
	case *core.ServiceAccount:
		return corevalidation.ValidateServiceAccount(o)
	case *rbac.Role:
		return rbacvalidation.ValidateRole(o)
	case *rbac.RoleBinding:
		return rbacvalidation.ValidateRoleBinding(o)
	case *rbac.ClusterRole:
		return rbacvalidation.ValidateClusterRole(o, rbacvalidation.ClusterRoleValidationOptions{})
	case *rbac.ClusterRoleBinding:
		return rbacvalidation.ValidateClusterRoleBinding(o)
	}
	return validateExtension(obj)
}

// generator is a configMapGenerator of a Kustomization.
type generator struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Behavior  string         `json:"behavior"`
	Files     []string       `json:"files"`
	Options   map[string]any `json:"options"`
}

// kustomizeFile is the fields of a Kustomization that our own use, and no others.
type kustomizeFile struct {
	metav1.TypeMeta    `json:",inline"`
	Resources          []string    `json:"resources"`
	Components         []string    `json:"components"`
	ConfigMapGenerator []generator `json:"configMapGenerator"`
	// What these do is seen in test/install, which builds the overlays.
	Images  []any `json:"images"`
	Patches []any `json:"patches"`
}

// kustomization decodes a Kustomization, and wants the files that it names to be there.
func kustomization(folder string, doc []byte) (*kustomizeFile, error) {
	var k kustomizeFile
	if err := yaml.UnmarshalStrict(doc, &k); err != nil {
		return nil, err
	}
	names := slices.Concat(k.Resources, k.Components)
	for _, g := range k.ConfigMapGenerator {
		names = append(names, g.Files...)
	}
	for _, name := range names {
		if _, err := fs.Stat(files, path.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	return &k, nil
}

func init() {
	apiextensionsinstall.Install(legacyscheme.Scheme)
	utilruntime.Must(placementv1alpha1.AddToScheme(legacyscheme.Scheme))
}

// clusterScoped says that objects of the kind are in no namespace.
func clusterScoped(obj runtime.Object) bool {
	switch obj.(type) {
	case *rbac.ClusterRole, *rbac.ClusterRoleBinding, *apiextensions.CustomResourceDefinition,
		*admissionregistration.ValidatingAdmissionPolicy, *admissionregistration.ValidatingAdmissionPolicyBinding,
		*node.RuntimeClass, *storage.StorageClass, *storage.CSIDriver,
		*admissionregistration.MutatingAdmissionPolicy, *admissionregistration.MutatingAdmissionPolicyBinding, *admissionregistration.ValidatingWebhookConfiguration:
		return true
	}
	return false
}

// validateExtension validates what extends the API. That compiles the expressions in it, and sees what they could cost.
func validateExtension(obj runtime.Object) field.ErrorList {
	switch o := obj.(type) {
	case *policy.PodDisruptionBudget:
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	case *apiextensions.CustomResourceDefinition:
		s := customresourcedefinition.NewStrategy(legacyscheme.Scheme)
		ctx := context.Background()
		s.PrepareForCreate(ctx, o)
		return s.Validate(ctx, o)
	case *admissionregistration.ValidatingWebhookConfiguration:
		return admissionvalidation.ValidateValidatingWebhookConfiguration(o)
	case *admissionregistration.ValidatingAdmissionPolicy:
		return admissionvalidation.ValidateValidatingAdmissionPolicy(o)
	case *admissionregistration.ValidatingAdmissionPolicyBinding:
		return admissionvalidation.ValidateValidatingAdmissionPolicyBinding(o)
	case *admissionregistration.MutatingAdmissionPolicy:
		return admissionvalidation.ValidateMutatingAdmissionPolicy(o)
	case *admissionregistration.MutatingAdmissionPolicyBinding:
		return admissionvalidation.ValidateMutatingAdmissionPolicyBinding(o)
	}
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("this test does not know how to validate %T: teach it", obj))}
}

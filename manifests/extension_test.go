// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	admissionvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"k8s.io/kubernetes/pkg/apis/node"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	"k8s.io/kubernetes/pkg/apis/storage"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

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

// validateExtension validates what extends the API. That compiles the expressions in
// it, and sees what they could cost.
func validateExtension(obj runtime.Object) field.ErrorList {
	switch o := obj.(type) {
	case *rbac.ClusterRole:
		return rbacvalidation.ValidateClusterRole(o, rbacvalidation.ClusterRoleValidationOptions{})
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

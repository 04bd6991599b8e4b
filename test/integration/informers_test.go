// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

// without makes an account with the rights that another has in the whole cluster, but for one resource, "" for none. It returns its kubeconfig, and what
// changes the resource.
func without(t *testing.T, ns, of, lacks string) (kubeconfig string, lack func(resource string)) {
	t.Helper()
	roles, account := cluster.client.RbacV1(), of+"-"+ns
	bindings, err := roles.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	fatal(t, err)
	var all []rbacv1.PolicyRule
	for _, b := range bindings.Items {
		if slices.Contains(b.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: rig.SchedulerNamespace, Name: of}) {
			role, err := roles.ClusterRoles().Get(t.Context(), b.RoleRef.Name, metav1.GetOptions{})
			fatal(t, err)
			all = append(all, role.Rules...)
		}
	}
	allBut := func(lacks string) (some []rbacv1.PolicyRule) {
		for _, rule := range all {
			rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(name string) bool { return name == lacks })
			if len(rule.Resources) > 0 {
				some = append(some, rule)
			}
		}
		return some
	}
	_, err = cluster.client.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	fatal(t, err)
	role, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: allBut(lacks)}, metav1.CreateOptions{})
	fatal(t, err)
	for _, bound := range []string{account, account + "-gone"} { // with a role that is gone RBAC does not tell all rules
		_, err = roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: bound}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bound},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account}},
		}, metav1.CreateOptions{})
		fatal(t, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := errors.Join(roles.ClusterRoleBindings().Delete(ctx, account, metav1.DeleteOptions{}), roles.ClusterRoleBindings().Delete(ctx, account+"-gone", metav1.DeleteOptions{}), roles.ClusterRoles().Delete(ctx, account, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	fatal(t, rig.WriteKubeconfigIn(t.Context(), cluster.config, cluster.client, ns, account, kubeconfig))
	return kubeconfig, func(resource string) {
		t.Helper()
		role.Rules = allBut(resource)
		role, err = roles.ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{})
		fatal(t, err)
	}
}

// says waits until an address is answered with a status and a text.
func says(t *testing.T, url, token string, want int, text string) {
	t.Helper()
	until(t, fmt.Sprintf("%s to say %q", url, text), func() error {
		status, body, err := rig.Get(t.Context(), url, token)
		if err == nil && (status != want || !strings.Contains(body, text)) {
			err = fmt.Errorf("status %d: %.300s", status, body)
		}
		return err
	})
}

// A kind that the scheduler may not read is named, and pods that do not need it are placed. When the right is given, the scheduler ends, and is as any
// other when it starts again.
func TestSchedulerNamesWhatItCannotRead(t *testing.T) {
	ns, port := namespace(t), freePort(t)
	kubeconfig, lack := without(t, ns, rig.SchedulerName, "deviceclasses")
	base := "https://127.0.0.1:" + port
	args := []string{
		"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + port, "--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + cluster.account, "--authorization-kubeconfig=" + cluster.account,
	}
	scheduler, err := rig.Start(rig.Command{Name: "espalier-scheduler", Path: cluster.binary, Args: args, Dir: t.TempDir()})
	fatal(t, err)
	t.Cleanup(scheduler.Kill)
	pods(t, ns, rig.SchedulerName, 3)
	workload(t, ns, 1, func(p *corev1.Pod) {
		p.Name, p.Spec.SchedulerName = "devices", rig.SchedulerName
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/device": resource.MustParse("1")}
	})

	const named = "deviceclasses of resource.k8s.io/v1: deviceclasses.resource.k8s.io is forbidden: "
	says(t, base+"/readyz/informers", "", http.StatusInternalServerError, named)
	says(t, base+"/readyz", "", http.StatusOK, "ok")
	const series = `espalier_unsynced_informers{group="resource.k8s.io",reason="Forbidden",resource="deviceclasses",version="v1"} 1`
	token := metricsToken(t, ns)
	says(t, base+"/metrics", token, http.StatusOK, series)
	settled(t, ns, rig.SchedulerName, 3)
	told(t, ns, "devices", "deviceclasses of resource.k8s.io/v1: Forbidden")

	// The log may be a second behind what is served, and says nothing once the right is there.
	logs(t, scheduler, `"Informer is not filled" resource="deviceclasses" groupVersion="resource.k8s.io/v1"`)
	lack("")
	select {
	case <-scheduler.Done():
	case <-time.After(2 * timeout):
		t.Fatal("the scheduler does not end")
	}
	logs(t, scheduler, `"Scheduler ends" err="deviceclasses of resource.k8s.io/v1 can be read`)
	start(t, args...)
	says(t, base+"/readyz", "", http.StatusOK, "ok")
	says(t, base+"/readyz/informers", "", http.StatusOK, "ok")
	if _, body, err := rig.Get(t.Context(), base+"/metrics", token); err != nil || strings.Contains(body, "espalier_unsynced_informers{") {
		t.Errorf("there is still a series of it, %v", err)
	}
	told(t, ns, "devices", "Insufficient example.com/device")
}

// A scheduler that waits for a kind is not ready at any time: else it would take the place of one that works.
func TestSchedulerIsNotReadyWithoutInformers(t *testing.T) {
	kubeconfig, _ := without(t, namespace(t), rig.SchedulerName, "poddisruptionbudgets")
	scheduler, base := serveBy(t, kubeconfig)
	asked := 0
	until(t, "the kind to be named in the log", func() error {
		if status, body, err := rig.Get(t.Context(), base+"/readyz", ""); err == nil {
			asked++
			if status != http.StatusInternalServerError || !strings.Contains(body, "[-]informers failed") && !strings.Contains(body, "[-]sched-handler-sync failed") {
				t.Fatalf("it is ready: %d %s", status, body)
			}
		}
		if !strings.Contains(logOf(t, scheduler), `"Informer is not filled" resource="poddisruptionbudgets"`) {
			return errors.New("it is not")
		}
		return nil
	})
	says(t, base+"/readyz", "", http.StatusInternalServerError, "[-]informers failed")
	says(t, base+"/readyz/informers", "", http.StatusInternalServerError, "poddisruptionbudgets.policy is forbidden")
	if asked == 0 {
		t.Error("it was never asked")
	}
}

// A right that is taken away from a scheduler that runs is named though its watch goes on, for minutes, and no more when it is given back. Pods are
// placed all the while.
func TestSchedulerNamesARightThatIsTakenAway(t *testing.T) {
	ns := namespace(t)
	kubeconfig, lack := without(t, ns, rig.SchedulerName, "")
	_, base := serveBy(t, kubeconfig)
	base += "/readyz"
	says(t, base, "", http.StatusOK, "ok")
	lack("poddisruptionbudgets")
	begin := time.Now()
	says(t, base+"/informers", "", http.StatusInternalServerError, "poddisruptionbudgets of policy/v1: poddisruptionbudgets.policy may no longer be watched")
	t.Logf("named after %s", time.Since(begin).Round(time.Second))
	says(t, base, "", http.StatusOK, "ok") // it works, and must not be stopped for another
	pods(t, ns, rig.SchedulerName, 13)
	even(t, settled(t, ns, rig.SchedulerName, 13))
	lack("")
	says(t, base+"/informers", "", http.StatusOK, "ok")
}

// A group that does not answer, as an aggregated API that hangs does not, is named, and pods that do not need it are placed.
func TestSchedulerNamesAGroupThatHangs(t *testing.T) {
	ns := namespace(t)
	server := before(t, func(_ http.ResponseWriter, r *http.Request) bool {
		hangs := strings.HasPrefix(r.URL.Path, "/apis/resource.k8s.io/")
		if hangs {
			<-r.Context().Done()
		}
		return hangs
	})
	begin := time.Now()
	_, base := serveBy(t, kubeconfig(t, server, "none"))
	base += "/readyz"
	for _, resource := range []string{"deviceclasses", "resourceclaims", "resourceslices"} {
		says(t, base+"/informers", "", http.StatusInternalServerError, resource+" of resource.k8s.io/v1: ")
	}
	t.Logf("named after %s", time.Since(begin).Round(time.Second))
	pods(t, ns, rig.SchedulerName, 13)
	// It waits a minute for each list that the API server leaves open.
	fatal(t, rig.Poll(t.Context(), 2*timeout, 50*time.Millisecond, "the scheduler to be ready", func() error {
		status, body, err := rig.Get(t.Context(), base, "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %.300s", status, body)
		}
		return err
	}))
	even(t, settled(t, ns, rig.SchedulerName, 13))
}

// A kind that the controller has read, and that is gone while it runs, is named.
func TestControllerNamesWhatIsGone(t *testing.T) {
	ns, port := namespace(t), freePort(t)
	t.Cleanup(func() { removePolicies(t) })
	installPolicies(t, ns)
	startController(t, "", "--leader-elect=false", "--health-probe-bind-address=127.0.0.1:"+port)
	policies, err := dynamic.NewForConfig(cluster.config)
	fatal(t, err)
	until(t, "the controller to write the status of a policy", func() error {
		policy, err := policies.Resource(placementv1alpha1.SchemeGroupVersion.WithResource("placementpolicies")).Namespace(ns).Get(t.Context(), "zones", metav1.GetOptions{})
		if err == nil && policy.Object["status"] == nil {
			err = errors.New("it has none")
		}
		return err
	})
	base := "http://127.0.0.1:" + port + "/readyz"
	says(t, base, "", http.StatusOK, "ok")
	removePolicies(t)
	says(t, base+"/informers", "", http.StatusInternalServerError, "placementpolicies of placement.espalier.dev/v1alpha1: ") // then the API server's words, which differ
	says(t, base, "", http.StatusOK, "ok")                                                                                   // it does all else
}

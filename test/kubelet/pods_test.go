// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/test/fixture"
)

const (
	placementAnnotation = "espalier.dev/placement"
	policyVersion       = "placement.espalier.dev/v1alpha1"

	// flagFolder of a node is mounted into all containers of the stories there.
	flagFolder = "/var/lib/espalier-e2e"
	// failFile, in a folder of the story's, makes them fail.
	failFile = "fail"

	// gate keeps a pod from being placed.
	gate = "e2e.espalier.dev/gate"
)

// template is a pod of the app that is spread over zones by our scheduler, and runs until the node tells it to fail.
func (s *story) template(app string, change ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: map[string]string{placementAnnotation: "spread=" + zoneLabel}},
		Spec: corev1.PodSpec{
			SchedulerName: rig.SchedulerName,
			Containers: []corev1.Container{{
				Name: "app", Image: world.image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"-fail-if=/flags/" + failFile},
				Env:          []corev1.EnvVar{{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
				Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
				VolumeMounts: []corev1.VolumeMount{{Name: "flags", MountPath: "/flags", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "flags", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: s.flags(), Type: ptr.To(corev1.HostPathDirectoryOrCreate)},
			}}},
			TerminationGracePeriodSeconds: ptr.To[int64](1),
		},
	}
	for _, f := range change {
		f(&template.Spec)
	}
	return template
}

// flags is the story's folder on every node.
func (s *story) flags() string { return flagFolder + "/" + s.NS }

// deploy creates a Deployment.
func (s *story) deploy(app string, replicas int, change ...func(*corev1.PodSpec)) {
	s.Helper()
	s.create(app, replicas, s.template(app, change...))
}

// create creates a Deployment of the template.
func (s *story) create(app string, replicas int, template corev1.PodTemplateSpec) {
	s.Helper()
	d := fixture.Deployment(app, int32(replicas))
	d.Spec.Template = template
	s.Deploy(d)
}

// open waits until the app has n pods and takes the gates away, so that they are placed together.
func (s *story) open(app string, n int) {
	s.Helper()
	var list *corev1.PodList
	s.Until(fmt.Sprintf("%d pods of %s", n, app), func() (err error) {
		list, err = s.Client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err == nil && len(list.Items) != n {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
	for i := range list.Items {
		if p := &list.Items[i]; len(p.Spec.SchedulingGates) > 0 {
			_, err := s.Client.CoreV1().Pods(s.NS).Patch(s.Ctx, p.Name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
			s.Must(err, "opening the gate of pod "+p.Name)
		}
	}
}

// apply creates an object of a kind of ours.
func (s *story) apply(kind, name string, spec map[string]any) {
	s.Helper()
	applier, err := rig.NewApplier(world.config)
	s.Must(err, "looking for kinds")
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion(policyVersion)
	object.SetKind(kind)
	object.SetName(name)
	s.Must(applier.ApplyObject(s.Ctx, object, s.NS), "creating a "+kind)
}

// roll starts a rolling update.
func (s *story) roll(app, revision string) {
	s.Helper()
	s.Patch(app, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"e2e.espalier.dev/revision":%q}}}}}`, revision))
}

// rolled waits until the Deployment says that it is through with its newest revision.
func (s *story) rolled(app string) {
	s.Helper()
	s.Until("Deployment "+app+" to be up to date", func() error {
		d, err := s.Client.AppsV1().Deployments(s.NS).Get(s.Ctx, app, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return rig.UpToDate(d)
	})
}

// drop deletes the app's pods on a node, as a person does who has had enough of them.
func (s *story) drop(app, node string) {
	s.Helper()
	err := s.Client.CoreV1().Pods(s.NS).DeleteCollection(s.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: "app=" + app, FieldSelector: "spec.nodeName=" + node,
	})
	s.Must(err, "deleting the pods on node "+node)
}

// image has the container run another image.
func image(name string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.Containers[0].Image = name }
}

// waitsFor says why the pod's containers do not run.
func waitsFor(p *corev1.Pod) string {
	var reasons []string
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			reasons = append(reasons, w.Reason)
		}
		if t := c.State.Terminated; t != nil {
			reasons = append(reasons, fmt.Sprintf("%s %d %s", t.Reason, t.ExitCode, t.Message))
		}
	}
	return strings.Join(reasons, ", ")
}

// A Deployment that the default scheduler has placed, by soft constraints that the manifest has had all along, is given to Espalier and
// nothing else is changed: half of its pods are on the one node of the small zone then.
func TestNothingChangedButSchedulerName(t *testing.T) {
	s := begin(t)
	template := s.template("app", func(spec *corev1.PodSpec) {
		spec.SchedulerName = corev1.DefaultSchedulerName
		for _, key := range []string{zoneLabel, corev1.LabelHostname} {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}},
			})
		}
	})
	template.Annotations = nil
	s.create("app", 12, template)
	s.rolled("app")
	s.Logf("the default scheduler:\n%s", s.settled("app", 12).Draw())

	s.Patch("app", `{"spec":{"template":{"spec":{"schedulerName":"`+rig.SchedulerName+`"}}}}`)
	s.rolled("app")
	o := s.settled("app", 12)
	s.zones(o, 6, 6)
	if findings := o.Check(); len(findings) > 0 {
		s.Errorf("not as even as it can be: %v\n%s", findings, o.Draw())
	}
}

// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	placementAnnotation = "espalier.dev/placement"
	workloadLabel       = "espalier.dev/workload"

	// podMilliCPU is what one pod of a story asks for, so that a node's room is a number of pods.
	podMilliCPU = 100
)

// template is a pod of the app on the story's nodes, with the placement as its annotation unless "".
func (s *story) template(app, placement string, change ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulerName: s.scheduler,
			NodeSelector:  map[string]string{storyLabel: s.name},
			Containers: []corev1.Container{{
				Name: "app", Image: "busybox:1.37",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: units(1)}},
			}},
			TerminationGracePeriodSeconds: ptr.To[int64](0),
		},
	}
	if placement != "" {
		template.Annotations[placementAnnotation] = placement
	}
	for _, f := range change {
		f(&template.Spec)
	}
	return template
}

func selects(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// deploy creates a Deployment.
func (s *story) deploy(app string, replicas int32, placement string, change ...func(*corev1.PodSpec)) {
	s.Helper()
	s.deployment(app, replicas, s.template(app, placement, change...))
}

// deployment creates a Deployment of a template.
func (s *story) deployment(app string, replicas int32, template corev1.PodTemplateSpec) {
	s.Helper()
	s.make(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       appsv1.DeploymentSpec{Replicas: new(replicas), Selector: selects(app), Template: template},
	})
}

// deployed is deploy, and settled.
func (s *story) deployed(app string, replicas int, placement string, change ...func(*corev1.PodSpec)) *rig.Observation {
	s.Helper()
	s.deploy(app, int32(replicas), placement, change...)
	return s.settled(app, replicas)
}

// patch changes a Deployment by a merge patch.
func (s *story) patch(app, format string, args ...any) {
	s.Helper()
	s.alter(named[appsv1.Deployment](s, app), format, args...)
}

func (s *story) scale(app string, replicas int) {
	s.Helper()
	s.patch(app, `{"spec":{"replicas":%d}}`, replicas)
}

// scaledTo is scale, and settled.
func (s *story) scaledTo(app string, replicas int) *rig.Observation {
	s.Helper()
	s.scale(app, replicas)
	return s.settled(app, replicas)
}

// roll starts a rolling update and waits until the Deployment says that it is through.
func (s *story) roll(app, revision string) {
	s.Helper()
	s.patch(app, `{"spec":{"template":{"metadata":{"annotations":{"e2e.espalier.dev/revision":%q}}}}}`, revision)
	s.available(app, "the rolling update to "+revision)
}

// available waits until the Deployment says that all of its pods are there, and ready. Who scales before that has the ReplicaSet's controller remove
// those first that it does not know to be ready, though they are.
func (s *story) available(app, what string) {
	s.Helper()
	becomes(s, app, what, func(d *appsv1.Deployment) error {
		want := *d.Spec.Replicas
		switch st := d.Status; {
		case st.ObservedGeneration < d.Generation:
			return errors.New("the controller has not seen it")
		case st.UpdatedReplicas != want || st.Replicas != want || st.AvailableReplicas != want:
			return fmt.Errorf("of %d pods wanted there are %d, %d of them updated, %d available", want, st.Replicas, st.UpdatedReplicas, st.AvailableReplicas)
		}
		return nil
	})
}

// pod creates a bare pod.
func (s *story) pod(name string, template corev1.PodTemplateSpec) {
	s.Helper()
	template.ObjectMeta.Name = name
	s.make(&corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec})
}

// podsOf are the pods of an app.
func (s *story) podsOf(app string) []corev1.Pod {
	s.Helper()
	return s.podsWith("app="+app, "")
}

// podsWith are the story's pods with labels, and on a node, if any is given.
func (s *story) podsWith(selector, node string) []corev1.Pod {
	s.Helper()
	options := metav1.ListOptions{LabelSelector: selector}
	if node != "" {
		options.FieldSelector = "spec.nodeName=" + node
	}
	list, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, options)
	s.must(err, "listing pods")
	return list.Items
}

// asks sets what the pod asks for in units of podMilliCPU.
func asks(pods int64) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = units(pods)
	}
}

// statefulSet creates a StatefulSet whose pods start all at once.
func (s *story) statefulSet(app string, replicas int32, template corev1.PodTemplateSpec, claims ...corev1.PersistentVolumeClaim) {
	s.Helper()
	s.make(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: selects(app), ServiceName: app, Template: template, VolumeClaimTemplates: claims,
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	})
}

func (s *story) scaleStatefulSet(app string, replicas int) {
	s.Helper()
	s.alter(named[appsv1.StatefulSet](s, app), `{"spec":{"replicas":%d}}`, replicas)
}

// Whatever is left of a StatefulSet is even, though its pods came all at once.
func TestScaleDownOfAStatefulSet(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 3, 2, 1)
	s.must(startStock(), "starting the stock scheduler")
	for _, scheduler := range []string{corev1.DefaultSchedulerName, s.scheduler} {
		s.statefulSet("app", 9, s.template("app", "", by(scheduler)))
		for _, pods := range []int{9, 6, 3} {
			s.scaleStatefulSet("app", pods)
			o := s.settled("app", pods)
			s.Logf("%s: %d pods are %s", scheduler, pods, byZones(o))
			if scheduler == s.scheduler {
				s.counts(o, 0, pods/3, pods/3, pods/3)
			}
		}
		s.delete(named[appsv1.StatefulSet](s, "app"))
		s.settled("app", 0)
	}
}

// zonalVolumes makes so many volumes in each zone, and returns the class of claims that get one in the zone of their pod.
func (s *story) zonalVolumes(n int, zones ...string) (class string) {
	s.Helper()
	class = s.name
	s.create(&storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	})
	for _, z := range zones {
		for i := range n {
			s.create(&corev1.PersistentVolume{ // it is gone when its claim is
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", s.name, z, i)},
				Spec: corev1.PersistentVolumeSpec{
					StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
					PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volume"}},
					NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{z}}},
					}}}},
				},
			})
		}
	}
	return class
}

// Four pods with volumes of their zones become three, one, and four again. Three are in three zones, and those that come back find their
// volumes. With the stock scheduler some may have nowhere to go, if their zones must not differ by more than one.
func TestScaleDownOfAStatefulSetWithVolumes(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(20, 2, 2, 2)
	class := s.zonalVolumes(12, "zone-a", "zone-b", "zone-c")
	s.must(startStock(), "starting the stock scheduler")
	must := func(app string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			constrained(app, zoneLabel)(spec)
			spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.DoNotSchedule
		}
	}
	for app, tc := range map[string]struct {
		scheduler string
		over      func(*corev1.PodSpec)
	}{
		"stock":      {corev1.DefaultSchedulerName, constrained("stock", zoneLabel)},
		"stock-must": {corev1.DefaultSchedulerName, must("stock-must")},
		"app":        {s.scheduler, constrained("app", zoneLabel)},
	} {
		s.statefulSet(app, 4, s.template(app, "", tc.over, by(tc.scheduler)), claim("data", class))
		for _, pods := range []int{4, 3, 1, 4} {
			s.scaleStatefulSet(app, pods)
			if app != "app" {
				o := s.whatever(app, pods)
				s.Logf("%s: of %d pods %d wait, zones have %s", app, pods, o.Pending, byZones(o))
				continue
			}
			s.even(s.settled(app, pods)) // three are in three zones
		}
	}
}

// claim is a template of claims for a volume of a class.
func claim(name, class string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// whatever waits until an app has so many pods, and each has a node or was tried in vain.
func (s *story) whatever(app string, pods int) *rig.Observation {
	s.Helper()
	return s.seen(fmt.Sprintf("%d pods of %s", pods, app), "app="+app, func(o *rig.Observation) error {
		if len(o.Pods) != pods || o.Leaving > 0 {
			return fmt.Errorf("there are %d, and %d are leaving", len(o.Pods), o.Leaving)
		}
		for i := range o.Pods {
			if p := &o.Pods[i]; p.Spec.NodeName == "" && unschedulable(p) == "" {
				return fmt.Errorf("pod %s has no node, and was not tried", p.Name)
			}
		}
		return nil
	})
}

package main

import (
	"context"
	"fmt"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The part of a typed client that all kinds have.
type client[T runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
}

// check makes, changes and deletes one object, and then one more with its collection. The options of a deletion
// are sent with the apiVersion of the object's own group.
func check[T runtime.Object](r *run, name string, objects client[T], object T) {
	r.step(name, func() (string, error) {
		meta := any(object).(metav1.Object)
		made, err := objects.Create(r.context, object.DeepCopyObject().(T), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		if made, err = objects.Get(r.context, meta.GetName(), metav1.GetOptions{}); err != nil {
			return "", err
		}
		changed := made.DeepCopyObject().(T)
		any(changed).(metav1.Object).SetAnnotations(map[string]string{"changed": "yes"})
		if made, err = objects.Update(r.context, changed, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		id := any(made).(metav1.Object).GetUID()
		background := metav1.DeletePropagationBackground
		options := metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &id}}
		if err := objects.Delete(r.context, meta.GetName(), options); err != nil {
			return "", err
		}
		again := object.DeepCopyObject().(T)
		any(again).(metav1.Object).SetName("again-" + r.unique)
		if _, err := objects.Create(r.context, again, metav1.CreateOptions{}); err != nil {
			return "", err
		}
		if err := objects.DeleteCollection(r.context, inBackground(), r.mine()); err != nil {
			return "", err
		}
		_, err = objects.Get(r.context, "again-"+r.unique, metav1.GetOptions{})
		return "then " + describe(err), nil
	})
}

func inBackground() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background, GracePeriodSeconds: pointer(int64(0))}
}

func (r *run) template() core.PodTemplateSpec {
	return core.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}},
	}
}

func (r *run) job() batch.JobSpec {
	template := r.template()
	template.Labels = nil
	template.Spec.RestartPolicy = core.RestartPolicyNever
	return batch.JobSpec{Suspend: pointer(true), Template: template}
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}

// everyGroup has one object of a kind of every group deleted.
func (r *run) everyGroup() {
	c, ns := r.typed, r.namespace
	check(r, "core Secret", c.CoreV1().Secrets(ns), &core.Secret{ObjectMeta: r.meta("s"), Data: map[string][]byte{"k": {0, 255}}})
	check(r, "core ServiceAccount", c.CoreV1().ServiceAccounts(ns), &core.ServiceAccount{ObjectMeta: r.meta("s")})
	check(r, "apps Deployment", c.AppsV1().Deployments(ns), &apps.Deployment{ObjectMeta: r.meta("d"),
		Spec: apps.DeploymentSpec{Selector: selector, Template: r.template()}})
	check(r, "apps StatefulSet", c.AppsV1().StatefulSets(ns), &apps.StatefulSet{ObjectMeta: r.meta("s"),
		Spec: apps.StatefulSetSpec{Selector: selector, Template: r.template()}})
	check(r, "apps DaemonSet", c.AppsV1().DaemonSets(ns), &apps.DaemonSet{ObjectMeta: r.meta("d"),
		Spec: apps.DaemonSetSpec{Selector: selector, Template: r.template()}})
	check(r, "apps ReplicaSet", c.AppsV1().ReplicaSets(ns), &apps.ReplicaSet{ObjectMeta: r.meta("r"),
		Spec: apps.ReplicaSetSpec{Selector: selector, Template: r.template()}})
	check(r, "apps ControllerRevision", c.AppsV1().ControllerRevisions(ns), &apps.ControllerRevision{ObjectMeta: r.meta("c"),
		Data: runtime.RawExtension{Raw: []byte(`{"a":1}`)}, Revision: 3})
	check(r, "batch Job", c.BatchV1().Jobs(ns), &batch.Job{ObjectMeta: r.meta("j"), Spec: r.job()})
	check(r, "batch CronJob", c.BatchV1().CronJobs(ns), &batch.CronJob{ObjectMeta: r.meta("c"),
		Spec: batch.CronJobSpec{Schedule: "@daily", JobTemplate: batch.JobTemplateSpec{Spec: r.job()}}})
	check(r, "autoscaling HorizontalPodAutoscaler", c.AutoscalingV2().HorizontalPodAutoscalers(ns),
		&autoscaling.HorizontalPodAutoscaler{ObjectMeta: r.meta("h"), Spec: autoscaling.HorizontalPodAutoscalerSpec{
			MaxReplicas:    2,
			ScaleTargetRef: autoscaling.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}}})
	check(r, "coordination Lease", c.CoordinationV1().Leases(ns), &coordination.Lease{ObjectMeta: r.meta("l")})
	check(r, "discovery EndpointSlice", c.DiscoveryV1().EndpointSlices(ns), &discovery.EndpointSlice{ObjectMeta: r.meta("e"),
		AddressType: discovery.AddressTypeIPv4, Endpoints: []discovery.Endpoint{{Addresses: []string{"10.0.0.1"}}}})
	check(r, "networking Ingress", c.NetworkingV1().Ingresses(ns), &networking.Ingress{ObjectMeta: r.meta("i"),
		Spec: networking.IngressSpec{DefaultBackend: &networking.IngressBackend{Service: &networking.IngressServiceBackend{
			Name: "s", Port: networking.ServiceBackendPort{Number: 80}}}}})
	check(r, "networking NetworkPolicy", c.NetworkingV1().NetworkPolicies(ns), &networking.NetworkPolicy{ObjectMeta: r.meta("n")})
	check(r, "policy PodDisruptionBudget", c.PolicyV1().PodDisruptionBudgets(ns), &policy.PodDisruptionBudget{ObjectMeta: r.meta("p"),
		Spec: policy.PodDisruptionBudgetSpec{MinAvailable: pointer(intstr.FromString("50%")), Selector: selector}})
	rules := []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	check(r, "rbac Role", c.RbacV1().Roles(ns), &rbac.Role{ObjectMeta: r.meta("r"), Rules: rules})
	check(r, "rbac RoleBinding", c.RbacV1().RoleBindings(ns), &rbac.RoleBinding{ObjectMeta: r.meta("r"),
		RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "r"}})
	check(r, "rbac ClusterRole", c.RbacV1().ClusterRoles(), &rbac.ClusterRole{ObjectMeta: r.unscoped("c"), Rules: rules})
	check(r, "rbac ClusterRoleBinding", c.RbacV1().ClusterRoleBindings(), &rbac.ClusterRoleBinding{ObjectMeta: r.unscoped("c"),
		RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "c-" + r.unique}})
	check(r, "scheduling PriorityClass", c.SchedulingV1().PriorityClasses(), &scheduling.PriorityClass{ObjectMeta: r.unscoped("p"), Value: 7})
	check(r, "storage StorageClass", c.StorageV1().StorageClasses(), &storage.StorageClass{ObjectMeta: r.unscoped("s"), Provisioner: "example.com/none"})
	check(r, "admissionregistration ValidatingWebhookConfiguration", c.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
		&admission.ValidatingWebhookConfiguration{ObjectMeta: r.unscoped("v")})
}

// workloads uses the parts of Deployments and Jobs.
func (r *run) workloads() {
	deployments := r.typed.AppsV1().Deployments(r.namespace)
	r.step("apps: scale and status of a Deployment", func() (string, error) {
		given := &apps.Deployment{ObjectMeta: r.meta("scaled"), Spec: apps.DeploymentSpec{Selector: selector, Template: r.template()}}
		made, err := deployments.Create(r.context, given, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		scale, err := deployments.GetScale(r.context, "scaled", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		scale.Spec.Replicas = 0
		if scale, err = deployments.UpdateScale(r.context, "scaled", scale, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		made, err = deployments.Get(r.context, "scaled", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		made.Status.ObservedGeneration = made.Generation
		if made, err = deployments.UpdateStatus(r.context, made, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		return fmt.Sprint("replicas=", *made.Spec.Replicas, " selector=", scale.Status.Selector, " observed=", made.Status.ObservedGeneration), nil
	})
	r.step("apps: foreground deletion", func() (string, error) {
		foreground := metav1.DeletePropagationForeground
		if err := deployments.Delete(r.context, "scaled", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
			return "", err
		}
		return "gone", r.poll(func() (bool, error) {
			_, err := deployments.Get(r.context, "scaled", metav1.GetOptions{})
			return err != nil, nil
		})
	})
}

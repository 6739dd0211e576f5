package main

// The kinds of the embedded API server. Every definition that they reach comes along.
var kinds = []struct {
	group, version string
	names          []string
}{
	{"", "v1", []string{
		"Namespace", "ConfigMap", "Secret", "ServiceAccount", "Service", "Endpoints", "Pod", "PodTemplate", "Node",
		"PersistentVolume", "PersistentVolumeClaim", "Event", "Binding",
	}},
	{"admissionregistration.k8s.io", "v1", []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}},
	{"apiextensions.k8s.io", "v1", []string{"CustomResourceDefinition"}},
	{"apps", "v1", []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"}},
	{"authentication.k8s.io", "v1", []string{"TokenReview", "SelfSubjectReview", "TokenRequest"}},
	{"authorization.k8s.io", "v1", []string{
		"SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectRulesReview",
	}},
	{"autoscaling", "v1", []string{"Scale"}},
	{"autoscaling", "v2", []string{"HorizontalPodAutoscaler"}},
	{"batch", "v1", []string{"Job", "CronJob"}},
	{"coordination.k8s.io", "v1", []string{"Lease"}},
	{"discovery.k8s.io", "v1", []string{"EndpointSlice"}},
	{"events.k8s.io", "v1", []string{"Event"}},
	{"networking.k8s.io", "v1", []string{"NetworkPolicy", "Ingress", "IngressClass"}},
	{"policy", "v1", []string{"PodDisruptionBudget", "Eviction"}},
	{"rbac.authorization.k8s.io", "v1", []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}},
	{"scheduling.k8s.io", "v1", []string{"PriorityClass"}},
	{"storage.k8s.io", "v1", []string{"StorageClass"}},
}

// Kinds of meta/v1 that stand in requests and responses of every group.
var metaKinds = []string{
	"DeleteOptions", "Status", "WatchEvent", "Patch", "APIResourceList", "APIGroup", "APIGroupList", "APIVersions",
}

// storedAsProtobuf says whether objects of a kind are stored, and not as JSON as custom resource definitions are.
func storedAsProtobuf(group, kind string) bool {
	switch kind {
	case "Binding", "CustomResourceDefinition", "DeleteOptions", "Eviction", "Scale":
		return false
	}
	return group != "authentication.k8s.io" && group != "authorization.k8s.io"
}

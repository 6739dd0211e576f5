package main

import (
	"fmt"
	"sort"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func (r *run) reviews() {
	r.step("authorization: may I", func() (string, error) {
		review := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorization.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: r.namespace},
		}}
		got, err := r.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(r.context, review, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(got.Status.Allowed), nil
	})
	r.step("authentication: who am I", func() (string, error) {
		got, err := r.typed.AuthenticationV1().SelfSubjectReviews().Create(r.context, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		groups := got.Status.UserInfo.Groups
		sort.Strings(groups)
		return strings.Join(groups, " "), nil
	})
}

// customKinds has a kind of its own made with the typed client, its objects used with the dynamic and the metadata
// client, and both deleted.
func (r *run) customKinds() {
	group := "clients-" + r.name + "-" + r.unique + ".example.com"
	plural := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}
	definitions := r.extensions.ApiextensionsV1().CustomResourceDefinitions()
	name := "gadgets." + group
	r.step("apiextensions: a kind is made and established", func() (string, error) {
		if _, err := definitions.Create(r.context, definition(r, name, group), metav1.CreateOptions{}); err != nil {
			return "", err
		}
		err := r.poll(func() (bool, error) {
			got, err := definitions.Get(r.context, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for _, condition := range got.Status.Conditions {
				if condition.Type == extensions.Established && condition.Status == extensions.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			return "", err
		}
		return "established", r.poll(func() (bool, error) {
			_, err := r.dynamic.Resource(plural).Namespace(r.namespace).List(r.context, metav1.ListOptions{})
			return err == nil, nil
		})
	})
	r.dynamicClient(plural)
	r.metadataClient(plural)
	r.step("apiextensions: the kind is deleted", func() (string, error) {
		if err := definitions.Delete(r.context, name, metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		return "gone", r.poll(func() (bool, error) {
			_, err := definitions.Get(r.context, name, metav1.GetOptions{})
			return err != nil, nil
		})
	})
}

func (r *run) dynamicClient(plural schema.GroupVersionResource) {
	gadgets := r.dynamic.Resource(plural).Namespace(r.namespace)
	gadget := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": plural.GroupVersion().String(), "kind": "Gadget",
			"metadata": map[string]any{"name": name, "labels": map[string]any{label: r.unique}},
			"spec":     map[string]any{"size": int64(1)},
		}}
	}
	r.step("dynamic: create, status, apply, patch, delete", func() (string, error) {
		made, err := gadgets.Create(r.context, gadget("a"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		made.Object["status"] = map[string]any{"ready": true}
		if _, err = gadgets.UpdateStatus(r.context, made, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		applied := gadget("a")
		applied.Object["spec"] = map[string]any{"size": int64(2)}
		if _, err = gadgets.Apply(r.context, "a", applied, metav1.ApplyOptions{FieldManager: "clients", Force: true}); err != nil {
			return "", err
		}
		made, err = gadgets.Patch(r.context, "a", types.MergePatchType, []byte(`{"spec":{"size":3}}`), metav1.PatchOptions{})
		if err != nil {
			return "", err
		}
		id := made.GetUID()
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &id}}
		return fmt.Sprint(made.Object["spec"], made.Object["status"]), gadgets.Delete(r.context, "a", options)
	})
	r.step("dynamic: two more for the others", func() (string, error) {
		for _, name := range []string{"b", "c"} {
			if _, err := gadgets.Create(r.context, gadget(name), metav1.CreateOptions{}); err != nil {
				return "", err
			}
		}
		list, err := gadgets.List(r.context, r.mine())
		if err != nil {
			return "", err
		}
		return fmt.Sprint(len(list.Items), " ", list.GetKind()), nil
	})
}

func (r *run) metadataClient(plural schema.GroupVersionResource) {
	gadgets := r.metadata.Resource(plural).Namespace(r.namespace)
	r.step("metadata: get, list, patch, delete, delete of the collection", func() (string, error) {
		one, err := gadgets.Get(r.context, "b", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		list, err := gadgets.List(r.context, r.mine())
		if err != nil {
			return "", err
		}
		patched, err := gadgets.Patch(r.context, "b", types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`), metav1.PatchOptions{})
		if err != nil {
			return "", err
		}
		id := one.GetUID()
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &id}}
		if err := gadgets.Delete(r.context, "b", options); err != nil {
			return "", err
		}
		if err := gadgets.DeleteCollection(r.context, metav1.DeleteOptions{}, r.mine()); err != nil {
			return "", err
		}
		left, err := gadgets.List(r.context, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(one.Kind, " ", len(list.Items), " ", patched.Annotations, " left ", len(left.Items)), nil
	})
	r.step("metadata: delete of a built-in kind", func() (string, error) {
		deployments := r.metadata.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
		err := deployments.Namespace(r.namespace).Delete(r.context, "none", metav1.DeleteOptions{})
		return describe(err), nil
	})
}

func definition(r *run, name, group string) *extensions.CustomResourceDefinition {
	object := extensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: pointer(true)}
	meta := r.meta(name)
	return &extensions.CustomResourceDefinition{ObjectMeta: meta, Spec: extensions.CustomResourceDefinitionSpec{
		Group: group, Scope: extensions.NamespaceScoped,
		Names: extensions.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
		Versions: []extensions.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Subresources: &extensions.CustomResourceSubresources{Status: &extensions.CustomResourceSubresourceStatus{}},
			Schema: &extensions.CustomResourceValidation{OpenAPIV3Schema: &extensions.JSONSchemaProps{
				Type: "object", Properties: map[string]extensions.JSONSchemaProps{"spec": object, "status": object}}},
		}},
	}}
}

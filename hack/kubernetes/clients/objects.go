package main

import (
	"fmt"
	"sort"
	"strings"

	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
)

// objects does to ConfigMaps and Pods all that typed clients can do.
func (r *run) objects() {
	maps := r.typed.CoreV1().ConfigMaps(r.namespace)
	var made *core.ConfigMap
	r.step("core: create, get, update", func() (string, error) {
		var err error
		given := &core.ConfigMap{ObjectMeta: r.meta("a"), Data: map[string]string{"k": "1"}}
		if made, err = maps.Create(r.context, given, metav1.CreateOptions{FieldManager: "clients"}); err != nil {
			return "", err
		}
		if made, err = maps.Get(r.context, "a", metav1.GetOptions{}); err != nil {
			return "", err
		}
		made.Data["k"] = "2"
		made, err = maps.Update(r.context, made, metav1.UpdateOptions{})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(made.Data, " kind=", made.Kind), nil
	})
	r.expect("core: create again", func() error {
		_, err := maps.Create(r.context, &core.ConfigMap{ObjectMeta: r.meta("a")}, metav1.CreateOptions{})
		return err
	})
	r.expect("core: update of an old version", func() error {
		old := &core.ConfigMap{ObjectMeta: r.meta("a")}
		old.ResourceVersion = "1"
		_, err := maps.Update(r.context, old, metav1.UpdateOptions{})
		return err
	})
	for _, patch := range []struct {
		kind types.PatchType
		body string
	}{
		{types.JSONPatchType, `[{"op":"add","path":"/data/j","value":"3"}]`},
		{types.MergePatchType, `{"data":{"m":"4"}}`},
		{types.StrategicMergePatchType, `{"data":{"s":"5"}}`},
	} {
		r.step("core: patch "+string(patch.kind), func() (string, error) {
			got, err := maps.Patch(r.context, "a", patch.kind, []byte(patch.body), metav1.PatchOptions{})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(got.Data), nil
		})
	}
	r.step("core: apply", func() (string, error) {
		config := apply.ConfigMap("a", r.namespace).WithData(map[string]string{"applied": "6"})
		got, err := maps.Apply(r.context, config, metav1.ApplyOptions{FieldManager: "clients", Force: true})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(got.Data["applied"]), nil
	})
	r.expect("core: delete with another uid", func() error {
		other := metav1.ObjectMeta{UID: "8d1f5b7c-0000-4000-8000-000000000000"}
		err := maps.Delete(r.context, "a", metav1.DeleteOptions{Preconditions: uid(other)})
		if err != nil && made != nil {
			return fmt.Errorf("%s", strings.ReplaceAll(describe(err), string(made.UID), "{uid}"))
		}
		return err
	})
	r.step("core: delete as a dry run, then with its uid", func() (string, error) {
		if err := maps.Delete(r.context, "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return "", err
		}
		return "deleted", maps.Delete(r.context, "a", metav1.DeleteOptions{Preconditions: uid(made.ObjectMeta)})
	})
	r.expect("core: get of what is gone", func() error {
		_, err := maps.Get(r.context, "a", metav1.GetOptions{})
		return err
	})
	r.pages()
	r.pods()
}

func (r *run) pages() {
	maps := r.typed.CoreV1().ConfigMaps(r.namespace)
	r.step("core: list in pages", func() (string, error) {
		for i := range 5 {
			given := &core.ConfigMap{ObjectMeta: r.meta(fmt.Sprint("page-", i))}
			if _, err := maps.Create(r.context, given, metav1.CreateOptions{}); err != nil {
				return "", err
			}
		}
		var names []string
		options := r.mine()
		options.Limit = 2
		for {
			list, err := maps.List(r.context, options)
			if err != nil {
				return "", err
			}
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			names = append(names, "|")
			if options.Continue = list.Continue; options.Continue == "" {
				return strings.Join(names, " "), nil
			}
		}
	})
	r.step("core: watch from a list, delete of the collection", func() (string, error) {
		list, err := maps.List(r.context, r.mine())
		if err != nil {
			return "", err
		}
		options := r.mine()
		options.ResourceVersion = list.ResourceVersion
		watch, err := maps.Watch(r.context, options)
		if err != nil {
			return "", err
		}
		defer watch.Stop()
		if err := maps.DeleteCollection(r.context, metav1.DeleteOptions{GracePeriodSeconds: pointer(int64(0))}, r.mine()); err != nil {
			return "", err
		}
		var seen []string
		for event := range watch.ResultChan() {
			seen = append(seen, fmt.Sprintf("%s %s", event.Type, event.Object.(metav1.Object).GetName()))
			if len(seen) == len(list.Items) {
				break
			}
		}
		sort.Strings(seen)
		return strings.Join(seen, ", "), nil
	})
}

func (r *run) pods() {
	pods := r.typed.CoreV1().Pods(r.namespace)
	pod := func(name string) *core.Pod {
		return &core.Pod{ObjectMeta: r.meta(name), Spec: core.PodSpec{
			NodeName: "nowhere", Containers: []core.Container{{Name: "c", Image: "i"}},
		}}
	}
	r.step("core: pod, its status, and its end", func() (string, error) {
		made, err := pods.Create(r.context, pod("p"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		made.Status.Phase = core.PodRunning
		if made, err = pods.UpdateStatus(r.context, made, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		if err := pods.Delete(r.context, "p", metav1.DeleteOptions{GracePeriodSeconds: pointer(int64(5))}); err != nil {
			return "", err
		}
		marked, err := pods.Get(r.context, "p", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		result := fmt.Sprint(made.Status.Phase, " grace=", *marked.DeletionGracePeriodSeconds)
		return result, pods.Delete(r.context, "p", metav1.DeleteOptions{GracePeriodSeconds: pointer(int64(0))})
	})
	r.step("policy: eviction", func() (string, error) {
		if _, err := pods.Create(r.context, pod("evicted"), metav1.CreateOptions{}); err != nil {
			return "", err
		}
		eviction := &policy.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: "evicted", Namespace: r.namespace},
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: pointer(int64(0))},
		}
		if err := pods.EvictV1(r.context, eviction); err != nil {
			return "", err
		}
		_, err := pods.Get(r.context, "evicted", metav1.GetOptions{})
		return describe(err), nil
	})
}

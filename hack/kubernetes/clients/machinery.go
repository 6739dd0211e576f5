package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	newevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// informers has a shared informer follow a Deployment through its life.
func (r *run) informers() {
	r.step("informers: a Deployment from its creation to its deletion", func() (string, error) {
		factory := informers.NewSharedInformerFactoryWithOptions(r.typed, 0, informers.WithNamespace(r.namespace))
		informer := factory.Apps().V1().Deployments().Informer()
		seen := make(chan string, 10)
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { seen <- "added " + object.(*apps.Deployment).Name },
			UpdateFunc: func(_, object any) { seen <- "updated " + object.(*apps.Deployment).Annotations["step"] },
			DeleteFunc: func(any) { seen <- "deleted" },
		})
		if err != nil {
			return "", err
		}
		factory.Start(r.context.Done())
		factory.WaitForCacheSync(r.context.Done())
		deployments := r.typed.AppsV1().Deployments(r.namespace)
		given := &apps.Deployment{ObjectMeta: r.meta("informed"), Spec: apps.DeploymentSpec{Selector: selector, Template: r.template()}}
		made, err := deployments.Create(r.context, given, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		lines := []string{r.next(seen)}
		made.Annotations = map[string]string{"step": "2"}
		if _, err := deployments.Update(r.context, made, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		lines = append(lines, r.next(seen))
		if err := deployments.Delete(r.context, "informed", metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		lines = append(lines, r.next(seen))
		return strings.Join(lines, ", "), nil
	})
}

func (r *run) next(seen <-chan string) string {
	select {
	case line := <-seen:
		return line
	case <-r.context.Done():
		return "nothing"
	}
}

// leaderElection has two candidates lead one after the other.
func (r *run) leaderElection() {
	r.step("leader election: the second leads when the first has gone", func() (string, error) {
		var mutex sync.Mutex
		var order []string
		campaign := func(ctx context.Context, name string, led chan<- struct{}) {
			lock, err := resourcelock.New(resourcelock.LeasesResourceLock, r.namespace, "election-"+r.name,
				r.typed.CoreV1(), r.typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
			if err != nil {
				return
			}
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, ReleaseOnCancel: true, Name: name,
				LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(ctx context.Context) {
						mutex.Lock()
						order = append(order, name)
						mutex.Unlock()
						close(led)
						<-ctx.Done()
					},
					OnStoppedLeading: func() {},
				},
			})
		}
		first, cancelFirst := context.WithCancel(r.context)
		second, cancelSecond := context.WithCancel(r.context)
		defer cancelFirst()
		defer cancelSecond()
		ledFirst, ledSecond := make(chan struct{}), make(chan struct{})
		go campaign(first, "first", ledFirst)
		select {
		case <-ledFirst:
		case <-r.context.Done():
			return "", r.context.Err()
		}
		go campaign(second, "second", ledSecond)
		cancelFirst()
		select {
		case <-ledSecond:
		case <-r.context.Done():
			return "", r.context.Err()
		}
		mutex.Lock()
		defer mutex.Unlock()
		return strings.Join(order, ", then "), nil
	})
}

// events has both recorders of client-go report on an object, and events of both groups deleted.
func (r *run) events() {
	reference := &core.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: r.namespace, Name: "subject-" + r.name}
	about := metav1.ListOptions{FieldSelector: "involvedObject.name=subject-" + r.name}
	r.step("events: the recorder of the core group", func() (string, error) {
		broadcaster := record.NewBroadcaster()
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: r.typed.CoreV1().Events(r.namespace)})
		recorder := broadcaster.NewRecorder(scheme.Scheme, core.EventSource{Component: "clients"})
		recorder.Event(reference, core.EventTypeNormal, "Tried", "once")
		recorder.Event(reference, core.EventTypeNormal, "Tried", "once")
		return "counted", r.poll(func() (bool, error) {
			list, err := r.typed.CoreV1().Events(r.namespace).List(r.context, about)
			if err != nil {
				return false, err
			}
			return len(list.Items) == 1 && list.Items[0].Count == 2, nil
		})
	})
	r.step("events: the recorder of events.k8s.io", func() (string, error) {
		broadcaster := newevents.NewBroadcaster(&newevents.EventSinkImpl{Interface: r.typed.EventsV1()})
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(r.context); err != nil {
			return "", err
		}
		recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/clients")
		recorder.Eventf(reference, nil, core.EventTypeWarning, "Failed", "Try", "for the %d. time", 2)
		var found string
		err := r.poll(func() (bool, error) {
			list, err := r.typed.EventsV1().Events(r.namespace).List(r.context, metav1.ListOptions{FieldSelector: "reason=Failed"})
			if err != nil {
				return false, err
			}
			for _, event := range list.Items {
				if event.Regarding.Name == reference.Name {
					found = fmt.Sprint(event.Reason, " ", event.Action, " ", event.Note)
				}
			}
			return found != "", nil
		})
		return found, err
	})
	r.step("events: deletion of both groups", func() (string, error) {
		list, err := r.typed.CoreV1().Events(r.namespace).List(r.context, about)
		if err != nil {
			return "", err
		}
		for _, event := range list.Items[:1] {
			if err := r.typed.EventsV1().Events(r.namespace).Delete(r.context, event.Name, metav1.DeleteOptions{}); err != nil {
				return "", err
			}
		}
		if err := r.typed.CoreV1().Events(r.namespace).DeleteCollection(r.context, metav1.DeleteOptions{}, about); err != nil {
			return "", err
		}
		list, err = r.typed.CoreV1().Events(r.namespace).List(r.context, about)
		return fmt.Sprint(len(list.Items), " left"), err
	})
}

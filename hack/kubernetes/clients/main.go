// Command clients does with client-go what operators do, and prints one line for each step. A test runs it
// against the embedded and the real API server and compares what both runs print.
//
//	KUBECONFIG=… clients NAMESPACE RUN
//
// Everything is made in NAMESPACE, or has RUN, which no other run has, in its name or label.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	protobuf = "application/vnd.kubernetes.protobuf"
	// How long a step may take. All of them together take seconds.
	patience = 60 * time.Second
	label    = "clients-run"
)

// A run of all steps with one encoding.
type run struct {
	context    context.Context
	name       string
	namespace  string
	unique     string
	config     *rest.Config
	typed      kubernetes.Interface
	extensions apiextensions.Interface
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	failed     bool
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: clients NAMESPACE RUN")
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	config.QPS, config.Burst = 1000, 1000
	failed := false
	for _, encoding := range []string{"protobuf", "json"} {
		failed = runAll(encoding, config, os.Args[1], os.Args[2]) || failed
	}
	if failed {
		os.Exit(1)
	}
}

func runAll(encoding string, config *rest.Config, namespace, unique string) bool {
	config = rest.CopyConfig(config)
	if encoding == "protobuf" {
		config.ContentType = protobuf
		config.AcceptContentTypes = protobuf + ",application/json"
	}
	plain := rest.CopyConfig(config)
	plain.ContentType, plain.AcceptContentTypes = "", ""
	r := &run{
		name: encoding, namespace: namespace, unique: unique, config: config,
		typed:      kubernetes.NewForConfigOrDie(config),
		extensions: apiextensions.NewForConfigOrDie(config),
		dynamic:    dynamic.NewForConfigOrDie(plain),
		metadata:   metadata.NewForConfigOrDie(config),
	}
	r.objects()
	r.everyGroup()
	r.workloads()
	r.reviews()
	r.customKinds()
	r.informers()
	r.leaderElection()
	r.events()
	return r.failed
}

// step runs one step and prints what came of it. A step that fails prints its error, and the others go on.
func (r *run) step(name string, do func() (string, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.context = ctx
	result, err := do()
	if err != nil {
		r.failed = true
		result = "FAILED: " + describe(err)
	}
	result = strings.ReplaceAll(result, r.unique, "{run}")
	result = strings.ReplaceAll(result, r.namespace, "{ns}")
	fmt.Printf("%s: %s: %s\n", r.name, name, result)
}

// expect runs a request that must be refused, and prints the refusal.
func (r *run) expect(name string, do func() error) {
	r.step(name, func() (string, error) {
		err := do()
		if err == nil {
			return "", fmt.Errorf("this was not refused")
		}
		return describe(err), nil
	})
}

func describe(err error) string {
	if status, ok := err.(errors.APIStatus); ok {
		return fmt.Sprintf("%d %s: %s", status.Status().Code, status.Status().Reason, err)
	}
	return err.Error()
}

func (r *run) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{label: r.unique}}
}

// unscoped is the metadata of an object that has no namespace: its name is this run's own.
func (r *run) unscoped(name string) metav1.ObjectMeta { return r.meta(name + "-" + r.unique) }

func (r *run) mine() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: label + "=" + r.unique}
}

// poll asks until the answer is yes, or the step's time is up.
func (r *run) poll(done func() (bool, error)) error {
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-r.context.Done():
			return r.context.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func pointer[T any](value T) *T { return &value }

func uid(meta metav1.ObjectMeta) *metav1.Preconditions { return &metav1.Preconditions{UID: &meta.UID} }

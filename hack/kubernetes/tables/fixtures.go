package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log"
	"reflect"

	apps "k8s.io/api/apps/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	kjson "sigs.k8s.io/json"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type protobufFixture struct {
	Name     string          `json:"name"`
	Protobuf string          `json:"protobuf"`
	JSON     json.RawMessage `json:"json"`
}

// protobufFixtures has objects as typed clients send them, and the JSON that the server makes of them.
func protobufFixtures() []byte {
	scheme := newTypes().scheme
	var out bytes.Buffer
	add := func(name string, object runtime.Object) {
		var encoded bytes.Buffer
		if err := protobuf.NewSerializer(scheme, scheme).Encode(object, &encoded); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		line := protobufFixture{name, base64.StdEncoding.EncodeToString(encoded.Bytes()), compact(throughProtobuf(object))}
		out.Write(append(compact(line), '\n'))
	}
	for _, sample := range samples {
		object := sample.into
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(sample.json), object); err != nil {
			log.Fatalf("%s: %v", sample.name, err)
		}
		add(sample.name, object)
	}
	for i := range 40 {
		name, object := randomObject(int64(i))
		add(name, object)
	}
	return out.Bytes()
}

var samples = []struct {
	name string
	into runtime.Object
	json string
}{
	{"namespace", &core.Namespace{}, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","labels":{"b":"c","d":""}}}`},
	{"configmap", &core.ConfigMap{}, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","creationTimestamp":"2024-01-02T03:04:05Z"},
		"data":{"k":"v","é":"ü"},"binaryData":{"b":"AAECAw==","e":""},"immutable":false}`},
	{"access review", &authorization.SelfSubjectAccessReview{}, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",
		"spec":{"resourceAttributes":{"verb":"get","resource":"pods","namespace":"n"}}}`},
	{"subject access review", &authorization.SubjectAccessReview{}, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",
		"spec":{"user":"u","groups":["g","h"],"extra":{"k":["v","w"],"none":[]},"nonResourceAttributes":{"path":"/x"}}}`},
	{"pod", &core.Pod{}, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","ownerReferences":[
		{"apiVersion":"v1","kind":"K","name":"o","uid":"1","controller":true}],"managedFields":[{"manager":"m","operation":"Apply",
		"apiVersion":"v1","time":"2024-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{}}}}]},
		"spec":{"terminationGracePeriodSeconds":0,"tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":-1}],
		"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}],
		"env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"cm","key":"k","optional":true}}},
		{"name":"Y","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}],
		"resources":{"requests":{"cpu":"0.5","memory":"1024Ki"}},"livenessProbe":{"httpGet":{"path":"/","port":"http"},"periodSeconds":3},
		"readinessProbe":{"tcpSocket":{"port":80}},"startupProbe":{"grpc":{"port":1,"service":""}}}],
		"ephemeralContainers":[{"name":"e","image":"d","targetContainerName":"c"}],
		"volumes":[{"name":"v","emptyDir":{}},{"name":"w","projected":{"sources":[{"secret":{"name":"s"}}],"defaultMode":420}}]},
		"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2024-01-02T03:04:05Z"}],
		"containerStatuses":[{"name":"c","ready":true,"restartCount":2,"image":"i","imageID":"","state":{"running":{"startedAt":null}}}]}}`},
	{"deployment", &apps.Deployment{}, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":0,
		"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["x","y"]}]},
		"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}},"template":{"metadata":{"labels":{"a":"b"}},
		"spec":{"containers":[{"name":"c"}]}}}}`},
	{"controller revision", &apps.ControllerRevision{}, `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"r"},
		"data":{"spec":{"x":[1,2.5,null]}},"revision":-7}`},
	{"event", &core.Event{}, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p"},
		"eventTime":"2024-01-02T03:04:05.000006Z","lastTimestamp":"2024-01-02T03:04:05Z","count":2}`},
	{"delete options", &meta.DeleteOptions{TypeMeta: meta.TypeMeta{APIVersion: "policy/v1", Kind: "DeleteOptions"}},
		`{"gracePeriodSeconds":0,"preconditions":{"uid":"u","resourceVersion":"7"},"propagationPolicy":"Foreground","dryRun":["All"]}`},
	{"custom resource definition", &apiextensions.CustomResourceDefinition{}, `{"apiVersion":"apiextensions.k8s.io/v1",
		"kind":"CustomResourceDefinition","metadata":{"name":"a.b"},"spec":{"group":"b","scope":"Namespaced","names":{"plural":"a","kind":"A"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"array",
		"items":{"type":"number","minimum":0.5,"maximum":-2,"default":1.5,"enum":["a",null,1]}},"m":{"additionalProperties":true},
		"n":{"additionalProperties":{"type":"string","x-kubernetes-preserve-unknown-fields":false}},
		"o":{"items":[{"type":"string"},{}],"dependencies":{"p":["q"],"r":{"type":"object"}}},"f":{"additionalProperties":false}}}}}]}}`},
}

// throughProtobuf gives the object as it is after it was stored and read again.
func throughProtobuf(object runtime.Object) runtime.Object {
	data, err := object.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		log.Fatal(err)
	}
	again := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	if err := again.(interface{ Unmarshal([]byte) error }).Unmarshal(data); err != nil {
		log.Fatal(err)
	}
	again.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	return again
}

type conformFixture struct {
	Group   string          `json:"group"`
	Version string          `json:"version"`
	Kind    string          `json:"kind"`
	In      json.RawMessage `json:"in"`
	Out     any             `json:"out,omitempty"`
	Error   string          `json:"error,omitempty"`
	Unknown []string        `json:"unknown,omitempty"`
}

// conform does what the server does to a request's object: reads it into its Go type, stores it if its kind is
// stored, and writes it again.
func conform(scheme *runtime.Scheme, kind gvk.GroupVersionKind, in []byte) conformFixture {
	fixture := conformFixture{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, In: in}
	object, err := scheme.New(kind)
	if err != nil {
		log.Fatal(err)
	}
	strict, err := kjson.UnmarshalStrict(in, object)
	if err != nil {
		fixture.Error = err.Error()
		return fixture
	}
	for _, problem := range strict {
		fixture.Unknown = append(fixture.Unknown, problem.Error())
	}
	if storedAsProtobuf(kind.Group, kind.Kind) {
		object = throughProtobuf(object)
	}
	// Conversion to the versioned type does this.
	if set, ok := object.(*apps.StatefulSet); ok {
		for i := range set.Spec.VolumeClaimTemplates {
			set.Spec.VolumeClaimTemplates[i].TypeMeta = meta.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
		}
	}
	fixture.Out = object
	return fixture
}

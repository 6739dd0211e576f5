package main

import (
	"encoding/json"
	"log"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// Go types whose JSON or protobuf form is their own affair.
var forms = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[intstr.IntOrString]():                         "int-or-string",
	reflect.TypeFor[meta.Time]():                                  "time",
	reflect.TypeFor[meta.MicroTime]():                             "micro-time",
	reflect.TypeFor[meta.FieldsV1]():                              "raw",
	reflect.TypeFor[runtime.RawExtension]():                       "raw",
	reflect.TypeFor[apiextensions.JSON]():                         "raw",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "schema-or-array",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "schema-or-bool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "schema-or-string-array",
}

var (
	named           = reflect.TypeFor[interface{ OpenAPIModelName() string }]()
	protoMessage    = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

// types knows the Go type of each definition.
type types struct {
	scheme *runtime.Scheme
	byName map[string]reflect.Type
}

func newTypes() *types {
	t := &types{scheme: scheme.Scheme, byName: map[string]reflect.Type{}}
	if err := apiextensions.AddToScheme(t.scheme); err != nil {
		log.Fatal(err)
	}
	return t
}

// root gives the definition's name of a kind, or nothing for a list kind that does not exist.
func (t *types) root(group, version, kind string) string {
	object, err := t.scheme.New(gvk.GroupVersionKind{Group: group, Version: version, Kind: kind})
	if err != nil {
		if strings.HasSuffix(kind, "List") {
			return ""
		}
		log.Fatal(err)
	}
	return t.learn(reflect.TypeOf(object).Elem())
}

func (t *types) metaRoot(kind string) string {
	for _, known := range []any{
		meta.DeleteOptions{}, meta.Status{}, meta.WatchEvent{}, meta.Patch{}, meta.APIResourceList{}, meta.APIGroup{},
		meta.APIGroupList{}, meta.APIVersions{},
	} {
		if reflect.TypeOf(known).Name() == kind {
			return t.learn(reflect.TypeOf(known))
		}
	}
	log.Fatalf("no meta kind %s", kind)
	return ""
}

// learn records a type and all it reaches, and gives its definition's name; nothing for unnamed types.
func (t *types) learn(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Pointer:
		return t.learn(typ.Elem())
	case reflect.Slice, reflect.Map:
		t.learn(typ.Elem())
	}
	if !typ.Implements(named) {
		return ""
	}
	name := reflect.Zero(typ).Interface().(interface{ OpenAPIModelName() string }).OpenAPIModelName()
	if t.byName[name] == nil {
		t.byName[name] = typ
		if typ.Kind() == reflect.Struct && (forms[typ] == "" || strings.HasPrefix(forms[typ], "schema-")) {
			for i := range typ.NumField() {
				t.learn(typ.Field(i).Type)
			}
		}
	}
	return name
}

// facts is what a definition's Go type adds to its OpenAPI schema:
//
//	TYPE|FORM|STORED;FIELD:PRESENCE:NUMBER:EMBEDDED:TYPES;…
//
// TYPE is the type as Go prints it, FORM how it is written if not as its schema says, STORED is
// protobuf for kinds that are stored so. PRESENCE is p (pointer,
// absent when unset), o (absent when zero), a (always written) or n (always written, null when unset). NUMBER
// is the protobuf number. EMBEDDED is `Name/number` for a field of an embedded struct, a message of its own in
// protobuf. TYPES are the Go types of the field, of its elements, and so on; one that is a protobuf message
// around a list is marked with @.
func (t *types) facts(name string, s schema, stored bool) string {
	typ := t.byName[name]
	if typ == nil {
		log.Fatalf("no Go type for %s", name)
	}
	out := typ.String() + "|" + forms[typ] + "|"
	if stored {
		out += "protobuf"
	}
	if forms[typ] != "" {
		return out
	}
	if reflect.PointerTo(typ).Implements(jsonUnmarshaler) {
		log.Fatalf("%v reads itself from JSON in a way that is not known here", typ)
	}
	properties, _ := s["properties"].(schema)
	seen := 0
	t.fields(typ, "", func(field, facts string) {
		if properties[field] == nil {
			log.Fatalf("%s has no property %s", name, field)
		}
		seen++
		out += ";" + field + ":" + facts
	})
	if seen != len(properties) {
		log.Fatalf("%s has %d properties, its Go type %d", name, len(properties), seen)
	}
	return out
}

func (t *types) fields(typ reflect.Type, embedded string, visit func(field, facts string)) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		options := tag[1:]
		if tag[0] == "-" || !field.IsExported() {
			continue
		}
		number := protoNumber(field)
		if field.Anonymous && tag[0] == "" {
			if embedded != "" {
				log.Fatalf("%v: embedded twice", typ)
			}
			t.fields(field.Type, field.Name+"/"+number, visit)
			continue
		}
		facts := []string{presence(typ, field, options), number, embedded, elementTypes(field.Type)}
		visit(tag[0], strings.Join(facts, ":"))
	}
}

func protoNumber(field reflect.StructField) string {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return ""
	}
	if number, err := strconv.Atoi(parts[1]); err != nil || number <= 0 {
		log.Fatalf("field %s: protobuf tag", field.Name)
	}
	if parts[0] != "varint" && parts[0] != "bytes" && parts[0] != "fixed64" {
		log.Fatalf("field %s: protobuf encoding %s", field.Name, parts[0])
	}
	return parts[1]
}

func presence(owner reflect.Type, field reflect.StructField, options []string) string {
	has := func(option string) bool {
		for _, o := range options {
			if o == option {
				return true
			}
		}
		return false
	}
	for _, o := range options {
		if o != "omitempty" && o != "omitzero" && o != "inline" {
			log.Fatalf("%v.%s: JSON option %q", owner, field.Name, o)
		}
	}
	switch field.Type.Kind() {
	case reflect.Pointer:
		if has("omitempty") || has("omitzero") {
			return "p"
		}
		return "n"
	case reflect.Slice, reflect.Map:
		if has("omitempty") || has("omitzero") {
			return "o"
		}
		return "n"
	case reflect.Struct:
		if has("omitzero") {
			return "o"
		}
		return "a"
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		if has("omitempty") || has("omitzero") {
			return "o"
		}
		return "a"
	}
	log.Fatalf("%v.%s: type %v", owner, field.Name, field.Type)
	return ""
}

func elementTypes(typ reflect.Type) string {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	text := typ.String()
	if strings.ContainsAny(text, ":;,@| \t") {
		log.Fatalf("type %s cannot be written", text)
	}
	switch typ.Kind() {
	case reflect.Slice, reflect.Map:
		if reflect.PointerTo(typ).Implements(protoMessage) {
			text = "@" + text
		}
		if typ.Elem().Kind() == reflect.Pointer {
			log.Fatalf("%v has pointers as elements", typ)
		}
		if typ.Elem().Kind() == reflect.Uint8 {
			return text
		}
		return text + "," + elementTypes(typ.Elem())
	case reflect.Pointer, reflect.Interface:
		log.Fatalf("type %v", typ)
	}
	return text
}

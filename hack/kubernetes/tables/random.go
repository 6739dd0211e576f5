package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// conformFixtures has objects with something wrong or unusual in them, and what the server makes of them: those
// of conformCases, and random ones. TABLES_RANDOM sets how many, to compare more than is worth keeping.
func conformFixtures() []byte {
	count := 150
	if text := os.Getenv("TABLES_RANDOM"); text != "" {
		count, _ = strconv.Atoi(text)
	}
	scheme := newTypes().scheme
	var out bytes.Buffer
	for _, c := range conformCases {
		kind := gvk.FromAPIVersionAndKind(c.apiVersion, c.kind)
		out.Write(append(compact(conform(scheme, kind, []byte(c.json))), '\n'))
	}
	for i := range count {
		seed := int64(i + 1000)
		_, object := randomObject(seed)
		kind := object.GetObjectKind().GroupVersionKind()
		var tree any
		if err := json.Unmarshal(compact(object), &tree); err != nil {
			log.Fatal(err)
		}
		source := rand.New(rand.NewSource(seed))
		for range 1 + source.Intn(2) {
			tree = disturb(source, tree)
		}
		if _, isObject := tree.(map[string]any); !isObject {
			continue
		}
		out.Write(append(compact(conform(scheme, kind, compact(tree))), '\n'))
	}
	return out.Bytes()
}

// disturb replaces, adds or removes something somewhere in the tree.
func disturb(source *rand.Rand, tree any) any {
	switch node := tree.(type) {
	case map[string]any:
		if len(node) == 0 || source.Intn(8) == 0 {
			node["unknown"] = strange(source)
			return node
		}
		keys := sortedKeys(node)
		key := keys[source.Intn(len(keys))]
		if key == "apiVersion" || key == "kind" {
			key = keys[len(keys)-1]
		}
		if source.Intn(12) == 0 {
			delete(node, key)
		} else {
			node[key] = disturb(source, node[key])
		}
		return node
	case []any:
		if len(node) == 0 || source.Intn(8) == 0 {
			return append(node, strange(source))
		}
		at := source.Intn(len(node))
		node[at] = disturb(source, node[at])
		return node
	}
	return strange(source)
}

func strange(source *rand.Rand) any {
	values := []any{
		nil, "", "x", 0, 1, -1, 1.5, 5000000000, true, false, map[string]any{}, []any{}, []any{nil}, "500m", "1024Ki",
		"2024-01-01T00:00:00+01:00", map[string]any{"name": "x"}, []any{map[string]any{"name": "x"}}, map[string]any{"a": nil},
		"YWI=", "YWJ=", "Y\nQ==", "!", "25%", []any{"x"},
	}
	return values[source.Intn(len(values))]
}

// randomObject fills one of the kinds, chosen and filled by the seed alone.
func randomObject(seed int64) (string, runtime.Object) {
	source := rand.New(rand.NewSource(seed))
	group := kinds[source.Intn(len(kinds))]
	kind := gvk.GroupVersionKind{Group: group.group, Version: group.version, Kind: group.names[source.Intn(len(group.names))]}
	object, err := newTypes().scheme.New(kind)
	if err != nil {
		log.Fatal(err)
	}
	filler := randfill.NewWithSeed(seed).NilChance(0.8).NumElements(1, 2).MaxDepth(18).Funcs(
		func(s *string, c randfill.Continue) { *s = []string{"", "a", "b/c", "é", "x y"}[c.Intn(5)] },
		func(b *[]byte, c randfill.Continue) { *b = []byte{0, 255, byte(c.Intn(256))}[:c.Intn(4)] },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "1", "500m", "1.5Gi", "12e6", "1000"}[c.Intn(6)])
		},
		func(t *meta.Time, c randfill.Continue) {
			if c.Bool() {
				t.Time = time.Unix(int64(c.Intn(2000000000)), 0)
			}
		},
		func(t *meta.MicroTime, c randfill.Continue) {
			if c.Bool() {
				t.Time = time.Unix(int64(c.Intn(2000000000)), int64(c.Intn(1000000))*1000)
			}
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(80), intstr.FromString("http"), intstr.FromString("")}[c.Intn(4)]
		},
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":[1,null]}`) },
		func(f *meta.FieldsV1, c randfill.Continue) { f.Raw = []byte(`{"f:a":{}}`) },
		func(j *apiextensions.JSON, c randfill.Continue) {
			j.Raw = []byte([]string{`1`, `"x"`, `{"a":1.5}`}[c.Intn(3)])
		},
		func(s *apiextensions.JSONSchemaPropsOrBool, c randfill.Continue) {
			s.Allows = c.Bool()
			if c.Intn(3) == 0 {
				s.Allows, s.Schema = true, &apiextensions.JSONSchemaProps{Type: "string"}
			}
		},
		func(s *apiextensions.JSONSchemaPropsOrArray, c randfill.Continue) {
			s.Schema = &apiextensions.JSONSchemaProps{Type: "object", Required: []string{"a"}}
		},
		func(s *apiextensions.JSONSchemaPropsOrStringArray, c randfill.Continue) { s.Property = []string{"p"} },
		func(f *float64, c randfill.Continue) { *f = []float64{0, 1, -2.5, 1e300}[c.Intn(4)] },
	)
	filler.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(kind)
	return fmt.Sprintf("%s %d", kind.Kind, seed), object
}

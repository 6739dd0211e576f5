package main

import (
	"log"
	"path/filepath"
	"reflect"
	"strings"
)

type schema = map[string]any

const gvkExtension = "x-kubernetes-group-version-kind"

// readSchemas collects the definitions of all documents, without descriptions. A definition that stands in
// several documents is the same in each but for the kinds it is registered as, which are united.
func readSchemas(folder string) map[string]schema {
	paths, err := filepath.Glob(filepath.Join(folder, "*_openapi.json"))
	if err != nil || len(paths) == 0 {
		log.Fatalf("no OpenAPI documents in %s", folder)
	}
	all := map[string]schema{}
	for _, path := range paths {
		var document struct {
			Components struct{ Schemas map[string]schema }
		}
		readJSON(path, &document)
		for name, found := range document.Components.Schemas {
			strip(found)
			known, ok := all[name]
			if !ok {
				all[name] = found
				continue
			}
			kinds := unite(known[gvkExtension], found[gvkExtension])
			delete(known, gvkExtension)
			delete(found, gvkExtension)
			if !reflect.DeepEqual(known, found) {
				log.Fatalf("%s differs between documents", name)
			}
			if kinds != nil {
				known[gvkExtension] = kinds
			}
		}
	}
	return all
}

func unite(a, b any) any {
	list, _ := a.([]any)
	more, _ := b.([]any)
next:
	for _, kind := range more {
		for _, known := range list {
			if reflect.DeepEqual(kind, known) {
				continue next
			}
		}
		list = append(list, kind)
	}
	if list == nil {
		return nil
	}
	return list
}

// strip removes descriptions, but not properties of that name.
func strip(s schema) {
	delete(s, "description")
	delete(s, "externalDocs")
	delete(s, "example")
	each(s, strip)
}

// each visits the schemas directly inside one.
func each(s schema, visit func(schema)) {
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if inner, ok := s[key].(schema); ok {
			visit(inner)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		for _, inner := range list {
			visit(inner.(schema))
		}
	}
	properties, _ := s["properties"].(schema)
	for _, name := range sortedKeys(properties) {
		visit(properties[name].(schema))
	}
}

func closure(schemas map[string]schema, roots []string) []string {
	reached := map[string]bool{}
	var visit func(schema)
	reach := func(name string) {
		if reached[name] {
			return
		}
		if schemas[name] == nil {
			log.Fatalf("no definition %q", name)
		}
		reached[name] = true
		visit(schemas[name])
	}
	visit = func(s schema) {
		if ref, ok := s["$ref"].(string); ok {
			reach(strings.TrimPrefix(ref, "#/components/schemas/"))
		}
		each(s, visit)
	}
	for _, root := range roots {
		reach(root)
	}
	return sortedKeys(reached)
}

// Command tables generates what the embedded API server knows of the built-in kinds: their schemas, what
// their Go types add to those (how unset fields are written, protobuf numbers, names in error messages),
// and how they are served. No descriptions are taken over.
//
// Regenerate with `make tables`, which runs, in this module's folder:
//
//	go run ./tables ../../crates/apiserver
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: tables CRATE_FOLDER")
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		log.Fatalf("locating k8s.io/kubernetes: %v", err)
	}
	api := filepath.Join(strings.TrimSpace(string(out)), "api")
	crate := os.Args[1]

	write(filepath.Join(crate, "data", "definitions.tsv"), definitionTable(api))
	write(filepath.Join(crate, "data", "resources.json"), resourceTable(api))
	write(filepath.Join(crate, "testdata", "protobuf.jsonl"), protobufFixtures())
	write(filepath.Join(crate, "testdata", "conform.jsonl"), conformFixtures())
	write(filepath.Join(crate, "testdata", "quantities.tsv"), quantityFixtures())
	write(filepath.Join(crate, "testdata", "times.tsv"), timeFixtures())
}

// definitionTable has a line per definition, sorted by name: name, the kind it is (`apps/v1/Deployment`, or
// nothing), its Go facts, its OpenAPI schema; separated by tabs.
func definitionTable(api string) []byte {
	schemas := readSchemas(filepath.Join(api, "openapi-spec", "v3"))
	types := newTypes()
	var roots []string
	served := map[string]string{}
	stored := map[string]bool{}
	for _, k := range kinds {
		for _, name := range k.names {
			roots = append(roots, types.root(k.group, k.version, name))
			served[roots[len(roots)-1]] = strings.TrimPrefix(k.group+"/"+k.version+"/"+name, "/")
			stored[roots[len(roots)-1]] = storedAsProtobuf(k.group, name)
			if list := types.root(k.group, k.version, name+"List"); list != "" {
				roots = append(roots, list)
				served[list] = strings.TrimPrefix(k.group+"/"+k.version+"/"+name+"List", "/")
			}
		}
	}
	for _, name := range metaKinds {
		roots = append(roots, types.metaRoot(name))
	}
	names := closure(schemas, roots)
	var table bytes.Buffer
	for _, name := range names {
		facts := types.facts(name, schemas[name], stored[name])
		fmt.Fprintf(&table, "%s\t%s\t%s\t%s\n", name, served[name], facts, compact(schemas[name]))
	}
	return table.Bytes()
}

func compact(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		log.Fatal(err)
	}
	return bytes.TrimSpace(buffer.Bytes())
}

func readJSON(path string, into any) {
	data, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		log.Fatalf("%s: %v", path, err)
	}
}

func write(path string, data []byte) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		log.Fatal(err)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

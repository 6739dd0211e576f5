// Command cel evaluates CEL expressions as kube-apiserver does for the rules of a CustomResourceDefinition.
//
// It reads one JSON object per line from stdin and writes one per line to stdout, in the same order. Each expression is
// compiled in the environment that k8s.io/apiextensions-apiserver builds for x-kubernetes-validations: the schema of the
// line is the type of self and oldSelf. Unlike a rule, an expression may have any type.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// A case to evaluate.
type question struct {
	ID         json.RawMessage `json:"id,omitempty"`
	Schema     json.RawMessage `json:"schema"`
	Root       bool            `json:"root,omitempty"`
	Expression string          `json:"expression"`
	Self       json.RawMessage `json:"self"`
	OldSelf    json.RawMessage `json:"oldSelf,omitempty"`
}

// What Kubernetes makes of it. Either CompileError is set, or Type and EstimatedMax; then one of Value and Error.
type answer struct {
	ID           json.RawMessage `json:"id,omitempty"`
	CompileError string          `json:"compileError,omitempty"`
	Type         string          `json:"type,omitempty"`
	Value        any             `json:"value,omitempty"`
	Error        string          `json:"error,omitempty"`
	Cost         *uint64         `json:"cost,omitempty"`
	EstimatedMax *uint64         `json:"estimatedMax,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	decoder := json.NewDecoder(in)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	environments := map[string]*scope{}
	for decoder.More() {
		var q question
		if err := decoder.Decode(&q); err != nil {
			return fmt.Errorf("reading a question: %w", err)
		}
		key := fmt.Sprint(q.Root, string(q.Schema))
		if environments[key] == nil {
			scope, err := newScope(q.Schema, q.Root)
			if err != nil {
				return fmt.Errorf("schema of %s: %w", q.ID, err)
			}
			environments[key] = scope
		}
		a, err := environments[key].answer(context.Background(), &q)
		if err != nil {
			return fmt.Errorf("question %s: %w", q.ID, err)
		}
		if err := encoder.Encode(a); err != nil {
			return err
		}
	}
	return out.Flush()
}

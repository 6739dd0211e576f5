package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	limits "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// The type that objects of the schema have in messages. kube-apiserver has a random number in it.
const selfType = "selfType1"

// A scope is what expressions about one schema are compiled and evaluated in.
type scope struct {
	structural *schema.Structural
	env        *cel.Env
	estimator  *library.CostEstimator
}

func newScope(text json.RawMessage, root bool) (*scope, error) {
	var props v1.JSONSchemaProps
	if err := json.Unmarshal(text, &props); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	declared := model.SchemaDeclType(structural, root)
	if declared == nil {
		return nil, errors.New("the schema has no type in CEL")
	}
	declared = declared.MaybeAssignTypeName(selfType)
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable(schemacel.ScopedVarName, declared.CelType()),
			cel.Variable(schemacel.OldScopedVarName, declared.CelType()),
		},
		DeclTypes: []*apiservercel.DeclType{declared},
	})
	if err != nil {
		return nil, err
	}
	if root {
		structural = model.WithTypeAndObjectMeta(structural)
	}
	return &scope{
		structural: structural,
		env:        set.NewExpressionsEnv(),
		estimator:  &library.CostEstimator{SizeEstimator: &sizes{declared}},
	}, nil
}

func (s *scope) answer(ctx context.Context, q *question) (*answer, error) {
	result := &answer{ID: q.ID}
	ast, refusal := s.compile(q.Expression)
	if ast == nil {
		result.CompileError = refusal
		return result, nil
	}
	result.Type = checker.FormatCELType(ast.OutputType())
	program, err := s.env.Program(ast,
		cel.CostLimit(limits.PerCallLimit),
		cel.CostTracking(s.estimator),
		cel.InterruptCheckFrequency(limits.CheckFrequency))
	if err != nil {
		result.CompileError = "program instantiation failed: " + err.Error()
		return result, nil
	}
	estimate, err := s.env.EstimateCost(ast, s.estimator)
	if err != nil {
		return nil, fmt.Errorf("estimating the cost: %w", err)
	}
	result.EstimatedMax = &estimate.Max
	variables := &variables{}
	if variables.self, err = s.value(q.Self); err != nil {
		return nil, err
	}
	if variables.oldSelf, err = s.value(q.OldSelf); err != nil {
		return nil, err
	}
	value, details, err := program.ContextEval(ctx, variables)
	if details != nil {
		result.Cost = details.ActualCost()
	}
	if err != nil {
		result.Error = err.Error()
	} else {
		result.Value = render(value)
	}
	return result, nil
}

// compile returns the expression, or why there is none. The type checker of cel-go panics on some wrong expressions.
func (s *scope) compile(expression string) (ast *cel.Ast, refusal string) {
	defer func() {
		if cause := recover(); cause != nil {
			ast, refusal = nil, fmt.Sprintf("internal error: %v", cause)
		}
	}()
	ast, issues := s.env.Compile(expression)
	if issues != nil {
		return nil, issues.String()
	}
	return ast, ""
}

// value reads an object as the server does: integers stay integers.
func (s *scope) value(text json.RawMessage) (ref.Val, error) {
	if text == nil {
		return nil, nil
	}
	var object any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	return schemacel.UnstructuredToVal(object, s.structural), nil
}

type variables struct{ self, oldSelf ref.Val }

func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case schemacel.ScopedVarName:
		return v.self, v.self != nil
	case schemacel.OldScopedVarName:
		return v.oldSelf, v.oldSelf != nil
	}
	return nil, false
}

func (v *variables) Parent() interpreter.Activation { return nil }

// sizes answers with the greatest size that the schema allows for what a path leads to.
type sizes struct{ root *apiservercel.DeclType }

func (s *sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	at := s.root
	for _, step := range path[1:] {
		switch step {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field := at.Fields[step]
			if field == nil {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Max: uint64(at.MaxElements)}
}

func (s *sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"gopkg.in/inf.v0"

	apiservercel "k8s.io/apiserver/pkg/cel"
)

type typed map[string]any

// render writes a value as JSON that keeps its type: one member, named after the type. Numbers are text, since JSON has
// one kind of them only. A map is a list of pairs, sorted by their keys' text. An object of a schema is a map.
func render(value ref.Val) any {
	switch v := value.(type) {
	case types.Bool:
		return typed{"bool": bool(v)}
	case types.Int:
		return typed{"int": strconv.FormatInt(int64(v), 10)}
	case types.Uint:
		return typed{"uint": strconv.FormatUint(uint64(v), 10)}
	case types.Double:
		return typed{"double": double(float64(v))}
	case types.String:
		return typed{"string": string(v)}
	case types.Bytes:
		return typed{"bytes": base64.StdEncoding.EncodeToString(v)}
	case types.Null:
		return typed{"null": true}
	case types.Timestamp:
		return typed{"timestamp": v.UTC().Format(time.RFC3339Nano)}
	case types.Duration:
		return typed{"duration": strconv.FormatInt(int64(v.Duration), 10)}
	case *types.Type:
		return typed{"type": v.TypeName()}
	case *types.Optional:
		if !v.HasValue() {
			return typed{"optional": nil}
		}
		return typed{"optional": render(v.GetValue())}
	case *apiservercel.Quantity:
		return render(*v)
	case apiservercel.Quantity:
		// In billionths: quantities have no text in CEL, and the unit is not part of their value.
		dec := v.DeepCopy()
		return typed{"quantity": new(inf.Dec).Round(dec.AsDec(), 9, inf.RoundUp).UnscaledBig().String()}
	case apiservercel.URL:
		return typed{"url": []string{v.Scheme, v.Host, v.EscapedPath(), v.RawQuery}}
	case apiservercel.IP:
		return typed{"ip": v.Addr.String()}
	case apiservercel.CIDR:
		return typed{"cidr": v.Prefix.String()}
	case apiservercel.Semver:
		// The build is not part of the value.
		v.Build = nil
		return typed{"semver": v.Version.String()}
	case apiservercel.Format:
		return typed{"format": strings.ToLower(v.Name)}
	case traits.Lister:
		list := []any{}
		for i := v.Iterator(); i.HasNext() == types.True; {
			list = append(list, render(i.Next()))
		}
		return typed{"list": list}
	case traits.Mapper:
		return typed{"map": pairs(v)}
	}
	return typed{"other": fmt.Sprintf("%T %s", value, value.Type().TypeName())}
}

func pairs(m traits.Mapper) [][2]any {
	pairs := [][2]any{}
	for i := m.Iterator(); i.HasNext() == types.True; {
		key := i.Next()
		// What the schema does not declare has no value in CEL, and neither has what is null.
		if key == nil || m.Get(key) == nil || types.IsError(m.Get(key)) {
			continue
		}
		pairs = append(pairs, [2]any{render(key), render(m.Get(key))})
	}
	text := func(i int) string {
		bytes, _ := json.Marshal(pairs[i][0])
		return string(bytes)
	}
	sort.Slice(pairs, func(i, j int) bool { return text(i) < text(j) })
	return pairs
}

// double is the shortest text that reads as the same number.
func double(v float64) string {
	if math.IsNaN(v) {
		return "NaN"
	}
	return strconv.FormatFloat(v, 'e', -1, 64)
}

// Prints, for every Go struct reachable from the built-in kinds, how encoding/json reads and writes its fields:
// what OpenAPI does not say (omitempty, pointers, the type names that decoding errors show).
//
// Run with a go.mod that requires the Kubernetes modules of the reference's version; the output is ../go.json.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type field struct {
	Type string `json:"type"`
	Omit string `json:"omit,omitempty"`
}

// Types that read and write themselves, by Go name: the word that stands for each.
var leaves = map[string]string{
	"v1.Time":                         "time",
	"v1.MicroTime":                    "microtime",
	"v1.FieldsV1":                     "any",
	"v1.JSON":                         "any",
	"runtime.RawExtension":            "any",
	"resource.Quantity":               "quantity",
	"intstr.IntOrString":              "intorstring",
	"v1.Duration":                     "duration",
	"v1.JSONSchemaPropsOrArray":       "schemaorarray",
	"v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
}

var structs = map[string]map[string]field{}

func definition(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, parts[1:]...), t.Name()), ".")
}

func describe(t reflect.Type) string {
	if word, known := leaves[t.String()]; known {
		if strings.HasPrefix(word, "schemaor") {
			visit(reflect.TypeOf(extensions.JSONSchemaProps{}))
		}
		return word
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + describe(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + describe(t.Elem())
	case reflect.Map:
		return "map " + describe(t.Elem())
	case reflect.Struct:
		visit(t)
		return "struct " + definition(t)
	default:
		if t.PkgPath() != "" {
			return t.Kind().String() + " " + t.String()
		}
		return t.Kind().String()
	}
}

func visit(t reflect.Type) {
	name := definition(t)
	if _, seen := structs[name]; seen {
		return
	}
	fields := map[string]field{}
	structs[name] = fields
	collect(t, fields)
}

func collect(t reflect.Type, fields map[string]field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && name == "" {
			collect(f.Type, fields)
			continue
		}
		omit := ""
		if strings.Contains(options, "omitzero") {
			omit = "zero"
		} else if strings.Contains(options, "omitempty") {
			omit = "empty"
		}
		fields[name] = field{describe(f.Type), omit}
	}
}

func main() {
	for _, root := range []any{
		core.Namespace{}, core.ConfigMap{}, core.Secret{}, core.Event{}, coordination.Lease{},
		extensions.CustomResourceDefinition{}, meta.DeleteOptions{},
	} {
		visit(reflect.TypeOf(root))
	}
	text, err := json.Marshal(structs)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// One struct per line: a change of version shows as a short diff.
	fmt.Println(strings.ReplaceAll(string(text), "}},\"", "}},\n\""))
}

// Prints, for every Go struct reachable from the kinds of the given groups and versions, how its fields are read and
// written: what OpenAPI does not say. One line per struct; see ../README.md for the notation.
//
// Run by `cargo xtask facts`, with `group/version` arguments and a go.mod that requires the Kubernetes modules of the
// reference's version.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	discovery "k8s.io/api/apidiscovery/v2"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type proto struct {
	Number int    `json:"number"`
	Wire   string `json:"wire"`
	Name   string `json:"name,omitempty"`
	// A list that has a message of its own.
	Wrapped bool `json:"wrapped,omitempty"`
}

type field struct {
	Type     string `json:"type"`
	Omit     string `json:"omit,omitempty"`
	Inline   bool   `json:"inline,omitempty"`
	Proto    *proto `json:"proto,omitempty"`
	Patch    string `json:"patch,omitempty"`
	MergeKey string `json:"mergeKey,omitempty"`
}

// Types that read and write themselves: the word that stands for each.
var leaves = map[string]string{
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time":                                             "time",
	"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":                                        "microtime",
	"io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1":                                         "any fields",
	"io.k8s.apimachinery.pkg.runtime.RawExtension":                                          "any raw",
	"io.k8s.apimachinery.pkg.api.resource.Quantity":                                         "quantity",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString":                                       "intorstring",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON":                         "any json",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray":       "schemaorarray",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
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
	if t.Kind() == reflect.Struct {
		if word, known := leaves[definition(t)]; known {
			if strings.HasPrefix(word, "schemaor") {
				visit(reflect.TypeOf(extensions.JSONSchemaProps{}))
			}
			return word
		}
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
	collect(t, fields, true)
}

// Protobuf nests what JSON inlines, so an inlined struct with a number stays one field, under its Go name. One without
// is spread out, and protobuf does not see its fields.
func collect(t reflect.Type, fields map[string]field, numbered bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		inline := f.Anonymous && name == ""
		wire := numbers(f.Tag.Get("protobuf"))
		if inline && wire == nil {
			collect(f.Type, fields, false)
			continue
		}
		if inline {
			name = f.Name
		} else if name == "" {
			name = f.Name
		}
		if wire != nil && wire.Name == name {
			wire.Name = ""
		}
		if !numbered {
			wire = nil
		}
		// A named list that writes itself is a message.
		if _, itself := reflect.PointerTo(f.Type).MethodByName("MarshalTo"); wire != nil && f.Type.Kind() == reflect.Slice && itself {
			wire.Wrapped = true
		}
		omit := ""
		if strings.Contains(options, "omitzero") {
			omit = "zero"
		} else if strings.Contains(options, "omitempty") {
			omit = "empty"
		}
		fields[name] = field{
			Type: describe(f.Type), Omit: omit, Inline: inline, Proto: wire,
			Patch: f.Tag.Get("patchStrategy"), MergeKey: f.Tag.Get("patchMergeKey"),
		}
	}
}

func numbers(tag string) *proto {
	parts := strings.Split(tag, ",")
	if len(parts) < 3 {
		return nil
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return nil
	}
	found := &proto{Number: number, Wire: parts[0]}
	for _, part := range parts[2:] {
		if name, is := strings.CutPrefix(part, "name="); is {
			found.Name = name
		}
	}
	return found
}

func run() error {
	for _, add := range []func(*runtime.Scheme) error{extensions.AddToScheme, registration.AddToScheme} {
		if err := add(scheme.Scheme); err != nil {
			return err
		}
	}
	for _, argument := range os.Args[1:] {
		groupVersion, err := schema.ParseGroupVersion(argument)
		if err != nil {
			return err
		}
		for _, kind := range scheme.Scheme.KnownTypes(groupVersion) {
			visit(kind)
		}
	}
	for _, also := range []any{meta.Status{}, meta.PartialObjectMetadata{}, discovery.APIGroupDiscoveryList{}} {
		visit(reflect.TypeOf(also))
	}
	names := make([]string, 0, len(structs))
	for name := range structs {
		names = append(names, name)
	}
	sort.Strings(names)
	// Go's encoder sorts the fields; one struct per line makes a change of version a short diff.
	var out bytes.Buffer
	for i, name := range names {
		text, err := json.Marshal(structs[name])
		if err != nil {
			return err
		}
		separator := ",\n"
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(&out, "%s%q:%s", separator, name, text)
	}
	out.WriteString("}\n")
	_, err := out.WriteTo(os.Stdout)
	return err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

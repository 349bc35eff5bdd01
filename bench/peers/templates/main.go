// Renders templates and charts with Helm's own engine: the judge of windlass-template and windlass-charts.
//
// Reads one JSON request per line, and answers one JSON line to each. A request has either `template` and `values`, or
// `chart`, a folder or archive, with `values`, `name`, `namespace`, `kubeVersion` and `apiVersions`.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

type request struct {
	Template    *string                `json:"template"`
	Chart       string                 `json:"chart"`
	Values      map[string]interface{} `json:"values"`
	Name        string                 `json:"name"`
	Namespace   string                 `json:"namespace"`
	KubeVersion string                 `json:"kubeVersion"`
	APIVersions []string               `json:"apiVersions"`
}

type answer struct {
	// Bytes, as base64: a template may write what is not UTF-8.
	Files map[string][]byte `json:"files,omitempty"`
	Error string            `json:"error,omitempty"`
}

func render(asked request) (map[string]string, error) {
	var loaded *chart.Chart
	if asked.Template != nil {
		loaded = &chart.Chart{
			Metadata:  &chart.Metadata{APIVersion: "v2", Name: "case", Version: "1.2.3"},
			Templates: []*chart.File{{Name: "templates/t", Data: []byte(*asked.Template)}},
		}
	} else {
		var err error
		if loaded, err = loader.Load(asked.Chart); err != nil {
			return nil, err
		}
		if err = chartutil.ProcessDependenciesWithMerge(loaded, asked.Values); err != nil {
			return nil, err
		}
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	if asked.KubeVersion != "" {
		version, err := chartutil.ParseKubeVersion(asked.KubeVersion)
		if err != nil {
			return nil, err
		}
		capabilities.KubeVersion = *version
	}
	capabilities.APIVersions = append(capabilities.APIVersions, asked.APIVersions...)
	options := chartutil.ReleaseOptions{Name: asked.Name, Namespace: asked.Namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(loaded, asked.Values, options, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, values)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var asked request
		var answered answer
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			answered.Error = "request: " + err.Error()
		} else if files, err := render(asked); err != nil {
			answered.Error = err.Error()
		} else {
			answered.Files = map[string][]byte{}
			for name, text := range files {
				answered.Files[name] = []byte(text)
			}
		}
		if err := encoder.Encode(answered); err != nil {
			panic(err)
		}
		out.Flush()
	}
}

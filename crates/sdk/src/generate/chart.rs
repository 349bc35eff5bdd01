//! A Helm chart of what the installer installs: the same objects, with what people choose left open.

use super::{HEADER, Manifest, Options, manager, rbac, webhooks};
use crate::description::OperatorDescription;
use crate::files::File;
use crate::yaml;
use serde_json::{Value, json};

/// What stands for what people choose, until it is text.
const NAMESPACE: &str = "chosen-namespace";
const IMAGE: &str = "chosen-image";
const REPLICAS: &str = "chosen-replicas";
const RESOURCES: &str = "chosen-resources";

/// All files of the chart. `definitions` are in it as they are.
pub(super) fn files(
    name: &str,
    operator: &OperatorDescription,
    options: &Options,
    definitions: &[Manifest],
) -> Vec<File> {
    let open = Options {
        namespace: NAMESPACE.to_owned(),
        image: IMAGE.to_owned(),
        cert_manager: options.cert_manager,
    };
    let mut manifests = rbac::of(name, operator, &open);
    manifests.extend(manager::of(name, operator, &open));
    manifests.extend(webhooks::of(name, operator, &open));
    let mut resources = Value::Null;
    for object in manifests.iter_mut().flat_map(|manifest| &mut manifest.objects) {
        if object["kind"] == "Deployment" {
            object["spec"]["replicas"] = REPLICAS.into();
            resources = object["spec"]["template"]["spec"]["containers"][0]["resources"].take();
            object["spec"]["template"]["spec"]["containers"][0]["resources"] = RESOURCES.into();
        }
    }
    let about = json!({
        "apiVersion": "v2", "name": name, "type": "application", "version": "0.1.0",
        "description": format!("The operator {name}"),
    });
    let values = json!({ "image": options.image, "replicas": 1, "resources": resources });
    let yaml = |path: String, text: String| File::new(format!("chart/{path}"), HEADER.to_owned() + &text);
    let mut files = vec![
        yaml("Chart.yaml".to_owned(), yaml::document(&about)),
        yaml("values.yaml".to_owned(), yaml::document(&values)),
    ];
    files.extend(definitions.iter().map(|one| {
        yaml(format!("crds/{}", one.path.trim_start_matches("crd/")), yaml::documents(&one.objects))
    }));
    files.extend(manifests.iter().filter(|one| !one.objects.is_empty()).map(|one| {
        let file = one.path.rsplit('/').next().unwrap_or(&one.path);
        yaml(format!("templates/{file}"), opened(&yaml::documents(&one.objects)))
    }));
    files
}

/// A manifest with expressions where people choose.
fn opened(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = line
            .replace(NAMESPACE, "{{ .Release.Namespace }}")
            .replace(IMAGE, "{{ .Values.image | quote }}")
            .replace(REPLICAS, "{{ .Values.replicas }}");
        match line.strip_suffix(RESOURCES) {
            Some(field) => {
                let deeper = field.len() - field.trim_start().len() + 2;
                lines.push(field.trim_end().to_owned());
                lines.push(format!("{:deeper$}{{{{- toYaml .Values.resources | nindent {deeper} }}}}", ""));
            }
            None => lines.push(line),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::opened;

    #[test]
    fn what_people_choose_is_left_open() {
        let text = opened(
            "spec:\n  replicas: chosen-replicas\n  image: chosen-image\n  resources: chosen-resources\n",
        );
        assert_eq!(
            text,
            "spec:\n  replicas: {{ .Values.replicas }}\n  image: {{ .Values.image | quote }}\n  resources:\n    \
             {{- toYaml .Values.resources | nindent 4 }}\n"
        );
    }
}

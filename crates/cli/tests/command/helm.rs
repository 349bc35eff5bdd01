//! `windlass helm`: charts are rendered, checked, shown and packaged without a cluster.

use crate::process::windlass;
use std::fs;
use std::path::Path;

/// What a command prints, and whether it succeeded.
fn run(arguments: &[&str]) -> (bool, String, String) {
    let output = windlass(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A chart with a library function, a hook and a condition.
fn chart(folder: &Path) -> String {
    write(folder, "Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.2.3\nappVersion: \"4\"\n");
    write(folder, "values.yaml", "replicas: 2\nimage: { name: shop }\nhook: true\n");
    write(
        folder,
        "templates/_names.tpl",
        "{{ define \"shop.name\" }}{{ .Release.Name }}-{{ .Chart.Name | trunc 4 }}{{ end }}",
    );
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"shop.name\" . }}\n\
        spec:\n  replicas: {{ .Values.replicas }}\n  image: {{ required \"an image is needed\" .Values.image.name | quote }}\n";
    write(folder, "templates/deployment.yaml", deployment);
    let hook = "{{- if .Values.hook }}\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: before\n  annotations:\n    \
        helm.sh/hook: pre-install\n{{- end }}\n";
    write(folder, "templates/hook.yaml", hook);
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_chart_is_rendered_with_its_values_and_those_given() {
    let folder = tempfile::tempdir().unwrap();
    let chart = chart(folder.path());
    let (succeeded, out, err) = run(&["helm", "template", "web", &chart, "--set", "replicas=3"]);
    assert!(succeeded, "{err}");
    assert!(out.contains("# Source: shop/templates/deployment.yaml"), "{out}");
    assert!(out.contains("  name: web-shop\n") && out.contains("  replicas: 3\n"), "{out}");
    assert!(out.contains("  image: \"shop\"\n") && out.contains("kind: Job"), "{out}");
    let (_, out, _) = run(&["helm", "template", "web", &chart, "--no-hooks"]);
    assert!(!out.contains("kind: Job") && out.contains("  replicas: 2\n"), "{out}");
    let (succeeded, _, err) = run(&["helm", "template", "web", &chart, "--set", "image.name="]);
    assert!(!succeeded && err.contains("an image is needed"), "{err}");
    assert!(err.contains("shop/templates/deployment.yaml:7"), "the place is named: {err}");
}

#[test]
fn a_chart_is_packaged_and_its_archive_is_the_same_chart() {
    let folder = tempfile::tempdir().unwrap();
    let chart = chart(&folder.path().join("shop"));
    let destination = folder.path().to_str().unwrap();
    let (succeeded, out, err) = run(&["helm", "package", &chart, "--destination", destination]);
    assert!(succeeded, "{err}");
    let archive = folder.path().join("shop-1.2.3.tgz");
    assert!(out.contains(archive.to_str().unwrap()), "{out}");
    let archive = archive.to_str().unwrap();
    assert_eq!(run(&["helm", "template", "web", archive]).1, run(&["helm", "template", "web", &chart]).1);
    let (_, shown, _) = run(&["helm", "show", "chart", archive]);
    assert!(shown.contains("name: shop") && shown.contains("version: 1.2.3"), "{shown}");
    assert!(run(&["helm", "show", "values", archive]).1.contains("replicas: 2"));
}

#[test]
fn what_is_wrong_with_a_chart_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let chart = chart(folder.path());
    let (succeeded, out, _) = run(&["helm", "lint", &chart]);
    assert!(succeeded, "{out}");
    write(folder.path(), "templates/broken.yaml", "a: {{ .Values.a | nosuch }}\n");
    let (succeeded, out, err) = run(&["helm", "lint", &chart]);
    assert!(!succeeded, "{out}");
    let said = format!("{out}{err}");
    assert!(said.contains("broken.yaml:1") && said.contains("\"nosuch\" not defined"), "{said}");
    let (succeeded, _, err) = run(&["helm", "template", "/nowhere/chart"]);
    assert!(!succeeded && err.contains("/nowhere/chart"), "{err}");
    fs::remove_file(folder.path().join("Chart.yaml")).unwrap();
    let (succeeded, _, err) = run(&["helm", "template", &chart]);
    assert!(!succeeded && err.contains("Chart.yaml file is missing"), "{err}");
}

//! The real kubectl on the embedded API and on the reference: the same commands, the same output.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use windlass_harness::{Ground, Suite, Target, reference};
use windlass_tests::grounds::{Embedded, embedded_over_tcp};

fn main() -> ExitCode {
    Suite::on([Ground::reference()])
        .limit(Duration::from_secs(300))
        .test("kubectl prints the same on the embedded API and on the reference", prints_the_same)
        .run()
}

/// kubectl as it is pointed at one API.
struct Kubectl {
    program: PathBuf,
    place: Vec<String>,
    namespace: String,
    cache: tempfile::TempDir,
}

impl Kubectl {
    async fn on(target: &Target) -> anyhow::Result<Self> {
        let place = match target.extra::<Embedded>().and_then(Embedded::url) {
            Some(url) => vec!["--kubeconfig=/dev/null".to_owned(), format!("--server={url}")],
            None => {
                let kubeconfig = target.kubeconfig().context("the reference has a kubeconfig")?;
                vec![format!("--kubeconfig={}", kubeconfig.display())]
            }
        };
        Ok(Self {
            program: reference::programs()?.join("kubectl"),
            place,
            namespace: target.namespace().await?,
            cache: tempfile::tempdir()?,
        })
    }

    /// What a command prints, without what differs from run to run.
    fn run(&self, arguments: &[&str], input: &Value) -> anyhow::Result<String> {
        let mut child = Command::new(&self.program)
            .args(&self.place)
            .arg(format!("--cache-dir={}", Path::display(self.cache.path())))
            .arg(format!("--namespace={}", self.namespace))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("kubectl does not start")?;
        child.stdin.take().context("stdin is a pipe")?.write_all(input.to_string().as_bytes())?;
        let output = child.wait_with_output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok(normalised(&String::from_utf8_lossy(&text), &self.namespace))
    }
}

/// Words that name a moment, an age, an identity or a place become what they are; columns are one space apart.
fn normalised(text: &str, namespace: &str) -> String {
    let word = |word: &str| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let age = word.trim_end_matches(['s', 'm', 'h', 'd']);
        let bare = word.trim_matches(['"', ',']);
        if word == namespace {
            "NAMESPACE".to_owned()
        } else if age.len() + 1 == word.len() && digits(age) {
            "AGE".to_owned()
        } else if bare.len() == 36 && bare.bytes().filter(|byte| *byte == b'-').count() == 4 {
            "UID".to_owned()
        } else if bare.len() >= 20 && bare.ends_with('Z') && bare.contains("T") && bare.contains(':') {
            "TIME".to_owned()
        } else {
            word.replace(namespace, "NAMESPACE")
        }
    };
    let line = |line: &str| {
        if line.trim_start().trim_start_matches('"').starts_with("resourceVersion")
            || line.starts_with("  Resource Version:")
        {
            return "VERSION".to_owned();
        }
        line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn definition() -> Value {
    let schema = json!({"type": "object", "description": "A widget.", "properties": {
        "spec": {"type": "object", "description": "What is wanted.", "properties": {
            "size": {"type": "integer", "description": "How many."}, "color": {"type": "string"},
        }},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.kubectl.example.com"},
        "spec": {
            "group": "kubectl.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ]}],
        },
    })
}

fn widget(size: u32) -> Value {
    json!({
        "apiVersion": "kubectl.example.com/v1", "kind": "Widget",
        "metadata": {"name": "w"}, "spec": {"size": size, "color": "red"},
    })
}

/// What is typed, and what is piped in.
fn commands() -> Vec<(&'static str, Value)> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1", "b": "2"}});
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "1"}});
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "me"},
    });
    let none = || Value::Null;
    vec![
        ("create -f -", map),
        ("create -f -", secret),
        ("create -f -", lease),
        ("create -f -", definition()),
        ("wait --for=condition=Established crd/widgets.kubectl.example.com --timeout=30s", none()),
        ("create -f -", widget(3)),
        ("create -f -", widget(3)),
        ("get configmap m", none()),
        ("get cm m -o wide", none()),
        ("get cm m -o name", none()),
        ("get cm m -o jsonpath={.data.a}", none()),
        ("get cm m -o custom-columns=N:.metadata.name,A:.data.a", none()),
        ("get cm m -o yaml", none()),
        ("get cm m -o json", none()),
        ("get cm missing", none()),
        ("get nothings", none()),
        ("get secret s", none()),
        ("get lease l", none()),
        ("get wd", none()),
        ("get wd -o wide", none()),
        ("get wd --show-labels", none()),
        ("get wd,lease", none()),
        ("get crd widgets.kubectl.example.com -o name", none()),
        ("describe cm m", none()),
        ("describe secret s", none()),
        ("describe wd w", none()),
        // Not the whole: it has the descriptions of every object's metadata, which are not kept here.
        ("explain wd.spec", none()),
        ("explain wd.spec.size", none()),
        ("label wd w a=b", none()),
        ("label wd w a=c", none()),
        ("annotate wd w note=x", none()),
        ("get wd -l a=b -o name", none()),
        ("apply --server-side --force-conflicts -f -", widget(4)),
        ("diff --server-side --force-conflicts -f -", widget(4)),
        ("patch wd w --type=merge -p {\"spec\":{\"size\":7}}", none()),
        ("get wd w", none()),
        ("wait wd/w --for=jsonpath={.spec.size}=7 --timeout=10s", none()),
        ("api-resources --api-group=kubectl.example.com", none()),
        ("api-resources --api-group=coordination.k8s.io -o wide", none()),
        (
            "create -f - --validate=strict",
            json!({
                "apiVersion": "kubectl.example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": {"sise": 1},
            }),
        ),
        ("delete wd w", none()),
        ("delete cm m missing", none()),
        ("delete crd widgets.kubectl.example.com", none()),
    ]
}

async fn prints_the_same(target: Target) -> anyhow::Result<()> {
    let ours = embedded_over_tcp().open().await?;
    let (embedded, real) = (Kubectl::on(&ours).await?, Kubectl::on(&target).await?);
    let compared = tokio::task::spawn_blocking(move || {
        let mut differences = Vec::new();
        let commands = commands();
        let count = commands.len();
        for (line, input) in commands {
            let arguments: Vec<&str> = line.split(' ').collect();
            let (ours, theirs) = (embedded.run(&arguments, &input)?, real.run(&arguments, &input)?);
            if ours != theirs {
                differences.push(format!("kubectl {line}\n--- embedded\n{ours}\n--- reference\n{theirs}"));
            }
        }
        anyhow::Ok((count, differences))
    });
    let (count, differences) = compared.await??;
    println!("{count} commands, {} alike", count - differences.len());
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

//! Published charts, rendered by us and by Helm's own engine: every template, with default values and with others, is equal.
//!
//! The charts come out of Go modules, downloaded by their version when this runs. WINDLASS_CHART selects by a part of the name.

use base64::Engine;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use windlass_charts::{Capabilities, Release, Rendering, read_chart, render};

/// Module, version and folder of each chart.
const CHARTS: &str = include_str!("charts.txt");
const KUBE_VERSION: &str = "v1.34.0";
const API_VERSIONS: &[&str] =
    &["monitoring.coreos.com/v1", "policy/v1", "autoscaling/v2", "cert-manager.io/v1"];
const SETS: usize = 6;

fn rendering() -> Rendering {
    let apis = windlass_charts::KNOWN_API_VERSIONS.lines().chain(API_VERSIONS.iter().copied());
    Rendering {
        release: Release {
            name: "demo".into(),
            namespace: "demo-system".into(),
            revision: 1,
            upgrade: false,
        },
        capabilities: Capabilities {
            kube_version: KUBE_VERSION.into(),
            api_versions: apis.map(str::to_owned).collect(),
        },
        strict: false,
        lint: false,
        check_schemas: false,
        now: Default::default(),
        limits: Default::default(),
    }
}

/// Values other than the defaults: some switches the other way round, by the number of the set.
fn flipped(defaults: &Map<String, Json>, set: usize, path: &str) -> Map<String, Json> {
    let mut out = Map::new();
    for (key, value) in defaults {
        let path = format!("{path}.{key}");
        let hash = path.bytes().fold(5381_usize, |hash, byte| hash.wrapping_mul(33) ^ usize::from(byte));
        let chosen =
            set > 0 && (hash / 7) % SETS < 2 + usize::from(set == 1) && !(hash / 7 + set).is_multiple_of(3)
                || set == 1 && hash % 2 == 0;
        let chosen = set > 0 && (chosen || (hash.wrapping_mul(set + 11) >> 8) % 4 == 0);
        let other = match value {
            Json::Bool(value) if chosen => Json::Bool(!value),
            Json::Object(inner) if inner.is_empty() && chosen => json!({"x-key": "value", "n": 2.0}),
            Json::Object(inner) => {
                let inner = flipped(inner, set, &path);
                if inner.is_empty() {
                    continue;
                }
                Json::Object(inner)
            }
            Json::String(text) if text.is_empty() && chosen && set > 2 => Json::String(format!("set-{set}")),
            Json::Number(number) if chosen && set > 3 => json!(number.as_f64().unwrap_or(0.0) + 1.0),
            _ => continue,
        };
        out.insert(key.clone(), other);
    }
    out
}

fn download(modules: &[(&str, &str)]) -> HashMap<String, PathBuf> {
    // A folder without a module of its own.
    let outside = tempfile::tempdir().expect("a temporary folder");
    let mut folders = HashMap::new();
    for (module, version) in modules {
        let answer = Command::new("go")
            .args(["mod", "download", "-json", &format!("{module}@{version}")])
            .env("GOFLAGS", "-mod=mod")
            .current_dir(outside.path())
            .output()
            .expect("go starts");
        let answer: Json = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        match answer["Dir"].as_str() {
            Some(folder) => {
                folders.insert((*module).to_owned(), PathBuf::from(folder));
            }
            None => println!("skipped: {module} {version} cannot be downloaded: {}", answer["Error"]),
        }
    }
    folders
}

#[test]
#[ignore = "downloads charts: make test-charts"]
fn published_charts_are_rendered_as_by_helm() {
    let program =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join("peers/templates");
    if std::env::var_os("WINDLASS_SKIP_REFERENCE").is_some() || !program.exists() {
        println!("skipped: the comparison with Helm's engine (make peers builds it; needs Go)");
        return;
    }
    let wanted = std::env::var("WINDLASS_CHART").unwrap_or_default();
    let rows: Vec<Vec<&str>> = CHARTS
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains(&wanted))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let mut modules: Vec<(&str, &str)> = rows.iter().map(|row| (row[0], row[1])).collect();
    modules.dedup();
    let folders = download(&modules);
    let mut peer = Command::new(program)
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the peer starts");
    let mut requests = peer.stdin.take().expect("it is piped");
    let mut answers = BufReader::new(peer.stdout.take().expect("it is piped"));
    let (mut charts, mut cases, mut templates, mut refused, mut wrong) = (0, 0, 0, 0, Vec::new());
    for row in &rows {
        let Some(folder) = folders.get(row[0]) else { continue };
        let folder = folder.join(row[2]);
        let chart = match read_chart(&folder) {
            Ok(chart) => chart,
            Err(error) => {
                wrong.push(format!("{} cannot be read: {error}", folder.display()));
                continue;
            }
        };
        charts += 1;
        for set in 0..SETS {
            let values = flipped(&chart.values, set, "");
            let request = json!({
                "chart": folder, "values": values, "name": "demo", "namespace": "demo-system",
                "kubeVersion": KUBE_VERSION, "apiVersions": API_VERSIONS,
            });
            writeln!(requests, "{request}").expect("the peer reads");
            let mut line = String::new();
            answers.read_line(&mut line).expect("the peer answers");
            let answer: Json = serde_json::from_str(&line).expect("it is JSON");
            let ours = render(&chart, &values, &rendering());
            cases += 1;
            let name = format!("{} set {set}", row[2]);
            match (&ours, answer["error"].as_str()) {
                (Ok(files), None) => {
                    let theirs = texts(&answer["files"]);
                    let names: std::collections::BTreeSet<_> = files.keys().chain(theirs.keys()).collect();
                    for file in names {
                        templates += 1;
                        let (our, their) = (files.get(file), theirs.get(file));
                        if our.map(|text| without_chance(text)) != their.map(|text| without_chance(text)) {
                            wrong.push(format!("{name}: {file}: {}", difference(our, their)));
                        }
                    }
                }
                (Err(ours), Some(theirs)) => {
                    refused += 1;
                    let schema = |text: &str| text.starts_with("values don't meet");
                    if ours.to_string() != theirs && !schema(theirs) {
                        wrong.push(format!("{name}:\n  ours:   {ours}\n  theirs: {theirs}"));
                    }
                }
                (Ok(_), Some(theirs)) if theirs.starts_with("values don't meet") => refused += 1,
                (Ok(_), Some(theirs)) => wrong.push(format!("{name}: theirs: {theirs}")),
                (Err(ours), None) => wrong.push(format!("{name}: ours: {ours}")),
            }
        }
    }
    let _ = peer.kill();
    let _ = peer.wait();
    println!(
        "{charts} charts, {cases} cases, {templates} templates; both refuse {refused}; {} differ",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.iter().take(60).cloned().collect::<Vec<_>>().join("\n"));
}

/// podinfo names its tests by chance; certificates and keys are made anew each time, and in base64 all begin alike.
fn without_chance(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if let Some(at) = line.find("LS0tLS1CRUdJTi") {
            out.push_str(&line[..at]);
            continue;
        }
        match line
            .find("-jwt-test-")
            .or(line.find("-service-test-"))
            .or(line.find("-grpc-test-"))
            .or(line.find("-fault-test-"))
        {
            Some(at) if line.contains("name: ") => out.push_str(&line[..at]),
            _ => out.push_str(line),
        }
    }
    out
}

fn texts(files: &Json) -> BTreeMap<String, String> {
    let decode = |value: &Json| {
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(value.as_str().unwrap_or_default())
            .expect("base64");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    files.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), decode(value))).collect()
}

fn difference(our: Option<&String>, their: Option<&String>) -> String {
    let (Some(our), Some(their)) = (our, their) else {
        return format!("ours is {}, theirs is {}", our.is_some(), their.is_some());
    };
    let mut lines = our.split('\n').zip(their.split('\n')).enumerate();
    match lines.find(|(_, (a, b))| a != b) {
        Some((at, (a, b))) => format!("line {}:\n  ours:   {a}\n  theirs: {b}", at + 1),
        None => format!("{} and {} bytes", our.len(), their.len()),
    }
}

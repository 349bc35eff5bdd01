//! Renders a chart: every template of it and of the charts within it.

use crate::capabilities::Capabilities;
use crate::files::Files;
use crate::{Chart, Error, coalesce, objects, process_dependencies};
use serde_json::{Map, Value as Json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use windlass_template::functions::Functions;
use windlass_template::semver::{Constraints, Version};
use windlass_template::value::{Map as Table, MapType, Value};
use windlass_template::{Engine, Limits, MissingKey, Options, from_json, on_large_stack};

/// What is installed.
#[derive(Clone, Debug, Default)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Where to.
    pub namespace: String,
    /// How often it was installed and upgraded.
    pub revision: i64,
    /// Is it upgraded, and not installed?
    pub upgrade: bool,
}

/// How to render.
#[derive(Clone, Debug)]
pub struct Rendering {
    /// The release.
    pub release: Release,
    /// The cluster.
    pub capabilities: Capabilities,
    /// A value that is missing is an error.
    pub strict: bool,
    /// `required` and `fail` let pass.
    pub lint: bool,
    /// Are the values compared with the schemas?
    pub check_schemas: bool,
    /// What `now` answers.
    pub now: jiff::Timestamp,
    /// The bounds.
    pub limits: Limits,
}

/// Renders a chart with the values of its user, and answers the text of each template by its path.
///
/// # Errors
/// If the values do not fit the chart, or a template fails.
pub fn render(
    chart: &Chart,
    values: &Map<String, Json>,
    how: &Rendering,
) -> Result<BTreeMap<String, String>, Error> {
    let mut chart = chart.clone();
    process_dependencies(&mut chart, values)?;
    check_kube_version(&chart, &how.capabilities.kube_version)?;
    let values = coalesce(&chart, values, false)?;
    if how.check_schemas {
        let wrong = crate::check_schema(&chart, &values);
        if !wrong.is_empty() {
            return Err(Error(format!(
                "values don't meet the specifications of the schema(s) in the following chart(s):\n{wrong}"
            )));
        }
    }
    on_large_stack(|| all(&chart, &values, how))?
}

fn check_kube_version(chart: &Chart, version: &str) -> Result<(), Error> {
    let wanted = &chart.metadata.kube_version;
    if wanted.is_empty() {
        return Ok(());
    }
    let fits = match (Constraints::parse(wanted), Version::parse(version)) {
        (Ok(constraints), Ok(version)) => constraints.check(&version),
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(Error(format!(
        "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}"
    )))
}

struct Template<'a> {
    text: &'a [u8],
    values: Table,
    base: String,
}

fn all(
    chart: &Chart,
    values: &Map<String, Json>,
    how: &Rendering,
) -> Result<BTreeMap<String, String>, Error> {
    let release = Value::map([
        ("Name", how.release.name.as_str().into()),
        ("Namespace", how.release.namespace.as_str().into()),
        ("IsUpgrade", Value::Bool(how.release.upgrade)),
        ("IsInstall", Value::Bool(!how.release.upgrade)),
        ("Revision", Value::int(how.release.revision)),
        ("Service", "Helm".into()),
    ]);
    let shared = [("Release", release), ("Capabilities", objects::capabilities(&how.capabilities))];
    let values = match from_json(&Json::Object(values.clone())) {
        Value::Map(map) => map.typed(MapType::Values),
        _ => return Err(Error::new("values are no table")),
    };
    let mut templates = BTreeMap::new();
    collect(chart, chart.name(), values, &shared, true, &mut templates);
    // Templates deeper in the tree come first, so that a chart may replace what those within it define.
    let mut order: Vec<&String> = templates.keys().collect();
    order.sort_by_key(|name| Reverse((name.matches('/').count(), (*name).clone())));

    let options = Options {
        missing_key: if how.strict { MissingKey::Error } else { MissingKey::Zero },
        lint: how.lint,
        limits: how.limits,
        now: how.now,
        lookup: None,
    };
    let engine = Engine::new(Functions::helm(), options);
    for name in &order {
        let text = String::from_utf8_lossy(templates[*name].text);
        engine.parse(name, &text).map_err(|error| parse_error(name, &error.text))?;
    }
    let mut rendered = BTreeMap::new();
    for name in order {
        if name.rsplit('/').next().is_some_and(|base| base.starts_with('_')) {
            continue;
        }
        let template = &templates[name];
        let this = Value::map([("Name", name.as_str().into()), ("BasePath", template.base.as_str().into())]);
        template.values.set("Template", this);
        let text = engine
            .execute(name, Value::Map(template.values.clone()))
            .map_err(|error| execution_error(&error.text))?;
        rendered.insert(name.clone(), String::from_utf8_lossy(&text).replace("<no value>", ""));
    }
    Ok(rendered)
}

/// Collects the templates of a chart and of those within it, and answers what its templates see.
fn collect<'a>(
    chart: &'a Chart,
    path: &str,
    values: Table,
    shared: &[(&str, Value); 2],
    root: bool,
    templates: &mut BTreeMap<String, Template<'a>>,
) -> Table {
    let within = Table::new(MapType::Any, BTreeMap::new());
    let seen = Table::new(MapType::Values, BTreeMap::new());
    seen.set("Chart", objects::chart(&chart.metadata, root));
    seen.set("Files", Files::new(&chart.files).value());
    for (name, value) in shared {
        seen.set(*name, value.clone());
    }
    seen.set("Values", Value::Map(values.clone()));
    seen.set("Subcharts", Value::Map(within.clone()));
    for child in &chart.dependencies {
        let table = match values.get(child.name().as_bytes()) {
            Some(Value::Map(table)) => table.typed(MapType::Values),
            _ => Table::new(MapType::Values, BTreeMap::new()),
        };
        let path = format!("{path}/charts/{}", child.name());
        let inner = collect(child, &path, table, shared, false, templates);
        within.set(child.name(), Value::Map(inner.typed(MapType::Any)));
    }
    for file in &chart.templates {
        if chart.metadata.library() && !file.name.rsplit('/').next().is_some_and(|base| base.starts_with('_'))
        {
            continue;
        }
        let template = Template { text: &file.data, values: seen.clone(), base: format!("{path}/templates") };
        templates.insert(format!("{path}/{}", file.name), template);
    }
    seen
}

/// Helm shows where, and the last part of what.
fn parse_error(name: &str, text: &str) -> Error {
    let parts: Vec<&str> = text.split(": ").collect();
    match parts.as_slice() {
        [_, at, .., what] => Error(format!("parse error at ({at}): {what}")),
        _ => Error(format!("parse error in ({name}): {text}")),
    }
}

/// What `fail` and `required` say is shown alone.
fn execution_error(text: &str) -> Error {
    let mut parts = text.splitn(3, ": ");
    let at = parts.nth(1).unwrap_or_default();
    let rest = parts.next().unwrap_or_default();
    let marked = rest.split_once("HELM_ERR_START").and_then(|(_, rest)| rest.rsplit_once("HELM_ERR_END"));
    match marked {
        Some((said, _)) => Error(format!("execution error at ({at}): {said}")),
        None => Error(text.to_owned()),
    }
}

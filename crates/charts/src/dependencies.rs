//! Which of the charts within a chart are used, under which names, and which of their values it takes.

use crate::coalesce::coalesce;
use crate::values::merge_tables;
use crate::{Chart, Dependency, Error};
use serde_json::{Map, Value as Json};
use windlass_template::semver::{Constraints, Version};

type Table = Map<String, Json>;

/// Removes the charts that are switched off, renames those with an alias, and takes over `import-values`.
///
/// # Errors
/// If the values do not fit.
pub fn process(chart: &mut Chart, values: &Table) -> Result<(), Error> {
    enable(chart, values, "")?;
    import(chart)
}

fn fits(constraint: &str, version: &str) -> bool {
    match (Constraints::parse(constraint), Version::parse(version)) {
        (Ok(constraints), Ok(version)) => constraints.check(&version),
        _ => false,
    }
}

fn enable(chart: &mut Chart, values: &Table, path: &str) -> Result<(), Error> {
    if chart.metadata.dependencies.is_empty() {
        return Ok(());
    }
    let names = |wanted: &Dependency, found: &Chart| {
        wanted.name == found.name() && fits(&wanted.version, &found.metadata.version)
    };
    let wanted = &chart.metadata.dependencies;
    // Charts that lie there without being listed are used as they are.
    let mut used: Vec<Chart> = chart
        .dependencies
        .iter()
        .filter(|found| !wanted.iter().any(|one| names(one, found)))
        .cloned()
        .collect();
    for one in wanted {
        if let Some(found) = chart.dependencies.iter().find(|found| names(one, found)) {
            let mut found = found.clone();
            if !one.alias.is_empty() {
                found.metadata.name.clone_from(&one.alias);
            }
            used.push(found);
        }
    }
    chart.dependencies = used;
    for one in &mut chart.metadata.dependencies {
        if !one.alias.is_empty() {
            one.name = one.alias.clone();
        }
        one.enabled = true;
    }
    let values = coalesce(chart, values, false)?;
    let tags = values.get("tags").and_then(Json::as_object);
    for one in &mut chart.metadata.dependencies {
        if let Some(tags) = tags {
            let set: Vec<bool> = one.tags.iter().filter_map(|tag| tags.get(tag)?.as_bool()).collect();
            one.enabled = set.is_empty() || set.contains(&true);
        }
        let found = one.condition.trim().split(',').filter(|condition| !condition.is_empty());
        let mut found =
            found.filter_map(|condition| at_path(&values, &format!("{path}{condition}"))?.as_bool());
        if let Some(enabled) = found.next() {
            one.enabled = enabled;
        }
    }
    let off: Vec<String> =
        chart.metadata.dependencies.iter().filter(|one| !one.enabled).map(|one| one.name.clone()).collect();
    chart.dependencies.retain(|within| !off.iter().any(|name| name == within.name()));
    chart.metadata.dependencies.retain(|one| one.enabled);
    for within in &mut chart.dependencies {
        let path = format!("{path}{}.", within.name());
        enable(within, &values, &path)?;
    }
    Ok(())
}

fn at_path<'a>(values: &'a Table, path: &str) -> Option<&'a Json> {
    let mut parts = path.split('.');
    let mut value = values.get(parts.next()?)?;
    for part in parts {
        value = value.as_object()?.get(part)?;
    }
    (!value.is_object()).then_some(value)
}

fn table_at<'a>(values: &'a Table, path: &str) -> Option<&'a Table> {
    let mut table = values;
    for part in path.split('.') {
        table = table.get(part)?.as_object()?;
    }
    Some(table)
}

fn import(chart: &mut Chart) -> Result<(), Error> {
    for within in &mut chart.dependencies {
        import(within)?;
    }
    if chart.metadata.dependencies.is_empty() {
        return Ok(());
    }
    let mut values = coalesce(chart, &Table::new(), true)?;
    let mut imported = Table::new();
    for one in &chart.metadata.dependencies {
        for wanted in &one.import_values {
            let (child, parent) = match wanted {
                Json::String(name) => (format!("exports.{name}"), ".".to_owned()),
                Json::Object(both) => {
                    let part =
                        |name: &str| both.get(name).and_then(Json::as_str).unwrap_or("<nil>").to_owned();
                    (part("child"), part("parent"))
                }
                _ => continue,
            };
            let Some(found) = table_at(&values, &format!("{}.{child}", one.name)) else { continue };
            let mut found = found.clone();
            if parent != "." {
                for part in parent.rsplit('.') {
                    found = Table::from_iter([(part.to_owned(), Json::Object(found))]);
                }
            }
            merge_tables(&mut imported, found, true);
        }
    }
    merge_tables(&mut values, imported, true);
    chart.values = values;
    Ok(())
}

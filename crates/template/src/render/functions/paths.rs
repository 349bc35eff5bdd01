//! Sprig's functions on paths, which are the same for files on Unix.

use super::{Row, lossy};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("base", "s>s", |_, given| Ok(base(&lossy(given, 0)).into())),
    ("osBase", "s>s", |_, given| Ok(base(&lossy(given, 0)).into())),
    ("dir", "s>s", |_, given| Ok(dir(&lossy(given, 0)).into())),
    ("osDir", "s>s", |_, given| Ok(dir(&lossy(given, 0)).into())),
    ("clean", "s>s", |_, given| Ok(clean(&lossy(given, 0)).into())),
    ("osClean", "s>s", |_, given| Ok(clean(&lossy(given, 0)).into())),
    ("ext", "s>s", |_, given| Ok(ext(&lossy(given, 0)).into())),
    ("osExt", "s>s", |_, given| Ok(ext(&lossy(given, 0)).into())),
    ("isAbs", "s>b", |_, given| Ok(Value::Bool(lossy(given, 0).starts_with('/')))),
    ("osIsAbs", "s>b", |_, given| Ok(Value::Bool(lossy(given, 0).starts_with('/')))),
    // Names are not looked up: rendering reaches no network.
    ("getHostByName", "s>s", |_, _| Ok("".into())),
];

/// `path.Base`
pub(super) fn base(path: &str) -> String {
    if path.is_empty() {
        return ".".into();
    }
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some("") | None => "/".into(),
        Some(name) => name.into(),
    }
}

fn dir(path: &str) -> String {
    clean(&path[..path.rfind('/').map_or(0, |at| at + 1)])
}

fn ext(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rfind('.').map_or("", |at| &name[at..]).into()
}

/// `path.Clean`
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".into(),
        (false, false) => joined,
    }
}

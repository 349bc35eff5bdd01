//! `--set`: values on the command line, such as `image.tag=v1,ports[0].number=80`.

use crate::Error;
use serde_json::{Map, Value as Json};

const DEEPEST: usize = 30;
const MOST_ITEMS: usize = 65536;

/// Sets values. With `strings`, all are texts, as `--set-string` has it.
///
/// # Errors
/// If the text is none, or goes too deep.
pub fn set(values: &mut Map<String, Json>, text: &str, strings: bool) -> Result<(), Error> {
    for part in split(text, ',') {
        if part.is_empty() {
            continue;
        }
        let Some((path, value)) = split_once(&part, '=') else {
            return Err(Error(format!("failed parsing --set data: key {part:?} has no value")));
        };
        let value = if let Some(items) = value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
            Json::Array(
                split(items, ',')
                    .iter()
                    .filter(|_| !items.is_empty())
                    .map(|item| typed(item, strings))
                    .collect(),
            )
        } else {
            typed(&value, strings)
        };
        let mut root = Json::Object(std::mem::take(values));
        let placed = place(&mut root, &steps(&path)?, value);
        if let Json::Object(root) = root {
            *values = root;
        }
        placed?;
    }
    Ok(())
}

enum Step {
    Key(String),
    Index(usize),
}

fn steps(path: &str) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    for part in split(path, '.') {
        let mut rest = part.as_str();
        let name = &rest[..rest.find('[').unwrap_or(rest.len())];
        if name.is_empty() && !rest.starts_with('[') {
            return Err(Error(format!("failed parsing --set data: key map {path:?} has no value")));
        }
        if !name.is_empty() {
            steps.push(Step::Key(unescape(name)));
        }
        rest = &rest[name.len()..];
        while let Some((index, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let index: usize = index.parse().map_err(|_| {
                Error(format!("failed parsing --set data: error parsing index: {index:?} is no number"))
            })?;
            if index > MOST_ITEMS {
                return Err(Error(format!(
                    "index of {index} is greater than maximum supported index of {MOST_ITEMS}"
                )));
            }
            steps.push(Step::Index(index));
            rest = after;
        }
    }
    if steps.len() > DEEPEST {
        return Err(Error(format!(
            "value name nested level is greater than maximum supported nested level of {DEEPEST}"
        )));
    }
    Ok(steps)
}

fn place(target: &mut Json, steps: &[Step], value: Json) -> Result<(), Error> {
    let Some((step, rest)) = steps.split_first() else {
        *target = value;
        return Ok(());
    };
    match step {
        Step::Key(name) => {
            if !target.is_object() {
                *target = Json::Object(Map::new());
            }
            match target.as_object_mut() {
                Some(fields) => place(fields.entry(name.clone()).or_insert(Json::Null), rest, value),
                None => Ok(()),
            }
        }
        Step::Index(index) => {
            if !target.is_array() {
                *target = Json::Array(Vec::new());
            }
            let Some(items) = target.as_array_mut() else { return Ok(()) };
            while items.len() <= *index {
                items.push(Json::Null);
            }
            place(&mut items[*index], rest, value)
        }
    }
}

/// Splits where the separator stands outside of braces and behind no backslash.
fn split(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut braces, mut escaped) = (0_usize, false);
    for c in text.chars() {
        let last = parts.len() - 1;
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '{' {
            braces += 1;
        } else if c == '}' {
            braces = braces.saturating_sub(1);
        } else if c == separator && braces == 0 {
            parts.push(String::new());
            continue;
        }
        parts[last].push(c);
    }
    parts
}

fn split_once(text: &str, separator: char) -> Option<(String, String)> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == separator {
            return Some((text[..at].to_owned(), text[at + c.len_utf8()..].to_owned()));
        }
    }
    None
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\\' { out.extend(characters.next()) } else { out.push(c) }
    }
    out
}

fn typed(text: &str, strings: bool) -> Json {
    let text = unescape(text);
    if strings {
        return Json::String(text);
    }
    match text.to_ascii_lowercase().as_str() {
        "true" => return Json::Bool(true),
        "false" => return Json::Bool(false),
        "null" => return Json::Null,
        "0" => return Json::from(0),
        _ => {}
    }
    // A leading zero makes it a text: it is more often a name than an octal number.
    if !text.starts_with('0')
        && let Ok(int) = text.parse::<i64>()
        && !text.starts_with('+')
    {
        return Json::from(int);
    }
    Json::String(text)
}

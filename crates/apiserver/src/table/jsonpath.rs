//! The JSONPath that printer columns are written in: fields, indexes, slices, wildcards, descent and filters.

use serde_json::Value;
use std::cmp::Ordering;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// All members or items.
    All,
    /// Everything below, and the value itself.
    Below,
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        by: usize,
    },
    Index(i64),
    Filter {
        left: Operand,
        test: Option<(Test, Operand)>,
    },
    /// Several subscripts at once, such as `[0,2]`.
    Union(Vec<Step>),
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How many values a path may lead to on its way: recursive descent could otherwise multiply.
const MOST: usize = 10_000;

/// How many steps a path may have.
const LONGEST: usize = 256;

impl JsonPath {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`; none if it is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::read(text.trim(), 0)
    }

    fn read(text: &str, depth: usize) -> Option<Self> {
        let mut rest = text.strip_prefix(['$', '@']).unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() >= LONGEST {
                return None;
            }
            if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Below);
                rest = after;
                if rest.is_empty() || rest.starts_with('[') {
                    continue;
                }
            } else if let Some(inside) = rest.strip_prefix('[') {
                let end = closing(inside)?;
                steps.push(subscript(&inside[..end], depth)?);
                rest = &inside[end + 1..];
                continue;
            } else {
                rest = rest.strip_prefix('.').unwrap_or(rest);
            }
            let (name, after) = field(rest);
            match name.as_str() {
                "" if rest.is_empty() => {}
                "" => return None,
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Field(name)),
            }
            rest = after;
        }
        Some(Self(steps))
    }

    /// The values it leads to, in order.
    pub(crate) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.0 {
            let mut next = Vec::new();
            for value in found {
                step.take(value, &mut next);
            }
            next.truncate(MOST);
            found = next;
        }
        found
    }
}

/// A field's name up to the next separator, with escapes undone, and what follows.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' | ' ' | ']' | ')' => return (name, &text[at..]),
            _ => name.push(character),
        }
    }
    (name, "")
}

/// Where the bracket ends that was opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let (mut open, mut quote, mut escaped) = (0_usize, None, false);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(mark), _) if mark == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => open += 1,
            (None, ']') if open == 0 => return Some(at),
            (None, ']') => open -= 1,
            _ => {}
        }
    }
    None
}

fn quoted(text: &str) -> Option<String> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '\'' | '"'))?;
    let inner = text.strip_prefix(mark)?.strip_suffix(mark)?;
    let mut plain = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            _ => plain.push(character),
        }
    }
    Some(plain)
}

fn subscript(text: &str, depth: usize) -> Option<Step> {
    let text = text.trim();
    if let Some(condition) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return (depth < 4).then(|| filter(condition, depth + 1))?;
    }
    if let Some(name) = quoted(text).filter(|_| !text.contains("','")) {
        return Some(Step::Field(name));
    }
    if text == "*" {
        return Some(Step::All);
    }
    if text.contains(',') {
        return text.split(',').map(|part| subscript(part, depth)).collect::<Option<_>>().map(Step::Union);
    }
    if text.contains(':') {
        let mut parts = text.split(':');
        let mut number = || match parts.next().map(str::trim) {
            None | Some("") => Some(None),
            Some(text) => text.parse::<i64>().ok().map(Some),
        };
        let (from, to, by) = (number()?, number()?, number()?.unwrap_or(1));
        return Some(Step::Slice { from, to, by: usize::try_from(by).ok().filter(|by| *by > 0)? });
    }
    text.parse().ok().map(Step::Index)
}

fn filter(text: &str, depth: usize) -> Option<Step> {
    const TESTS: [(&str, Test); 6] = [
        ("==", Test::Equal),
        ("!=", Test::NotEqual),
        ("<=", Test::LessOrEqual),
        (">=", Test::GreaterOrEqual),
        ("<", Test::Less),
        (">", Test::Greater),
    ];
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(mark), _) if mark == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, _) => {
                let found =
                    TESTS.iter().find_map(|(sign, test)| Some((text[at..].strip_prefix(sign)?, *test)));
                if let Some((right, test)) = found {
                    let left = operand(&text[..at], depth)?;
                    return Some(Step::Filter { left, test: Some((test, operand(right, depth)?)) });
                }
            }
        }
    }
    Some(Step::Filter { left: operand(text, depth)?, test: None })
}

fn operand(text: &str, depth: usize) -> Option<Operand> {
    let text = text.trim();
    if text.starts_with(['@', '$', '.']) {
        return JsonPath::read(text, depth).map(Operand::Path);
    }
    if let Some(text) = quoted(text) {
        return Some(Operand::Literal(text.into()));
    }
    let literal: Value = serde_json::from_str(text).ok()?;
    (literal.is_boolean() || literal.is_number()).then_some(Operand::Literal(literal))
}

impl Step {
    fn take<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) {
        let below = |found: &mut Vec<&'a Value>| match value {
            Value::Array(items) => found.extend(items),
            Value::Object(members) => found.extend(members.values()),
            _ => {}
        };
        match self {
            Self::Field(name) => found.extend(value.get(name)),
            Self::All => below(found),
            Self::Below => descend(value, found),
            Self::Index(at) => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                found.extend(place(*at, items.len()).and_then(|at| items.get(at)));
            }
            Self::Slice { from, to, by } => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let bound = |at: i64| place(at, items.len()).unwrap_or(0).min(items.len());
                let (from, to) = (from.map_or(0, bound), to.map_or(items.len(), bound));
                found.extend(items.iter().take(to).skip(from).step_by(*by));
            }
            Self::Filter { left, test } => {
                let mut items = Vec::new();
                match value {
                    Value::Array(_) | Value::Object(_) => below(&mut items),
                    _ => {}
                }
                found.extend(items.into_iter().filter(|item| passes(item, left, test.as_ref())));
            }
            Self::Union(steps) => steps.iter().for_each(|step| step.take(value, found)),
        }
    }
}

/// Where an index points that may count from the end.
fn place(at: i64, length: usize) -> Option<usize> {
    match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => length.checked_sub(usize::try_from(at.unsigned_abs()).ok()?),
    }
}

fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    if found.len() >= MOST {
        return;
    }
    found.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, found)),
        Value::Object(members) => members.values().for_each(|member| descend(member, found)),
        _ => {}
    }
}

fn passes(item: &Value, left: &Operand, test: Option<&(Test, Operand)>) -> bool {
    let value = |operand: &Operand| match operand {
        Operand::Literal(literal) => Some(literal.clone()),
        Operand::Path(path) => path.find(item).first().map(|&value| value.clone()),
    };
    let Some((test, right)) = test else { return value(left).is_some() };
    let (Some(left), Some(right)) = (value(left), value(right)) else { return false };
    let order = match (&left, &right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => {
            left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
        }
        (left, right) if left == right => Some(Ordering::Equal),
        _ => None,
    };
    match test {
        Test::Equal => order == Some(Ordering::Equal),
        Test::NotEqual => {
            order.is_some_and(|order| order != Ordering::Equal) || left != right && order.is_none()
        }
        Test::Less => order == Some(Ordering::Less),
        Test::LessOrEqual => order.is_some_and(Ordering::is_le),
        Test::Greater => order == Some(Ordering::Greater),
        Test::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str) -> Option<Vec<Value>> {
        let object = json!({
            "spec": {"size": 3, "a.b": "dotted", "list": ["x", "y", "z"]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 5},
            ]},
        });
        JsonPath::parse(path).map(|path| path.find(&object).into_iter().cloned().collect())
    }

    #[test]
    fn paths_lead_where_printer_columns_point() {
        let cases = [
            (".spec.size", json!([3])),
            ("{.spec.size}", json!([])),
            (".spec['size']", json!([3])),
            (r".spec.a\.b", json!(["dotted"])),
            (".spec.list[0]", json!(["x"])),
            (".spec.list[-1]", json!(["z"])),
            (".spec.list[9]", json!([])),
            (".spec.list[-9]", json!([])),
            (".spec.list[*]", json!(["x", "y", "z"])),
            (".spec.list[0:2]", json!(["x", "y"])),
            (".spec.list[0,2]", json!(["x", "z"])),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (".status.conditions[?(@.type == 'Other')].n", json!([5])),
            (".status.conditions[?(@.n > 2)].type", json!(["Other"])),
            (".status.conditions[?(@.missing)].type", json!([])),
            ("..n", json!([1, 5])),
            (".missing.more", json!([])),
        ];
        for (path, wanted) in cases {
            assert_eq!(found(path).map(Value::from), Some(wanted), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in [".a[", ".a[x]", ".a[?(@.b==)]", ".a[::0]", ".a]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}

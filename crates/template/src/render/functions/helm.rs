//! Helm's own functions.

use super::{Context, Row, any, lossy, text};
use crate::json;
use crate::render::engine::Set;
use crate::render::exec::{Failure, Run};
use crate::value::{Kind, Value};
use crate::{toml, yaml};

/// Helm refuses more includes of a name within each other.
const NESTED: usize = 1000;

pub(super) const ROWS: &[Row] = &[
    ("include", "sa>s", |context, given| {
        let name = lossy(given, 0);
        context.engine.include(&name, NESTED, || {
            let mut out = Vec::new();
            context.engine.run(context.set, &name, any(given, 1), &mut out)?;
            context.engine.make(out.len())?;
            Ok(Value::str(out))
        })
    }),
    ("tpl", "sa>s", tpl),
    ("required", "sa>a", |context, given| {
        let missing = given[1].is_nil() || matches!(&given[1], Value::Str(text) if text.is_empty());
        match (missing, context.engine.options().lint) {
            (false, _) => Ok(any(given, 1)),
            (true, true) => Ok("".into()),
            (true, false) => Err(warning(&lossy(given, 0))),
        }
    }),
    ("fail", "s>s", |context, given| {
        if context.engine.options().lint { Ok("".into()) } else { Err(warning(&lossy(given, 0))) }
    }),
    ("lookup", "ssss>m", |context, given| match &context.engine.options().lookup {
        None => Ok(Value::map(Vec::<(&str, Value)>::new())),
        Some(lookup) => Ok(lookup(&lossy(given, 0), &lossy(given, 1), &lossy(given, 2), &lossy(given, 3))?),
    }),
    ("toYaml", "a>s", |_, given| {
        let text = yaml::write(&any(given, 0)).unwrap_or_default();
        Ok(text.strip_suffix('\n').unwrap_or(&text).into())
    }),
    ("toYamlPretty", "a>s", |_, given| {
        if let Value::Complex(..) = any(given, 0) {
            return Err("cannot marshal type: complex128".into());
        }
        let text = yaml::write_pretty(&any(given, 0)).unwrap_or_default();
        Ok(text.strip_suffix('\n').unwrap_or(&text).into())
    }),
    ("fromYaml", "s>m", |_, given| {
        Ok(match from_yaml(&lossy(given, 0), "map[string]interface {}") {
            Ok(Value::Nil) => Value::map(Vec::<(&str, Value)>::new()),
            Ok(value) => value,
            Err(error) => Value::map([("Error", error.into())]),
        })
    }),
    ("fromYamlArray", "s>l", |_, given| {
        Ok(match from_yaml(&lossy(given, 0), "[]interface {}") {
            Ok(Value::Nil) => Value::List(crate::value::List::nil(crate::value::Elem::Any)),
            Ok(value) => value,
            Err(error) => Value::list(vec![error.into()]),
        })
    }),
    ("toJson", "a>s", |_, given| Ok(json::write(&any(given, 0), true).unwrap_or_default().into())),
    ("fromJson", "s>m", |_, given| {
        Ok(match from_json(&lossy(given, 0), "map[string]interface {}") {
            Ok(Value::Nil) => {
                Value::Map(crate::value::Map::new(crate::value::MapType::Any, Default::default()))
            }
            Ok(value) => value,
            Err(error) => Value::map([("Error", error.into())]),
        })
    }),
    ("fromJsonArray", "s>l", |_, given| {
        Ok(match from_json(&lossy(given, 0), "[]interface {}") {
            Ok(Value::Nil) => Value::List(crate::value::List::nil(crate::value::Elem::Any)),
            Ok(value) => value,
            Err(error) => Value::list(vec![error.into()]),
        })
    }),
    ("toToml", "a>s", |_, given| Ok(toml::write(&any(given, 0)).unwrap_or_else(|error| error).into())),
    ("fromToml", "s>m", |_, given| {
        Ok(toml::read(&lossy(given, 0)).unwrap_or_else(|error| Value::map([("Error", error.into())])))
    }),
];

/// What Helm looks for in an error, to show it alone.
fn warning(text: &str) -> Failure {
    Failure::new(format!("HELM_ERR_START{text}HELM_ERR_END"))
}

/// Go refuses what is of another kind than the target.
fn fitting(value: Value, target: &str) -> Result<Value, String> {
    let found = match (value.kind(), target.starts_with("map")) {
        (Kind::Invalid, _) | (Kind::Map, true) | (Kind::Slice, false) => return Ok(value),
        (Kind::Map, _) => "object",
        (Kind::Slice, _) => "array",
        (Kind::Bool, _) => "bool",
        (Kind::Str, _) => "string",
        _ => "number",
    };
    Err(format!("json: cannot unmarshal {found} into Go value of type {target}"))
}

fn from_json(text: &str, target: &str) -> Result<Value, String> {
    fitting(json::read(text)?, target)
}

fn from_yaml(text: &str, target: &str) -> Result<Value, String> {
    let json = yaml::read(text).map_err(|error| format!("error converting YAML to JSON: {error}"))?;
    fitting(crate::plain::from_json_floats(&json), target)
        .map_err(|error| format!("error unmarshaling JSON: while decoding JSON: {error}"))
}

/// Renders a text as a template. What it defines is known to it alone.
fn tpl(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let source = lossy(given, 0);
    let quoted = || crate::go::quote::quote(text(given, 0));
    context.engine.make(source.len())?;
    let _entered = context.engine.enter("gotpl")?;
    let set = Set::above(context.set);
    let trees = context.engine.trees("gotpl", &source);
    set.add(trees.map_err(|error| format!("cannot parse template {}: {error}", quoted()))?);
    let mut out = Vec::new();
    if let Err(mut failure) = context.engine.run(&set, "gotpl", any(given, 1), &mut out) {
        failure.text = format!("error during tpl function execution for {}: {}", quoted(), failure.text);
        return Err(failure);
    }
    context.engine.make(out.len())?;
    Ok(Value::str(super::strings::replace(context, &out, b"<no value>", b"")?))
}

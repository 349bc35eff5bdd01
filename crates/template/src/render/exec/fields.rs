//! What stands behind a dot: entries of maps, fields of structs, methods.

use super::{Held, Run, State};
use crate::go::quote::quote;
use crate::parse::Node;
use crate::render::engine::MissingKey;
use crate::value::{Kind, Map, MapType, Member, Value};
use std::rc::Rc;

impl<'a> State<'a> {
    pub(super) fn fields(
        &mut self,
        dot: &Held,
        mut receiver: Held,
        node: &'a Node,
        names: &'a [Rc<str>],
        arguments: &'a [Node],
        last: Option<Held>,
    ) -> Run<Held> {
        let Some((final_name, before)) = names.split_last() else { return Ok(receiver) };
        for name in before {
            receiver = self.field(dot, name, node, &[], None, receiver)?;
        }
        self.field(dot, final_name, node, arguments, last, receiver)
    }

    fn field(
        &mut self,
        dot: &Held,
        name: &'a str,
        node: &'a Node,
        arguments: &'a [Node],
        last: Option<Held>,
        receiver: Held,
    ) -> Run<Held> {
        if receiver.is_invalid() {
            if self.engine.missing_key() == MissingKey::Error {
                return self.fail(format!("nil data; no entry for key {}", quote(name.as_bytes())));
            }
            return Ok(Held::invalid());
        }
        let type_name = receiver.type_name();
        if receiver.value.is_nil() {
            return self.fail(format!("nil pointer evaluating {type_name}.{name}"));
        }
        let given = arguments.len() > 1 || last.is_some();
        match &receiver.value {
            Value::Map(map) => {
                if map.map_type() == MapType::Values
                    && let Some(signature) = values_method(name)
                {
                    let map = map.clone();
                    return self.call_method(
                        dot,
                        node,
                        name,
                        signature,
                        arguments,
                        last,
                        &mut |_, arguments| call_values(&map, name, arguments),
                    );
                }
                if given {
                    return self.fail(format!("{name} is not a method but has arguments"));
                }
                let interface = map.map_type() != MapType::Str;
                match map.get(name.as_bytes()) {
                    Some(value) => Ok(Held { value, interface }),
                    None => self.missing(
                        name,
                        if interface { Held::interface(Value::Nil) } else { Held::plain("".into()) },
                    ),
                }
            }
            Value::Object(object) => {
                let object = Rc::clone(object);
                match object.member(name) {
                    Member::Method(signature) => {
                        self.call_method(dot, node, name, signature, arguments, last, &mut |_, arguments| {
                            object.call(name, arguments)
                        })
                    }
                    Member::Field(value) if object.kind() != Kind::Map => {
                        if given {
                            return self
                                .fail(format!("{name} has arguments but cannot be invoked as function"));
                        }
                        Ok(Held::plain(value))
                    }
                    Member::Field(value) => {
                        if given {
                            return self.fail(format!("{name} is not a method but has arguments"));
                        }
                        Ok(Held::plain(value))
                    }
                    Member::Missing if object.kind() == Kind::Map => {
                        self.missing(name, Held::plain(Value::Bytes(Rc::from([]))))
                    }
                    Member::Missing => self.fail(format!("can't evaluate field {name} in type {type_name}")),
                }
            }
            Value::Int(crate::value::IntType::Duration, nanoseconds) => {
                let nanoseconds = *nanoseconds;
                match crate::go::time::duration_method(name) {
                    Some(signature) => {
                        self.call_method(dot, node, name, signature, arguments, last, &mut |_, _| {
                            Ok(crate::go::time::call_duration(nanoseconds, name))
                        })
                    }
                    None => self.fail(format!("can't evaluate field {name} in type {type_name}")),
                }
            }
            value if name == "String" && crate::go::print::stringer(value).is_some() => {
                let text = crate::go::print::stringer(value).unwrap_or_default();
                self.call_method(dot, node, name, ">s", arguments, last, &mut |_, _| Ok(text.as_str().into()))
            }
            _ => self.fail(format!("can't evaluate field {name} in type {type_name}")),
        }
    }

    fn missing(&self, name: &str, zero: Held) -> Run<Held> {
        match self.engine.missing_key() {
            MissingKey::Default => Ok(Held::invalid()),
            MissingKey::Zero => Ok(zero),
            MissingKey::Error => self.fail(format!("map has no entry for key {}", quote(name.as_bytes()))),
        }
    }
}

/// The methods of `.Values`.
fn values_method(name: &str) -> Option<&'static str> {
    match name {
        "AsMap" => Some(">m"),
        "Table" => Some("s>v"),
        "PathValue" => Some("s>a"),
        "YAML" => Some(">s"),
        _ => None,
    }
}

fn call_values(map: &Map, name: &str, arguments: &[Value]) -> Result<Value, String> {
    let path = match arguments.first() {
        Some(Value::Str(path)) => path.lossy().into_owned(),
        _ => String::new(),
    };
    match name {
        "AsMap" => Ok(Value::Map(map.typed(MapType::Any))),
        "YAML" => crate::yaml::write(&Value::Map(map.clone())).map(Value::from),
        "Table" => {
            let mut table = map.typed(MapType::Values);
            for part in path.split('.') {
                table = match table.get(part.as_bytes()) {
                    Some(Value::Map(next)) => next.typed(MapType::Values),
                    _ => return Err(format!("{} is not a table", quote(part.as_bytes()))),
                };
            }
            Ok(Value::Map(table))
        }
        _ => {
            let no_value = || format!("{} is not a value", quote(path.as_bytes()));
            let mut current = Value::Map(map.clone());
            for part in path.split('.') {
                let Value::Map(inner) = &current else { return Err(no_value()) };
                current = inner.get(part.as_bytes()).ok_or_else(no_value)?;
            }
            match current {
                Value::Map(_) => Err(no_value()),
                value => Ok(value),
            }
        }
    }
}

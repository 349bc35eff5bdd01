//! Arguments of functions, checked against the types of their parameters.

use super::{Held, Run, State};
use crate::parse::{Kind, Node};
use crate::render::functions::Param;
use crate::value::{Elem, List, Map, MapType, Value};

impl<'a> State<'a> {
    /// An argument, which must be of a type that the parameter takes.
    pub(super) fn argument(&mut self, dot: &Held, param: Param, node: &'a Node) -> Run<Held> {
        self.at(node);
        let held = match &node.kind {
            Kind::Nil => {
                return match param.zero() {
                    Some(zero) => Ok(zero),
                    None => self.fail(format!("cannot assign nil to {}", param.name())),
                };
            }
            Kind::Dot
            | Kind::Field(_)
            | Kind::Variable(_)
            | Kind::Pipe(_)
            | Kind::Identifier(_)
            | Kind::Chain(..) => self.operand(dot, node)?,
            _ => return self.literal(dot, param, node),
        };
        self.checked(held, param)
    }

    fn literal(&mut self, dot: &Held, param: Param, node: &'a Node) -> Run<Held> {
        let number = match &node.kind {
            Kind::Number(number) => Some(number),
            _ => None,
        };
        let wanted = match param {
            Param::Any | Param::Reflect => return self.operand(dot, node),
            Param::Bool => match &node.kind {
                Kind::Bool(value) => return Ok(Held::plain(Value::Bool(*value))),
                _ => "bool",
            },
            Param::Str => match &node.kind {
                Kind::Str { text, .. } => return Ok(Held::plain(Value::Str(text.clone()))),
                _ => "string",
            },
            Param::Int => match number.and_then(|number| number.int) {
                Some(int) => return Ok(Held::plain(Value::int(int))),
                None => "integer",
            },
            Param::Float => match number.and_then(|number| number.float) {
                Some(float) => return Ok(Held::plain(Value::Float(float))),
                None => "float",
            },
            _ => return self.fail(format!("can't handle {node} for arg of type {}", param.name())),
        };
        self.fail(format!("expected {wanted}; found {node}"))
    }

    /// Go's `validateType`.
    pub(super) fn checked(&self, held: Held, param: Param) -> Run<Held> {
        if held.is_invalid() {
            return match param.zero() {
                Some(zero) => Ok(zero),
                None => self.fail(format!("invalid value; expected {}", param.name())),
            };
        }
        if param.takes(&held.value) && (!held.value.is_nil() || matches!(param, Param::Any | Param::Reflect))
        {
            return Ok(held);
        }
        let found =
            if held.interface && held.value.is_nil() { held.type_name() } else { held.value.type_name() };
        self.fail(format!("wrong type for value; expected {}; got {found}", param.name()))
    }
}

impl Param {
    /// May a value of this type be given?
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Any | Self::Reflect => true,
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::Str => matches!(value, Value::Str(_)),
            Self::Int => matches!(value, Value::Int(crate::value::IntType::Int, _)),
            Self::Float => matches!(value, Value::Float(_)),
            Self::Map => matches!(value, Value::Map(map) if map.map_type() != MapType::Str),
            Self::Strings => matches!(value, Value::List(list) if list.elem() == Elem::Str),
            Self::List => matches!(value, Value::List(list) if list.elem() == Elem::Any),
            Self::Time => matches!(value, Value::Object(object) if object.type_name() == "time.Time"),
            Self::Certificate => {
                matches!(value, Value::Object(object) if object.type_name() == "sprig.certificate")
            }
            Self::Version => {
                matches!(value, Value::Object(object) if object.type_name() == "*semver.Version")
            }
        }
    }

    /// What a nil becomes, for types that have one.
    fn zero(self) -> Option<Held> {
        match self {
            Self::Any | Self::Reflect => Some(Held::interface(Value::Nil)),
            Self::Map => Some(Held::plain(Value::Map(Map::new(MapType::Any, Default::default())))),
            Self::List => Some(Held::plain(Value::List(List::nil(Elem::Any)))),
            Self::Strings => Some(Held::plain(Value::List(List::nil(Elem::Str)))),
            Self::Version => None,
            _ => None,
        }
    }
}

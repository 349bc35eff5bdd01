//! Values of expressions. Strings, lists and objects of the data are borrowed, never copied.

use super::data::{Items, Object};
use super::library::authorizer::{Asking, AuthorizerDecision};
use super::library::{net::Cidr, semver::Semver, url::Url};
use super::types;
use crate::quantity::Quantity;
use jiff::Timestamp;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Rc<[u8]>),
    Timestamp(Timestamp),
    /// In nanoseconds.
    Duration(i64),
    List(Rc<Vec<Value<'a>>>),
    Items(Items<'a>),
    Map(Rc<Entries<'a>>),
    Object(Object<'a>),
    Optional(Option<Rc<Value<'a>>>),
    Type(&'static str),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Rc<Url>),
    Quantity(Rc<Quantity>),
    Semver(Rc<Semver>),
    /// The name of a format.
    Format(&'static str),
    /// Data without a schema: it can be compared and nothing else.
    Unknown(&'a Json),
    /// Who may do what, as far as it is said what is asked.
    Authorizer(Rc<Asking<'a>>),
    Decision(Rc<AuthorizerDecision>),
    /// What an expression of a policy made.
    Made(Rc<Made<'a>>),
    /// The variables of a policy, each of which is evaluated when it is first asked for.
    Variables,
}

/// An object, or a patch, and its fields as they were given.
#[derive(Debug)]
pub(crate) struct Made<'a> {
    pub name: &'a str,
    pub fields: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Made<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

/// The entries of a map that an expression made.
pub(crate) type Entries<'a> = BTreeMap<Key<'a>, Value<'a>>;

/// A key of a map. Numbers that are equal are the same key, whatever their type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key<'a> {
    Bool(bool),
    Number(i128),
    String(Text<'a>),
}

/// A string of the data, of the expression, or made by it.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Owned(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<'a> Key<'a> {
    pub(super) fn of(value: &Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Int(number) => Self::Number((*number).into()),
            Value::Uint(number) => Self::Number((*number).into()),
            Value::Double(number) if number.fract() == 0.0 && number.abs() < 1e18 => {
                Self::Number(*number as i128)
            }
            Value::String(text) => Self::String(text.clone()),
            _ => return None,
        })
    }

    pub(super) fn value(&self) -> Value<'a> {
        match self {
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Number(number) => match i64::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => Value::Uint(u64::try_from(*number).unwrap_or(u64::MAX)),
            },
            Self::String(text) => Value::String(text.clone()),
        }
    }
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub class: Class,
    pub text: String,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The function cannot take values of these types.
    NoSuchOverload,
    /// It took too long.
    Cost,
    /// The authorizer has to be asked first.
    Unanswered,
    /// Anything else, as its text says.
    Other,
}

pub(crate) type Outcome<'a> = Result<Value<'a>, Failure>;

impl Failure {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { class: Class::Other, text: text.into() }
    }

    pub(super) fn no_such_overload() -> Self {
        Self { class: Class::NoSuchOverload, text: "no such overload".to_owned() }
    }

    pub(super) fn unanswered() -> Self {
        Self { class: Class::Unanswered, text: "the authorizer has not answered".to_owned() }
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.class == Class::Unanswered
    }

    /// Does it end the evaluation, whatever else could have decided?
    pub(super) fn is_final(&self) -> bool {
        matches!(self.class, Class::Cost | Class::Unanswered)
    }

    fn too_costly() -> Self {
        let text = "operation cancelled: actual cost limit exceeded".to_owned();
        Self { class: Class::Cost, text }
    }
}

/// Counts what an evaluation costs in the reference's units, and what it really does, and ends it when either is too much.
#[derive(Debug)]
pub(crate) struct Meter {
    pub cost: u64,
    most_cost: u64,
    work: u64,
}

/// How many steps an evaluation may take, and how many bytes it may make: far beyond what the cost allows in most rules.
const MOST_WORK: u64 = 20_000_000;

impl Meter {
    pub(super) fn new(most_cost: u64) -> Self {
        Self { cost: 0, most_cost, work: 0 }
    }

    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(cost);
        self.work(cost)?;
        if self.cost > self.most_cost { Err(Failure::too_costly()) } else { Ok(()) }
    }

    /// A tenth for each character: strings are fast to look through.
    pub(super) fn traverse(&mut self, length: usize) -> Result<(), Failure> {
        self.charge((length as u64).div_ceil(10))
    }

    /// What is really done and not counted by the reference.
    pub(super) fn work(&mut self, steps: u64) -> Result<(), Failure> {
        self.work = self.work.saturating_add(steps);
        if self.work > MOST_WORK { Err(Failure::too_costly()) } else { Ok(()) }
    }
}

impl<'a> Value<'a> {
    pub(super) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::String(Text::Owned(text.into()))
    }

    pub(super) fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(Rc::new(items))
    }

    pub(super) fn some(self) -> Self {
        Self::Optional(Some(Rc::new(self)))
    }

    /// The name of its type at run time.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) | Self::Items(_) => "list",
            Self::Map(_) | Self::Object(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Ip(_) => types::IP,
            Self::Cidr(_) => types::CIDR,
            Self::Url(_) => types::URL,
            Self::Quantity(_) => types::QUANTITY,
            Self::Semver(_) => types::SEMVER,
            Self::Format(_) => types::FORMAT,
            Self::Unknown(_) => "unknown",
            Self::Authorizer(asking) => asking.type_name(),
            Self::Decision(_) => types::DECISION,
            Self::Made(made) if made.name == types::JSON_PATCH => types::JSON_PATCH,
            Self::Made(_) => types::OBJECT,
            Self::Variables => "kubernetes.variables",
        }
    }

    /// How large it is, as the reference measures it for its costs.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) => items.len(),
            Self::Items(items) => items.list.len(),
            Self::Map(entries) => entries.len(),
            Self::Object(object) => object.fields.len(),
            _ => 1,
        }
    }

    /// The items of a list; a list of the data is converted item by item.
    pub(super) fn items(&self, meter: &mut Meter) -> Result<Rc<Vec<Value<'a>>>, Failure> {
        match self {
            Self::List(items) => Ok(items.clone()),
            Self::Items(items) => {
                meter.work(items.list.len() as u64)?;
                let converted: Result<Vec<_>, _> =
                    (0..items.list.len()).map(|index| items.get(index)).collect();
                converted.map(Rc::new)
            }
            _ => Err(Failure::no_such_overload()),
        }
    }

    /// The entries of a map.
    pub(super) fn entries(&self, meter: &mut Meter) -> Result<Rc<Entries<'a>>, Failure> {
        match self {
            Self::Map(entries) => Ok(entries.clone()),
            Self::Object(object) => {
                meter.work(object.fields.len() as u64)?;
                let mut entries = Entries::new();
                for name in object.names() {
                    if let Some(value) = object.find(&name)? {
                        entries.insert(Key::String(name), value);
                    }
                }
                Ok(Rc::new(entries))
            }
            _ => Err(Failure::no_such_overload()),
        }
    }
}

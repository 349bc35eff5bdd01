//! The types of expressions, and which are assignable to which.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type as the checker knows it.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::enum_variant_names, reason = "the type of types is called so")]
pub(super) enum Type {
    Dyn,
    /// Of what was complained about already: fits everything.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    /// The type of a type; without one where it is any.
    Type(Option<Arc<Type>>),
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Optional(Arc<Type>),
    /// One of Kubernetes' own, by its name.
    Opaque(&'static str),
    Object(Arc<ObjectType>),
    /// A type that is not known yet.
    Free(usize),
}

/// An object with declared fields; its name says which.
#[derive(Debug)]
pub(super) struct ObjectType {
    pub name: String,
    pub fields: BTreeMap<String, Type>,
    /// Whether it has fields of any name beside these, of any type.
    pub open: bool,
}

impl ObjectType {
    /// What an expression of a policy may make, by its name: a patch, or an object and what is in it.
    pub(super) fn made(name: &str) -> Option<Self> {
        let object = name == OBJECT || name.strip_prefix(OBJECT).is_some_and(|rest| rest.starts_with('.'));
        let fields = match name {
            JSON_PATCH => {
                let texts = ["op", "path", "from"].map(|name| (name.to_owned(), Type::String));
                texts.into_iter().chain([("value".to_owned(), Type::Dyn)]).collect()
            }
            _ if object => BTreeMap::new(),
            _ => return None,
        };
        Some(Self { name: name.to_owned(), fields, open: object })
    }
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

pub(super) const OBJECT: &str = "Object";
pub(super) const JSON_PATCH: &str = "JSONPatch";
pub(super) const URL: &str = "kubernetes.URL";
pub(super) const IP: &str = "net.IP";
pub(super) const CIDR: &str = "net.CIDR";
pub(super) const QUANTITY: &str = "kubernetes.Quantity";
pub(super) const SEMVER: &str = "kubernetes.Semver";
pub(super) const FORMAT: &str = "kubernetes.NamedFormat";
pub(super) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(super) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
pub(super) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
pub(super) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
pub(super) const DECISION: &str = "kubernetes.authorization.Decision";

/// Makes a type.
type Make = fn() -> Type;

/// Names of types that an expression may spell, and which they are.
const NAMED: [(&str, Make); 19] = [
    ("bool", || Type::Bool),
    ("bytes", || Type::Bytes),
    ("double", || Type::Double),
    ("duration", || Type::Duration),
    ("google.protobuf.Duration", || Type::Duration),
    ("dyn", || Type::Dyn),
    ("int", || Type::Int),
    ("list", || Type::List(Type::Dyn.into())),
    ("map", || Type::Map(Type::Dyn.into(), Type::Dyn.into())),
    ("null_type", || Type::Null),
    ("optional_type", || Type::Optional(Type::Dyn.into())),
    ("string", || Type::String),
    ("google.protobuf.Timestamp", || Type::Timestamp),
    ("timestamp", || Type::Timestamp),
    ("type", || Type::Type(None)),
    ("uint", || Type::Uint),
    (URL, || Type::Opaque(URL)),
    (IP, || Type::Opaque(IP)),
    (CIDR, || Type::Opaque(CIDR)),
];

const MORE_NAMED: [&str; 8] =
    [QUANTITY, SEMVER, FORMAT, AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION];

impl Type {
    /// The type of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let known = NAMED.iter().find(|(known, _)| *known == name).map(|(_, make)| make());
        known.or_else(|| MORE_NAMED.iter().find(|known| **known == name).map(|name| Type::Opaque(name)))
    }

    /// The type's name at run time, where it has no parameters.
    pub(super) fn runtime_name(&self) -> &'static str {
        match self {
            Self::Dyn | Self::Error | Self::Free(_) => "dyn",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::List(_) => "list",
            Self::Map(..) | Self::Object(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Opaque(name) => name,
        }
    }

    /// Its name in full, as an expression is told that must evaluate to another.
    pub(super) fn declared_name(&self) -> String {
        match self {
            Self::Null | Self::Timestamp | Self::Duration => self.runtime_name().to_owned(),
            other => other.to_string(),
        }
    }

    fn is_any(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    fn nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Opaque(_)
                | Self::Optional(_)
                | Self::Object(_)
                | Self::Duration
                | Self::Timestamp
        )
    }

    fn parameters(&self) -> Vec<&Type> {
        match self {
            Self::List(inner) | Self::Optional(inner) | Self::Type(Some(inner)) => vec![inner],
            Self::Map(key, value) => vec![key, value],
            _ => Vec::new(),
        }
    }

    /// Of the same shape, ignoring parameters.
    fn alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Opaque(one), Self::Opaque(other)) => one == other,
            (Self::Object(one), Self::Object(other)) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The type with its parameters replaced.
    pub(super) fn with(&self, replace: &mut dyn FnMut(&Type) -> Type) -> Type {
        match self {
            Self::List(inner) => Self::List(replace(inner).into()),
            Self::Optional(inner) => Self::Optional(replace(inner).into()),
            Self::Type(Some(inner)) => Self::Type(Some(replace(inner).into())),
            Self::Map(key, value) => Self::Map(replace(key).into(), replace(value).into()),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => out.write_str("!error!"),
            Self::Null => out.write_str("null"),
            Self::Timestamp => out.write_str("timestamp"),
            Self::Duration => out.write_str("duration"),
            Self::Object(object) => out.write_str(&object.name),
            Self::Free(number) => write!(out, "_var{number}"),
            Self::List(item) => write!(out, "list({item})"),
            Self::Map(key, value) => write!(out, "map({key}, {value})"),
            Self::Optional(inner) => write!(out, "optional_type({inner})"),
            Self::Type(Some(inner)) => write!(out, "type({inner})"),
            other => out.write_str(other.runtime_name()),
        }
    }
}

/// What is known of the types that were free.
#[derive(Debug, Default)]
pub(super) struct Known {
    bound: Vec<Option<Type>>,
    /// What was bound since the last point that one may return to.
    trail: Vec<(usize, Option<Type>)>,
}

impl Known {
    /// A type of which nothing is known.
    pub(super) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Free(self.bound.len() - 1)
    }

    fn find(&self, free: usize) -> Option<&Type> {
        self.bound.get(free)?.as_ref()
    }

    fn bind(&mut self, free: usize, found: Type) {
        let old = self.bound[free].replace(found);
        self.trail.push((free, old));
    }

    /// Does each fit its counterpart? What was learnt on the way is kept only if they all do.
    pub(super) fn assign_all(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        self.trail.clear();
        let fits = given.len() == wanted.len()
            && given.iter().zip(wanted).all(|(given, wanted)| self.fits(given, wanted));
        if !fits {
            while let Some((free, old)) = self.trail.pop() {
                self.bound[free] = old;
            }
        }
        fits
    }

    /// The same for one.
    pub(super) fn assign(&mut self, given: &Type, wanted: &Type) -> bool {
        self.assign_all(std::slice::from_ref(given), std::slice::from_ref(wanted))
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Free(free) = other {
            let (valid, bound) = self.substitutes(one, *free);
            if valid || bound {
                return valid;
            }
        }
        if let Type::Free(free) = one {
            return self.substitutes(other, *free).0;
        }
        if one.is_any() || other.is_any() {
            return true;
        }
        match (one, other) {
            (Type::Null, other) | (other, Type::Null) => other.nullable(),
            (Type::Type(_), Type::Type(_)) => true,
            _ => {
                let (left, right) = (one.parameters(), other.parameters());
                one.alike(other)
                    && left.len() == right.len()
                    && left.into_iter().zip(right).all(|(left, right)| self.fits(left, right))
            }
        }
    }

    /// May the free type stand for the other, and was it bound already?
    fn substitutes(&mut self, other: &Type, free: usize) -> (bool, bool) {
        if *other == Type::Free(free) {
            return (true, true);
        }
        if let Some(known) = self.find(free).cloned() {
            if known == *other {
                return (true, true);
            }
            if !self.fits(other, &known) {
                return (false, true);
            }
            let general = if less_specific(other, &known) { other.clone() } else { known };
            if !self.occurs(free, &general) {
                self.bind(free, general);
            }
            return (true, true);
        }
        let fits = !self.occurs(free, other);
        if fits {
            self.bind(free, other.clone());
        }
        (fits, false)
    }

    fn occurs(&self, free: usize, within: &Type) -> bool {
        match within {
            Type::Free(other) if *other == free => true,
            Type::Free(other) => self.find(*other).is_some_and(|known| self.occurs(free, known)),
            other => other.parameters().into_iter().any(|inner| self.occurs(free, inner)),
        }
    }

    /// The type with all that is known put in; what is still free stays, or is anything.
    pub(super) fn resolve(&self, given: &Type, settle: bool) -> Type {
        match given {
            Type::Free(free) => match self.find(*free) {
                Some(known) => self.resolve(known, settle),
                None if settle => Type::Dyn,
                None => given.clone(),
            },
            other => other.with(&mut |inner| self.resolve(inner, settle)),
        }
    }
}

/// Does the first say no more than the second?
pub(super) fn less_specific(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Free(_), _) => true,
        (_, Type::Dyn | Type::Free(_)) => false,
        (Type::Type(_), Type::Type(_)) => true,
        _ => {
            one.alike(other)
                && one
                    .parameters()
                    .into_iter()
                    .zip(other.parameters())
                    .all(|(one, other)| less_specific(one, other))
        }
    }
}

//! Sprig's functions on versions.

use super::{Row, lossy};
use crate::semver::{Constraints, Version};
use crate::value::{Kind, Member, Object, Value};
use std::any::Any;
use std::rc::Rc;

pub(super) const ROWS: &[Row] = &[
    ("semver", "s>V", |_, given| Ok(Value::Object(Rc::new(Version::parse(&lossy(given, 0))?)))),
    ("semverCompare", "ss>b", |_, given| {
        let constraints = Constraints::parse(&lossy(given, 0))?;
        Ok(Value::Bool(constraints.check(&Version::parse(&lossy(given, 1))?)))
    }),
];

impl Object for Version {
    fn type_name(&self) -> String {
        "*semver.Version".into()
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn member(&self, name: &str) -> Member {
        match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "Original" | "String" | "IncMajor"
            | "IncMinor" | "IncPatch" => Member::Method(">x"),
            "Compare" => Member::Method("V>i"),
            "Equal" | "LessThan" | "GreaterThan" => Member::Method("V>b"),
            _ => Member::Missing,
        }
    }

    fn call(&self, name: &str, given: &[Value]) -> Result<Value, String> {
        let number = |value: u64| Ok(Value::Uint(crate::value::UintType::Uint64, value));
        let changed = |version: Version| Ok(Value::Object(Rc::new(version)));
        let other = match given.first() {
            Some(Value::Object(object)) => object.any().downcast_ref::<Self>(),
            _ => None,
        };
        let order = other.map(|other| self.compare(other));
        match name {
            "Major" => number(self.major),
            "Minor" => number(self.minor),
            "Patch" => number(self.patch),
            "Prerelease" => Ok(self.prerelease.as_str().into()),
            "Metadata" => Ok(self.metadata.as_str().into()),
            "Original" => Ok(self.original().into()),
            "String" => Ok(self.to_string().into()),
            "IncMajor" => changed(Self::new(self.major + 1, 0, 0)),
            "IncMinor" => changed(Self::new(self.major, self.minor + 1, 0)),
            "IncPatch" if self.prerelease.is_empty() => {
                changed(Self::new(self.major, self.minor, self.patch + 1))
            }
            "IncPatch" => changed(Self::new(self.major, self.minor, self.patch)),
            "Compare" => Ok(Value::int(order.map_or(0, |order| order as i64))),
            "Equal" => Ok(Value::Bool(order.is_some_and(std::cmp::Ordering::is_eq))),
            "LessThan" => Ok(Value::Bool(order.is_some_and(std::cmp::Ordering::is_lt))),
            "GreaterThan" => Ok(Value::Bool(order.is_some_and(std::cmp::Ordering::is_gt))),
            other => Err(format!("no method {other}")),
        }
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn plain(&self) -> Value {
        self.to_string().into()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.any().downcast_ref::<Self>().is_some_and(|other| std::ptr::eq(self, other))
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

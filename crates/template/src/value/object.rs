//! Structs and types with methods: what is neither a plain map nor a plain slice.

use super::{Kind, Value};
use crate::text::GoStr;
use std::any::Any;
use std::fmt::Debug;

/// What a name on an object is.
pub enum Member {
    /// A field, and whether it is declared as `interface {}`.
    Field(Value),
    /// A method, with its parameters as in the tables of functions: `s>s` takes a string and answers with one.
    Method(&'static str),
    /// Nothing.
    Missing,
}

/// A Go struct, or a named type with methods.
pub trait Object: Debug + Any {
    /// The type, as `%T` prints it.
    fn type_name(&self) -> String;

    /// Its kind.
    fn kind(&self) -> Kind {
        Kind::Struct
    }

    /// What stands behind a dot and this name.
    fn member(&self, name: &str) -> Member;

    /// Calls a method. The arguments have the types that [`Member::Method`] told.
    ///
    /// # Errors
    /// What the method answers with as its error.
    fn call(&self, name: &str, _arguments: &[Value]) -> Result<Value, String> {
        Err(format!("no method {name}"))
    }

    /// How many entries it has, if it is a map or slice.
    fn len(&self) -> Option<usize> {
        None
    }

    /// Is it empty? Structs never are.
    fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Its entries, if it is a map.
    fn entries(&self) -> Vec<(GoStr, Value)> {
        Vec::new()
    }

    /// What its method `String` answers, if it has one.
    fn text(&self) -> Option<String> {
        None
    }

    /// Its exported fields in their order, for printing.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// What JSON and YAML show of it.
    fn plain(&self) -> Value;

    /// Is it equal to another of its type?
    fn equals(&self, other: &dyn Object) -> bool;

    /// For looking at the concrete type.
    fn any(&self) -> &dyn Any;
}

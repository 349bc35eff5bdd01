//! `x-kubernetes-validations`: rules about an object, compiled once for a definition and run for every write.
//!
//! Expressions are compiled and evaluated by `cel`, which is also where the reasons for a CEL of our own are.

mod check;
mod compile;
mod costs;
mod field_path;
mod run;

pub use check::check;
pub(crate) use check::shape;
pub use costs::is_of_one_estimate;
pub use field_path::{Found, Refused, find as find_field};

use crate::cel::Program;
use crate::schema::Schema;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The cost limit of all rules of a request together.
const BUDGET: i64 = 10_000_000;

/// The rules of a schema, and of everything inside of it.
#[derive(Debug)]
pub struct Rules(Node);

/// The rules at one place of a schema.
#[derive(Debug)]
struct Node {
    /// As rules see it.
    schema: Arc<Schema>,
    rules: Vec<Rule>,
    items: Option<Box<Node>>,
    properties: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    all_of: Vec<Node>,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    source: String,
    message: String,
    reason: Option<String>,
    /// The `fieldPath` of errors, relative to the rule.
    field_path: String,
    optional_old: bool,
    /// The compiled expression, or why it could not be compiled.
    program: Result<Program, String>,
    /// What makes the message, if it could be compiled.
    message_program: Option<Program>,
    message_source: String,
}

/// The errors of rules, and those that ratcheting turned into warnings.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What is wrong.
    pub errors: Vec<crate::FieldError>,
    /// Errors that existed before and whose values did not change (ratcheting): reported as warnings.
    pub warnings: Vec<String>,
}

//! `x-kubernetes-validations`: rules about an object, compiled once for a definition and run for every write.

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

/// What all rules of a request may cost together.
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
    /// Where errors are told, below the place of the rule.
    field_path: String,
    optional_old: bool,
    /// What decides, or why it cannot.
    program: Result<Program, String>,
    /// What makes the message, if it could be compiled.
    message_program: Option<Program>,
    message_source: String,
}

/// What rules found wrong, and what they forgave because it was so before.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What is wrong.
    pub errors: Vec<crate::FieldError>,
    /// What was wrong before and did not change: told, and let through.
    pub warnings: Vec<String>,
}

//! Expressions in CEL, as Kubernetes uses them: read, checked against the types of a schema, and evaluated within bounds.
//!
//! The syntax, the types, the functions and the errors are those of cel-go with Kubernetes' libraries. What cannot be
//! compiled is refused; what cannot be evaluated fails. Nothing here panics or recurses deeper than [`ast::MOST_DEPTH`],
//! and no evaluation does more than its meter allows.
//!
//! It is our own because the maintained CEL crate parses and evaluates, but has no types, no costs and no bounds: a rule
//! that names a field which does not exist could not be rejected with its CRD, and one over large data could not be
//! stopped. The cost of a rule is counted while it runs (`evaluate.rs`), and estimated when its CRD is written
//! (`estimate.rs`), from the types of its parts and the bounds of its schema, to the unit as Kubernetes does it: what is
//! rejected there is rejected here.
//!
//! A file per step: `lex`, `parse`, `check`, `estimate`, `evaluate`; the functions are tables of signatures by theme, in
//! `library`.

mod ast;
mod check;
mod composition;
mod data;
mod declared;
mod equal;
mod escape;
mod estimate;
mod estimate_calls;
mod evaluate;
mod expression;
mod lex;
mod library;
mod parse;
mod signature;
mod size;
mod types;
mod value;

pub use composition::{Composition, Environment, Evaluation};
pub use expression::{Evaluated, Expression, VariableType};
pub use library::authorizer::{AuthorizerAnswers, AuthorizerCheck, AuthorizerDecision};
pub use parse::is_cel_identifier;

pub(crate) use declared::as_seen;
pub(crate) use value::{Class, Failure};

use crate::schema::Schema;
use evaluate::Evaluator;
use serde_json::Value as Json;
use size::Bounds;
use std::fmt::Write;
use types::Type;
use value::{Meter, Value};

/// The cost limit of a single expression.
pub(crate) const MOST_COST: u64 = 1_000_000;

/// An expression that can be evaluated.
#[derive(Debug)]
pub(crate) struct Program {
    expression: ast::Expr,
    uses_old: bool,
    estimate: u64,
}

/// What an expression must evaluate to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Bool,
    String,
}

/// Why an expression does not compile.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It cannot be read, or does not fit the schema.
    Compilation(String),
    /// It evaluates to something else.
    OtherType,
    /// No program can be made of it.
    Instantiation(String),
    /// The schema says nothing that an expression could see.
    NoTypes,
}

/// The values that an expression sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub schema: &'a Schema,
    pub value: &'a Json,
    pub old: Option<&'a Json>,
}

/// The types and sizes that a schema declares.
#[derive(Debug)]
pub(crate) struct Declared {
    this: Type,
    bounds: Bounds,
}

impl Declared {
    /// What `schema` declares for `self`; none if expressions see nothing of it.
    pub(crate) fn of(schema: &Schema) -> Option<Self> {
        let this = declared::declare(schema, "selfType")?;
        Some(Self { this, bounds: Bounds::of(schema)? })
    }

    /// How often it can be there in a request, if nothing around it says how often.
    pub(crate) fn most_often(&self) -> u64 {
        self.bounds.most_often()
    }
}

impl Program {
    /// Parses an expression and checks its types. `optional_old` is whether `oldSelf` may be absent while it is evaluated.
    pub(crate) fn compile(
        source: &str,
        declared: &Declared,
        optional_old: bool,
        wanted: Wanted,
    ) -> Result<Self, Refusal> {
        let characters: Vec<char> = source.chars().collect();
        let refused = |complaints: Complaints| Refusal::Compilation(complaints.shown(&characters));
        let expression = parse::parse(&characters).map_err(refused)?;
        let this = declared.this.clone();
        let old = if optional_old { Type::Optional(this.clone().into()) } else { this.clone() };
        let checked =
            check::check(&expression, &[("self", this), ("oldSelf", old)], false).map_err(refused)?;
        let fits = match wanted {
            Wanted::Bool => checked.found == Type::Bool,
            Wanted::String => checked.found == Type::String,
        };
        let uses_old = expression.names("oldSelf");
        match checked.broken {
            _ if !fits => Err(Refusal::OtherType),
            Some(why) => Err(Refusal::Instantiation(why)),
            None => {
                let estimate = estimate::most(&expression, &checked.types, &declared.bounds);
                Ok(Self { expression, uses_old, estimate })
            }
        }
    }

    /// Its estimated maximum cost.
    pub(crate) fn estimate(&self) -> u64 {
        self.estimate
    }

    /// Does it use `oldSelf`?
    pub(crate) fn uses_old(&self) -> bool {
        self.uses_old
    }

    /// Evaluates to a boolean; also returns the cost.
    pub(crate) fn truth(&self, seen: Seen<'_>, optional_old: bool) -> (Result<bool, Failure>, u64) {
        let (outcome, cost) = self.evaluate(seen, optional_old, |value| match value {
            Value::Bool(truth) => Ok(truth),
            _ => Err(Failure::no_such_overload()),
        });
        (outcome, cost)
    }

    /// Evaluates to a string; also returns the cost.
    pub(crate) fn text(&self, seen: Seen<'_>, optional_old: bool) -> (Result<String, Failure>, u64) {
        self.evaluate(seen, optional_old, |value| match value {
            Value::String(text) => Ok(text.to_string()),
            _ => Err(Failure::no_such_overload()),
        })
    }

    fn evaluate<T>(
        &self,
        seen: Seen<'_>,
        optional_old: bool,
        read: impl FnOnce(Value<'_>) -> Result<T, Failure>,
    ) -> (Result<T, Failure>, u64) {
        let mut scope = Vec::new();
        let old = seen.old.map(|old| data::value(old, seen.schema)).transpose();
        let both = data::value(seen.value, seen.schema).and_then(|this| Ok((this, old?)));
        match both {
            Ok((this, old)) => {
                scope.push(("self", this));
                match (old, optional_old) {
                    (old, true) => scope.push(("oldSelf", Value::Optional(old.map(std::rc::Rc::new)))),
                    (Some(old), false) => scope.push(("oldSelf", old)),
                    (None, false) => {}
                }
            }
            Err(failure) => return (Err(failure), 1),
        }
        let mut evaluator = Evaluator::new(scope, Meter::new(MOST_COST));
        let outcome = evaluator.evaluate(&self.expression);
        (outcome.and_then(read), evaluator.meter.cost)
    }
}

/// What is wrong at one place of an expression.
#[derive(Debug)]
struct Complaint {
    /// The character at which it is.
    at: usize,
    why: String,
}

impl Complaint {
    fn new(at: usize, why: String) -> Self {
        Self { at, why }
    }
}

#[derive(Debug)]
struct Complaints(Vec<Complaint>);

impl Complaints {
    fn one(complaint: Complaint) -> Self {
        Self(vec![complaint])
    }

    /// All of them in the order of the text, each with the line it is about and a mark below.
    fn shown(mut self, source: &[char]) -> String {
        self.0.sort_by_key(|complaint| complaint.at);
        let shown: Vec<String> = self.0.iter().map(|complaint| complaint.shown(source)).collect();
        shown.join("\n")
    }
}

impl Complaint {
    fn shown(&self, source: &[char]) -> String {
        let before = &source[..self.at.min(source.len())];
        let line = before.iter().filter(|c| **c == '\n').count();
        let start = before.iter().rposition(|c| *c == '\n').map_or(0, |newline| newline + 1);
        let column = before.len() - start;
        let text: String = source[start..].iter().take_while(|c| **c != '\n').collect();
        let mut shown = format!("ERROR: <input>:{}:{}: {}", line + 1, column + 1, self.why);
        let wide = |c: Option<char>, narrow: char, wide: char| match c {
            Some(c) if c.len_utf8() > 1 => wide,
            _ => narrow,
        };
        let mut characters = text.chars();
        let mut mark: String = characters.by_ref().take(column).map(|c| wide(Some(c), '.', '．')).collect();
        mark.push(wide(characters.next(), '^', '＾'));
        // Writing to a String cannot fail.
        let _ = write!(shown, "\n | {}\n | {mark}", text.replace('\t', " "));
        shown
    }
}

#[cfg(test)]
mod tests;

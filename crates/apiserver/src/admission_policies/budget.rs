//! What the expressions of a policy may cost together.

use serde_json::Value;
use windlass_schema::{AuthorizerCheck, Evaluated, Evaluation, Expression};

/// For all expressions of one sort.
pub(super) const WHOLE: u64 = 10_000_000;

/// For match conditions.
pub(super) const CONDITIONS: u64 = WHOLE / 4;

pub(super) const EXHAUSTED: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What is left of it.
pub(super) struct Budget(u64);

/// Why no value is known.
pub(super) enum Stopped {
    /// This must be asked first.
    Unanswered(Box<AuthorizerCheck>),
    /// Nothing more is evaluated.
    Exhausted,
}

impl Budget {
    pub(super) fn new(cost: u64) -> Self {
        Self(cost)
    }

    /// What is left, for the expressions after these.
    pub(super) fn left(self) -> u64 {
        self.0
    }

    /// Evaluates an expression; the value, or why it has none.
    pub(super) fn evaluate<'a>(
        &mut self,
        evaluation: &mut Evaluation<'a>,
        compiled: &'a Result<Expression, String>,
    ) -> Result<Result<Value, String>, Stopped> {
        let expression = match compiled {
            Ok(expression) => expression,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        match evaluation.evaluate(expression) {
            Evaluated::Unanswered(check) => Err(Stopped::Unanswered(check)),
            Evaluated::Done(_, cost) if cost > self.0 => Err(Stopped::Exhausted),
            Evaluated::Done(outcome, cost) => {
                self.0 -= cost;
                let source = expression.source();
                Ok(outcome.map_err(|why| format!("expression '{source}' resulted in error: {why}")))
            }
        }
    }
}

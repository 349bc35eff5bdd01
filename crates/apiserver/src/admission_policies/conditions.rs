//! Match conditions of a policy.

use super::budget::{Budget, CONDITIONS, EXHAUSTED, Stopped};
use serde_json::Value;
use windlass_schema::field::aggregate;
use windlass_schema::{AuthorizerCheck, Evaluation, Expression};

/// Whether all conditions hold.
pub(crate) enum Matched {
    Yes,
    No,
    /// It cannot be told, and the policy is not to be done without.
    Failed(String),
    /// This must be asked first.
    Unanswered(Box<AuthorizerCheck>),
}

/// One that does not hold counts before one that fails.
pub(super) fn hold<'a>(
    conditions: &'a [Result<Expression, String>],
    evaluation: &mut Evaluation<'a>,
    fails_open: bool,
) -> Matched {
    let failed = |why: String| if fails_open { Matched::No } else { Matched::Failed(why) };
    let (mut budget, mut errors) = (Budget::new(CONDITIONS), Vec::new());
    let mut holds = true;
    for condition in conditions {
        match budget.evaluate(evaluation, condition) {
            Err(Stopped::Unanswered(check)) => return Matched::Unanswered(check),
            Err(Stopped::Exhausted) => return failed(EXHAUSTED.to_owned()),
            Ok(Ok(value)) => holds &= value == Value::Bool(true),
            Ok(Err(why)) => errors.push(why),
        }
    }
    match (holds, errors.is_empty()) {
        (false, _) => Matched::No,
        (true, true) => Matched::Yes,
        (true, false) => failed(aggregate(&errors)),
    }
}

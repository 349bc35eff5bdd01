//! The authorizer: who may do what, asked step by step, as in `authorizer.group('apps').resource('deployments').check('get')`.
//!
//! An expression is evaluated at once, and to ask an authorizer may take a while. So a check whose answer is not known ends
//! the evaluation; whoever evaluates asks, and evaluates again with the answer. What a check costs bounds how often.

use super::super::types;
use super::super::value::{Failure, Meter, Outcome, Value};
use super::Row;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a check costs.
const CHECK: u64 = 350_000;

/// One question to an authorizer. What is not said is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the fields are those of a SubjectAccessReview")]
pub struct AuthorizerCheck {
    /// The namespace and the name of the service account that would do it; without one it is the user of the request.
    pub service_account: Option<(String, String)>,
    /// A path that is no resource's.
    pub path: Option<String>,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
    pub verb: String,
}

/// What an authorizer says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of a SubjectAccessReview")]
pub struct AuthorizerDecision {
    pub allowed: bool,
    pub reason: String,
    /// Why it could say nothing; empty if it could.
    pub error: String,
}

/// What an authorizer is known to say.
#[derive(Debug, Default)]
pub struct AuthorizerAnswers {
    known: BTreeMap<AuthorizerCheck, AuthorizerDecision>,
    wanted: RefCell<Option<AuthorizerCheck>>,
}

impl AuthorizerAnswers {
    /// Takes in an answer.
    pub fn learn(&mut self, check: AuthorizerCheck, decision: AuthorizerDecision) {
        self.known.insert(check, decision);
    }

    /// The question that ended an evaluation, if one did.
    pub(in super::super) fn take_wanted(&self) -> Option<AuthorizerCheck> {
        self.wanted.take()
    }
}

/// How much of a question is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Nothing,
    Path,
    Group,
    Resource,
}

/// A question that is being put.
#[derive(Debug, Clone)]
pub(crate) struct Asking<'a> {
    pub answers: &'a AuthorizerAnswers,
    pub check: AuthorizerCheck,
    pub said: Said,
}

impl Asking<'_> {
    pub(in super::super) fn type_name(&self) -> &'static str {
        match self.said {
            Said::Nothing => types::AUTHORIZER,
            Said::Path => types::PATH_CHECK,
            Said::Group => types::GROUP_CHECK,
            Said::Resource => types::RESOURCE_CHECK,
        }
    }
}

pub(super) const ROWS: &[Row] = &[
    Row("path", ".(authorizer, string) pathcheck", |meter, values| {
        say(meter, values, Said::Nothing, Said::Path, |check, text| check.path = Some(text))
    }),
    Row("group", ".(authorizer, string) groupcheck", |meter, values| {
        say(meter, values, Said::Nothing, Said::Group, |check, text| check.group = text)
    }),
    Row("serviceAccount", ".(authorizer, string, string) authorizer", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Authorizer(asking), Value::String(namespace), Value::String(name)]
                if asking.said == Said::Nothing =>
            {
                let mut next = (**asking).clone();
                next.check.service_account = Some((namespace.to_string(), name.to_string()));
                Ok(Value::Authorizer(Rc::new(next)))
            }
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row("resource", ".(groupcheck, string) resourcecheck", |meter, values| {
        say(meter, values, Said::Group, Said::Resource, |check, text| check.resource = text)
    }),
    Row("subresource", ".(resourcecheck, string) resourcecheck", |meter, values| {
        say(meter, values, Said::Resource, Said::Resource, |check, text| check.subresource = text)
    }),
    Row("namespace", ".(resourcecheck, string) resourcecheck", |meter, values| {
        say(meter, values, Said::Resource, Said::Resource, |check, text| check.namespace = text)
    }),
    Row("name", ".(resourcecheck, string) resourcecheck", |meter, values| {
        say(meter, values, Said::Resource, Said::Resource, |check, text| check.name = text)
    }),
    Row("fieldSelector", ".(resourcecheck, string) resourcecheck", |meter, values| {
        say(meter, values, Said::Resource, Said::Resource, |check, text| check.field_selector = text)
    }),
    Row("labelSelector", ".(resourcecheck, string) resourcecheck", |meter, values| {
        say(meter, values, Said::Resource, Said::Resource, |check, text| check.label_selector = text)
    }),
    Row("check", ".(pathcheck, string) decision | .(resourcecheck, string) decision", |meter, values| {
        meter.charge(CHECK)?;
        match values {
            [Value::Authorizer(asking), Value::String(verb)]
                if matches!(asking.said, Said::Path | Said::Resource) =>
            {
                let check = AuthorizerCheck { verb: verb.to_string(), ..asking.check.clone() };
                match asking.answers.known.get(&check) {
                    Some(decision) => Ok(Value::Decision(Rc::new(decision.clone()))),
                    None => {
                        asking.answers.wanted.replace(Some(check));
                        Err(Failure::unanswered())
                    }
                }
            }
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row("errored", ".(decision) bool", |meter, values| {
        of(meter, values, |decision| Value::Bool(!decision.error.is_empty()))
    }),
    Row("error", ".(decision) string", |meter, values| {
        of(meter, values, |decision| Value::text(decision.error.as_str()))
    }),
    Row("allowed", ".(decision) bool", |meter, values| {
        of(meter, values, |decision| Value::Bool(decision.allowed))
    }),
    Row("reason", ".(decision) string", |meter, values| {
        of(meter, values, |decision| Value::text(decision.reason.as_str()))
    }),
];

/// Says one thing more.
fn say<'a>(
    meter: &mut Meter,
    values: &[Value<'a>],
    from: Said,
    to: Said,
    set: fn(&mut AuthorizerCheck, String),
) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Authorizer(asking), Value::String(text)] if asking.said == from => {
            let mut next = (**asking).clone();
            set(&mut next.check, text.to_string());
            next.said = to;
            Ok(Value::Authorizer(Rc::new(next)))
        }
        _ => Err(Failure::no_such_overload()),
    }
}

fn of<'a>(
    meter: &mut Meter,
    values: &[Value<'a>],
    read: fn(&AuthorizerDecision) -> Value<'static>,
) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Decision(decision)] => Ok(read(decision)),
        _ => Err(Failure::no_such_overload()),
    }
}

//! Evaluates rules for an object and its old version.

use super::{BUDGET, Node, Rule, Rules, Verdict};
use crate::cel::{Class, Failure, Seen};
use crate::correlate::{Correlated, unchanged};
use crate::field::{ErrorKind, FieldError, Path};
use crate::schema::Schema;
use serde_json::Value;
use std::sync::Arc;

/// The maximum length of a message from `messageExpression`.
const MOST_MESSAGE: usize = 5 * 1024;

/// A value beside what it was, where that is known.
#[derive(Clone, Copy, Default)]
struct Pair<'a> {
    schema: Option<&'a Arc<Schema>>,
    new: Option<&'a Value>,
    old: Option<&'a Value>,
}

impl Pair<'_> {
    fn unchanged(self) -> bool {
        match (self.schema, self.new, self.old) {
            (Some(schema), Some(new), Some(old)) => unchanged(schema, new, old),
            _ => false,
        }
    }
}

/// Whether what is wrong was wrong before: told by the value itself, or by the nearest around it that has an old one.
#[derive(Clone, Copy, Default)]
struct Before<'a> {
    here: Option<Pair<'a>>,
    around: Option<Pair<'a>>,
}

impl<'a> Before<'a> {
    fn forgives(self) -> bool {
        self.here.or(self.around).is_some_and(Pair::unchanged)
    }

    fn inside(self, next: Option<Pair<'a>>) -> Self {
        match self.here {
            None => self,
            here => Self { here: next, around: here },
        }
    }
}

impl Rules {
    /// Evaluates the rules for a new or changed object; errors of unchanged values are ratcheted to warnings.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Verdict {
        let mut run = Run { verdict: Verdict::default(), budget: BUDGET };
        let here = old.map(|old| Pair { schema: Some(&self.0.schema), new: Some(value), old: Some(old) });
        run.node(&self.0, &Path::root(), value, old, Before { here, around: None });
        run.verdict
    }

    /// Evaluates the rules for a default: as an unchanged value, and as a new one.
    pub(crate) fn of_default(&self, value: &Value, path: &Path) -> Vec<FieldError> {
        let once = |old: Option<&Value>| {
            let mut run = Run { verdict: Verdict::default(), budget: BUDGET };
            run.node(&self.0, path, value, old, Before::default());
            run.verdict.errors
        };
        let errors = once(Some(value));
        if errors.is_empty() { once(None) } else { errors }
    }
}

struct Run {
    verdict: Verdict,
    budget: i64,
}

impl Run {
    /// The rules of a node, and of all inside of it; not after the budget was spent.
    fn node(&mut self, node: &Node, path: &Path, value: &Value, old: Option<&Value>, before: Before<'_>) {
        if value.is_null() || self.budget < 0 {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(node, path, value, old, before);
        for nested in &node.all_of {
            self.node(nested, path, value, old, Before { here: None, around: before.around });
        }
        match value {
            Value::Array(items) => self.items(node, path, items, old, before),
            Value::Object(fields) => {
                for (name, field) in fields {
                    let theirs = old.and_then(|old| old.as_object()?.get(name));
                    let pair = |schema| {
                        theirs.map(|old| Pair { schema: Some(schema), new: Some(field), old: Some(old) })
                    };
                    // The type of an object is not looked at: both are converted to the same.
                    let hidden = before.around.is_none() && matches!(name.as_str(), "apiVersion" | "kind");
                    let inside =
                        |schema| if hidden { Before::default() } else { before.inside(pair(schema)) };
                    if let Some(values) = &node.additional {
                        self.node(values, &path.key(name), field, theirs, inside(&values.schema));
                    }
                    if let Some(property) = node.properties.get(name) {
                        self.node(property, &path.child(name), field, theirs, inside(&property.schema));
                    }
                }
            }
            _ => {}
        }
    }

    fn items(&mut self, node: &Node, path: &Path, items: &[Value], old: Option<&Value>, before: Before<'_>) {
        let Some(inner) = &node.items else { return };
        let correlated = Correlated::of(&node.schema, old);
        for (index, item) in items.iter().enumerate() {
            let theirs = correlated.as_ref().and_then(|old| old.item(item));
            let pair =
                theirs.map(|old| Pair { schema: Some(&inner.schema), new: Some(item), old: Some(old) });
            self.node(inner, &path.index(index), item, theirs, before.inside(pair));
        }
    }

    fn rules(&mut self, node: &Node, path: &Path, value: &Value, old: Option<&Value>, before: Before<'_>) {
        let kind = node.schema.kind.map_or("", |kind| kind.name());
        if node.rules.is_empty() {
            return;
        }
        if self.budget <= 0 {
            let why = "validation failed due to running out of cost budget, no further validation rules will be run";
            self.verdict.errors.push(FieldError::invalid(path, kind, why));
            self.budget = -1;
            return;
        }
        for rule in &node.rules {
            self.rule(rule, kind, path, Seen { schema: &node.schema, value, old }, before);
            if self.budget < 0 {
                return;
            }
        }
    }

    fn rule(&mut self, rule: &Rule, kind: &str, path: &Path, seen: Seen<'_>, before: Before<'_>) {
        let mut refuse = |why: String| self.verdict.errors.push(FieldError::invalid(path, kind, why));
        let program = match &rule.program {
            Ok(program) => program,
            Err(why) => return refuse(format!("rule compile error: {why}")),
        };
        if program.uses_old() && seen.old.is_none() && !rule.optional_old {
            return;
        }
        let (outcome, cost) = program.truth(seen, rule.optional_old);
        if self.budget < i64::try_from(cost).unwrap_or(i64::MAX) {
            refuse(
                "validation failed due to running out of cost budget, no further validation rules will be run".to_owned(),
            );
            self.budget = -1;
            return;
        }
        self.budget -= i64::try_from(cost).unwrap_or(i64::MAX);
        match outcome {
            Ok(true) => {}
            Ok(false) => self.broken(rule, kind, path, seen, (program.uses_old(), before)),
            Err(Failure { class: Class::NoSuchOverload, text }) => refuse(format!(
                "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                rule.name()
            )),
            Err(Failure { class: Class::Cost, text }) => {
                refuse(format!(
                    "'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                    rule.name()
                ));
                self.budget = -1;
            }
            Err(failure) => refuse(format!("{} evaluating rule: {}", failure.text, rule.name())),
        }
    }

    /// A rule that does not hold: an error, or a warning where it did not hold before either.
    fn broken(
        &mut self,
        rule: &Rule,
        kind: &str,
        path: &Path,
        seen: Seen<'_>,
        (transition, before): (bool, Before<'_>),
    ) {
        let path = if rule.field_path.is_empty() { path.clone() } else { path.child(&rule.field_path) };
        let forgiven = !transition && before.forgives();
        let mut tell = |error: FieldError| {
            if forgiven {
                self.verdict.warnings.push(error.to_string());
            } else {
                self.verdict.errors.push(error);
            }
        };
        let made = match made_message(rule, seen, &mut self.budget) {
            Ok(made) => made,
            Err(why) => {
                tell(FieldError::invalid(&path, kind, why));
                self.budget = -1;
                return;
            }
        };
        let detail = made.unwrap_or_else(|| match rule.message.trim() {
            "" => format!("failed rule: {}", rule.name()),
            message => message.to_owned(),
        });
        let shown = if matches!(kind, "object" | "array") { None } else { Some(seen.value.clone()) };
        tell(match rule.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(&path, detail),
            Some("FieldValueRequired") => FieldError::required(&path, detail),
            Some("FieldValueDuplicate") => FieldError::new(ErrorKind::Duplicate, &path, shown, ""),
            _ => FieldError::new(ErrorKind::Invalid, &path, shown, detail),
        });
    }
}

impl Rule {
    /// As errors call it: by its message, or by its text.
    fn name(&self) -> &str {
        let message = self.message.trim();
        if message.is_empty() { self.source.trim() } else { message }
    }
}

/// The message that an expression makes; none if there is no such expression or it makes none. An error ends all rules.
fn made_message(rule: &Rule, seen: Seen<'_>, budget: &mut i64) -> Result<Option<String>, String> {
    let Some(program) = &rule.message_program else { return Ok(None) };
    let (outcome, cost) = program.text(seen, rule.optional_old);
    let cost = i64::try_from(cost).unwrap_or(i64::MAX);
    if cost > *budget {
        return Err(
            "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                .to_owned(),
        );
    }
    *budget -= cost;
    match outcome {
        Ok(text) => {
            let text = text.trim();
            let fits = !text.is_empty() && text.len() <= MOST_MESSAGE && !text.contains('\n');
            Ok(fits.then(|| text.to_owned()))
        }
        Err(Failure { class: Class::Cost, .. }) => Err(format!(
            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
            crate::go::quote(&rule.message_source)
        )),
        Err(_) => Ok(None),
    }
}

//! What the next reconcile of an object would do, given captures: one for each controller of its kind.

use super::CommandError;
use super::changes::changes;
use crate::certificates::RENEW_AT;
use crate::controller::{FinalizerChange, Planned, Preview, Previewer};
use crate::kind::Kind;
use crate::observed::Observed;
use crate::plan::{Effect, Propagation};
use serde_json::{Value, json};
use std::fmt::Write;

/// Decides on captures, as text or as JSON.
pub(crate) fn plan(
    captures: Vec<Value>,
    controllers: &[Previewer],
    as_json: bool,
) -> Result<String, CommandError> {
    let plans: Vec<One> =
        captures.iter().map(|capture| One::of(capture, controllers)).collect::<Result<_, _>>()?;
    Ok(match as_json {
        true => format!("{:#}\n", plans.iter().map(One::to_json).collect::<Value>()),
        false => plans.iter().map(One::to_text).collect(),
    })
}

/// The captures in what `capture` printed: one, or one for each controller; or only those of a controller.
pub(crate) fn captures(printed: Value, controller: Option<&str>) -> Vec<Value> {
    let mut captures = match printed {
        Value::Array(captures) => captures,
        capture => vec![capture],
    };
    captures.retain(|one| controller.is_none_or(|name| one.get("controller").is_none_or(|of| of == name)));
    captures
}

/// What one controller would do.
struct One<'a> {
    controller: &'a Previewer,
    namespace: &'a str,
    name: &'a str,
    observed: Observed,
    preview: Preview,
}

impl<'a> One<'a> {
    fn of(captured: &'a Value, controllers: &'a [Previewer]) -> Result<Self, CommandError> {
        let part = |name: &str| {
            captured.get(name).ok_or_else(|| CommandError(format!("no capture: `{name}` is missing")))
        };
        let (object, observed) = (part("object")?, part("observed")?);
        let observed =
            Observed::from_json(observed).map_err(|why| CommandError(format!("no capture: {why}")))?;
        let controller = find(captured, object, controllers)?;
        let preview = controller.preview(object.clone(), &observed).map_err(CommandError)?;
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        Ok(Self { controller, namespace, name, observed, preview })
    }

    fn to_json(&self) -> Value {
        let mut json = json!({
            "controller": self.controller.name,
            "kind": self.controller.kind.kind,
            "namespace": self.namespace,
            "name": self.name,
        });
        match &self.preview {
            Preview::Nothing(why) => json["nothing"] = why.as_str().into(),
            Preview::Paused(annotation) => json["pausedBy"] = annotation.as_str().into(),
            Preview::NotPure => json["nothing"] = NOT_PURE.into(),
            Preview::Refused(reason) => json["refusal"] = json!(reason),
            Preview::Planned(planned) => {
                json["complete"] = planned.plan.is_complete().into();
                json["plan"] = json!(planned.plan);
                json["prunes"] = planned
                    .prunes
                    .iter()
                    .map(|(kind, key)| json!({ "kind": kind, "namespace": key.namespace(), "name": key.name() }))
                    .collect();
                json["prunesAllOf"] = json!(planned.earlier_kinds);
                if let Some((name, change)) = &planned.finalizer {
                    json["finalizer"] = json!({ "name": name, "change": finalizer_word(*change) });
                }
            }
        }
        json
    }

    fn to_text(&self) -> String {
        let place = match self.namespace {
            "" => self.name.to_owned(),
            namespace => format!("{namespace}/{}", self.name),
        };
        let title = format!("{} {place} by {}", self.controller.kind, self.controller.name);
        match &self.preview {
            Preview::Nothing(why) => format!("{title}: nothing will be done: {why}\n"),
            Preview::Paused(by) => {
                format!("{title}: paused: nothing will be done while annotation {by} is \"true\"\n")
            }
            Preview::NotPure => format!("{title}: {NOT_PURE}\n"),
            Preview::Refused(reason) => format!("{title}: refused\n  {reason}\n"),
            Preview::Planned(planned) => self.planned(&title, planned),
        }
    }

    fn planned(&self, title: &str, planned: &Planned) -> String {
        let mut text = format!("{title}: {}\n", planned.plan);
        // Writing to a text cannot fail.
        if let Some((name, FinalizerChange::Added)) = &planned.finalizer {
            let _ = writeln!(text, "finalizer {name}: is added");
        }
        for step in planned.plan.steps() {
            let (Some(kind), name) = (step.effect.kind(), step.effect.name()) else { continue };
            let namespace = kind.namespaced.then(|| step.effect.namespace().unwrap_or(self.namespace));
            let live = self.observed.json_of(kind, namespace, name);
            let _ = writeln!(text, "{kind} {name}: {}", summary(&step.effect, kind, live.as_ref()));
        }
        for (kind, key) in &planned.prunes {
            let name = match key.namespace() {
                Some(namespace) if namespace != self.namespace => format!("{namespace}/{}", key.name()),
                _ => key.name().to_owned(),
            };
            let _ = writeln!(text, "{kind} {name}: is deleted, since the plan does not want it (prune)");
        }
        for kind in &planned.earlier_kinds {
            let _ = writeln!(
                text,
                "{kind}: all that an earlier version of the controller made for it are deleted (prune)"
            );
        }
        if let Some((name, change @ (FinalizerChange::Removed | FinalizerChange::Stays))) = &planned.finalizer
        {
            let _ = writeln!(
                text,
                "finalizer {name}: {}",
                match change {
                    FinalizerChange::Stays => "stays while the plan waits",
                    _ => "is removed once nothing above is left to do, and then the object is deleted",
                }
            );
        }
        text
    }
}

const NOT_PURE: &str = "the controller writes by itself and does not decide purely, so there is no plan";

fn finalizer_word(change: FinalizerChange) -> &'static str {
    match change {
        FinalizerChange::Added => "added",
        FinalizerChange::Removed => "removed",
        FinalizerChange::Stays => "stays",
    }
}

fn find<'a>(
    captured: &Value,
    object: &Value,
    controllers: &'a [Previewer],
) -> Result<&'a Previewer, CommandError> {
    let named = captured.get("controller").and_then(Value::as_str);
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let found = controllers.iter().find(|controller| match named {
        Some(name) => controller.name == name,
        None => controller.kind.kind == kind,
    });
    found.ok_or_else(|| {
        let names: Vec<&str> = controllers.iter().map(|controller| controller.name.as_str()).collect();
        let wanted = named.unwrap_or(kind);
        CommandError(format!(
            "no controller is called {wanted:?}, or is for that kind: there are {}",
            names.join(", ")
        ))
    })
}

fn summary(effect: &Effect, kind: &Kind, live: Option<&Value>) -> String {
    match (effect, live) {
        (Effect::Delete { .. }, None) => "stays as it is".to_owned(),
        (Effect::CreateOnce { .. }, Some(live)) => match live["metadata"]["annotations"][RENEW_AT].as_str() {
            Some(at) => format!("stays as it is; its certificate is renewed at {at}"),
            None => "stays as it is".to_owned(),
        },
        (Effect::Delete { propagation, .. }, Some(_)) => match propagation {
            Propagation::Background => "is deleted".to_owned(),
            Propagation::Foreground => "is deleted once its dependents are".to_owned(),
            Propagation::Orphan => "is deleted, and its dependents stay".to_owned(),
        },
        (
            Effect::Apply { object, .. } | Effect::CreateOnce { object, .. } | Effect::Claim { object, .. },
            live,
        ) => {
            let lines = changes(kind, object, live);
            let verdict = match (live, lines.is_empty()) {
                (None, _) => "is created",
                (Some(_), true) => "stays as it is",
                (Some(_), false) if effect.recreates() => {
                    "changes, or is created anew if it cannot be changed"
                }
                (Some(_), false) => "changes",
            };
            lines.iter().fold(verdict.to_owned(), |text, line| format!("{text}\n    {line}"))
        }
        (Effect::Patch { .. }, None) => "is not there".to_owned(),
        (Effect::Patch { patch, .. }, Some(live)) => {
            let lines = changes(kind, patch, Some(live));
            let verdict = if lines.is_empty() { "stays as it is" } else { "changes" };
            lines.iter().fold(verdict.to_owned(), |text, line| format!("{text}\n    {line}"))
        }
        (Effect::Act(_), _) => "is done".to_owned(),
    }
}

//! What an operator would do, given a capture.

use super::CommandError;
use super::changes::changes;
use crate::controller::{Decider, Decision};
use crate::kind::Kind;
use crate::observed::Observed;
use crate::plan::{Effect, Plan};
use serde_json::{Value, json};
use std::fmt::Write;

/// Decides on a capture, as text or as JSON.
pub(crate) fn plan(captured: &str, controllers: &[Decider], as_json: bool) -> Result<String, CommandError> {
    let captured: Value = serde_json::from_str(captured)
        .map_err(|error| CommandError(format!("no capture: it is no JSON: {error}")))?;
    let object =
        captured.get("object").ok_or_else(|| CommandError("no capture: `object` is missing".into()))?;
    let observed =
        captured.get("observed").ok_or_else(|| CommandError("no capture: `observed` is missing".into()))?;
    let observed = Observed::from_json(observed).map_err(|why| CommandError(format!("no capture: {why}")))?;
    let controller = find(&captured, object, controllers)?;
    let kind = &controller.kind;
    let decision = controller.decide(object.clone(), &observed).map_err(CommandError)?;
    if as_json {
        return Ok(format!("{:#}\n", to_json(&controller.name, &decision)));
    }
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let place = match text("/metadata/namespace") {
        "" => text("/metadata/name").to_owned(),
        namespace => format!("{namespace}/{}", text("/metadata/name")),
    };
    let title = format!("{kind} {place}");
    Ok(match decision {
        None => {
            format!("{title}: {} does not decide purely about it, so there is no plan\n", controller.name)
        }
        Some(Err(refusal)) => format!("{title}: refused\n  {}\n", refusal.reason()),
        Some(Ok(plan)) => to_text(&title, &plan, &observed, text("/metadata/namespace")),
    })
}

fn find<'a>(
    captured: &Value,
    object: &Value,
    controllers: &'a [Decider],
) -> Result<&'a Decider, CommandError> {
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

fn to_json(controller: &str, decision: &Decision) -> Value {
    match decision {
        None => json!({ "controller": controller }),
        Some(Ok(plan)) => json!({ "controller": controller, "complete": plan.is_complete(), "plan": plan }),
        Some(Err(refusal)) => json!({ "controller": controller, "refusal": refusal.reason() }),
    }
}

fn to_text(title: &str, plan: &Plan, observed: &Observed, home: &str) -> String {
    let mut text = format!("{title}: {plan}\n");
    for step in plan.steps() {
        let (Some(kind), name) = (step.effect.kind(), step.effect.name()) else { continue };
        let namespace = kind.namespaced.then(|| step.effect.namespace().unwrap_or(home));
        let live = observed.json_of(kind, namespace, name);
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{kind} {name}: {}", summary(&step.effect, kind, live.as_ref()));
    }
    text
}

fn summary(effect: &Effect, kind: &Kind, live: Option<&Value>) -> String {
    match (effect, live) {
        (Effect::Delete { .. }, None) | (Effect::CreateOnce { .. }, Some(_)) => "stays as it is".to_owned(),
        (Effect::Delete { .. }, Some(_)) => "goes".to_owned(),
        (
            Effect::Apply { object, .. } | Effect::CreateOnce { object, .. } | Effect::Claim { object, .. },
            live,
        ) => {
            let lines = changes(kind, object, live);
            let verdict = match (live, lines.is_empty()) {
                (None, _) => "is made",
                (Some(_), true) => "stays as it is",
                (Some(_), false) => "changes",
            };
            lines.iter().fold(verdict.to_owned(), |text, line| format!("{text}\n    {line}"))
        }
        (Effect::Act(_), _) => "is done".to_owned(),
    }
}

//! A plan as people read it: one line per step, with its reason, and nothing secret.

use super::{Effect, Plan, Until};
use std::fmt;

/// Its verb and what it is about, such as `apply ConfigMap settings`.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb())?;
        if let Some(kind) = self.kind() {
            write!(f, "{kind} ")?;
        }
        if let Some(namespace) = self.namespace() {
            write!(f, "{namespace}/")?;
        }
        f.write_str(self.name())?;
        if let Self::Act(action) = self {
            write!(f, " {}", action.key())?;
        }
        Ok(())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_complete() { "complete" } else { "waiting" };
        let steps = self.steps().len();
        write!(f, "{state}, {steps} step{}", if steps == 1 { "" } else { "s" })?;
        if let Err(error) = self.check() {
            write!(f, "\n  refused: {error}")?;
        }
        for (number, step) in self.steps().iter().enumerate() {
            write!(f, "\n{:>3}. {} ({})", number + 1, step.effect, step.reason)?;
        }
        for wait in self.waits() {
            write!(f, "\n  waits: {}", wait.reason)?;
            match wait.until {
                Until::Change => {}
                Until::After(duration) => write!(f, ", for {duration:?} at most")?,
                Until::At(time) => write!(f, ", until {time} at most")?,
            }
        }
        for stated in self.stated() {
            let holds = stated.holds.map_or("unknown".to_owned(), |holds| holds.to_string());
            write!(f, "\n  condition: {} is {holds} ({})", stated.of, stated.reason)?;
        }
        if let Some(status) = self.reported() {
            write!(f, "\n  status: {status}")?;
        }
        for note in self.notes() {
            write!(f, "\n  {}: {}", if note.warning { "warning" } else { "event" }, note.reason)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Generate, Plan, Reason};
    use k8s_openapi::api::core::v1::Secret;
    use kube::core::ObjectMeta;
    use std::time::Duration;

    fn secret() -> Secret {
        Secret {
            metadata: ObjectMeta { name: Some("login".into()), ..Default::default() },
            string_data: Some([("user".to_owned(), "hunter2".to_owned())].into()),
            ..Default::default()
        }
    }

    #[test]
    fn a_plan_reads_as_a_list_with_reasons() {
        let plan = Plan::new()
            .create_once(
                secret(),
                Generate::new().text("/stringData/password", 16),
                Reason::new("LogsIn", "a login that nobody chose"),
            )
            .wait(Reason::new("Starts", "the server starts"), Duration::from_secs(5));
        let printed = plan.to_string();
        assert_eq!(
            printed,
            "waiting, 1 step\n  1. create once Secret login (LogsIn: a login that nobody chose)\n  waits: Starts: the server starts, for 5s at most"
        );
    }

    #[test]
    fn nothing_secret_is_printed_in_any_form() {
        let plan = Plan::new().apply(secret(), Reason::new("LogsIn", "x"));
        assert!(!plan.to_string().contains("hunter2"));
        assert!(!format!("{plan:?}").contains("hunter2"));
        assert!(!serde_json::to_string(&plan).unwrap().contains("hunter2"));
        assert!(format!("{plan:?}").contains("user"), "which entries there are is no secret");
    }
}

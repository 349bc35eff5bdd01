//! What a controller declared that its plans do, and whether a plan keeps to it.

use super::parts::{Mode, Parts};
use crate::action::{Action, Guard};
use crate::kind::Kind;
use crate::plan::{Effect, Plan};
use crate::write::WriteError;
use std::collections::BTreeSet;

/// What a controller declared that its plans do.
pub(super) struct Declared {
    owns: BTreeSet<Kind>,
    deletes: BTreeSet<Kind>,
    claims: BTreeSet<Kind>,
    watches: BTreeSet<Kind>,
    patches: BTreeSet<Kind>,
    guards: BTreeSet<Kind>,
    actions: BTreeSet<String>,
    /// A reconciler owns what it declares, and may do everything with it.
    reconciles: bool,
}

impl Parts {
    pub(super) fn declared(&self) -> Declared {
        // What may be pruned, or is deleted with the object, may be deleted by a plan too.
        let collected = self.collected();
        let deletes = [&self.deletes, &self.prunes, &collected];
        Declared {
            owns: self.owns.iter().map(|watched| watched.kind.clone()).collect(),
            deletes: deletes.into_iter().flatten().cloned().collect(),
            claims: self.claims.clone(),
            watches: self.watches.iter().map(|(watched, _, _)| watched.kind.clone()).collect(),
            patches: self.patches.clone(),
            guards: self.guards.clone(),
            actions: self.actions.keys().cloned().collect(),
            reconciles: matches!(self.mode, Mode::Reconciling(_)),
        }
    }
}

impl Declared {
    /// Refuses a plan of which any step is not declared, before the first is carried out.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), WriteError> {
        plan.check().map_err(WriteError::Unserializable)?;
        plan.steps().iter().try_for_each(|step| self.check_effect(&step.effect))
    }

    /// The kinds that guards look at are declared: they are read live.
    fn check_guards(&self, action: &Action) -> Result<(), WriteError> {
        let others = action.guards().iter().filter_map(Guard::other);
        let undeclared = others.map(|(kind, _, _)| kind).find(|kind| !self.guards.contains(kind));
        match undeclared {
            Some(kind) => Err(WriteError::UndeclaredWrite { kind: kind.kind.to_string(), declare: "guards" }),
            None => Ok(()),
        }
    }

    fn check_effect(&self, effect: &Effect) -> Result<(), WriteError> {
        let kind = match effect {
            Effect::Act(action) if self.actions.contains(action.name()) => return self.check_guards(action),
            Effect::Act(action) => return Err(WriteError::UnknownAction(action.name().to_owned())),
            Effect::Apply { kind, .. }
            | Effect::CreateOnce { kind, .. }
            | Effect::Claim { kind, .. }
            | Effect::Patch { kind, .. }
            | Effect::Delete { kind, .. } => kind,
        };
        let of_others = match effect {
            Effect::Patch { .. } => self.watches.contains(kind),
            Effect::Delete { .. } => self.watches.contains(kind) && self.deletes.contains(kind),
            _ => false,
        };
        if !self.owns.contains(kind) && !of_others {
            return Err(WriteError::Undeclared(kind.kind.to_string()));
        }
        if effect.name().is_empty() {
            return Err(WriteError::NoName(kind.kind.to_string()));
        }
        let undeclared =
            |declare: &'static str| Err(WriteError::UndeclaredWrite { kind: kind.kind.to_string(), declare });
        match effect {
            Effect::Delete { .. } | Effect::Apply { recreate: Some(_), .. }
                if !self.reconciles && !self.deletes.contains(kind) =>
            {
                undeclared("deletes")
            }
            Effect::Patch { .. } if !self.patches.contains(kind) => undeclared("patches"),
            Effect::Claim { .. } if !self.reconciles && !self.claims.contains(kind) => undeclared("claims"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::write::WriteError;
    use crate::{Action, Controller, Guard, Plan, Reason};
    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    use kube::core::ObjectMeta;

    fn controller() -> Controller<Pod> {
        Controller::deciding(|_, _| Ok(Plan::new()))
    }

    fn map(name: &str) -> ConfigMap {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..Default::default() };
        ConfigMap { metadata, ..Default::default() }
    }

    fn why() -> Reason {
        Reason::new("Why", "why")
    }

    #[test]
    fn a_plan_keeps_to_what_its_controller_declared() {
        let makes = Plan::new().apply(map("a"), why());
        assert!(
            matches!(controller().check(&makes), Err(WriteError::Undeclared(kind)) if kind == "ConfigMap")
        );
        assert!(controller().owns::<ConfigMap>().check(&makes).is_ok());
        let nameless = Plan::new().apply(map(""), why());
        assert!(matches!(controller().owns::<ConfigMap>().check(&nameless), Err(WriteError::NoName(_))));
        let deletes = Plan::new().delete::<ConfigMap>("a", why());
        let refused = controller().owns::<ConfigMap>().check(&deletes).unwrap_err();
        assert!(refused.to_string().contains("add .deletes::<ConfigMap>()"), "{refused}");
        for allowed in [controller().deletes::<ConfigMap>(), controller().prunes::<ConfigMap>()] {
            assert!(allowed.owns::<ConfigMap>().check(&deletes).is_ok());
        }
        let watching = || controller().watches::<ConfigMap>(|_| crate::Relation::all());
        assert!(watching().check(&deletes).is_err());
        assert!(watching().deletes::<ConfigMap>().check(&deletes).is_ok());
        let patches = Plan::new().patch::<ConfigMap>("a", serde_json::json!({"data": {"a": "b"}}), why());
        let refused = watching().check(&patches).unwrap_err();
        assert!(refused.to_string().contains("add .patches::<ConfigMap>()"), "{refused}");
        assert!(watching().patches::<ConfigMap>().check(&patches).is_ok());
        assert!(watching().patches::<ConfigMap>().check(&makes).is_err(), "what others own is not applied");
        let acts = Plan::new().action(Action::new("dump", "1"), why());
        assert!(matches!(controller().check(&acts), Err(WriteError::UnknownAction(_))));
        let guarded = || Action::new("dump", "1").only_if(Guard::of::<Secret>("s", Guard::NotDeleted));
        let acting = || controller().action("dump", |_, _, _| async { Ok(()) });
        let acts = Plan::new().action(guarded(), why());
        let refused = acting().check(&acts).unwrap_err();
        assert!(refused.to_string().contains("add .guards::<Secret>()"), "{refused}");
        assert!(acting().guards::<Secret>().check(&acts).is_ok());
        let second = Plan::new().apply(map("a"), why()).delete::<Secret>("s", why());
        assert!(controller().owns::<ConfigMap>().check(&second).is_err(), "every step is looked at");
    }
}

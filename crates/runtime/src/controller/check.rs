//! Whether a controller can be run as it was described.

use super::parts::Parts;
use crate::kind::Kind;

/// A controller that cannot be run as it was described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Its name is no label value.
    #[error("a controller cannot be named {0:?}: use lower-case letters, digits and dashes, 63 at most")]
    Name(String),
    /// Two controllers would write as one.
    #[error("two controllers are named {0:?}: name one of them otherwise with .named")]
    Twice(String),
    /// It prunes a kind that it does not own.
    #[error("controller {controller} prunes {kind} and does not own it: add .owns for it")]
    PrunesUnowned {
        /// Which controller.
        controller: String,
        /// Which kind.
        kind: String,
    },
    /// It says that its plans do something to a kind that it does not own.
    #[error("controller {controller} {says} {kind} and does not own it: add .owns for it")]
    SaysOfUnowned {
        /// Which controller.
        controller: String,
        /// Which kind.
        kind: String,
        /// What it says.
        says: &'static str,
    },
    /// It says something of a kind that it does not watch.
    #[error("controller {controller} {says} {kind} and does not watch it: add .owns or .watches for it")]
    SaysOfUnwatched {
        /// Which controller.
        controller: String,
        /// Which kind.
        kind: String,
        /// What it says.
        says: &'static str,
    },
    /// It prunes a kind whose loss cannot be mended, and does not say that it means to.
    #[error(
        "controller {controller} prunes {kind}, which holds data: declare it with .prunes_precious if you mean it"
    )]
    PrunesPrecious {
        /// Which controller.
        controller: String,
        /// Which kind.
        kind: String,
    },
}

impl Parts {
    /// Whether it can be run.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let name = self.name.as_bytes();
        let edges =
            name.first().is_some_and(|byte| *byte != b'-') && name.last().is_some_and(|byte| *byte != b'-');
        if !edges || name.len() > 63 || !name.iter().all(|byte| inner(*byte)) {
            return Err(ConfigError::Name(self.name.clone()));
        }
        for kind in &self.prunes {
            let (controller, name) = (self.name.clone(), kind.kind.to_string());
            if self.owns.iter().all(|owned| owned.kind != *kind) {
                return Err(ConfigError::PrunesUnowned { controller, kind: name });
            }
            if kind.is_precious() && !self.prunes_precious.contains(kind) {
                return Err(ConfigError::PrunesPrecious { controller, kind: name });
            }
        }
        let owned = |kind: &Kind| self.owns.iter().any(|owned| owned.kind == *kind);
        let watched = |kind: &Kind| self.watches.iter().any(|(watched, _, _)| watched.kind == *kind);
        let unwatched = |kind: &&Kind| **kind != self.kind && !owned(kind) && !watched(kind);
        let tracked = self.tracked.iter().find(|kind| unwatched(kind)).map(|kind| (kind, "tracks"));
        let judged =
            self.predicates.keys().find(|kind| unwatched(kind)).map(|kind| (kind, "has a predicate for"));
        if let Some((kind, says)) = tracked.or(judged) {
            let (controller, kind) = (self.name.clone(), kind.kind.to_string());
            return Err(ConfigError::SaysOfUnwatched { controller, kind, says });
        }
        if let Some(kind) = self.patches.iter().find(|kind| !watched(kind)) {
            let (controller, kind) = (self.name.clone(), kind.kind.to_string());
            return Err(ConfigError::SaysOfUnwatched { controller, kind, says: "patches" });
        }
        let undeletable = self.deletes.iter().find(|kind| !owned(kind) && !watched(kind));
        let unclaimable = self.claims.iter().find(|kind| !owned(kind));
        for (unowned, says) in [(undeletable, "deletes"), (unclaimable, "claims")] {
            if let Some(kind) = unowned {
                let (controller, kind) = (self.name.clone(), kind.kind.to_string());
                return Err(ConfigError::SaysOfUnowned { controller, kind, says });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::plan::Plan;
    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

    fn controller() -> Controller<Pod> {
        Controller::deciding(|_, _| Ok(Plan::new()))
    }

    #[test]
    fn a_controller_is_named_after_its_kind() {
        assert_eq!(controller().parts.name, "pod");
        assert_eq!(controller().parts.check(), Ok(()));
    }

    #[test]
    fn a_name_that_no_label_can_hold_is_refused() {
        for name in ["", "-a", "a-", "A", "a/b", &"x".repeat(64)] {
            assert_eq!(controller().named(name).parts.check(), Err(ConfigError::Name(name.into())));
        }
    }

    #[test]
    fn pruning_is_for_what_one_owns_and_secrets_are_asked_about_twice() {
        assert!(matches!(
            controller().prunes::<ConfigMap>().parts.check(),
            Err(ConfigError::PrunesUnowned { .. })
        ));
        for says in [controller().deletes::<ConfigMap>(), controller().claims::<ConfigMap>()] {
            assert!(matches!(says.parts.check(), Err(ConfigError::SaysOfUnowned { .. })));
        }
        assert_eq!(controller().owns::<ConfigMap>().deletes::<ConfigMap>().parts.check(), Ok(()));
        assert_eq!(controller().owns::<ConfigMap>().prunes::<ConfigMap>().parts.check(), Ok(()));
        for says in
            [controller().tracks_last_change::<ConfigMap>(), controller().predicate::<ConfigMap>(|_, _| true)]
        {
            assert!(matches!(says.parts.check(), Err(ConfigError::SaysOfUnwatched { .. })));
        }
        assert_eq!(
            controller().retains::<ConfigMap>().tracks_last_change::<ConfigMap>().parts.check(),
            Ok(())
        );
        let careless = controller().owns::<Secret>().prunes::<Secret>();
        assert!(matches!(careless.parts.check(), Err(ConfigError::PrunesPrecious { .. })));
        assert_eq!(controller().owns::<Secret>().prunes_precious::<Secret>().parts.check(), Ok(()));
    }
}

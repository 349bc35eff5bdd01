//! What a plan cannot express: a value of the author's whose `Serialize` fails.

use super::Plan;
use crate::reason::{Reason, Refusal};
use serde::Serialize;
use serde_json::Value;

/// Something in a plan cannot be serialized as JSON, such as a map whose keys are not strings. The plan is refused as a whole:
/// it does not say what its author meant.
///
/// ```
/// # use std::collections::BTreeMap;
/// # use windlass::Plan;
/// let plan = Plan::new().status(BTreeMap::from([((1, 2), 3)]));
/// assert_eq!(plan.check().unwrap_err().what, "the status");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{what} in the plan cannot be serialized: {why}")]
pub struct Unserializable {
    /// The kind and name of the object, or what else it is.
    pub what: String,
    /// What the serializer says.
    pub why: String,
}

impl Unserializable {
    /// Its name as a condition's reason.
    pub(crate) const LABEL: &'static str = "SerializationFailed";
}

impl From<Unserializable> for Refusal {
    fn from(error: Unserializable) -> Self {
        Self::new(Reason::new(Unserializable::LABEL, error.to_string()))
    }
}

impl Plan {
    /// Whether the plan says what its author meant: everything in it could be serialized.
    ///
    /// # Errors
    /// The first that could not. A controller refuses the plan then.
    pub fn check(&self) -> Result<(), Unserializable> {
        self.unserializable.clone().map_or(Ok(()), Err)
    }

    /// The value, or null and a note that the plan is not to be carried out.
    pub(super) fn note<T: Default>(&mut self, value: Result<T, Unserializable>) -> T {
        value.unwrap_or_else(|error| {
            self.unserializable.get_or_insert(error);
            T::default()
        })
    }
}

pub(super) fn to_json(
    value: &impl Serialize,
    what: impl FnOnce() -> String,
) -> Result<Value, Unserializable> {
    serde_json::to_value(value).map_err(|error| Unserializable { what: what(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::kind::Kind;
    use k8s_openapi::api::core::v1::ConfigMap;
    use std::collections::BTreeMap;

    fn no_json() -> BTreeMap<(u8, u8), u8> {
        BTreeMap::from([((1, 2), 3)])
    }

    fn wrong(plan: &Plan) -> String {
        Refusal::from(plan.check().unwrap_err()).to_string()
    }

    #[test]
    fn what_is_no_json_is_named_and_not_null() {
        let why = || Reason::new("Why", "why");
        let object = Plan::new().apply_of(Kind::of::<ConfigMap>(), no_json(), why());
        assert_eq!(
            wrong(&object),
            "SerializationFailed: ConfigMap in the plan cannot be serialized: key must be a string"
        );
        let action = Plan::new().action(Action::new("backup", "monday").with(no_json()), why());
        assert!(wrong(&action).contains("the arguments of action backup in the plan"), "{}", wrong(&action));
        let status = Plan::new().status(no_json());
        assert!(wrong(&status).contains("the status in the plan"));
        assert!(status.to_string().contains("refused: the status in the plan"), "{status}");
        assert!(Plan::new().status(1).check().is_ok());
    }
}

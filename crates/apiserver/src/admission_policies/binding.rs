//! One binding of a policy, as it is stored.

use crate::match_resources::MatchResources;
use crate::object::{list, text};
use serde_json::Value;
use windlass_schema::selector::Labels;

/// To what a policy is bound, and with which parameters.
pub(crate) struct Binding {
    pub(crate) name: String,
    pub(crate) policy: String,
    /// Which of the requests that the policy is about; without it all of them.
    pub(crate) matching: Option<MatchResources>,
    pub(crate) param_ref: Option<ParamRef>,
    /// What follows from a validation that fails: `Deny`, `Warn`, `Audit`.
    pub(crate) actions: Vec<String>,
}

/// Which objects are parameters.
pub(crate) struct ParamRef {
    /// Empty if a selector says so.
    pub(crate) name: String,
    /// Empty for the namespace of the request.
    pub(crate) namespace: String,
    pub(crate) selector: Option<Labels>,
    /// Whether the request is denied if there are none.
    pub(crate) denies_without: bool,
}

impl Binding {
    pub(super) fn read(name: &str, object: &Value) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let part = |name: &str| spec.get(name).filter(|part| part.is_object());
        let actions = list(spec, &["validationActions"]).iter().filter_map(Value::as_str);
        Self {
            name: name.to_owned(),
            policy: text(spec, &["policyName"]).to_owned(),
            matching: part("matchResources").map(MatchResources::of_policy),
            param_ref: part("paramRef").map(|written| ParamRef {
                name: text(written, &["name"]).to_owned(),
                namespace: text(written, &["namespace"]).to_owned(),
                selector: written.get("selector").and_then(Labels::from_json),
                denies_without: text(written, &["parameterNotFoundAction"]) == "Deny",
            }),
            actions: actions.map(str::to_owned).collect(),
        }
    }
}

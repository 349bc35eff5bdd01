//! The files of webhooks: a handler with its tests for defaults, one for validation, and a conversion for each further version.

use super::code_names::{Naming, header};
use serde::{Deserialize, Serialize};

/// What a webhook is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookSort {
    /// It sets defaults.
    Defaulting,
    /// It validates.
    Validation,
    /// It converts between the versions.
    Conversion,
}

impl WebhookSort {
    fn word(self) -> &'static str {
        match self {
            Self::Defaulting => "defaulting",
            Self::Validation => "validation",
            Self::Conversion => "conversion",
        }
    }
}

/// The module of a webhook, below `webhook`.
pub(super) fn module(naming: &Naming<'_>, sort: WebhookSort) -> String {
    format!("{}_{}", naming.flat().trim_end_matches('_'), sort.word())
}

/// The module of the conversion of a version.
pub(super) fn conversion_module(naming: &Naming<'_>, version: &str) -> String {
    format!("{}_{version}", module(naming, WebhookSort::Conversion))
}

/// The type of a version, by its whole path.
pub(super) fn path_of(naming: &Naming<'_>, version: &str) -> String {
    format!("api::{}::{}::{}", naming.api_module(version), naming.module, naming.kind.kind)
}

/// The handler that sets defaults.
pub(super) fn defaulting(naming: &Naming<'_>) -> String {
    let text = "//! The defaults of a `%KIND%` that its schema cannot say, such as one that follows from another field.

use crate::%PATH%;
use std::collections::BTreeMap;
use windlass::webhook::Request;

/// What is set where the user says nothing. Constants are better off in the type: `#[serde(default = \"...\")]`.
pub fn default(object: &mut %TYPE%, _: &Request<%TYPE%>) {
    let labels = object.metadata.labels.get_or_insert_with(BTreeMap::new);
    labels.entry(\"app.kubernetes.io/part-of\".to_owned()).or_insert_with(|| \"%LOWER%\".to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(labels: serde_json::Value) -> %TYPE% {
        let sample = serde_json::json!({
            \"apiVersion\": \"%APIVERSION%\", \"kind\": \"%KIND%\",
            \"metadata\": { \"name\": \"sample\", \"labels\": labels }, \"spec\": %SPEC%,
        });
        serde_json::from_value(sample).expect(\"a sample\")
    }

    #[test]
    fn what_the_user_says_stays() {
        for (said, label) in [(\"\", \"%LOWER%\"), (\"mine\", \"mine\")] {
            let labels = match said {
                \"\" => serde_json::json!({}),
                said => serde_json::json!({ \"app.kubernetes.io/part-of\": said }),
            };
            let mut object = sample(labels);
            default(&mut object, &Request::create());
            assert_eq!(object.metadata.labels.unwrap_or_default()[\"app.kubernetes.io/part-of\"], label);
        }
    }
}
";
    filled(naming, text)
}

/// The handler that validates.
pub(super) fn validation(naming: &Naming<'_>) -> String {
    let text = "//! What a `%KIND%` must be that its schema cannot say.

use crate::%PATH%;
use windlass::webhook::{Admission, Request};

/// Bounds and rules on single fields are better off in the type: `#[schemars(range(min = 1))]`, or a CEL rule.
pub fn validate(object: &%TYPE%, request: &Request<%TYPE%>) -> Admission {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    // What is there already stays valid: nobody can give it another name.
    let fits = request.old().is_some() || name.len() <= 50;
    Admission::allow().require(fits, \"metadata.name\", \"must have at most 50 characters: names of its parts begin with it\")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str) -> %TYPE% {
        let sample = serde_json::json!({
            \"apiVersion\": \"%APIVERSION%\", \"kind\": \"%KIND%\", \"metadata\": { \"name\": name }, \"spec\": %SPEC%,
        });
        serde_json::from_value(sample).expect(\"a sample\")
    }

    #[test]
    fn a_name_leaves_room_for_those_of_its_parts() {
        let long = sample(&\"x\".repeat(51));
        let refused = validate(&long, &Request::create());
        assert_eq!(refused.invalid_fields()[0].field, \"metadata.name\");
        assert!(validate(&long, &Request::update(long.clone())).is_allowed());
        assert!(validate(&sample(\"sample\"), &Request::create()).is_allowed());
    }
}
";
    filled(naming, text)
}

/// The conversion of a version to the first and back.
pub(super) fn conversion(naming: &Naming<'_>, version: &str) -> String {
    let text = "//! `%KIND%` in %VERSION% and in %HUBVERSION%, which controllers work with.

use crate::api::%HUBMODULE% as hub;
use crate::api::%SPOKEMODULE% as spoke;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass::webhook::{ConversionError, Spoke};

impl Spoke for spoke::%KIND% {
    type Hub = hub::%KIND%;

    fn to_hub(&self) -> Result<hub::%KIND%, ConversionError> {
        Ok(hub::%KIND% { metadata: self.metadata.clone(), spec: same(&self.spec)?, status: same(&self.status)? })
    }

    fn from_hub(hub: &hub::%KIND%) -> Result<Self, ConversionError> {
        Ok(Self { metadata: hub.metadata.clone(), spec: same(&hub.spec)?, status: same(&hub.status)? })
    }
}

/// The same fields in another type: enough as long as both versions have the same. Write out what differs, and keep what one of them
/// cannot say in an annotation: the test below finds what is lost.
fn same<A: Serialize, B: DeserializeOwned>(part: &A) -> Result<B, ConversionError> {
    let fields = serde_json::to_value(part).map_err(|error| error.to_string())?;
    Ok(serde_json::from_value(fields).map_err(|error| error.to_string())?)
}

#[cfg(test)]
mod tests {
    use super::spoke;

    #[test]
    fn nothing_is_lost_on_the_way_there_and_back() {
        if let Err(lost) = windlass_testing::round_trip::<spoke::%KIND%>() {
            panic!(\"{lost:#}\");
        }
    }
}
";
    let hub = naming.version();
    let module = |version: &str| format!("{}::{}", naming.api_module(version), naming.module);
    let text = text
        .replace("%HUBMODULE%", &module(hub))
        .replace("%SPOKEMODULE%", &module(version))
        .replace("%HUBVERSION%", hub)
        .replace("%VERSION%", version);
    filled(naming, &text)
}

/// The test of all webhooks of a kind, on a cluster.
pub(super) fn test(naming: &Naming<'_>) -> String {
    let text = "//! The webhooks of a `%KIND%`, asked by a cluster.

use %CRATE%::{definitions, operator};
use serde_json::json;
use windlass_testing::{TestCluster, object};

#[tokio::test]
async fn the_cluster_asks_before_it_stores() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install(definitions()).await?;
    let operator = cluster.run(operator).ready().await?;
    let sample: %CRATE%::%PATH% = object(\"sample\", json!({\"spec\": %SPEC%}));
    cluster.create(sample).await?;
    assert!(cluster.find::<%CRATE%::%PATH%>(\"sample\").await?.is_some());
    operator.stop().await
}
";
    filled(naming, &text.replace("%CRATE%", &naming.krate()))
}

fn filled(naming: &Naming<'_>, text: &str) -> String {
    let spec = match naming.kind.namespaced || naming.kind.owns.is_empty() {
        true => "{}",
        false => "{ \"namespace\": \"default\" }",
    };
    let text = text
        .replace("use crate::%PATH%;", &naming.import("crate", false).replace('\n', ""))
        .replace("%PATH%", &path_of(naming, naming.version()))
        .replace("%APIVERSION%", &format!("{}/{}", naming.full_group(), naming.version()))
        .replace("%TYPE%", &naming.ty)
        .replace("%LOWER%", &naming.kind.kind.to_lowercase())
        .replace("%SPEC%", spec)
        .replace("%KIND%", &naming.kind.kind);
    format!("{}{text}", header(naming.project.license))
}

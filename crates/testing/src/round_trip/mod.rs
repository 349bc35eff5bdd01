//! The property that conversions between versions must have: to and fro, nothing is lost.

mod generate;

use crate::difference;
use anyhow::{Context, bail, ensure};
use generate::Generator;
use kube::CustomResourceExt;
use serde_json::{Value, json};
use windlass::webhook::Spoke;
use windlass::{Kind, Object};

/// Objects that are tried in each direction.
const CASES: u64 = 300;

/// Converts hundreds of objects of a version to the hub and back, and of the hub to the version and back, and compares. The objects are
/// generated from the schemas of both versions, and are the same in every run; the first ones are the smallest.
///
/// What one version cannot say must be kept by the conversion, in an annotation for example: the API server converts an object whenever
/// somebody reads or writes it in another version than the one it is stored in.
///
/// ```
/// # mod v1alpha1 {
/// #     use serde::{Deserialize, Serialize};
/// #     #[derive(kube::CustomResource, Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
/// #     #[kube(group = "example.dev", version = "v1alpha1", kind = "Site", namespaced)]
/// #     pub struct SiteSpec { pub size: i32, pub image: Option<String> }
/// # }
/// # mod v1 {
/// #     use serde::{Deserialize, Serialize};
/// #     #[derive(kube::CustomResource, Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
/// #     #[kube(group = "example.dev", version = "v1", kind = "Site", namespaced)]
/// #     pub struct SiteSpec { pub replicas: i32 }
/// # }
/// # use windlass::webhook::{ConversionError, Spoke};
/// impl Spoke for v1alpha1::Site {
///     type Hub = v1::Site;
///     // It forgets the image.
///     fn to_hub(&self) -> Result<v1::Site, ConversionError> {
///         Ok(v1::Site { metadata: self.metadata.clone(), spec: v1::SiteSpec { replicas: self.spec.size } })
///     }
///     fn from_hub(hub: &v1::Site) -> Result<Self, ConversionError> {
///         let spec = v1alpha1::SiteSpec { size: hub.spec.replicas, image: None };
///         Ok(Self { metadata: hub.metadata.clone(), spec })
///     }
/// }
///
/// let lost = windlass_testing::round_trip::<v1alpha1::Site>().unwrap_err().to_string();
/// assert!(lost.contains("spec.image: is"), "{lost}");
/// ```
///
/// # Errors
/// When a conversion fails, or loses something, with the object and what differs.
pub fn round_trip<S>() -> anyhow::Result<()>
where
    S: Spoke + CustomResourceExt,
    S::Hub: CustomResourceExt,
{
    each::<S>(|object| {
        let hub = object.to_hub().context("to the hub")?;
        let back = S::from_hub(&hub).context("back from the hub")?;
        Ok((written(&hub)?, written(&back)?))
    })?;
    each::<S::Hub>(|object| {
        let spoke = S::from_hub(object).context("from the hub")?;
        let back = spoke.to_hub().context("back to the hub")?;
        Ok((written(&spoke)?, written(&back)?))
    })
}

/// Does it with objects of a version.
fn each<K: Object + CustomResourceExt>(
    to_and_fro: impl Fn(&K) -> anyhow::Result<(Value, Value)>,
) -> anyhow::Result<()> {
    let kind = Kind::of::<K>();
    let title = format!("{} ({})", kind.kind, kind.api_version());
    let definition = serde_json::to_value(K::crd())?;
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut tried = 0;
    for case in 0..CASES {
        let mut object = Generator::new(case).object(schema);
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = (&*kind.kind).into();
        object["metadata"] = metadata(case, kind.namespaced);
        // What the type refuses, such as a quantity that is none, the API server would not have sent.
        let Ok(object) = serde_json::from_value::<K>(object) else { continue };
        tried += 1;
        // As the type writes it: what it fills in when it reads is no difference.
        let before = written(&object)?;
        let (between, after) =
            to_and_fro(&object).with_context(|| format!("{title} cannot be converted:\n{before:#}"))?;
        let differences = difference::between(&before, &after);
        if !differences.is_empty() {
            let lost = differences.join("\n  ");
            bail!(
                "{title} is another after it was converted to and fro:\n  {lost}\nbefore: {before:#}\nbetween: {between:#}"
            );
        }
    }
    ensure!(tried >= CASES / 10, "of {CASES} objects made from the schema, {title} can read only {tried}");
    Ok(())
}

fn written(object: &impl Object) -> anyhow::Result<Value> {
    let mut written = serde_json::to_value(object).context("an object that cannot be written")?;
    // To a cluster, none are no labels.
    for field in ["labels", "annotations"] {
        if let Some(metadata) = written["metadata"].as_object_mut()
            && metadata.get(field).and_then(Value::as_object).is_some_and(|all| all.is_empty())
        {
            metadata.remove(field);
        }
    }
    Ok(written)
}

fn metadata(case: u64, namespaced: bool) -> Value {
    let mut metadata = json!({ "name": format!("sample-{case}"), "uid": format!("uid-{case}") });
    if namespaced {
        metadata["namespace"] = "default".into();
    }
    if case % 2 == 1 {
        metadata["labels"] = json!({ "app": "sample" });
        metadata["annotations"] = json!({ "example.com/note": "kept" });
    }
    metadata
}

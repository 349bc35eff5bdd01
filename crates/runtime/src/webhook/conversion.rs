//! The answer to a ConversionReview, v1 or v1beta1. Pure.
//!
//! Conversions are between a hub and its spokes; from spoke to spoke it goes by way of the hub. The metadata of the answer is that of the
//! question, except for labels and annotations: API servers refuse anything else.

use super::answer::{Answer, Head};
use super::versions::Conversions;
use serde::Deserialize;
use serde_json::{Map, Value, json};

const GROUP: &str = "apiextensions.k8s.io";

#[derive(Deserialize)]
struct Review {
    #[serde(flatten)]
    head: Head,
    request: Option<Asked>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    objects: Vec<Value>,
}

/// What is answered, by whoever converts the kind of the objects. It may panic, as a conversion may.
pub(super) fn answer(all: &[Conversions], question: &[u8]) -> Answer {
    match decide(all, question) {
        Ok(answer) | Err(answer) => answer,
    }
}

fn decide(all: &[Conversions], question: &[u8]) -> Result<Answer, Answer> {
    let review: Review = serde_json::from_slice(question)
        .map_err(|error| Answer::bad(format!("the body is no ConversionReview: {error}")))?;
    let version = review.head.version(GROUP, "ConversionReview")?;
    let asked = review.request.ok_or_else(|| Answer::bad("the ConversionReview has no request"))?;
    let converted: Result<Vec<Value>, String> =
        asked.objects.iter().map(|object| convert(all, object, &asked.desired_api_version)).collect();
    let response = match converted {
        Ok(objects) => {
            json!({ "uid": asked.uid, "convertedObjects": objects, "result": { "status": "Success" } })
        }
        // All or none: the API server takes no part of an answer.
        Err(why) => {
            json!({ "uid": asked.uid, "convertedObjects": [], "result": { "status": "Failure", "message": why } })
        }
    };
    Ok(Answer::Review(json!({ "apiVersion": version, "kind": "ConversionReview", "response": response })))
}

/// An object in another version.
fn convert(all: &[Conversions], object: &Value, wanted: &str) -> Result<Value, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (from, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let name = [&object["metadata"]["namespace"], &object["metadata"]["name"]];
    let name: Vec<&str> = name.into_iter().filter_map(Value::as_str).collect();
    let failed =
        |why: String| format!("{kind} {} cannot be converted from {from} to {wanted}: {why}", name.join("/"));
    let (group, version) = from.split_once('/').unwrap_or(("", &from));
    let wanted_version = match wanted.split_once('/') {
        Some((wanted_group, version)) if wanted_group == group => version,
        _ => return Err(failed("the groups differ".to_owned())),
    };
    let conversions = all
        .iter()
        .find(|one| one.kind.group == group && one.kind.kind == *kind)
        .ok_or_else(|| failed("this operator does not convert it".to_owned()))?;
    let mut converted = conversions.between(object, version, wanted_version).map_err(failed)?;
    keep_metadata(&mut converted, object);
    converted["apiVersion"] = wanted.into();
    converted["kind"] = kind.into();
    Ok(converted)
}

impl Conversions {
    fn between(&self, object: &Value, from: &str, to: &str) -> Result<Value, String> {
        let spoke = |version: &str| match (version == self.kind.version, self.spokes.get(version)) {
            (true, _) => Ok(None),
            (false, Some(spoke)) => Ok(Some(spoke)),
            (false, None) => {
                let known: Vec<&str> =
                    self.spokes.keys().map(String::as_str).chain([&*self.kind.version]).collect();
                Err(format!("there is no version {version}; there are {}", known.join(", ")))
            }
        };
        match (spoke(from)?, spoke(to)?) {
            _ if from == to => Ok(object.clone()),
            (Some(from), None) => (from.to_hub)(object),
            (None, Some(to)) => (to.from_hub)(object),
            (Some(from), Some(to)) => {
                let mut hub = (from.to_hub)(object)?;
                keep_metadata(&mut hub, object);
                (to.from_hub)(&hub)
            }
            (None, None) => Ok(object.clone()),
        }
    }
}

/// Gives what was converted the metadata that it had. Labels and annotations are the conversion's where it went on from the metadata that
/// it was given; one that made an object anew can only add some.
fn keep_metadata(converted: &mut Value, original: &Value) {
    let made = converted["metadata"].take();
    let mut kept = original["metadata"].as_object().cloned().unwrap_or_default();
    let went_on = !made["name"].is_null()
        && made["name"] == original["metadata"]["name"]
        && made["uid"] == original["metadata"]["uid"];
    for field in ["labels", "annotations"] {
        let made = made[field].as_object();
        if went_on {
            match made.filter(|made| !made.is_empty()) {
                Some(made) => drop(kept.insert(field.to_owned(), Value::Object(made.clone()))),
                None => drop(kept.remove(field)),
            }
        } else if let Some(made) = made {
            let all = kept.entry(field).or_insert_with(|| Value::Object(Map::new()));
            if let Some(all) = all.as_object_mut() {
                all.extend(made.clone());
            }
        }
    }
    converted["metadata"] = Value::Object(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::{ConversionError, Spoke, Versions};

    mod v1alpha1 {
        #[derive(
            kube::CustomResource, Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[kube(group = "example.dev", version = "v1alpha1", kind = "Site", namespaced)]
        pub struct SiteSpec {
            pub size: i32,
        }
    }

    mod v1beta1 {
        #[derive(
            kube::CustomResource, Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[kube(group = "example.dev", version = "v1beta1", kind = "Site", namespaced)]
        pub struct SiteSpec {
            pub count: i32,
        }
    }

    mod v1 {
        #[derive(
            kube::CustomResource, Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[kube(group = "example.dev", version = "v1", kind = "Site", namespaced)]
        pub struct SiteSpec {
            pub replicas: i32,
        }
    }

    impl Spoke for v1alpha1::Site {
        type Hub = v1::Site;

        // Made anew: it forgets the metadata.
        fn to_hub(&self) -> Result<v1::Site, ConversionError> {
            if self.spec.size < 0 {
                return Err("fewer than none".into());
            }
            let mut site = v1::Site::new("", v1::SiteSpec { replicas: self.spec.size });
            site.metadata.annotations = Some([("was".to_owned(), "alpha".to_owned())].into());
            Ok(site)
        }

        fn from_hub(hub: &v1::Site) -> Result<Self, ConversionError> {
            Ok(Self::new("", v1alpha1::SiteSpec { size: hub.spec.replicas }))
        }
    }

    impl Spoke for v1beta1::Site {
        type Hub = v1::Site;

        fn to_hub(&self) -> Result<v1::Site, ConversionError> {
            Ok(v1::Site { metadata: self.metadata.clone(), spec: v1::SiteSpec { replicas: self.spec.count } })
        }

        fn from_hub(hub: &v1::Site) -> Result<Self, ConversionError> {
            let mut metadata = hub.metadata.clone();
            metadata.annotations = None;
            Ok(Self { metadata, spec: v1beta1::SiteSpec { count: hub.spec.replicas } })
        }
    }

    fn ask(version: &str, wanted: &str, objects: Value) -> Value {
        let versions = Versions::hub::<v1::Site>().spoke::<v1alpha1::Site>().spoke::<v1beta1::Site>();
        let review = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": wanted, "objects": objects}});
        let asked = serde_json::to_vec(&review).unwrap();
        match answer(&[versions.conversions().clone()], &asked) {
            Answer::Review(review) => review,
            Answer::Failed(status, why) => panic!("{status}: {why}"),
        }
    }

    fn alpha(size: i32) -> Value {
        json!({"apiVersion": "example.dev/v1alpha1", "kind": "Site", "spec": {"size": size},
            "metadata": {"name": "s", "namespace": "n", "uid": "1", "annotations": {"kept": "yes"},
                "finalizers": ["f"], "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]}})
    }

    #[test]
    fn metadata_cannot_be_lost() {
        let answer = ask("v1", "example.dev/v1", json!([alpha(3), alpha(4)]));
        let mut expected = alpha(3);
        expected["apiVersion"] = "example.dev/v1".into();
        expected["spec"] = json!({"replicas": 3});
        expected["metadata"]["annotations"]["was"] = "alpha".into();
        assert_eq!(answer["response"]["convertedObjects"][0], expected);
        assert_eq!(answer["response"]["convertedObjects"][1]["spec"], json!({"replicas": 4}));
        assert_eq!(answer["response"]["result"]["status"], "Success");
    }

    #[test]
    fn a_spoke_converts_to_a_spoke_and_may_remove_an_annotation() {
        let answer = ask("v1beta1", "example.dev/v1beta1", json!([alpha(3)]));
        assert_eq!(answer["apiVersion"], "apiextensions.k8s.io/v1beta1");
        let converted = &answer["response"]["convertedObjects"][0];
        assert_eq!(
            (&converted["spec"], &converted["metadata"]["annotations"]),
            (&json!({"count": 3}), &Value::Null)
        );
        assert_eq!(converted["metadata"]["managedFields"], alpha(3)["metadata"]["managedFields"]);
    }

    #[test]
    fn what_cannot_be_converted_is_named() {
        let why = |wanted: &str, object: Value| {
            let response = ask("v1", wanted, json!([alpha(1), object]))["response"].take();
            assert_eq!(
                (&response["result"]["status"], &response["convertedObjects"]),
                (&json!("Failure"), &json!([]))
            );
            response["result"]["message"].as_str().unwrap().to_owned()
        };
        let said =
            "Site n/s cannot be converted from example.dev/v1alpha1 to example.dev/v1: fewer than none";
        assert_eq!(why("example.dev/v1", alpha(-1)), said);
        let unknown = why("example.dev/v7", alpha(1));
        assert!(unknown.ends_with("there is no version v7; there are v1alpha1, v1beta1, v1"), "{unknown}");
        let mut other = alpha(1);
        other["kind"] = "Shop".into();
        assert!(why("example.dev/v1", other).ends_with("this operator does not convert it"));
        assert!(why("other.dev/v1", alpha(1)).ends_with("the groups differ"));
        let mut wrong = alpha(1);
        wrong["spec"]["size"] = "many".into();
        assert!(why("example.dev/v1", wrong).contains("is not understood as Site (example.dev/v1alpha1): "));
        assert!(why("example.dev/v1", Value::Null).contains("cannot be converted"));
    }

    #[test]
    fn garbage_is_no_question() {
        for garbage in ["", "{}", r#"{"apiVersion":"apiextensions.k8s.io/v3","kind":"ConversionReview"}"#] {
            assert_eq!(answer(&[], garbage.as_bytes()).status().as_u16(), 400, "{garbage}");
        }
    }
}

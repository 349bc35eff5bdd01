//! Which media types a request brings and wants.

use crate::flow::decode::Media;
use crate::status::Status;

/// The kinds of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The encoding of a body.
pub(crate) fn body(content_type: &str) -> Result<Media, Status> {
    match essence(content_type).as_str() {
        "" | "application/json" => Ok(Media::Json),
        "application/yaml" => Ok(Media::Yaml),
        PROTOBUF => Ok(Media::Protobuf),
        _ => Err(Status::unsupported_media_type(&["application/json", "application/yaml", PROTOBUF])),
    }
}

/// The encoding of a body that holds an object. Custom resources have no protobuf.
pub(crate) fn object(content_type: &str, custom: bool) -> Result<Media, Status> {
    match body(content_type) {
        Ok(Media::Protobuf) | Err(_) if custom => {
            Err(Status::unsupported_media_type(&["application/json", "application/yaml"]))
        }
        other => other,
    }
}

/// The kind of a patch. Custom resources have no strategic merge patch.
pub(crate) fn patch(content_type: &str, custom: bool) -> Result<PatchType, Status> {
    match essence(content_type).as_str() {
        JSON_PATCH => Ok(PatchType::Json),
        MERGE_PATCH => Ok(PatchType::Merge),
        APPLY_PATCH => Ok(PatchType::Apply),
        STRATEGIC_PATCH if custom => {
            Err(Status::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH]))
        }
        STRATEGIC_PATCH => Ok(PatchType::Strategic),
        _ => Err(Status::no_such_patch_type()),
    }
}

/// Refuses a request that does not take JSON. Forms that are not served yet, such as tables, are passed over for the next
/// one that the client takes.
pub(crate) fn accept(accept: &str, watch: bool) -> Result<(), Status> {
    let takes_json = accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let refused = parts.any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (name == "as" && !value.is_empty()) || (name == "q" && value.parse() == Ok(0.0_f32))
        });
        matches!(media.as_str(), "application/json" | "application/*" | "*/*") && !refused
    });
    if accept.trim().is_empty() || takes_json {
        return Ok(());
    }
    Err(Status::not_acceptable(match watch {
        true => &["application/json;stream=watch"],
        false => &["application/json"],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_falls_back_to_json_if_the_client_takes_it() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert!(accept(table, false).is_err());
        assert!(accept(&format!("{table},application/json"), false).is_ok());
        assert!(accept("", false).is_ok() && accept("*/*", true).is_ok());
        assert!(accept("application/vnd.kubernetes.protobuf", false).is_err());
        assert!(accept("application/vnd.kubernetes.protobuf,application/json", false).is_ok());
    }

    #[test]
    fn parameters_of_a_content_type_do_not_matter() {
        assert_eq!(body("application/json; charset=utf-8"), Ok(Media::Json));
        assert_eq!(body(""), Ok(Media::Json));
        assert_eq!(body("text/plain").unwrap_err().code, 415);
        assert_eq!(object(PROTOBUF, false), Ok(Media::Protobuf));
        assert_eq!(object(PROTOBUF, true).unwrap_err().code, 415);
        assert_eq!(patch(STRATEGIC_PATCH, true).unwrap_err().code, 415);
        assert_eq!(patch(STRATEGIC_PATCH, false), Ok(PatchType::Strategic));
    }
}

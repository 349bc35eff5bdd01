//! The Content-Type of a request: which media type its body has, and which kind of patch it is.

use crate::request::media::Media;
use crate::request::media::accept::{JSON, PROTOBUF, YAML};
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
const APPLY_PATCH: &str = "application/apply-patch+yaml";

fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The encoding of a body.
pub(crate) fn body(content_type: &str) -> Result<Media, Status> {
    match essence(content_type).as_str() {
        "" | JSON => Ok(Media::Json),
        YAML => Ok(Media::Yaml),
        PROTOBUF => Ok(Media::Protobuf),
        _ => Err(Status::unsupported_media_type(&[JSON, YAML, PROTOBUF])),
    }
}

/// The encoding of a body that holds an object. Custom resources have no protobuf.
pub(crate) fn object(content_type: &str, custom: bool) -> Result<Media, Status> {
    match body(content_type) {
        Ok(Media::Protobuf) | Err(_) if custom => Err(Status::unsupported_media_type(&[JSON, YAML])),
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

#[cfg(test)]
mod tests {
    use super::*;

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

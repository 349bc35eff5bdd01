//! How a deletion is asked for: in the body, in the query, or not at all.

use super::{decode, yaml};
use crate::facts::FACTS;
use crate::protobuf;
use crate::request::media::Media;
use crate::request::media::content_type;
use crate::request::query::Query;
use crate::request::write_options::{check_dry_run, invalid_options};
use crate::status::Status;
use crate::typed;
use serde_json::{Value, json};
use windlass_schema::field::{FieldError, Path};
use windlass_schema::{json as reader, proto};

const DEFINITION: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// What becomes of the objects that an object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// How a deletion is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    /// How many seconds it may take to stop.
    pub(crate) grace: Option<i64>,
    /// Was it asked in the old way that dependents go too? Such a deletion is told to be accepted, not done.
    pub(crate) cascades: bool,
    /// All that was said, as it was.
    pub(crate) given: Value,
}

impl DeleteOptions {
    /// Reads the body if there is one, and the query if there is none.
    pub(crate) fn read(query: &Query, content_type: &str, body: &[u8]) -> Result<Self, Status> {
        let options = if body.is_empty() { from_query(query)? } else { from_body(content_type, body)? };
        Self::of(&options)
    }

    /// Reads options that are part of something else.
    pub(crate) fn of(options: &Value) -> Result<Self, Status> {
        let dry_run: Vec<&str> = options
            .get("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut errors = Vec::new();
        let policy = options.get("propagationPolicy").and_then(Value::as_str);
        let orphan = options.get("orphanDependents").and_then(Value::as_bool);
        let path = Path::new("propagationPolicy");
        if let Some(policy) = policy {
            if orphan.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid(&path, policy, why));
            }
            if !matches!(policy, "Orphan" | "Background" | "Foreground") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, policy, &supported));
            }
        }
        let dry_run = check_dry_run(&dry_run, &mut errors);
        if !errors.is_empty() {
            return Err(invalid_options("DeleteOptions", &errors));
        }
        let propagation = match (orphan, policy) {
            (Some(true), _) | (_, Some("Orphan")) => Some(Propagation::Orphan),
            (Some(false), _) | (_, Some("Background")) => Some(Propagation::Background),
            (_, Some("Foreground")) => Some(Propagation::Foreground),
            _ => None,
        };
        let condition = |name: &str| {
            options.pointer(&format!("/preconditions/{name}")).and_then(Value::as_str).map(str::to_owned)
        };
        Ok(Self {
            dry_run,
            uid: condition("uid"),
            resource_version: condition("resourceVersion"),
            propagation,
            grace: options.get("gracePeriodSeconds").and_then(Value::as_i64),
            cascades: orphan == Some(false),
            given: options.clone(),
        })
    }
}

fn from_body(content_type: &str, body: &[u8]) -> Result<Value, Status> {
    let value = match content_type::body(content_type)? {
        Media::Json => {
            let document = reader::read(body).map_err(|error| {
                Status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
            })?;
            document.value
        }
        Media::Yaml => yaml::read(body).map_err(Status::bad_request)?.value,
        Media::Protobuf => {
            let envelope = proto::open(body).map_err(|error| Status::bad_request(error.0))?;
            protobuf::from_envelope(&envelope, DEFINITION).map_err(|error| Status::bad_request(error.0))?
        }
    };
    let (version, kind) = decode::version_and_kind(&value).map_err(Status::bad_request)?;
    if !matches!(kind.as_str(), "" | "DeleteOptions") {
        let version = if version.is_empty() { "v1".to_owned() } else { version };
        return Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    typed::convert(&FACTS.structs, DEFINITION, value, "", &mut Vec::new())
        .map_err(|failure| Status::bad_request(failure.0))
}

fn from_query(query: &Query) -> Result<Value, Status> {
    let mut options = json!({"dryRun": query.all("dryRun").collect::<Vec<_>>()});
    if let Some(policy) = query.get("propagationPolicy") {
        options["propagationPolicy"] = json!(policy);
    }
    if query.get("orphanDependents").is_some() {
        options["orphanDependents"] = json!(query.flag("orphanDependents"));
    }
    if let Some(seconds) = query.get("gracePeriodSeconds") {
        let parsed = seconds.parse::<i64>().map_err(|_| {
            Status::bad_request(format!("strconv.ParseInt: parsing {seconds:?}: invalid syntax"))
        })?;
        options["gracePeriodSeconds"] = json!(parsed);
    }
    Ok(options)
}

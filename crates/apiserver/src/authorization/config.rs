//! The file of `--authorization-config`: which authorizers are asked, in which order, and how webhooks are reached.

use super::AuthorizationMode;
use super::webhook::{self, FailurePolicy, ReviewVersion, WebhookAuthorizer, WebhookSettings};
use crate::config_file::{self, GoDuration, InvalidConfigFile};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path as FilePath, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::{Expression, names};

/// The kinds of authorizers, as the reference lists them.
const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];

/// The most match conditions of a webhook.
const MOST_CONDITIONS: usize = 64;

/// The longest that a webhook may take.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

/// An AuthorizationConfiguration of `apiserver.config.k8s.io`, read and checked.
#[derive(Debug, Clone)]
pub struct AuthorizationConfiguration {
    /// The authorizers, in the order in which they are asked.
    pub modes: Vec<AuthorizationMode>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    authorizers: Vec<Authorizer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Authorizer {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    webhook: Option<Webhook>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Webhook {
    #[serde(rename = "authorizedTTL")]
    authorized_ttl: GoDuration,
    cache_authorized_requests: Option<bool>,
    #[serde(rename = "unauthorizedTTL")]
    unauthorized_ttl: GoDuration,
    cache_unauthorized_requests: Option<bool>,
    timeout: GoDuration,
    subject_access_review_version: String,
    match_condition_subject_access_review_version: String,
    failure_policy: String,
    connection_info: ConnectionInfo,
    match_conditions: Vec<MatchCondition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ConnectionInfo {
    #[serde(rename = "type")]
    kind: String,
    kube_config_file: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct MatchCondition {
    expression: String,
}

impl FromStr for AuthorizationConfiguration {
    type Err = InvalidConfigFile;

    fn from_str(text: &str) -> Result<Self, InvalidConfigFile> {
        let file: File = config_file::read(text, "AuthorizationConfiguration")?;
        let mut wrong = Vec::new();
        let root = Path::new("authorizers");
        if file.authorizers.is_empty() {
            wrong.push(FieldError::required(&root, "at least one authorization mode must be defined"));
        }
        let (mut types, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut modes = Vec::new();
        for (index, authorizer) in file.authorizers.iter().enumerate() {
            let path = root.index(index);
            let kind = authorizer.kind.as_str();
            if kind.is_empty() {
                wrong.push(FieldError::required(&path.child("type"), ""));
                continue;
            }
            if !TYPES.contains(&kind) {
                wrong.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
                continue;
            }
            if !types.insert(kind) && kind != "Webhook" {
                wrong.push(FieldError::duplicate(&path.child("type"), kind));
                continue;
            }
            wrong.extend(validate_name(&authorizer.name, &mut seen, &path.child("name")));
            let mode = match (kind, &authorizer.webhook) {
                ("Webhook", None) => {
                    Err(FieldError::required(&path.child("webhook"), "required when type=Webhook"))
                }
                ("Webhook", Some(webhook)) => {
                    let (settings, found) = webhook.settings(&path);
                    match found.is_empty() {
                        true => webhook.connect(settings, &path),
                        false => {
                            wrong.extend(found);
                            continue;
                        }
                    }
                }
                (_, Some(_)) => Err(FieldError::invalid(
                    &path.child("webhook"),
                    "non-null",
                    "may only be specified when type=Webhook",
                )),
                (_, None) => {
                    kind.parse().map_err(|why: String| FieldError::invalid(&path.child("type"), kind, why))
                }
            };
            match mode {
                Ok(mode) => modes.push(mode),
                Err(error) => wrong.push(error),
            }
        }
        InvalidConfigFile::unless_empty(&wrong)?;
        let misnamed =
            file.authorizers.iter().find(|one| one.kind != "Webhook" && one.name != one.kind.to_lowercase());
        match misnamed {
            Some(one) => Err(InvalidConfigFile::Invalid(format!(
                "expected name {} for authorizer {} instead of {}",
                one.kind.to_lowercase(),
                one.kind,
                one.name
            ))),
            None => Ok(Self { modes }),
        }
    }
}

fn validate_name<'a>(name: &'a str, seen: &mut BTreeSet<&'a str>, path: &Path) -> Option<FieldError> {
    let first = seen.insert(name);
    if name.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    if !first {
        return Some(FieldError::duplicate(path, name));
    }
    let wrong = names::subdomain(name);
    let why = || format!("authorizer name is invalid: {}", wrong.join(", "));
    (!wrong.is_empty()).then(|| FieldError::invalid(path, name, why()))
}

impl Webhook {
    /// How it is asked, and what is wrong with that.
    fn settings(&self, path: &Path) -> (WebhookSettings, Vec<FieldError>) {
        let mut wrong = Vec::new();
        let timeout = &self.timeout;
        if timeout.is_zero() {
            wrong.push(FieldError::required(&path.child("timeout"), ""));
        } else if timeout.positive().is_none_or(|timeout| timeout > LONGEST_TIMEOUT) {
            let why = "must be > 0s and <= 30s";
            wrong.push(FieldError::invalid(&path.child("timeout"), timeout.to_string(), why));
        }
        let mut ttl = |name: &str, given: &GoDuration, default: u64, cached: Option<bool>| {
            let ttl = match given.is_zero() {
                true => Some(Duration::from_secs(default)),
                false => given.positive(),
            };
            if ttl.is_none() {
                wrong.push(FieldError::invalid(&path.child(name), given.to_string(), "must be > 0s"));
            }
            ttl.filter(|_| cached.unwrap_or(true)).unwrap_or_default()
        };
        let authorized_ttl = ttl("authorizedTTL", &self.authorized_ttl, 300, self.cache_authorized_requests);
        let unauthorized_ttl =
            ttl("unauthorizedTTL", &self.unauthorized_ttl, 30, self.cache_unauthorized_requests);
        let mut version = ReviewVersion::V1;
        let place = path.child("subjectAccessReviewVersion");
        match self.subject_access_review_version.as_str() {
            "" => wrong.push(FieldError::required(&place, "")),
            "v1" => {}
            "v1beta1" => version = ReviewVersion::V1Beta1,
            other => wrong.push(FieldError::not_supported(&place, other, &["v1", "v1beta1"])),
        }
        let place = path.child("matchConditionSubjectAccessReviewVersion");
        match self.match_condition_subject_access_review_version.as_str() {
            "" if self.match_conditions.is_empty() => {}
            "" => wrong.push(FieldError::required(&place, "required if match conditions are specified")),
            "v1" => {}
            other => wrong.push(FieldError::not_supported(&place, other, &["v1"])),
        }
        let mut failure_policy = FailurePolicy::NoOpinion;
        let place = path.child("failurePolicy");
        match self.failure_policy.as_str() {
            "" => wrong.push(FieldError::required(&place, "")),
            "NoOpinion" => {}
            "Deny" => failure_policy = FailurePolicy::Deny,
            other => wrong.push(FieldError::not_supported(&place, other, &["NoOpinion", "Deny"])),
        }
        wrong.extend(self.connection_info.validate(&path.child("connectionInfo")));
        let match_conditions = match conditions(&self.match_conditions, path) {
            Ok(conditions) => conditions,
            Err(found) => {
                wrong.extend(found);
                Vec::new()
            }
        };
        let timeout = timeout.positive().unwrap_or_default();
        let settings = WebhookSettings {
            authorized_ttl,
            unauthorized_ttl,
            timeout,
            version,
            failure_policy,
            match_conditions,
        };
        (settings, wrong)
    }

    fn connect(&self, settings: WebhookSettings, path: &Path) -> Result<AuthorizationMode, FieldError> {
        let path = path.child("connectionInfo");
        let Some(file) = &self.connection_info.kube_config_file else {
            let why = "this server runs in no pod of a cluster whose account it could use";
            return Err(FieldError::invalid(&path.child("type"), "InClusterConfig", why));
        };
        let shown = file.display().to_string();
        WebhookAuthorizer::new(file, settings)
            .map(AuthorizationMode::Webhook)
            .map_err(|error| FieldError::invalid(&path.child("kubeConfigFile"), shown, error.to_string()))
    }
}

impl ConnectionInfo {
    fn validate(&self, path: &Path) -> Option<FieldError> {
        let place = path.child("kubeConfigFile");
        let shown =
            || self.kube_config_file.as_ref().map_or(String::new(), |file| file.display().to_string());
        let invalid = |why: String| Some(FieldError::invalid(&place, shown(), why));
        match (self.kind.as_str(), &self.kube_config_file) {
            ("", _) => Some(FieldError::required(&path.child("type"), "")),
            ("InClusterConfig", Some(_)) => invalid("can only be set when type=KubeConfigFile".to_owned()),
            ("InClusterConfig", None) => None,
            ("KubeConfigFile", None) => Some(FieldError::required(&place, "")),
            ("KubeConfigFile", Some(file)) if file.as_os_str().is_empty() => {
                Some(FieldError::required(&place, ""))
            }
            ("KubeConfigFile", Some(file)) if !file.is_absolute() => {
                invalid("must be an absolute path".to_owned())
            }
            ("KubeConfigFile", Some(file)) => match fs::metadata(file) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    invalid(format!("error loading file: stat {}: no such file or directory", file.display()))
                }
                Err(error) => invalid(format!("error loading file: {error}")),
                Ok(found) if !found.is_file() => invalid("must be a regular file".to_owned()),
                Ok(_) => None,
            },
            (other, _) => {
                let known = ["InClusterConfig", "KubeConfigFile"];
                Some(FieldError::not_supported(&path.child("type"), other, &known))
            }
        }
    }
}

fn conditions(conditions: &[MatchCondition], path: &Path) -> Result<Vec<Expression>, Vec<FieldError>> {
    let path = path.child("matchConditions");
    if conditions.len() > MOST_CONDITIONS {
        return Err(vec![FieldError::too_many(&path, conditions.len(), MOST_CONDITIONS)]);
    }
    let (mut wrong, mut compiled, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (index, MatchCondition { expression }) in conditions.iter().enumerate() {
        let path = path.index(index).child("expression");
        let invalid = |why: String| FieldError::invalid(&path, expression.as_str(), why);
        if expression.trim().is_empty() {
            wrong.push(FieldError::required(&path, ""));
            continue;
        }
        if !seen.insert(expression) {
            wrong.push(FieldError::duplicate(&path, expression.as_str()));
            continue;
        }
        match Expression::compile(expression, &[webhook::request()]) {
            Err(why) => wrong.push(invalid(format!("compilation failed: {why}"))),
            Ok(condition) if condition.output() != "bool" => {
                wrong.push(invalid(format!("must evaluate to bool but got {}", condition.output())));
            }
            Ok(condition) => compiled.push(condition),
        }
    }
    if wrong.is_empty() { Ok(compiled) } else { Err(wrong) }
}

impl WebhookAuthorizer {
    /// As the flags `--authorization-webhook-…` say it; a time of zero keeps no answers.
    ///
    /// # Errors
    /// When the version is not known, or the kubeconfig leads nowhere.
    pub fn from_flags(
        kubeconfig: &FilePath,
        version: &str,
        authorized_ttl: Duration,
        unauthorized_ttl: Duration,
    ) -> Result<Self, InvalidConfigFile> {
        let version = match version {
            "v1" => ReviewVersion::V1,
            "v1beta1" => ReviewVersion::V1Beta1,
            other => {
                return Err(InvalidConfigFile::Invalid(format!(
                    "unsupported webhook authorizer version {other:?}, supported versions are \"v1\", \"v1beta1\""
                )));
            }
        };
        let settings = WebhookSettings {
            authorized_ttl,
            unauthorized_ttl,
            timeout: LONGEST_TIMEOUT,
            version,
            failure_policy: FailurePolicy::NoOpinion,
            match_conditions: Vec::new(),
        };
        Self::new(kubeconfig, settings).map_err(|error| InvalidConfigFile::Invalid(error.to_string()))
    }
}

//! What the claims of a token make of its bearer: a pure function of the claims and of how an issuer is configured.

use crate::request::Identity;
use crate::request::identity::CREDENTIAL_ID;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use windlass_schema::{Expression, Schema, VariableType};

/// Where a name, or a list of them, comes from.
pub(in super::super) enum Mapping {
    /// A claim, and what is put before its values.
    Claim {
        name: String,
        prefix: String,
    },
    Expression(Expression),
}

/// A claim that has to be of this value.
pub(in super::super) struct RequiredClaim {
    pub(in super::super) name: String,
    pub(in super::super) value: String,
}

/// What has to hold of the claims.
pub(in super::super) struct ValidationRule {
    pub(in super::super) expression: Expression,
    pub(in super::super) message: String,
}

/// What has to hold of the user.
pub(in super::super) struct UserValidationRule(pub(in super::super) ValidationRule);

/// What else is told of the user, under which key.
pub(in super::super) struct ExtraMapping {
    pub(in super::super) key: String,
    pub(in super::super) expression: Expression,
}

/// How claims become a user.
pub(in super::super) struct ClaimMappings {
    pub(in super::super) username: Mapping,
    pub(in super::super) groups: Option<Mapping>,
    pub(in super::super) uid: Option<Mapping>,
    pub(in super::super) extra: Vec<ExtraMapping>,
    pub(in super::super) required: Vec<RequiredClaim>,
    pub(in super::super) rules: Vec<ValidationRule>,
    pub(in super::super) user_rules: Vec<UserValidationRule>,
}

/// The variable of expressions about claims.
pub(in super::super) fn claims_variable() -> (&'static str, VariableType<'static>) {
    ("claims", VariableType::AnyMap)
}

/// The variable of expressions about the user.
pub(in super::super) fn user_variable() -> (&'static str, VariableType<'static>) {
    static USER: LazyLock<Schema> = LazyLock::new(|| {
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let schema = json!({"type": "object", "properties": {
            "username": {"type": "string"}, "uid": {"type": "string"}, "groups": texts,
            "extra": {"type": "object", "additionalProperties": texts},
        }});
        Schema::from_json(&schema).expect("the schema of a user is valid")
    });
    ("user", VariableType::Object("kubernetes.UserInfo", &USER))
}

impl ClaimMappings {
    /// Whom the claims name, or why they name nobody.
    pub(super) fn identity(&self, claims: &Value) -> Result<Identity, String> {
        let user = self.username(claims)?;
        let groups = self.groups(claims)?;
        let uid = self.uid(claims)?;
        let extra = self.extra(claims)?;
        for RequiredClaim { name, value } in &self.required {
            if claims.get(name).is_none() {
                return Err(format!("oidc: required claim {name} not present in ID token"));
            }
            let found = text(claims, name).map_err(|why| format!("oidc: parse claim {name}: {why}"))?;
            if found != *value {
                return Err(format!(
                    "oidc: required claim {name} value does not match. Got = {found}, want = {value}"
                ));
            }
        }
        let (name, kind) = claims_variable();
        for rule in &self.rules {
            rule.check(&[(name, kind, claims)])
                .map_err(|why| format!("oidc: error evaluating claim validation expression: {why}"))?;
        }
        if !self.user_rules.is_empty() {
            let (name, kind) = user_variable();
            let info = json!({"username": user, "uid": uid, "groups": groups, "extra": extra});
            for UserValidationRule(rule) in &self.user_rules {
                rule.check(&[(name, kind, &info)])
                    .map_err(|why| format!("oidc: error evaluating user info validation rule: {why}"))?;
            }
        }
        Ok(Identity { uid, extra, ..Identity::user(user).in_groups(groups) })
    }

    fn username(&self, claims: &Value) -> Result<String, String> {
        match &self.username {
            Mapping::Expression(expression) => {
                let failed = |why: String| format!("oidc: error evaluating username claim expression: {why}");
                match evaluate(expression, claims).map_err(failed)? {
                    Value::String(name) if name.is_empty() => {
                        Err("oidc: empty username via CEL expression is not allowed".to_owned())
                    }
                    Value::String(name) => Ok(name),
                    _ => Err(failed("username claim expression must return a string".to_owned())),
                }
            }
            Mapping::Claim { name, prefix } => {
                let user = text(claims, name)
                    .map_err(|why| format!("oidc: parse username claims {name:?}: {why}"))?;
                if name == "email" {
                    match claims.get("email_verified") {
                        None | Some(Value::Bool(true)) => {}
                        Some(Value::Bool(false) | Value::Null) => {
                            return Err("oidc: email not verified".to_owned());
                        }
                        Some(other) => {
                            let why = mismatch(other, "bool");
                            return Err(format!("oidc: parse 'email_verified' claim: {why}"));
                        }
                    }
                }
                Ok(format!("{prefix}{user}"))
            }
        }
    }

    fn groups(&self, claims: &Value) -> Result<Vec<String>, String> {
        match &self.groups {
            None => Ok(Vec::new()),
            Some(Mapping::Claim { name, prefix }) => {
                let groups = match claims.get(name) {
                    None | Some(Value::Null) => return Ok(Vec::new()),
                    Some(Value::Array(groups)) if groups.iter().all(Value::is_string) => {
                        groups.iter().filter_map(Value::as_str).collect()
                    }
                    Some(Value::String(group)) => vec![group.as_str()],
                    Some(other) => {
                        let why = mismatch(other, "string");
                        return Err(format!("oidc: parse groups claim {name:?}: {why}"));
                    }
                };
                Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
            Some(Mapping::Expression(expression)) => evaluate(expression, claims)
                .and_then(texts)
                .map_err(|why| format!("oidc: error evaluating group claim expression: {why}")),
        }
    }

    fn uid(&self, claims: &Value) -> Result<String, String> {
        match &self.uid {
            None => Ok(String::new()),
            Some(Mapping::Claim { name, .. }) => {
                text(claims, name).map_err(|why| format!("oidc: parse uid claim {name:?}: {why}"))
            }
            Some(Mapping::Expression(expression)) => {
                let failed = |why: String| format!("oidc: error evaluating uid claim expression: {why}");
                match evaluate(expression, claims).map_err(failed)? {
                    Value::String(uid) => Ok(uid),
                    _ => Err(failed("uid claim expression must return a string".to_owned())),
                }
            }
        }
    }

    fn extra(&self, claims: &Value) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut extra = BTreeMap::new();
        if let Some(id) = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty()) {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for ExtraMapping { key, expression } in &self.extra {
            let values = texts(evaluate(expression, claims)?).map_err(|why| {
                format!("oidc: error evaluating extra claim expression: {}: {why}", expression.source())
            })?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }
}

impl ValidationRule {
    fn check(&self, values: &[(&str, VariableType<'_>, &Value)]) -> Result<(), String> {
        let source = self.expression.source();
        match self.expression.evaluate(values) {
            Ok(Value::Bool(true)) => Ok(()),
            Ok(Value::Bool(false)) => {
                Err(format!("validation expression '{source}' failed: {}", self.message))
            }
            Ok(_) => Err("validation expression must return a boolean".to_owned()),
            Err(why) => Err(format!("expression '{source}' resulted in error: {why}")),
        }
    }
}

fn evaluate(expression: &Expression, claims: &Value) -> Result<Value, String> {
    let (name, kind) = claims_variable();
    expression
        .evaluate(&[(name, kind, claims)])
        .map_err(|why| format!("expression '{}' resulted in error: {why}", expression.source()))
}

/// A text, or a list of them; what is empty is left out.
fn texts(value: Value) -> Result<Vec<String>, String> {
    let wrong = || "expression must return a string or a list of strings".to_owned();
    let all = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        text @ Value::String(_) => vec![text],
        _ => return Err(wrong()),
    };
    let texts: Option<Vec<String>> = all.iter().map(|item| item.as_str().map(str::to_owned)).collect();
    Ok(texts.ok_or_else(wrong)?.into_iter().filter(|text| !text.is_empty()).collect())
}

/// A claim that is a text. As Go reads it, null is empty.
fn text(claims: &Value, name: &str) -> Result<String, String> {
    match claims.get(name) {
        None => Err("claim not present".to_owned()),
        Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(mismatch(other, "string")),
    }
}

/// As Go says that a value is of another type.
fn mismatch(value: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", windlass_schema::json::kind(value))
}

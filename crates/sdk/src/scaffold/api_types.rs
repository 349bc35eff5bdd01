//! The file of an API type: its spec and status.

use super::code_names::{Naming, header};
use super::owned::Need;
use proc_macro2::{TokenStream, TokenTree};
use std::ops::Range;

/// The file of one version of a kind.
pub(super) fn types(naming: &Naming<'_>, version: &str) -> String {
    let kind = &naming.kind.kind;
    let words = super::valid_names::words(kind);
    let needs = naming.needs();
    let has_replicas = needs.contains(&Need::Replicas);
    let scope = if naming.kind.namespaced { "    namespaced,\n" } else { "" };
    let scale = match has_replicas {
        true => {
            "    scale(spec_replicas_path = \".spec.replicas\", status_replicas_path = \".status.ready\"),\n"
        }
        false => "",
    };
    let column = match has_replicas {
        true => {
            "    printcolumn = r#\"{\"name\":\"Replicas\",\"type\":\"integer\",\"jsonPath\":\".spec.replicas\"}\"#,\n"
        }
        false => "",
    };
    let maps = if needs.contains(&Need::Settings) { "use std::collections::BTreeMap;\n" } else { "" };
    let ready = match has_replicas {
        true => "    /// How many of its pods are ready.\n    #[serde(default)]\n    pub ready: i32,\n",
        false => "",
    };
    format!(
        "{}//! `{kind}` in `{group}/{version}`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{{Deserialize, Serialize}};
{maps}
/// What a {words} should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = \"{group}\",
    version = \"{version}\",
    kind = \"{kind}\",
    plural = \"{plural}\",
{scope}    status = \"{kind}Status\",
{scale}{column}    printcolumn = r#\"{{\"name\":\"Ready\",\"type\":\"string\",\"jsonPath\":\".status.conditions[?(@.type==\\\"Ready\\\")].status\"}}\"#,
    printcolumn = r#\"{{\"name\":\"Reason\",\"type\":\"string\",\"jsonPath\":\".status.conditions[?(@.type==\\\"Ready\\\")].reason\"}}\"#,
    printcolumn = r#\"{{\"name\":\"Age\",\"type\":\"date\",\"jsonPath\":\".metadata.creationTimestamp\"}}\"#
)]
#[serde(rename_all = \"camelCase\")]
pub struct {kind}Spec {{
{fields}}}

/// What a {words} is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = \"camelCase\")]
pub struct {kind}Status {{
{ready}    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = \"windlass::schema::conditions\")]
    pub conditions: Vec<Condition>,
}}
{defaults}",
        header(naming.project.license),
        group = naming.full_group(),
        plural = naming.kind.plural,
        fields = fields(naming),
        defaults = defaults(naming),
    )
}

fn fields(naming: &Naming<'_>) -> String {
    let mut fields = String::new();
    if !naming.kind.namespaced && !naming.kind.owns.is_empty() {
        fields += "    /// The namespace that its objects live in, once and for all.
    #[schemars(
        length(min = 1, max = 63),
        extend(\"x-kubernetes-validations\" = [{\"rule\": \"self == oldSelf\", \"message\": \"it cannot move\"}])
    )]
    pub namespace: String,
";
    }
    for need in naming.needs() {
        fields += match need {
            Need::Replicas => {
                "    /// How many pods it has.
    #[serde(default = \"default_replicas\")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
"
            }
            Need::Image => {
                "    /// The image that they run.
    #[serde(default = \"default_image\")]
    #[schemars(length(min = 1))]
    pub image: String,
"
            }
            Need::Schedule => {
                "    /// When it runs, as cron says it.
    #[serde(default = \"default_schedule\")]
    #[schemars(length(min = 9))]
    pub schedule: String,
"
            }
            Need::Settings => {
                "    /// Its settings, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
"
            }
        };
    }
    if naming.needs().is_empty() {
        fields += "    /// What it is for, in a few words.
    #[serde(default, skip_serializing_if = \"Option::is_none\")]
    pub purpose: Option<String>,
";
    }
    fields
}

fn defaults(naming: &Naming<'_>) -> String {
    let default = |need: Need| match need {
        Need::Replicas => "\nfn default_replicas() -> i32 {\n    1\n}\n",
        Need::Image => {
            "\nfn default_image() -> String {\n    \"nginxinc/nginx-unprivileged:1.29-alpine\".to_owned()\n}\n"
        }
        Need::Schedule => "\nfn default_schedule() -> String {\n    \"0 3 * * *\".to_owned()\n}\n",
        Need::Settings => "",
    };
    naming.needs().into_iter().map(default).collect()
}

/// The file of a version as that of another: only its name changes, where it is declared. Nothing if it is not found there.
pub(super) fn copied(text: &str, from: &str, to: &str) -> Option<String> {
    let tokens: TokenStream = text.parse().ok()?;
    let place = declared_version(tokens, &format!("\"{from}\""))?;
    let changed = format!("{}\"{to}\"{}", &text[..place.start], &text[place.end..]);
    // The head of the file names it too, unless someone wrote another.
    Some(changed.replacen(&format!("/{from}`.\n"), &format!("/{to}`.\n"), 1))
}

/// Where `version = "..."` is, in bytes.
fn declared_version(tokens: TokenStream, literal: &str) -> Option<Range<usize>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token
            && let Some(found) = declared_version(group.stream(), literal)
        {
            return Some(found);
        }
        if let [TokenTree::Ident(name), TokenTree::Punct(is), TokenTree::Literal(value), ..] = &tokens[at..]
            && name == "version"
            && is.as_char() == '='
            && value.to_string() == literal
        {
            return Some(value.span().byte_range());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_differs_by_its_version_alone() {
        let text = "//! `A` in `x.y/v1alpha1`.\n// v1alpha1 was the first.\n#[kube(group = \"v1alpha1\", /* x */ version = \"v1alpha1\")]\nstruct A;\n";
        let copy = copied(text, "v1alpha1", "v1").unwrap();
        assert_eq!(
            copy,
            "//! `A` in `x.y/v1`.\n// v1alpha1 was the first.\n#[kube(group = \"v1alpha1\", /* x */ version = \"v1\")]\nstruct A;\n"
        );
        assert_eq!(copied("struct A;", "v1", "v2"), None);
    }
}

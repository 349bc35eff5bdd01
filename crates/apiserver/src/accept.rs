//! In which form a client wants its answer: as JSON, and then of what kind.

use crate::status::Status;

/// The media types that answers come in.
const SERVED: [&str; 1] = ["application/json"];

/// The media types that watches come in.
const WATCHED: [&str; 2] = ["application/json", "application/json;stream=watch"];

/// A clause of an Accept header: a media type with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clause<'a> {
    media: String,
    parameters: Vec<(&'a str, &'a str)>,
    weight: f32,
}

/// What an answer is turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// What was asked for, as it is.
    Plain,
    /// Rows and columns; with the `apiVersion` asked for.
    Table(&'static str),
    /// An object's metadata alone.
    Metadata(&'static str),
    /// As above, for a list.
    MetadataList(&'static str),
}

/// The clauses of an Accept header, the most wanted first.
pub(crate) fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let clause = |range| {
        let mut parts = str::split(range, ';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let mut weight = 1.0;
        let mut parameters = Vec::new();
        for parameter in parts {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name.trim() {
                "q" => weight = value.trim().parse().unwrap_or(1.0),
                name => parameters.push((name, value.trim().trim_matches('"'))),
            }
        }
        Clause { media, parameters, weight }
    };
    let mut clauses: Vec<Clause<'_>> =
        accept.split(',').map(str::trim).filter(|range| !range.is_empty()).map(clause).collect();
    clauses.sort_by(|left, right| right.weight.total_cmp(&left.weight));
    clauses
}

impl Clause<'_> {
    /// Does it take JSON?
    pub(crate) fn takes_json(&self) -> bool {
        matches!(self.media.as_str(), "application/json" | "application/*" | "*/*")
    }

    /// A parameter's value, or nothing.
    pub(crate) fn parameter(&self, wanted: &str) -> &str {
        self.parameters.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| value)
    }

    /// The form that it asks for; none if there is no such form.
    fn form(&self) -> Option<Form> {
        let kind = self.parameter("as");
        if kind.is_empty() {
            return Some(Form::Plain);
        }
        let api_version = match (self.parameter("g"), self.parameter("v")) {
            ("meta.k8s.io", "v1") => "meta.k8s.io/v1",
            ("meta.k8s.io", "v1beta1") => "meta.k8s.io/v1beta1",
            _ => return None,
        };
        match kind {
            "Table" => Some(Form::Table(api_version)),
            "PartialObjectMetadata" => Some(Form::Metadata(api_version)),
            "PartialObjectMetadataList" => Some(Form::MetadataList(api_version)),
            _ => None,
        }
    }
}

/// The first form that the client takes and that there is.
///
/// # Errors
/// 406 if there is none.
pub(crate) fn form(accept: &str, watch: bool) -> Result<Form, Status> {
    if accept.trim().is_empty() {
        return Ok(Form::Plain);
    }
    let mut clauses = clauses(accept);
    clauses.retain(Clause::takes_json);
    if clauses.is_empty() {
        return Err(Status::not_acceptable(if watch { &WATCHED } else { &SERVED }));
    }
    clauses.iter().find_map(Clause::form).ok_or_else(untransformable)
}

/// 406 for JSON of a kind that there is not.
pub(crate) fn untransformable() -> Status {
    Status::not_transformable(format!("only the following media types are accepted: {}", SERVED.join(", ")))
}

/// Should JSON be indented: because the client said so, or because a person reads along?
pub(crate) fn pretty(asked: Option<&str>, user_agent: &str) -> bool {
    match asked {
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => true,
        None | Some("") => {
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|reader| user_agent.starts_with(reader))
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_served_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(form(table, false), Ok(Form::Table("meta.k8s.io/v1")));
        assert_eq!(
            form(&format!("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,{table}"), false),
            form(table, false)
        );
        assert_eq!(
            form("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", false),
            Ok(Form::Plain)
        );
        assert_eq!(
            form(
                "application/json;q=0.5,application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
                false
            ),
            Ok(Form::Metadata("meta.k8s.io/v1beta1"))
        );
        assert_eq!(form("", false), Ok(Form::Plain));
        assert_eq!(form("*/*", false), Ok(Form::Plain));
        for refused in [
            "application/json;as=Table;v=v2;g=meta.k8s.io",
            "application/vnd.kubernetes.protobuf",
            "text/html",
        ] {
            assert_eq!(form(refused, false).unwrap_err().code, 406, "{refused}");
        }
    }

    #[test]
    fn people_get_indented_answers() {
        assert!(pretty(None, "curl/8.0") && pretty(Some("true"), "kubectl"));
        assert!(
            !pretty(None, "kubectl/v1.36")
                && !pretty(Some("false"), "curl/8.0")
                && !pretty(Some("yes"), "curl")
        );
    }
}

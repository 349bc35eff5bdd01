//! In which media type and of what kind a client wants its answer, negotiated in the two steps of the reference: a route
//! knows what it produces, and then the clauses are tried in their order.

use crate::request::media::Media;
use crate::status::Status;

/// The media types of answers, in the order in which they are tried.
const SERVED: [(Media, &str); 3] = [(Media::Json, JSON), (Media::Yaml, YAML), (Media::Protobuf, PROTOBUF)];

/// Their names.
pub(crate) const TYPES: [&str; 3] = [JSON, YAML, PROTOBUF];

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The media types of watches.
const STREAMED: [&str; 2] = ["application/json;stream=watch", PROTOBUF_WATCH];
pub(crate) const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// A clause of an Accept header: a media type with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    weight: f32,
}

/// What an answer is turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// What was asked for, as it is.
    #[default]
    Plain,
    /// Rows and columns; with the `apiVersion` asked for.
    Table(&'static str),
    /// An object's metadata alone.
    Metadata(&'static str),
    /// As above, for a list.
    MetadataList(&'static str),
    /// All of discovery at once.
    Discovery,
}

/// What an answer is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Negotiated {
    pub(crate) media: Media,
    pub(crate) form: Form,
    /// Indented, if it is JSON.
    pub(crate) pretty: bool,
}

/// Who answers, and thus what can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Objects of a built-in kind; some, such as reviews, have no rows and columns.
    BuiltIn { collection: bool, watch: bool, table: bool },
    /// Objects of a custom resource, which have no protobuf but for their metadata.
    Custom { watch: bool },
    /// Documents such as groups and their resources, and errors.
    Document,
    /// `/api` and `/apis`, where only all of discovery at once is looked for.
    Discovery,
}

/// The clauses of an Accept header, the most wanted first.
pub(crate) fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = Vec::new();
    for clause in accept.split(',').filter_map(clause) {
        // As the reference sorts: what has no wildcard goes before what has one, whatever their weights.
        let at = clauses.iter().rposition(|before| !clause.precedes(before)).map_or(0, |at| at + 1);
        clauses.insert(at, clause);
    }
    clauses
}

fn clause(range: &str) -> Option<Clause<'_>> {
    let mut parts = range.trim_matches(' ').split(';');
    let media = parts.next().unwrap_or_default();
    let (kind, subtype) = match media.split_once('/') {
        Some((_, subtype)) if subtype.is_empty() || subtype.contains('/') => return None,
        Some((kind, subtype)) => (kind.trim_matches(' '), subtype.trim_matches(' ')),
        None if media.trim_matches(' ') == "*" => ("*", "*"),
        None => return None,
    };
    let mut clause = Clause { kind, subtype, parameters: Vec::new(), weight: 1.0 };
    for parameter in parts {
        match parameter.split_once('=') {
            Some((_, value)) if value.is_empty() || value.contains('=') => {}
            Some((name, value)) if name.trim_matches(' ') == "q" => {
                clause.weight = value.parse().unwrap_or(0.0);
            }
            Some((name, value)) => clause.parameters.push((name.trim_matches(' '), value.trim_matches(' '))),
            None => {}
        }
    }
    Some(clause)
}

impl Clause<'_> {
    fn precedes(&self, other: &Self) -> bool {
        self.weight > other.weight
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }

    fn takes(&self, media: &str) -> bool {
        let (kind, subtype) = media.split_once('/').unwrap_or((media, ""));
        (self.kind == kind && (self.subtype == subtype || self.subtype == "*"))
            || (self.kind == "*" && self.subtype == "*")
    }

    /// Does it take JSON?
    pub(crate) fn takes_json(&self) -> bool {
        self.takes(JSON)
    }

    /// Does it take one of these?
    pub(crate) fn takes_any(&self, media: &[&str]) -> bool {
        media.iter().any(|media| self.takes(media))
    }

    /// A parameter's value, or nothing. The last of several counts.
    fn parameter(&self, wanted: &str) -> Option<&str> {
        self.parameters.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }

    /// The form that it asks for at an endpoint, in a media type; none if there is no such thing.
    fn form(&self, endpoint: Endpoint, media: Media) -> Option<Form> {
        let asked = ["as", "g", "v"].map(|name| self.parameter(name));
        if asked == [None; 3] {
            let refused = match endpoint {
                Endpoint::Custom { .. } => media == Media::Protobuf,
                Endpoint::Discovery => true,
                Endpoint::BuiltIn { .. } | Endpoint::Document => false,
            };
            return (!refused).then_some(Form::Plain);
        }
        let [kind, group, version] = asked.map(Option::unwrap_or_default);
        if endpoint == Endpoint::Discovery {
            let known = (kind, group, version) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2");
            return known.then_some(Form::Discovery);
        }
        if endpoint == Endpoint::Document {
            return None;
        }
        let api_version = match (group, version) {
            ("meta.k8s.io", "v1") => "meta.k8s.io/v1",
            ("meta.k8s.io", "v1beta1") => "meta.k8s.io/v1beta1",
            _ => return None,
        };
        match kind {
            "Table"
                if media == Media::Protobuf || matches!(endpoint, Endpoint::BuiltIn { table: false, .. }) =>
            {
                None
            }
            "Table" => Some(Form::Table(api_version)),
            "PartialObjectMetadata" => Some(Form::Metadata(api_version)),
            "PartialObjectMetadataList" => Some(Form::MetadataList(api_version)),
            _ => None,
        }
    }

    fn wanted(&self, endpoint: Endpoint, media: Media) -> Option<Negotiated> {
        let stream = self.parameter("stream").unwrap_or_default();
        if !stream.is_empty() && (stream != "watch" || media == Media::Yaml) {
            return None;
        }
        let objects = matches!(endpoint, Endpoint::BuiltIn { .. } | Endpoint::Custom { .. });
        let server_version = self.parameter("sv").unwrap_or_default();
        let served = server_version.is_empty() || (objects && server_version == "v1");
        if !served {
            return None;
        }
        let form = self.form(endpoint, media)?;
        Some(Negotiated { media, form, pretty: self.parameter("pretty") == Some("1") })
    }
}

impl Endpoint {
    fn is_watch(self) -> bool {
        matches!(self, Self::BuiltIn { watch: true, .. } | Self::Custom { watch: true })
    }
}

/// The first thing that the client takes and that there is.
///
/// # Errors
/// 406 if there is none.
pub(crate) fn negotiate(accept: &str, endpoint: Endpoint) -> Result<Negotiated, Status> {
    if let Endpoint::BuiltIn { collection, .. } = endpoint {
        routed(accept, &TYPES, if collection { &STREAMED } else { &[] })?;
    }
    let found = match accept {
        "" if endpoint == Endpoint::Discovery => None,
        "" => Some(Negotiated { media: Media::Json, form: Form::Plain, pretty: false }),
        accept => clauses(accept).iter().find_map(|clause| {
            let served = SERVED.iter().filter(|(_, name)| clause.takes(name));
            served.into_iter().find_map(|(media, _)| clause.wanted(endpoint, *media))
        }),
    };
    match found {
        None => Err(Status::not_negotiable(&TYPES)),
        Some(wanted) if endpoint.is_watch() && wanted.media == Media::Yaml => {
            Err(Status::not_negotiable(&STREAMED))
        }
        Some(wanted) => Ok(wanted),
    }
}

/// The first step: is there a clause that is exactly what is produced, or `*/*`? Wildcards within a type are not known here.
///
/// # Errors
/// 406, which names `types` and `more`.
pub(crate) fn routed(accept: &str, types: &[&str], more: &[&str]) -> Result<(), Status> {
    let mut given =
        accept.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim_matches(' '));
    if accept.is_empty() || given.any(|media| media == "*/*" || types.contains(&media)) {
        return Ok(());
    }
    Err(Status::not_acceptable(&[types, more].concat()))
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

    const ITEM: Endpoint = Endpoint::BuiltIn { collection: false, watch: false, table: true };

    fn asked(accept: &str, endpoint: Endpoint) -> Result<(Media, Form), u16> {
        negotiate(accept, endpoint).map(|wanted| (wanted.media, wanted.form)).map_err(|status| status.code)
    }

    #[test]
    fn the_first_form_that_is_served_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let is_table = Ok((Media::Json, Form::Table("meta.k8s.io/v1")));
        assert_eq!(asked(table, ITEM), is_table);
        let protobuf = format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io");
        assert_eq!(asked(&format!("{protobuf},{table}"), ITEM), is_table, "tables have no protobuf");
        let metadata = "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io";
        for (accept, expected) in [
            ("", (Media::Json, Form::Plain)),
            ("*/*", (Media::Json, Form::Plain)),
            (PROTOBUF, (Media::Protobuf, Form::Plain)),
            ("application/yaml", (Media::Yaml, Form::Plain)),
            ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", (Media::Json, Form::Plain)),
            (
                &*format!("application/json;q=0.5,{metadata}"),
                (Media::Json, Form::Metadata("meta.k8s.io/v1beta1")),
            ),
            ("application/*;q=0.9,application/yaml;q=0.1", (Media::Yaml, Form::Plain)),
        ] {
            assert_eq!(asked(accept, ITEM), Ok(expected), "{accept}");
        }
        for refused in
            ["application/json;as=Table;v=v2;g=meta.k8s.io", "text/html", "application/*", "*", &protobuf]
        {
            assert_eq!(asked(refused, ITEM), Err(406), "{refused}");
        }
    }

    #[test]
    fn each_endpoint_has_its_own_limits() {
        let custom = Endpoint::Custom { watch: false };
        assert_eq!(asked(PROTOBUF, custom), Err(406));
        assert_eq!(asked("application/*", custom), Ok((Media::Json, Form::Plain)));
        assert_eq!(asked(&format!("{PROTOBUF},application/json"), custom), Ok((Media::Json, Form::Plain)));
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        assert_eq!(asked(&metadata, custom), Ok((Media::Protobuf, Form::Metadata("meta.k8s.io/v1"))));
        let watch = Endpoint::BuiltIn { collection: true, watch: true, table: true };
        assert_eq!(asked("application/yaml", watch), Err(406), "no watch is in YAML");
        assert_eq!(asked(PROTOBUF_WATCH, watch), Ok((Media::Protobuf, Form::Plain)));
        let all = "application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        assert_eq!(asked(all, Endpoint::Discovery), Ok((Media::Json, Form::Discovery)));
        assert_eq!(asked(all, Endpoint::Document), Ok((Media::Json, Form::Plain)));
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        assert_eq!(asked(old, Endpoint::Discovery), Err(406));
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

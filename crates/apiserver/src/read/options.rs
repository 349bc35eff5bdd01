//! The query of a list or watch: parsed and checked as Kubernetes does, with its texts.

use crate::status::{Cause, Named, Status};
use windlass_schema::selector::{Fields, Labels, SelectorError};

/// `resourceVersionMatch`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// Exactly the version asked for.
    Exact,
    /// That version or a newer one.
    NotOlderThan,
}

/// The parameters of a list, a watch or a deletion of many. The selectors are kept as they came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the fields carry Kubernetes' own names and meanings")]
pub struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    pub resource_version: String,
    pub resource_version_match: Option<Match>,
    pub timeout_seconds: Option<i64>,
    /// Not positive for no limit.
    pub limit: i64,
    /// `continue`; empty for none.
    pub continue_token: String,
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads the decoded pairs of a query. Of a name that comes several times the first counts; unknown ones are ignored.
    ///
    /// # Errors
    /// 400 for what cannot be read, 422 for what does not go together.
    pub fn parse<'a>(query: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Status> {
        let mut seen = Seen::default();
        for (name, value) in query {
            if let Some(place) = seen.place(name) {
                place.get_or_insert(value);
            }
        }
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let mut options = Self {
            label_selector: text(seen.label_selector),
            field_selector: text(seen.field_selector),
            watch: seen.watch.is_some_and(truth),
            allow_watch_bookmarks: seen.allow_watch_bookmarks.is_some_and(truth),
            resource_version: text(seen.resource_version),
            resource_version_match: None,
            timeout_seconds: seen.timeout_seconds.map(integer).transpose()?,
            limit: seen.limit.map_or(Ok(0), integer)?,
            continue_token: text(seen.continue_token),
            send_initial_events: seen.send_initial_events.map(truth),
        };
        // What cannot be read is told before what does not go together.
        let unreadable = |error: SelectorError| Status::bad_request(error.to_string());
        Labels::parse(&options.label_selector).map_err(unreadable)?;
        Fields::parse(&options.field_selector).map_err(unreadable)?;
        let mut wanted_match = seen.resource_version_match.unwrap_or_default();
        let any_version = matches!(options.resource_version.as_str(), "" | "0");
        if options.watch && any_version && options.send_initial_events.is_none() && wanted_match.is_empty() {
            options.send_initial_events = Some(true);
            wanted_match = "NotOlderThan";
        }
        let causes = if options.watch {
            options.causes_against_watch(wanted_match)
        } else {
            options.causes_against_list(wanted_match)
        };
        if !causes.is_empty() {
            return Err(Status::invalid(Named { group: "meta.k8s.io", kind: "ListOptions" }, "", causes));
        }
        options.resource_version_match = match wanted_match {
            "Exact" => Some(Match::Exact),
            "NotOlderThan" => Some(Match::NotOlderThan),
            _ => None,
        };
        Ok(options)
    }

    fn causes_against_list(&self, wanted_match: &str) -> Vec<Cause> {
        let mut causes = vec![];
        if !wanted_match.is_empty() {
            if self.resource_version.is_empty() {
                causes.push(forbidden(
                    MATCH,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                causes.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
            }
            if !matches!(wanted_match, "Exact" | "NotOlderThan") {
                causes.push(not_supported(wanted_match, r#""Exact", "NotOlderThan", """#));
            }
            if wanted_match == "Exact" && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                causes.push(forbidden(MATCH, why));
            }
        }
        if self.send_initial_events.is_some() {
            causes.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        causes
    }

    fn causes_against_watch(&self, wanted_match: &str) -> Vec<Cause> {
        let mut causes = vec![];
        if self.send_initial_events.is_some() && wanted_match != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(forbidden(MATCH, why));
        }
        if !wanted_match.is_empty() {
            if self.send_initial_events.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                causes.push(forbidden(MATCH, why));
            }
            if wanted_match != "NotOlderThan" {
                causes.push(not_supported(wanted_match, r#""NotOlderThan""#));
            }
            if !self.continue_token.is_empty() {
                causes.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
            }
        }
        causes
    }
}

const MATCH: &str = "resourceVersionMatch";

/// The first value of each parameter.
#[derive(Default)]
struct Seen<'a> {
    label_selector: Option<&'a str>,
    field_selector: Option<&'a str>,
    watch: Option<&'a str>,
    allow_watch_bookmarks: Option<&'a str>,
    resource_version: Option<&'a str>,
    resource_version_match: Option<&'a str>,
    timeout_seconds: Option<&'a str>,
    limit: Option<&'a str>,
    continue_token: Option<&'a str>,
    send_initial_events: Option<&'a str>,
}

impl<'a> Seen<'a> {
    fn place(&mut self, name: &str) -> Option<&mut Option<&'a str>> {
        Some(match name {
            "labelSelector" => &mut self.label_selector,
            "fieldSelector" => &mut self.field_selector,
            "watch" => &mut self.watch,
            "allowWatchBookmarks" => &mut self.allow_watch_bookmarks,
            "resourceVersion" => &mut self.resource_version,
            "resourceVersionMatch" => &mut self.resource_version_match,
            "timeoutSeconds" => &mut self.timeout_seconds,
            "limit" => &mut self.limit,
            "continue" => &mut self.continue_token,
            "sendInitialEvents" => &mut self.send_initial_events,
            _ => return None,
        })
    }
}

/// Anything but `0` and `false` is true, even nothing.
fn truth(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

fn integer(value: &str) -> Result<i64, Status> {
    value.parse().map_err(|_| {
        let why = if is_number(value) { "value out of range" } else { "invalid syntax" };
        Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: {why}"))
    })
}

fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A `resourceVersion`, where empty means 0; or why it is none.
pub(super) fn version(value: &str) -> Result<u64, String> {
    let unsigned = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        _ if value.is_empty() => Ok(0),
        Ok(version) if unsigned => Ok(version),
        _ => {
            let why = if unsigned { "value out of range" } else { "invalid syntax" };
            let parsing = format!("strconv.ParseUint: parsing {value:?}: {why}");
            Err(format!("resourceVersion: Invalid value: {value:?}: {parsing}"))
        }
    }
}

/// Where the version of a get or a watch makes no sense, the reference gives this code and no reason.
pub(super) fn bad_version(message: String) -> Status {
    Status { code: 500, reason: "".into(), message, details: None, continue_token: String::new() }
}

fn forbidden(field: &str, why: &str) -> Cause {
    cause(field, "FieldValueForbidden", format!("Forbidden: {why}"))
}

fn not_supported(value: &str, supported: &str) -> Cause {
    let message = format!("Unsupported value: {value:?}: supported values: {supported}");
    cause(MATCH, "FieldValueNotSupported", message)
}

fn cause(field: &str, reason: &str, message: String) -> Cause {
    Cause { reason: reason.to_owned(), message, field: field.to_owned() }
}

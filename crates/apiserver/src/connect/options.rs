//! The parameters of what leads to a node: read and checked as the API names them, and written as a kubelet does.

use crate::request::query::Query;
use crate::status::causes;
use crate::status::{Named, Status};
use jiff::Timestamp;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::quote;

/// Which part of a log is wanted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LogOptions {
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<Timestamp>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    stream: Option<String>,
}

impl LogOptions {
    pub(super) fn read(query: &Query) -> Result<Self, Status> {
        let since_time = match query.get("sinceTime").unwrap_or_default() {
            "" => None,
            time => Some(time.parse().map_err(|_| {
                let time = quote(time);
                Status::bad_request(format!(
                    "parsing time {time} as \"2006-01-02T15:04:05Z07:00\": cannot parse"
                ))
            })?),
        };
        Ok(Self {
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since_seconds: number(query, "sinceSeconds")?,
            since_time,
            tail_lines: number(query, "tailLines")?,
            limit_bytes: number(query, "limitBytes")?,
            stream: query.get("stream").map(str::to_owned),
        })
    }

    pub(super) fn check(&self, name: &str) -> Result<(), Status> {
        let mut errors = Vec::new();
        let mut at_least = |field: &str, value: Option<i64>, least: i64, why: &str| {
            if let Some(value) = value.filter(|&value| value < least) {
                errors.push(FieldError::invalid(&Path::new(field), value, why));
            }
        };
        at_least("tailLines", self.tail_lines, 0, "must be greater than or equal to 0");
        at_least("limitBytes", self.limit_bytes, 1, "must be greater than 0");
        match self.since_time {
            Some(_) if self.since_seconds.is_some() => {
                let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                errors.push(FieldError::forbidden(&Path::new(""), why));
            }
            _ => at_least("sinceSeconds", self.since_seconds, 1, "must be greater than 0"),
        }
        if self.stream.is_some() {
            errors.push(FieldError::forbidden(&Path::new("stream"), "may not be specified"));
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Status::invalid(Named { group: "", kind: "PodLogOptions" }, name, causes(&errors))),
        }
    }

    /// As a kubelet takes them.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let flags = [("follow", self.follow), ("previous", self.previous), ("timestamps", self.timestamps)];
        let numbers = [
            ("sinceSeconds", self.since_seconds),
            ("tailLines", self.tail_lines),
            ("limitBytes", self.limit_bytes),
        ];
        let flags = flags.into_iter().filter(|&(_, set)| set).map(|(name, _)| (name, "true".to_owned()));
        let numbers = numbers.into_iter().filter_map(|(name, value)| Some((name, value?.to_string())));
        let since = self.since_time.map(|time| ("sinceTime", time.to_string()));
        flags.chain(numbers).chain(since).collect()
    }
}

fn number(query: &Query, name: &str) -> Result<Option<i64>, Status> {
    match query.get(name).unwrap_or_default() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", quote(text)))
        }),
    }
}

/// The streams of a process, as a kubelet names them.
pub(super) fn streams(query: &Query) -> Vec<(&'static str, String)> {
    let streams = [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")];
    let wanted = streams.into_iter().filter(|(name, _)| query.flag(name));
    wanted.map(|(_, name)| (name, "1".to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(query: &str) -> Result<Vec<(&'static str, String)>, String> {
        let options = LogOptions::read(&Query::parse(query)).map_err(|status| status.message)?;
        options.check("web").map_err(|status| status.message)?;
        Ok(options.parameters())
    }

    #[test]
    fn options_of_logs_are_passed_on() {
        let asked = checked("follow=true&tailLines=5&sinceTime=2026-11-15T10:00:00Z&timestamps=0&pretty=1");
        let expected = [("follow", "true"), ("tailLines", "5"), ("sinceTime", "2026-11-15T10:00:00Z")];
        assert_eq!(asked.unwrap(), expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(checked("tailLines=").unwrap(), []);
    }

    #[test]
    fn options_of_logs_that_make_no_sense_are_refused_in_the_reference_s_words() {
        for (query, why) in [
            (
                "tailLines=-1",
                "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                "limitBytes=0",
                "PodLogOptions \"web\" is invalid: limitBytes: Invalid value: 0: must be greater than 0",
            ),
            (
                "sinceSeconds=0",
                "PodLogOptions \"web\" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0",
            ),
            ("tailLines=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
        ] {
            assert_eq!(checked(query).unwrap_err(), why);
        }
        assert!(checked("sinceSeconds=1&sinceTime=2026-11-15T10:00:00Z").is_err());
    }

    #[test]
    fn streams_have_other_names_at_a_kubelet() {
        let query = Query::parse("stdin=true&stdout=1&stderr=false&tty=true");
        assert_eq!(streams(&query), ["input", "output", "tty"].map(|name| (name, "1".to_owned())));
    }
}

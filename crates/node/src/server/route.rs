//! What a request asks for, by its method, path and query.

use super::backend::{ContainerRef, HttpError, PodRef};
use crate::logs::LogOptions;
use http::Method;
use jiff::{SignedDuration, Timestamp};

/// What can be asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Health,
    Pods,
    Summary,
    Metrics,
    Logs(ContainerRef, LogOptions),
    Exec(ContainerRef, Vec<String>, Wants),
    Attach(ContainerRef, Wants),
    /// With the ports, for those who name them beforehand.
    Forward(PodRef, Vec<u16>),
}

/// Which streams of a process are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wants {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

/// What the request asks for; `now` is what ages of logs are counted from.
pub(super) fn route(method: &Method, path: &str, query: &str, now: Timestamp) -> Result<Asked, HttpError> {
    let segments: Option<Vec<String>> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| unescape(segment, false))
        .collect();
    let segments = segments.ok_or_else(|| HttpError::bad_request("the path is malformed"))?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let query = Query::parse(query).ok_or_else(|| HttpError::bad_request("the query is malformed"))?;
    let asked = match *segments.as_slice() {
        ["healthz"] | ["healthz", "ping" | "syncloop"] => Asked::Health,
        ["pods"] => Asked::Pods,
        ["stats"] | ["stats", "summary"] => Asked::Summary,
        ["metrics", "resource"] => Asked::Metrics,
        ["containerLogs", namespace, pod, name] => {
            Asked::Logs(container(namespace, pod, None, name), query.log_options(now)?)
        }
        ["exec", namespace, pod, name] => query.exec(container(namespace, pod, None, name))?,
        ["exec", namespace, pod, uid, name] => query.exec(container(namespace, pod, Some(uid), name))?,
        ["attach", namespace, pod, name] => {
            Asked::Attach(container(namespace, pod, None, name), query.wants()?)
        }
        ["attach", namespace, pod, uid, name] => {
            Asked::Attach(container(namespace, pod, Some(uid), name), query.wants()?)
        }
        ["portForward", namespace, name] => Asked::Forward(pod(namespace, name, None), query.ports()?),
        ["portForward", namespace, name, uid] => {
            Asked::Forward(pod(namespace, name, Some(uid)), query.ports()?)
        }
        _ => return Err(HttpError::not_found("404 page not found")),
    };
    let upgrades = matches!(asked, Asked::Exec(..) | Asked::Attach(..) | Asked::Forward(..));
    if method != Method::GET && !(upgrades && method == Method::POST) {
        return Err(HttpError { code: 405, message: "405: Method Not Allowed".to_owned() });
    }
    Ok(asked)
}

/// The parts of a node that a path belongs to, of which a caller needs one: subresources of `nodes` in the API.
pub(super) fn subresources(path: &str) -> &'static [&'static str] {
    match path.split('/').find(|segment| !segment.is_empty()) {
        Some("healthz") => &["healthz", "proxy"],
        Some("pods") => &["pods", "proxy"],
        Some("stats") => &["stats"],
        Some("metrics") => &["metrics"],
        _ => &["proxy"],
    }
}

fn pod(namespace: &str, name: &str, uid: Option<&str>) -> PodRef {
    PodRef { namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.map(str::to_owned) }
}

fn container(namespace: &str, name: &str, uid: Option<&str>, container: &str) -> ContainerRef {
    ContainerRef { pod: pod(namespace, name, uid), name: container.to_owned() }
}

struct Query(Vec<(String, String)>);

impl Query {
    fn parse(query: &str) -> Option<Self> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name, true)?, unescape(value, true)?))
        });
        pairs.collect::<Option<_>>().map(Self)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn flag(&self, name: &str) -> bool {
        self.all(name).next().is_some_and(|value| matches!(value, "1" | "true"))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, HttpError> {
        let Some(value) = self.all(name).next().filter(|value| !value.is_empty()) else { return Ok(None) };
        let malformed = |_| HttpError::bad_request(r#"{"message": "Unable to decode query."}"#);
        match value.parse::<i64>().map_err(malformed)? {
            number @ 0.. => Ok(Some(number.unsigned_abs())),
            _ => Err(invalid()),
        }
    }

    fn log_options(&self, now: Timestamp) -> Result<LogOptions, HttpError> {
        let since_seconds = self.number("sinceSeconds")?;
        let since_time = self.all("sinceTime").next().filter(|value| !value.is_empty());
        let since = match (since_seconds, since_time) {
            (Some(_), Some(_)) | (Some(0), _) => return Err(invalid()),
            (Some(seconds), None) => {
                let age = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
                // Older than time itself is everything.
                Some(now.checked_sub(age).unwrap_or(Timestamp::MIN))
            }
            (None, Some(time)) => {
                let malformed = |_| HttpError::bad_request(r#"{"message": "Unable to decode query."}"#);
                Some(time.parse().map_err(malformed)?)
            }
            (None, None) => None,
        };
        let limit_bytes = self.number("limitBytes")?;
        if limit_bytes == Some(0) {
            return Err(invalid());
        }
        Ok(LogOptions {
            follow: self.flag("follow"),
            previous: self.flag("previous"),
            since,
            tail: self.number("tailLines")?,
            limit_bytes,
            timestamps: self.flag("timestamps"),
        })
    }

    fn exec(&self, container: ContainerRef) -> Result<Asked, HttpError> {
        let command: Vec<String> = self.all("command").map(str::to_owned).collect();
        if command.first().is_none_or(String::is_empty) {
            return Err(HttpError::bad_request("you must specify a command to run"));
        }
        Ok(Asked::Exec(container, command, self.wants()?))
    }

    fn wants(&self) -> Result<Wants, HttpError> {
        let tty = self.flag("tty");
        let (stdin, stdout, stderr) = (self.flag("input"), self.flag("output"), self.flag("error"));
        if !stdin && !stdout && !stderr {
            return Err(HttpError::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
        }
        // A terminal has one stream for both.
        Ok(Wants { stdin, stdout, stderr: stderr && !tty, tty })
    }

    fn ports(&self) -> Result<Vec<u16>, HttpError> {
        let ports = self.all("port").chain(self.all("ports")).flat_map(|ports| ports.split(','));
        let read = |port: &str| {
            let read = port.parse().ok().filter(|&port: &u16| port > 0);
            read.ok_or_else(|| HttpError::bad_request(format!("unable to parse {port:?} as a port")))
        };
        ports.filter(|port| !port.is_empty()).map(read).collect()
    }
}

fn invalid() -> HttpError {
    HttpError { code: 422, message: r#"{"message": "Invalid request."}"#.to_owned() }
}

/// Undoes URL escapes; in a query, `+` is a space. None if they are broken or the result is not UTF-8.
fn unescape(text: &str, query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if query => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str) -> Result<Asked, u16> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let now = "2026-11-15T10:00:00Z".parse().unwrap();
        route(&Method::GET, path, query, now).map_err(|refusal| refusal.code)
    }

    #[test]
    fn a_command_is_its_words_and_its_streams() {
        let wants = Wants { stdin: true, stdout: true, stderr: false, tty: true };
        assert_eq!(
            asked("/exec/n/p/c?command=sh&command=-c&command=echo+%22a%22&input=1&output=1&error=1&tty=1"),
            Ok(Asked::Exec(
                container("n", "p", None, "c"),
                vec!["sh".into(), "-c".into(), "echo \"a\"".into()],
                wants
            ))
        );
        assert_eq!(asked("/exec/n/p/c?command=sh"), Err(400));
        assert_eq!(asked("/exec/n/p/c?output=1"), Err(400));
        assert_eq!(asked("/exec/n/p/c?command=%zz"), Err(400));
    }

    #[test]
    fn logs_begin_at_an_age_or_a_time() {
        let since = |path: &str| match asked(path) {
            Ok(Asked::Logs(_, options)) => options.since.map(|since| since.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(since("/containerLogs/n/p/c?sinceSeconds=60").as_deref(), Some("2026-11-15T09:59:00Z"));
        let time = "/containerLogs/n/p/c?sinceTime=2026-11-15T08%3A00%3A00%2B01%3A00";
        assert_eq!(since(time).as_deref(), Some("2026-11-15T07:00:00Z"));
        assert_eq!(asked("/containerLogs/n/p/c?sinceSeconds=x"), Err(400));
        for wrong in ["sinceSeconds=0", "tailLines=-1", "limitBytes=0"] {
            assert_eq!(asked(&format!("/containerLogs/n/p/c?{wrong}")), Err(422), "{wrong}");
        }
    }

    #[test]
    fn ports_are_named_with_commas_or_not_at_all() {
        assert_eq!(asked("/portForward/n/p"), Ok(Asked::Forward(pod("n", "p", None), vec![])));
        assert_eq!(
            asked("/portForward/n/p?port=80,81"),
            Ok(Asked::Forward(pod("n", "p", None), vec![80, 81]))
        );
        assert_eq!(asked("/portForward/n/p?port=0"), Err(400));
    }

    #[test]
    fn nothing_else_is_there() {
        assert_eq!(asked("/"), Err(404));
        assert_eq!(asked("/run/n/p/c"), Err(404));
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(route(&Method::DELETE, "/pods", "", now).unwrap_err().code, 405);
    }
}

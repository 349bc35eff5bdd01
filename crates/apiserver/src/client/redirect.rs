//! Where a client is led by an answer, and what it asks there: as Go's `http.Client` does, which calls webhooks in Kubernetes.

use super::Asked;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{Method, StatusCode, Uri};
use windlass_schema::quote;

impl Asked {
    /// What is asked next, if an answer leads elsewhere.
    pub(super) fn redirected(
        &self,
        status: StatusCode,
        location: Option<&[u8]>,
    ) -> Option<Result<Self, String>> {
        let keeps_question = match status.as_u16() {
            301..=303 => false,
            307 | 308 => true,
            _ => return None,
        };
        let location = location.filter(|location| !location.is_empty())?;
        let location = String::from_utf8_lossy(location);
        let Some(url) = resolved(&self.url, &location) else {
            return Some(Err(format!("failed to parse Location header {}", quote(&location))));
        };
        let mut next = Self {
            first_method: self.first_method.clone(),
            method: self.method.clone(),
            url,
            headers: self.headers.clone(),
            body: Bytes::new(),
        };
        match keeps_question {
            true => next.body = self.body.clone(),
            false => {
                next.method = Method::GET;
                next.headers.remove(CONTENT_TYPE);
            }
        }
        if next.url.host() != self.url.host() {
            next.headers.remove(AUTHORIZATION);
        }
        Some(Ok(next))
    }
}

/// A reference from `base`: a URL, one without a scheme, or a path.
fn resolved(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default();
    if reference.starts_with("//") {
        return format!("{}:{reference}", base.scheme_str()?).parse().ok();
    }
    let before_path = reference.split(['/', '?']).next().unwrap_or_default();
    if before_path.contains(':') {
        let url: Uri = reference.parse().ok()?;
        return matches!(url.scheme_str(), Some("http" | "https")).then_some(url);
    }
    let path = match reference.chars().next() {
        Some('/') => reference.to_owned(),
        Some('?') => format!("{}{reference}", base.path()),
        _ => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{reference}")
        }
    };
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(without_dots(&path).parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

/// A path and its query without `.` and `..`.
fn without_dots(text: &str) -> String {
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let mut kept: Vec<&str> = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        match *segment {
            "." => kept.extend(is_last.then_some("")),
            ".." => {
                kept.pop();
                kept.extend(is_last.then_some(""));
            }
            segment => kept.push(segment),
        }
    }
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        let url = Uri::from_static("https://hooks.example:8443/a/b?timeout=10s");
        let mut asked = Asked::new(Method::POST, &url, Bytes::from_static(b"{}"));
        asked.headers.insert(AUTHORIZATION, http::HeaderValue::from_static("Bearer it"));
        asked
    }

    fn led(status: u16, location: &str) -> Option<Result<Asked, String>> {
        asked().redirected(StatusCode::from_u16(status).unwrap(), Some(location.as_bytes()))
    }

    #[test]
    fn a_permanent_or_temporary_redirect_asks_the_same_elsewhere() {
        for status in [307, 308] {
            let next = led(status, "/c?x=1").unwrap().ok().unwrap();
            assert_eq!((next.method.as_str(), &*next.body), ("POST", &b"{}"[..]));
            assert_eq!(next.url, "https://hooks.example:8443/c?x=1");
            assert!(next.headers.contains_key(AUTHORIZATION) && next.headers.contains_key(CONTENT_TYPE));
        }
        assert!(led(304, "/c").is_none() && led(200, "/c").is_none());
        assert!(asked().redirected(StatusCode::TEMPORARY_REDIRECT, None).is_none());
    }

    #[test]
    fn other_redirects_read_what_is_elsewhere() {
        for status in 301..=303 {
            let next = led(status, "/c").unwrap().ok().unwrap();
            assert_eq!((next.method.as_str(), next.body.len()), ("GET", 0));
            assert!(!next.headers.contains_key(CONTENT_TYPE));
        }
    }

    #[test]
    fn another_host_is_not_told_who_asks() {
        let next = led(307, "https://other.example/").unwrap().ok().unwrap();
        assert!(!next.headers.contains_key(AUTHORIZATION));
        let next = led(307, "//hooks.example/c").unwrap().ok().unwrap();
        assert_eq!(next.url, "https://hooks.example/c");
        assert!(next.headers.contains_key(AUTHORIZATION));
    }

    #[test]
    fn a_location_is_resolved_from_where_it_was_given() {
        let to = |location: &str| match led(307, location).unwrap() {
            Ok(next) => next.url.path_and_query().unwrap().to_string(),
            Err(why) => why,
        };
        assert_eq!(to("c"), "/a/c");
        assert_eq!(to("../c/./d"), "/c/d");
        assert_eq!(to("../../../.."), "/");
        assert_eq!(to("?x=2"), "/a/b?x=2");
        assert_eq!(to("/failing#part"), "/failing");
        assert_eq!(to("ftp://other/"), "failed to parse Location header \"ftp://other/\"");
        assert_eq!(to("/a b"), "failed to parse Location header \"/a b\"");
    }
}

//! A front proxy: who shows a certificate of its CA says in headers for whom it asks.

use crate::request::identity::{ANONYMOUS, AUTHENTICATED, Identity, UNAUTHENTICATED};
use crate::request::path::unescape;
use http::{HeaderMap, HeaderName};
use std::collections::BTreeMap;

/// Whom to believe that they ask for somebody else, and in which headers they say so, as the flags `--requestheader-…` tell.
#[derive(Debug, Clone, Default)]
pub struct RequestHeader {
    /// Who signs the certificates of proxies, as PEM.
    pub client_ca: String,
    /// The common names of proxies; any, without.
    pub allowed_names: Vec<String>,
    /// The headers of the user's name, of which the first that is there counts.
    pub username_headers: Vec<String>,
    /// The same of the UID.
    pub uid_headers: Vec<String>,
    /// The headers of groups, all of which count.
    pub group_headers: Vec<String>,
    /// How the headers begin of what else is known of the user.
    pub extra_headers_prefixes: Vec<String>,
}

impl RequestHeader {
    /// Whether the owner of a certificate with this common name may be a proxy.
    pub(crate) fn allows(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }

    /// For whom a proxy asks, if it says so. What it says is then no longer in the headers.
    pub(crate) fn identify(&self, headers: &mut HeaderMap) -> Option<Identity> {
        let first = |names: &[String]| -> Option<String> {
            names.iter().find_map(|name| text(headers, name).into_iter().find(|value| !value.is_empty()))
        };
        let user = first(&self.username_headers)?;
        let uid = first(&self.uid_headers).unwrap_or_default();
        let mut groups: Vec<String> =
            self.group_headers.iter().flat_map(|name| text(headers, name)).collect();
        let extra = self.extra(headers);
        let named = [&self.username_headers, &self.uid_headers, &self.group_headers].into_iter().flatten();
        for name in named {
            headers.remove(name.as_str());
        }
        let told: Vec<HeaderName> =
            headers.keys().filter(|name| self.extra_key(name).is_some()).cloned().collect();
        for name in told {
            headers.remove(name);
        }
        let is_known = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if user != ANONYMOUS && !groups.iter().any(is_known) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Some(Identity { user, uid, groups, extra })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in headers.keys() {
            if let Some(key) = self.extra_key(name) {
                let key = unescape(key, false).unwrap_or_else(|| key.to_owned());
                extra.entry(key).or_default().extend(text(headers, name.as_str()));
            }
        }
        extra
    }

    /// What a header is about, if it begins as it must.
    fn extra_key<'a>(&self, name: &'a HeaderName) -> Option<&'a str> {
        let begins = |prefix: &String| {
            let start = name.as_str().get(..prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then(|| &name.as_str()[prefix.len()..])
        };
        self.extra_headers_prefixes.iter().find_map(begins)
    }
}

fn text(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_says_for_whom_it_asks() {
        let proxy = RequestHeader {
            username_headers: vec!["X-Remote-User".into()],
            uid_headers: vec!["X-Remote-Uid".into()],
            group_headers: vec!["X-Remote-Group".into()],
            extra_headers_prefixes: vec!["X-Remote-Extra-".into()],
            ..RequestHeader::default()
        };
        let mut headers = HeaderMap::new();
        headers.append("x-remote-group", "devs".parse().unwrap());
        assert_eq!(proxy.identify(&mut headers), None, "it does not say who");
        headers.append("x-remote-user", "jane".parse().unwrap());
        headers.append("x-remote-group", "ops".parse().unwrap());
        headers.append("x-remote-extra-example.com%2fscope", "a".parse().unwrap());
        headers.append("accept", "any".parse().unwrap());
        let identity = proxy.identify(&mut headers).unwrap();
        assert_eq!((identity.user.as_str(), identity.uid.as_str()), ("jane", ""));
        assert_eq!(identity.groups, ["devs", "ops", AUTHENTICATED]);
        assert_eq!(identity.extra["example.com/scope"], ["a"]);
        assert_eq!(headers.len(), 1, "{headers:?}");
        assert!(proxy.allows("anybody"));
        assert!(!RequestHeader { allowed_names: vec!["front".into()], ..proxy }.allows("other"));
    }
}

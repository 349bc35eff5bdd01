//! `net/url`.

/// A URL in its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Url {
    pub scheme: String,
    pub opaque: String,
    /// As it is written: name and password, escaped.
    pub user: Option<String>,
    pub host: String,
    pub path: String,
    pub query: String,
    pub fragment: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Path,
    Host,
    User,
    Query,
    Fragment,
}

/// `url.QueryEscape`
pub(crate) fn query_escape(bytes: &[u8]) -> String {
    escape(bytes, Part::Query)
}

fn plain(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return true;
    }
    match part {
        Part::Host => b"!$&'()*+,;=:[]<>\"".contains(&byte),
        Part::Path => b"$&+,/:;=@".contains(&byte),
        Part::User => b"$&+,;=".contains(&byte),
        Part::Query => false,
        Part::Fragment => b"$&+,/:;=?@!()*".contains(&byte),
    }
}

fn escape(bytes: &[u8], part: Part) -> String {
    let mut out = String::new();
    for byte in bytes {
        if plain(*byte, part) {
            out.push(char::from(*byte));
        } else if *byte == b' ' && part == Part::Query {
            out.push('+');
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            if part == Part::Host && bytes[at].is_ascii() && !plain(bytes[at], part) {
                let shown = crate::go::quote::quote(&bytes[at..=at]);
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let valid = bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        match hex.filter(|_| valid) {
            Some(byte) => out.push(byte),
            None => {
                let end = (at + 3).min(bytes.len());
                return Err(format!("invalid URL escape {}", crate::go::quote::quote(&bytes[at..end])));
            }
        }
        if part == Part::Host
            && bytes.get(at + 1..at + 3) != Some(b"25")
            && out.last().is_some_and(u8::is_ascii)
        {
            return Err(format!("invalid URL escape {}", crate::go::quote::quote(&bytes[at..at + 3])));
        }
        at += 3;
    }
    Ok(crate::text::lossy(&out).into_owned())
}

impl Url {
    /// `url.Parse`
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text)
            .map_err(|error| format!("parse {}: {error}", crate::go::quote::quote(text.as_bytes())))
    }

    fn read(text: &str) -> Result<Self, String> {
        let mut url = Self::default();
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".into());
        }
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        url.fragment = unescape(fragment, Part::Fragment)?;
        if rest == "*" {
            url.path = "*".into();
            return Ok(url);
        }
        let (scheme, mut rest) = scheme(rest)?;
        url.scheme = scheme.to_ascii_lowercase();
        if let Some((before, query)) = rest.split_once('?') {
            rest = before;
            url.query = query.into();
        }
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                url.opaque = rest.into();
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err("first path segment in URL cannot contain colon".into());
            }
        }
        let three = rest.starts_with("///");
        if rest.starts_with("//") && (!url.scheme.is_empty() || !three) {
            let authority = &rest[2..];
            let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
            let (user, host) = match authority.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, authority),
            };
            check_host(host)?;
            url.host = unescape(host, Part::Host)?;
            if let Some(user) = user {
                let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
                if !user.chars().all(allowed) {
                    return Err("net/url: invalid userinfo".into());
                }
                let (name, password) = match user.split_once(':') {
                    Some((name, password)) => (name, Some(password)),
                    None => (user, None),
                };
                let name = escape(unescape(name, Part::User)?.as_bytes(), Part::User);
                url.user = Some(match password {
                    Some(password) => {
                        format!("{name}:{}", escape(unescape(password, Part::User)?.as_bytes(), Part::User))
                    }
                    None => name,
                });
            }
            rest = path;
        }
        url.path = unescape(rest, Part::Path)?;
        Ok(url)
    }

    /// The host without its port.
    pub fn hostname(&self) -> String {
        let host = match self.host.rfind(':') {
            Some(at) if self.host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()) => &self.host[..at],
            _ => &self.host,
        };
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).into()
    }

    /// `URL.String`
    pub fn show(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    out.push_str("//");
                }
                if let Some(user) = &self.user {
                    out.push_str(user);
                    out.push('@');
                }
                out.push_str(&escape(self.host.as_bytes(), Part::Host));
            }
            let path = escape(self.path.as_bytes(), Part::Path);
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push('/');
            }
            if out.is_empty() && path.split('/').next().is_some_and(|first| first.contains(':')) {
                out.push_str("./");
            }
            out.push_str(&path);
        } else {
            out.push_str(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push('?');
            out.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push('#');
            out.push_str(&escape(self.fragment.as_bytes(), Part::Fragment));
        }
        out
    }
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".into()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    let port = if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err("missing ']' in host".into()) };
        &host[end + 1..]
    } else {
        host.find(':').map_or("", |at| &host[host.rfind(':').unwrap_or(at)..])
    };
    let valid = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if valid {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", crate::go::quote::quote(port.as_bytes())))
    }
}

//! Links of a proxied server, which stands at the root of its own address and knows nothing of the path that leads to it here.
//!
//! Read by hand and not with `lol_html`: only the attributes of start tags are looked at, and a page that is broken has to be
//! rewritten as the reference rewrites it. `lol_html` would bring a CSS selector engine (`selectors`, `cssparser` and what is
//! below them), under the MPL-2.0, which `deny.toml` does not allow.

/// Which attributes of which elements are links.
const LINKS: [(&str, &[&str]); 25] = [
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// Elements in which nothing is markup but their own end.
const RAW: [&str; 9] =
    ["iframe", "noembed", "noframes", "noscript", "script", "style", "textarea", "title", "xmp"];

/// Leads what a proxied server refers to through the proxy.
pub(super) struct Links {
    /// The path of the proxy, without a slash at its end.
    pub(super) prefix: String,
    /// What the server calls itself: where it is, and how the client called it.
    pub(super) server: String,
    pub(super) asked: String,
}

impl Links {
    /// A link as it has to be; none if it is right already: it leads elsewhere, or from where it is.
    pub(super) fn rewritten(&self, link: &str) -> Option<String> {
        let (before, path, rest) = apart(link)?;
        let host = before.split_once("//").map_or("", |(_, host)| host);
        let known = host.is_empty() || host == self.server || host == self.asked;
        if !known || !path.starts_with('/') {
            return None;
        }
        // The server's own address is of no use to the client.
        let before = if !host.is_empty() && host == self.asked { before } else { "" };
        let path = match path.starts_with(&self.prefix) {
            true => path.to_owned(),
            false => joined(&self.prefix, path),
        };
        Some(format!("{before}{path}{rest}"))
    }

    /// A page with its links rewritten, otherwise as it was.
    pub(super) fn page(&self, page: &[u8]) -> Vec<u8> {
        let mut written = Vec::with_capacity(page.len() + page.len() / 8);
        let mut copied = 0;
        let mut at = 0;
        while let Some(found) = page[at..].iter().position(|&byte| byte == b'<') {
            let start = at + found;
            let rest = &page[start..];
            at = match rest.get(1) {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    let tag = Tag::read(page, start + 1);
                    for (from, to) in &tag.links {
                        let link = std::str::from_utf8(&page[*from..*to]).ok();
                        if let Some(link) = link.and_then(|link| self.rewritten(link)) {
                            written.extend_from_slice(&page[copied..*from]);
                            written.extend_from_slice(link.as_bytes());
                            copied = *to;
                        }
                    }
                    tag.end + raw_text(&page[tag.end..], &tag.name)
                }
                Some(b'!') if rest.starts_with(b"<!--") => start + 4 + past(&rest[4..], b"-->"),
                Some(b'!' | b'?' | b'/') => start + 2 + past(&rest[2..], b">"),
                _ => start + 1,
            };
        }
        written.extend_from_slice(&page[copied..]);
        written
    }
}

/// A start tag: which element it begins, where its links stand, and where it ends.
struct Tag {
    name: String,
    links: Vec<(usize, usize)>,
    end: usize,
}

impl Tag {
    /// Reads one whose name begins at `at`.
    fn read(page: &[u8], at: usize) -> Self {
        let until = |from: usize, ends: &dyn Fn(u8) -> bool| {
            page[from..].iter().position(|&byte| ends(byte)).map_or(page.len(), |found| from + found)
        };
        let is_space = |byte: u8| byte.is_ascii_whitespace();
        let mut end = until(at, &|byte| is_space(byte) || byte == b'/' || byte == b'>');
        let name = String::from_utf8_lossy(&page[at..end]).to_ascii_lowercase();
        let wanted = LINKS.iter().find(|(element, _)| *element == name).map_or(&[][..], |(_, links)| links);
        let mut links = Vec::new();
        loop {
            let begin = until(end, &|byte| !is_space(byte) && byte != b'/');
            if page.get(begin).is_none_or(|&byte| byte == b'>') {
                return Self { name, links, end: page.len().min(begin + 1) };
            }
            // A name has one letter at least, so that this goes on.
            let named = until(begin + 1, &|byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'='));
            let attribute = String::from_utf8_lossy(&page[begin..named]).to_ascii_lowercase();
            end = named;
            let equals = until(named, &|byte| !is_space(byte));
            if page.get(equals) != Some(&b'=') {
                continue;
            }
            let value = until(equals + 1, &|byte| !is_space(byte));
            let (from, to) = match page.get(value) {
                Some(&quote @ (b'"' | b'\'')) => {
                    let closed = until(value + 1, &|byte| byte == quote);
                    end = page.len().min(closed + 1);
                    (value + 1, closed)
                }
                _ => {
                    end = until(value, &|byte| is_space(byte) || byte == b'>');
                    (value, end)
                }
            };
            if wanted.contains(&attribute.as_str()) {
                links.push((from, to));
            }
        }
    }
}

/// How much of what follows a start tag is its element's text, whatever it looks like.
fn raw_text(rest: &[u8], name: &str) -> usize {
    if !RAW.contains(&name) {
        return 0;
    }
    let is_end = |at: &[u8]| {
        at.starts_with(b"</")
            && at.get(2..2 + name.len()).is_some_and(|at| at.eq_ignore_ascii_case(name.as_bytes()))
    };
    (0..rest.len()).find(|&at| is_end(&rest[at..])).unwrap_or(rest.len())
}

/// How much there is until `end` is over.
fn past(rest: &[u8], end: &[u8]) -> usize {
    rest.windows(end.len()).position(|window| window == end).map_or(rest.len(), |found| found + end.len())
}

/// Scheme and host, path, and what follows. None if it has no path: `mailto:somebody`.
fn apart(link: &str) -> Option<(&str, &str, &str)> {
    let scheme = link.find(|letter: char| !letter.is_ascii_alphanumeric() && !"+.-".contains(letter));
    let scheme = scheme.filter(|&end| end > 0 && link[end..].starts_with(':')).map_or(0, |end| end + 1);
    let path = match link[scheme..].strip_prefix("//") {
        Some(host) => scheme + 2 + host.find(['/', '?', '#']).unwrap_or(host.len()),
        None if scheme > 0 => return None,
        None => 0,
    };
    let rest = link[path..].find(['?', '#']).map_or(link.len(), |found| path + found);
    Some((&link[..path], &link[path..rest], &link[rest..]))
}

/// A path behind another, without detours.
fn joined(prefix: &str, path: &str) -> String {
    let mut parts = Vec::new();
    for part in prefix.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let slash = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    format!("/{}{slash}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn links() -> Links {
        Links {
            prefix: "/api/v1/namespaces/n/pods/p/proxy".to_owned(),
            server: "10.0.0.1:80".to_owned(),
            asked: "localhost:6443".to_owned(),
        }
    }

    #[test]
    fn links_to_the_server_lead_through_the_proxy() {
        let proxied = |link: &str| {
            links().rewritten(link).map(|link| link.replace("/api/v1/namespaces/n/pods/p/proxy", "PROXY"))
        };
        for (link, wanted) in [
            ("/", "PROXY/"),
            ("/a/b/", "PROXY/a/b/"),
            ("/a/../b?x=/y#/z", "PROXY/b?x=/y#/z"),
            ("http://10.0.0.1:80/a", "PROXY/a"),
            ("//10.0.0.1:80/a", "PROXY/a"),
            ("https://localhost:6443/a", "https://localhost:6443PROXY/a"),
            ("/api/v1/namespaces/n/pods/p/proxy/a", "PROXY/a"),
        ] {
            assert_eq!(proxied(link).as_deref(), Some(wanted), "{link}");
        }
        for link in
            ["", "a", "../a", "#a", "?a=/b", "mailto:a@b", "http://elsewhere/a", "http://10.0.0.1:80", "x:/a"]
        {
            assert_eq!(proxied(link), None, "{link}");
        }
        // No link leaves what is proxied by climbing; it ends where the reference has it end.
        assert_eq!(proxied("/../../a").as_deref(), Some("/api/v1/namespaces/n/pods/a"));
    }

    #[test]
    fn a_page_keeps_all_but_its_links() {
        let page = |page: &str| String::from_utf8(links().page(page.as_bytes())).unwrap();
        let proxied = |text: &str| text.replace("PROXY", "/api/v1/namespaces/n/pods/p/proxy");
        for (before, after) in [
            ("<a href=\"/x\">x</a>", "<a href=\"PROXY/x\">x</a>"),
            ("<A CLASS=b HREF = '/x' >", "<A CLASS=b HREF = 'PROXY/x' >"),
            ("<img src=/x longdesc=/y>", "<img src=PROXY/x longdesc=PROXY/y>"),
            ("<link rel=a href=\"/x\"/><p href=\"/x\">", "<link rel=a href=\"PROXY/x\"/><p href=\"/x\">"),
            (
                "<script src=\"/x\">'<a href=\"/y\">'</script>",
                "<script src=\"PROXY/x\">'<a href=\"/y\">'</script>",
            ),
            ("<!-- <a href=\"/x\"> --><a\nhref=\"/y\">", "<!-- <a href=\"/x\"> --><a\nhref=\"PROXY/y\">"),
            ("1 < 2 <a href=\"/x\" data-y='>'>", "1 < 2 <a href=\"PROXY/x\" data-y='>'>"),
        ] {
            assert_eq!(page(before), proxied(after));
        }
        for whole in
            ["", "<", "<a", "<a href", "<a href=", "<a href='", "<!--", "</", "<script>", "<a =/x>", "é<"]
        {
            assert_eq!(page(whole), whole);
        }
    }

    proptest! {
        #[test]
        fn no_page_is_too_broken(page in "[<>a!/='\" -]{0,40}|(<a href|<script|</script>|<!--|-->|=|/|'|\"|>){0,20}") {
            links().page(page.as_bytes());
            // What has no link is as it was.
            let without = page.replace('/', "");
            prop_assert_eq!(links().page(without.as_bytes()), without.as_bytes());
        }

        #[test]
        fn no_bytes_are_too_odd(page in proptest::collection::vec(any::<u8>(), 0..60)) {
            links().page(&page);
        }
    }
}

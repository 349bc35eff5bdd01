//! The formats of IP addresses, CIDRs, MAC addresses, hostnames, emails and URIs, as Go's parsers accept them.

use std::net::Ipv6Addr;

/// An IPv4 or IPv6 address; `sloppy` allows leading zeros in the former, as Kubernetes once did and still reads.
pub(super) fn is_ip(text: &str, sloppy: bool) -> bool {
    if text.contains(':') { is_ipv6(text, sloppy) } else { is_ipv4(text, sloppy) }
}

fn is_ipv4(text: &str, sloppy: bool) -> bool {
    let mut count = 0;
    for part in text.split('.') {
        count += 1;
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let short = part.len() == 1 || (sloppy || !part.starts_with('0'));
        if !digits || !short || part.trim_start_matches('0').len() > 3 {
            return false;
        }
        if part.trim_start_matches('0').parse::<u32>().unwrap_or(0) > 255 {
            return false;
        }
    }
    count == 4
}

fn is_ipv6(text: &str, sloppy: bool) -> bool {
    if text.parse::<Ipv6Addr>().is_ok() {
        return true;
    }
    // Only an IPv4 address at the end can be sloppier than Rust's parser.
    match text.rsplit_once(':') {
        Some((head, tail)) if sloppy && is_ipv4(tail, true) => {
            format!("{head}:0.0.0.0").parse::<Ipv6Addr>().is_ok()
        }
        _ => false,
    }
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    is_ip(address, true)
        && !length.is_empty()
        && length.len() <= 8
        && length.bytes().all(|byte| byte.is_ascii_digit())
        && length.parse::<u32>().is_ok_and(|length| length <= most)
}

/// 6, 8 or 20 bytes, written in pairs with colons or dashes or in fours with dots.
pub(super) fn is_mac(text: &str) -> bool {
    let grouped = |separator: char, width: usize, counts: &[usize]| {
        text.contains(separator)
            && counts.contains(&text.split(separator).count())
            && text
                .split(separator)
                .all(|group| group.len() == width && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    grouped(':', 2, &[6, 8, 20]) || grouped('-', 2, &[6, 8, 20]) || grouped('.', 4, &[3, 4, 10])
}

/// `local@domain`, or a name before `<local@domain>`.
pub(super) fn is_email(text: &str) -> bool {
    let text = without_comment(text).trim_matches([' ', '\t']);
    let (name, address) = match text.strip_suffix('>').and_then(|head| head.rsplit_once('<')) {
        Some((name, address)) => (name.trim_matches([' ', '\t']), address),
        None => ("", text),
    };
    is_phrase(name) && is_address(address)
}

/// Without the comment in parentheses that may follow.
fn without_comment(text: &str) -> &str {
    let comment = text.trim_end().strip_suffix(')').and_then(|head| head.rsplit_once('('));
    match comment {
        Some((head, comment)) if !comment.contains([')', '\\']) && !head.is_empty() => head,
        _ => text,
    }
}

fn is_atom_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char))
}

fn quoted_body(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

fn is_quoted(text: &str) -> bool {
    let Some(body) = quoted_body(text) else { return false };
    let mut characters = body.chars();
    while let Some(c) = characters.next() {
        let allowed = match c {
            '\\' => characters.next().is_some_and(|c| !c.is_control()),
            '"' => false,
            c => c == '\t' || !c.is_control(),
        };
        if !allowed {
            return false;
        }
    }
    true
}

fn is_phrase(text: &str) -> bool {
    text.is_empty()
        || is_quoted(text)
        || text
            .split([' ', '\t'])
            .all(|word| word.is_empty() || word.chars().all(|c| is_atom_char(c) || c == '.'))
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let literal = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let domain_fits = match literal {
        Some(address) => is_ip(address.strip_prefix("IPv6:").unwrap_or(address), false),
        None => is_dot_atom(domain),
    };
    domain_fits && (is_dot_atom(local) || (is_quoted(local) && quoted_body(local) != Some("")))
}

/// An absolute URI or an absolute path.
pub(crate) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let scheme_end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    let (scheme, rest) = match scheme_end {
        Some(end) if text[end..].starts_with(':') && text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            (true, &text[end + 1..])
        }
        Some(0) if text.starts_with(':') => return false,
        _ => (false, text),
    };
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, query)| (rest, query));
    if query.contains('\u{7f}') {
        return false;
    }
    if !rest.starts_with('/') {
        // A scheme may lead to something opaque; without one the path must be absolute.
        return scheme;
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) if scheme || !rest.starts_with('/') => {
            let end = rest.find('/').unwrap_or(rest.len());
            rest.split_at(end)
        }
        _ => ("", rest),
    };
    is_authority(authority) && escapes_are_whole(path)
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|tail| {
        let mut digits = tail.bytes();
        digits.next().is_some_and(|byte| byte.is_ascii_hexdigit())
            && digits.next().is_some_and(|byte| byte.is_ascii_hexdigit())
    })
}

/// In a host only what is not ASCII, and the percent sign itself, may be escaped.
fn escapes_are_not_ascii(host: &str) -> bool {
    escapes_are_whole(host)
        && host
            .split('%')
            .skip(1)
            .all(|tail| tail.starts_with("25") || !tail.starts_with(|c| ('0'..='7').contains(&c)))
}

fn is_authority(text: &str) -> bool {
    let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => (address, port),
            None => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let forbidden =
        |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !"-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    let port_fits = match port.strip_prefix(':') {
        Some(number) => number.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    port_fits && !name.contains(forbidden) && escapes_are_not_ascii(name)
}

//! `.helmignore`: which files are no part of a chart.

use crate::Error;

/// The rules of a `.helmignore`.
pub(crate) struct Rules(Vec<Rule>);

struct Rule {
    pattern: String,
    negate: bool,
    folders_only: bool,
    /// Compared with the whole path, not only with the last name.
    whole: bool,
}

impl Rules {
    pub fn read(text: &str) -> Result<Self, Error> {
        let mut rules =
            vec![Rule { pattern: "templates/.?*".into(), negate: false, folders_only: false, whole: true }];
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.contains("**") {
                return Err(Error::new("double-star (**) syntax is not supported"));
            }
            let (negate, rest) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
            let (folders_only, rest) = rest.strip_suffix('/').map_or((false, rest), |rest| (true, rest));
            let (rooted, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
            rules.push(Rule {
                pattern: rest.into(),
                negate,
                folders_only,
                whole: rooted || rest.contains('/'),
            });
        }
        Ok(Self(rules))
    }

    pub fn ignores(&self, path: &str, folder: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        for rule in &self.0 {
            let matched = matches(rule.pattern.as_bytes(), if rule.whole { path } else { name }.as_bytes());
            if rule.negate {
                if rule.folders_only && !folder || !matched {
                    return true;
                }
            } else if matched && (folder || !rule.folders_only) {
                return true;
            }
        }
        false
    }
}

/// `filepath.Match`: `*` and `?` stand for all but slashes.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if at == pattern.len() && place == text.len() {
            return true;
        }
        let step = match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
                continue;
            }
            Some(b'?') => text.get(place).filter(|byte| **byte != b'/').map(|_| at + 1),
            Some(b'[') => class(&pattern[at..], text.get(place).copied()).map(|length| at + length),
            Some(b'\\') if at + 1 < pattern.len() => {
                (text.get(place) == pattern.get(at + 1)).then_some(at + 2)
            }
            Some(byte) => (text.get(place) == Some(byte)).then_some(at + 1),
            None => None,
        };
        match (step, star) {
            (Some(next), _) => {
                at = next;
                place += 1;
            }
            // The last star takes one more character.
            (None, Some((from, taken))) if text.get(taken).is_some_and(|byte| *byte != b'/') => {
                star = Some((from, taken + 1));
                at = from + 1;
                place = taken + 1;
            }
            (None, _) => return false,
        }
    }
}

/// The length of `[a-z]`, if the byte is in it.
fn class(pattern: &[u8], byte: Option<u8>) -> Option<usize> {
    let byte = byte?;
    let end = pattern.iter().skip(2).position(|byte| *byte == b']')? + 2;
    let (negated, members) = match pattern[1] {
        b'^' => (true, &pattern[2..end]),
        _ => (false, &pattern[1..end]),
    };
    let mut found = false;
    let mut at = 0;
    while at < members.len() {
        if members.get(at + 1) == Some(&b'-') && at + 2 < members.len() {
            found |= (members[at]..=members[at + 2]).contains(&byte);
            at += 3;
        } else {
            found |= members[at] == byte;
            at += 1;
        }
    }
    (found != negated).then_some(end + 1)
}

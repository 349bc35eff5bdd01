//! The file of `--token-auth-file`: a token, a user's name, a uid and perhaps groups to a line, separated by commas.

use super::StaticTokens;
use crate::request::Identity;
use std::str::FromStr;

/// A token file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTokenFile {
    /// A line has too few columns.
    #[error(
        "line {line}: token file must have at least 3 columns (token, user name, user uid), found {columns}"
    )]
    Columns {
        /// Its number, from 1.
        line: usize,
        /// How many it has.
        columns: usize,
    },
    /// A quote is not closed, or stands in the middle of a column.
    #[error("line {line}: a quote is in the middle of a column, or is not closed")]
    Quote {
        /// Its number, from 1.
        line: usize,
    },
}

impl FromStr for StaticTokens {
    type Err = InvalidTokenFile;

    /// Lines without a token are passed over; of two with the same token the later one counts, as for the reference.
    fn from_str(text: &str) -> Result<Self, InvalidTokenFile> {
        let mut tokens = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            if line.is_empty() {
                continue;
            }
            let columns = columns(line).ok_or(InvalidTokenFile::Quote { line: line_number })?;
            let [token, user, uid, rest @ ..] = columns.as_slice() else {
                return Err(InvalidTokenFile::Columns { line: line_number, columns: columns.len() });
            };
            if token.is_empty() {
                continue;
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').filter(|group| !group.is_empty()).map(str::to_owned);
            let identity = Identity { uid: uid.clone(), ..Identity::user(user.as_str()).in_groups(groups) };
            tokens.insert(token, identity);
        }
        Ok(tokens)
    }
}

/// The columns of a line of comma-separated values; one in quotes may hold commas, and two quotes for one.
fn columns(line: &str) -> Option<Vec<String>> {
    let mut columns = Vec::new();
    let mut rest = line;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut column = String::new();
            let mut characters = quoted.char_indices().peekable();
            let end = loop {
                match characters.next()? {
                    (_, '"') if matches!(characters.peek(), Some((_, '"'))) => {
                        characters.next();
                        column.push('"');
                    }
                    (at, '"') => break at + 1,
                    (_, other) => column.push(other),
                }
            };
            columns.push(column);
            match &quoted[end..] {
                "" => return Some(columns),
                after => rest = after.strip_prefix(',')?,
            }
        } else {
            let (column, after) =
                rest.split_once(',').map_or((rest, None), |(one, after)| (one, Some(after)));
            if column.contains('"') {
                return None;
            }
            columns.push(column.to_owned());
            match after {
                None => return Some(columns),
                Some(after) => rest = after,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_names_a_user_and_groups() {
        let text = "t1,jane,7\n\nt2,joe,8,\"a,b\"\n,nobody,9\nt3,ann,10,c\n";
        let tokens: StaticTokens = text.parse().unwrap();
        let of = |token: &str| tokens.bearer(token).map(|one| (one.user.as_str(), one.groups.join(" ")));
        assert_eq!(of("t1"), Some(("jane", "system:authenticated".to_owned())));
        assert_eq!(of("t2"), Some(("joe", "a b system:authenticated".to_owned())));
        assert_eq!(of("t3"), Some(("ann", "c system:authenticated".to_owned())));
        assert_eq!(of(""), None);
        assert_eq!(tokens.bearer("t1").unwrap().uid, "7");
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = |text: &str| text.parse::<StaticTokens>().unwrap_err();
        assert_eq!(wrong("t,jane,7\nt,jane"), InvalidTokenFile::Columns { line: 2, columns: 2 });
        assert_eq!(wrong("t,ja\"ne,7"), InvalidTokenFile::Quote { line: 1 });
        assert_eq!(wrong("t,jane,7,\"a"), InvalidTokenFile::Quote { line: 1 });
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z\",\n]{0,60}") {
            let _ = text.parse::<StaticTokens>();
        }
    }
}

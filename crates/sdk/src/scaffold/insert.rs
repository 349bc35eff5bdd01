//! A module declared in a file that a person wrote: one line is put in, at an exact place, and nothing else changes.
//!
//! The place is found by reading the file as Rust does, so that what looks like a declaration in a comment or a text is none,
//! and no marker is needed.
//!
//! It works on tokens, whose spans are exact, and not on a syntax tree, which would have to be printed again.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// What declaring a module came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It is declared there already.
    There,
    /// The whole text with the line in it.
    Text(String),
    /// The file cannot be read as Rust; a person has to put the line in.
    Unreadable,
}

/// Declares a module among those that the file declares, in the order that rustfmt gives them, or below the file's head.
pub(super) fn declare(text: &str, module: &str) -> Inserted {
    // Spans count bytes of the text without its byte order mark.
    if text.starts_with('\u{feff}') {
        return Inserted::Unreadable;
    }
    let Ok(tokens) = text.parse::<TokenStream>() else { return Inserted::Unreadable };
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let all: Vec<Declared> = (0..tokens.len()).filter_map(|at| declared(&tokens, at)).collect();
    if all.iter().any(|one| one.name == module) {
        return Inserted::There;
    }
    let line = format!("pub mod {module};\n");
    let in_files: Vec<&Declared> = all.iter().filter(|one| one.in_file).collect();
    let (Some(first), Some(last)) = (in_files.first(), in_files.last()) else {
        return Inserted::Text(below_head(text, &tokens, &line));
    };
    let smaller = in_files.iter().rfind(|one| order(&one.name) < order(module));
    let place = match smaller {
        Some(smaller) => line_end(text, smaller.end),
        None => above(text, first.start).unwrap_or_else(|| line_end(text, last.end)),
    };
    let (before, after) = text.split_at(place);
    let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    Inserted::Text(format!("{before}{newline}{line}{after}"))
}

/// A new block of modules, apart from what is around it.
fn below_head(text: &str, tokens: &[TokenTree], line: &str) -> String {
    let (before, after) = text.split_at(head_end(text, tokens));
    let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let above = if before.trim().is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    let below = if after.trim().is_empty() || after.starts_with('\n') { "" } else { "\n" };
    format!("{before}{newline}{above}{line}{below}{after}")
}

/// As rustfmt puts names in order: numbers by their value, underscores first.
fn order(name: &str) -> Vec<(u32, u64)> {
    let mut parts: Vec<(u32, u64)> = Vec::new();
    let mut in_number = false;
    for letter in name.trim_start_matches("r#").chars() {
        let digit = letter.to_digit(10).map(u64::from);
        if let (true, Some(digit), Some((_, value))) = (in_number, digit, parts.last_mut()) {
            *value = value.saturating_mul(10).saturating_add(digit);
        } else {
            let letter = match letter {
                '_' => 0,
                '0'..='9' => '0'.into(),
                letter => letter.into(),
            };
            parts.push((letter, digit.unwrap_or(0)));
        }
        in_number = letter.is_ascii_digit();
    }
    parts
}

struct Declared {
    name: String,
    /// Where the declaration begins, with its attributes, and where it ends, in bytes.
    start: usize,
    end: usize,
    /// Whether the module is in a file of its own.
    in_file: bool,
}

/// The module that is declared at this token: `mod x;` or `mod x { ... }`.
fn declared(tokens: &[TokenTree], at: usize) -> Option<Declared> {
    let [TokenTree::Ident(word), TokenTree::Ident(name), end, ..] = &tokens[at..] else { return None };
    if word != "mod" {
        return None;
    }
    let in_file = match end {
        TokenTree::Punct(end) if end.as_char() == ';' => true,
        TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => false,
        _ => return None,
    };
    let name = name.to_string().trim_start_matches("r#").to_owned();
    let mut first = at;
    // Its visibility and its attributes, of which documentation is one, are before it.
    loop {
        first = match &tokens[..first] {
            [.., TokenTree::Ident(word), TokenTree::Group(_)] if word == "pub" => first - 2,
            [.., TokenTree::Ident(word)] if word == "pub" => first - 1,
            [.., TokenTree::Punct(hash), TokenTree::Group(_)] if hash.as_char() == '#' => first - 2,
            _ => break,
        };
    }
    let start = tokens[first].span().byte_range().start;
    Some(Declared { name, start, end: end.span().byte_range().end, in_file })
}

/// The begin of the line above which there is no comment that belongs to what begins here; `None` if there is one.
fn above(text: &str, at: usize) -> Option<usize> {
    let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line_before = text[..begin].lines().next_back().unwrap_or_default().trim();
    let is_free = text[begin..at].trim().is_empty()
        && (line_before.is_empty() || line_before.ends_with([';', '}']) && !line_before.starts_with("//"));
    is_free.then_some(begin)
}

/// Past the rest of the line, where a comment may stand. A comment that goes on is not cut in two.
fn line_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
    match rest[..length].contains("/*")
        || !rest[..length].trim_start().starts_with("//") && !rest[..length].trim().is_empty()
    {
        true => at,
        false => at + length,
    }
}

/// Past the file's own attributes and documentation, which come first in it, and the comments above them.
fn head_end(text: &str, tokens: &[TokenTree]) -> usize {
    let mut end = 0;
    let mut rest = tokens;
    while let [TokenTree::Punct(hash), TokenTree::Punct(bang), TokenTree::Group(body), more @ ..] = rest
        && hash.as_char() == '#'
        && bang.as_char() == '!'
        && body.delimiter() == Delimiter::Bracket
    {
        // Documentation in a comment is one attribute, whose parts all have the comment's span.
        end = body.span().byte_range().end.max(hash.span().byte_range().end);
        rest = more;
    }
    match (end, rest.is_empty()) {
        // Nothing but comments, such as a licence: below them.
        (0, true) => text.len(),
        (0, false) => comments_end(text),
        (end, _) => line_end(text, end),
    }
}

/// Past the whole-line comments that a file begins with.
fn comments_end(text: &str) -> usize {
    let lines =
        text.split_inclusive('\n').take_while(|line| line.starts_with("//") && !line.starts_with("///"));
    lines.map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, module: &str) -> String {
        match declare(text, module) {
            Inserted::Text(text) => text,
            other => panic!("{other:?} for {text:?}"),
        }
    }

    #[test]
    fn lines_are_in_the_order_that_rustfmt_gives_them() {
        let text = "//! Docs.\n\npub mod v1alpha1;\npub mod v2;\npub mod v10;\n\nfn f() {}\n";
        assert_eq!(with(text, "v1"), text.replace("pub mod v1alpha1", "pub mod v1;\npub mod v1alpha1"));
        assert_eq!(with(text, "v1beta1"), text.replace("pub mod v2", "pub mod v1beta1;\npub mod v2"));
        assert_eq!(with(text, "v9"), text.replace("pub mod v10", "pub mod v9;\npub mod v10"));
        assert_eq!(with("mod a;\n", "_9"), "pub mod _9;\nmod a;\n");
        let documented = "use x;\n\n#[cfg(x)]\n/// Docs.\npub(crate) mod b;\n";
        assert_eq!(with(documented, "a"), "use x;\n\npub mod a;\n#[cfg(x)]\n/// Docs.\npub(crate) mod b;\n");
        // A comment stays with what it was written above.
        assert_eq!(with("// why\nmod b;\n", "a"), "// why\nmod b;\npub mod a;\n");
    }

    #[test]
    fn a_line_goes_below_the_last_module_and_nothing_else_changes() {
        let text =
            "// Licence\n\n//! Docs.\n\npub mod a; // the first\nmod b;\n\nuse a::X;\n/// Kept.\nfn f() {}\n";
        let done = with(text, "c");
        assert_eq!(done, text.replace("mod b;\n", "mod b;\npub mod c;\n"));
        assert_eq!(declare(&done, "c"), Inserted::There);
    }

    #[test]
    fn a_line_goes_below_the_head_where_there_is_no_module() {
        assert_eq!(with("//! Docs.\n", "c"), "//! Docs.\n\npub mod c;\n");
        assert_eq!(with("", "c"), "pub mod c;\n");
        assert_eq!(with("// Licence", "c"), "// Licence\n\npub mod c;\n");
        assert_eq!(
            with("// Licence\n//! Docs.\n#![allow(x)]\n\nuse x;\n", "c"),
            "// Licence\n//! Docs.\n#![allow(x)]\n\npub mod c;\n\nuse x;\n"
        );
        assert_eq!(with("// Licence\nuse x;\n", "c"), "// Licence\n\npub mod c;\n\nuse x;\n");
    }

    #[test]
    fn what_only_looks_like_a_declaration_is_none() {
        let text = "/* mod c; */\n// mod c;\nconst X: &str = \"mod c;\";\nmod inner { mod c; }\n";
        assert!(with(text, "c").contains("pub mod c;\n"));
        assert_eq!(declare("mod c { }\n", "c"), Inserted::There);
        assert_eq!(declare("pub(crate) mod r#match;\n", "match"), Inserted::There);
    }

    #[test]
    fn comments_survive_wherever_they_are() {
        let text =
            "mod a; /* begins here\nand ends there */ mod b; // x\n// y\nmod z /* odd */ ; fn f() {}\n";
        let done = with(text, "c");
        assert_eq!(done.replacen("pub mod c;\n", "", 1), text);
        done.parse::<TokenStream>().unwrap();
    }

    #[test]
    fn what_is_no_rust_is_left_alone() {
        assert_eq!(declare("mod a; }", "c"), Inserted::Unreadable);
        assert_eq!(declare("\"", "c"), Inserted::Unreadable);
    }

    #[test]
    fn text_in_other_alphabets_is_counted_right() {
        let text = "//! Größe, 大きさ, 🚀.\n\nmod größe;\n// ende\n";
        let done = with(text, "z");
        assert_eq!(done, "//! Größe, 大きさ, 🚀.\n\nmod größe;\npub mod z;\n// ende\n");
    }
}

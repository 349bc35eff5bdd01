//! Which top-level modules of its crate a file uses, from its tokens: paths that begin with `crate`, or with as many `super` as
//! lead to the root. What only tests see does not count.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeMap;

/// The first segments of all paths from the root in a file at this module depth, each with a line that has it.
pub(super) fn from_root(tokens: TokenStream, depth: usize) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    collect(tokens, depth, &mut found);
    found
}

fn collect(tokens: TokenStream, depth: usize, found: &mut BTreeMap<String, usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_attribute(&tokens[at..]) {
            at = end_of_item(&tokens, at + 2);
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inside_module = is_inline_module(&tokens[..at]) && group.delimiter() == Delimiter::Brace;
                collect(group.stream(), depth + usize::from(inside_module), found);
            }
            TokenTree::Ident(ident) if ident == "crate" => note(&tokens[at + 1..], found),
            TokenTree::Ident(ident) if ident == "super" && !continues_path(&tokens[..at]) => {
                let supers = tokens[at..].chunks(3).take_while(|part| is(part, "super")).count();
                if supers == depth {
                    note(&tokens[at + 3 * supers - 2..], found);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Notes what follows the root in a path: `::name`, or the names in `::{...}`.
fn note(rest: &[TokenTree], found: &mut BTreeMap<String, usize>) {
    let [TokenTree::Punct(one), TokenTree::Punct(two), next, ..] = rest else { return };
    if one.as_char() != ':' || two.as_char() != ':' {
        return;
    }
    let mut add = |ident: &proc_macro2::Ident| {
        found.entry(ident.to_string()).or_insert(ident.span().start().line);
    };
    match next {
        TokenTree::Ident(ident) => add(ident),
        TokenTree::Group(group) => {
            let mut first = true;
            for token in group.stream() {
                match token {
                    TokenTree::Ident(ident) if first => add(&ident),
                    TokenTree::Punct(punct) if punct.as_char() == ',' => {
                        first = true;
                        continue;
                    }
                    _ => {}
                }
                first = false;
            }
        }
        _ => {}
    }
}

fn is(part: &[TokenTree], name: &str) -> bool {
    matches!(part.first(), Some(TokenTree::Ident(ident)) if ident == name)
}

/// Whether what comes next is a later segment of a path.
fn continues_path(before: &[TokenTree]) -> bool {
    matches!(before.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':')
}

fn is_inline_module(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(word), TokenTree::Ident(_)] if word == "mod")
}

/// `#[cfg(test)]`, or with `test` among others.
pub(super) fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = tokens else { return false };
    let inner: Vec<TokenTree> = attribute.stream().into_iter().collect();
    let [TokenTree::Ident(cfg), TokenTree::Group(condition)] = inner.as_slice() else { return false };
    hash.as_char() == '#'
        && cfg == "cfg"
        && condition.stream().to_string().split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
}

/// Past the item that begins here: its semicolon, or its body.
pub(super) fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let length = tokens.iter().skip(from).position(ends).unwrap_or(tokens.len());
    (from + length + 1).min(tokens.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, depth: usize) -> Vec<String> {
        from_root(text.parse().unwrap(), depth).into_keys().collect()
    }

    #[test]
    fn paths_from_the_root_are_found_in_use_items_and_in_code() {
        let text = "use crate::{a::X, b::{c, d}, e};\nfn f() { crate::g::h(\"crate::not\") } // crate::not\n";
        assert_eq!(of(text, 1), ["a", "b", "e", "g"]);
    }

    #[test]
    fn supers_that_lead_to_the_root_count() {
        assert_eq!(of("use super::a;", 1), ["a"]);
        assert_eq!(of("use super::{a, b};", 1), ["a", "b"]);
        assert_eq!(of("use super::near; use super::super::far;", 2), ["far"]);
        assert_eq!(of("mod inner { use super::near; use super::super::far; }", 1), ["far"]);
    }

    #[test]
    fn what_only_tests_see_does_not_count() {
        assert!(of("#[cfg(test)] mod tests { use crate::a; }", 1).is_empty());
        assert!(of("#[cfg(all(test, unix))] use crate::a;", 1).is_empty());
        assert_eq!(of("#[cfg(unix)] use crate::a;", 1), ["a"]);
    }
}

//! Errors of YAML documents, in the words of Go's reader.

/// Our reader's words, Go's, and which of Go's two steps finds it: its scanner counts lines from one, its parser from zero.
const WORDS: &[(&str, &str, Step)] = &[
    ("mapping values are not allowed", "mapping values are not allowed in this context", Step::Scanner),
    ("did not find expected key", "did not find expected key", Step::Parser),
    ("did not find expected '-' indicator", "did not find expected '-' indicator", Step::Parser),
    ("mismatched bracket '['", "did not find expected ',' or ']'", Step::Parser),
    ("mismatched bracket '{'", "did not find expected ',' or '}'", Step::Parser),
    ("misplaced bracket", "did not find expected node content", Step::Parser),
    ("did not find expected node content", "did not find expected node content", Step::Parser),
    ("tabs disallowed", "found character that cannot start any token", Step::Scanner),
    ("unexpected character: `\\u{", "control characters are not allowed", Step::Reader),
    ("unexpected character", "found character that cannot start any token", Step::Scanner),
    ("unknown escape character", "found unknown escape character", Step::Scanner),
    ("missing explicit document end marker before directive", "found unknown directive name", Step::Scanner),
    (
        "did not find expected alphabetic or numeric character",
        "did not find expected alphabetic or numeric character",
        Step::Scanner,
    ),
];

/// Our reader's words for what Go minds at the end of the document, as it goes on looking until there.
const AT_THE_END: &[(&str, &str, Step)] = &[
    ("unclosed bracket '['", "did not find expected ',' or ']'", Step::Parser),
    ("unclosed bracket '{'", "did not find expected ',' or '}'", Step::Parser),
    ("invalid indentation in multiline quoted scalar", "found unexpected end of stream", Step::Scanner),
    ("simple key expected ':'", "could not find expected ':'", Step::Scanner),
];

#[derive(Clone, Copy)]
enum Step {
    /// It knows of no lines.
    Reader,
    Scanner,
    Parser,
}

/// The first line that our reader said, as Go says it; without the place, if Go has no such words.
pub(super) fn in_go_words(error: &str, document: &str) -> String {
    let first = error.lines().next().unwrap_or_default();
    let (place, what) = first
        .split_once("line ")
        .and_then(|(_, rest)| rest.split_once(": "))
        .map_or(("", first), |(place, what)| (place, what));
    // `3 column 5`, counted from one.
    let mut numbers = place.split(' ').filter_map(|word| word.parse::<usize>().ok());
    let (line, column) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
    let find = |words: &'static [(&str, &str, Step)]| words.iter().find(|(ours, ..)| what.contains(ours));
    if what.starts_with("budget breached") && document.contains('*') {
        return "yaml: document contains excessive aliasing".to_owned();
    }
    if what.contains("recursive references") {
        return format!("yaml: anchor '{}' value contains itself", named(document, line, column));
    }
    if what.contains("unknown anchor") {
        return format!("yaml: unknown anchor '{}' referenced", named(document, line, column));
    }
    if let Some((_, words, step)) = find(AT_THE_END) {
        let lacks_item = document.trim_end().ends_with(['[', ',']) && words.contains(']');
        let words = if lacks_item { "did not find expected node content" } else { words };
        return at(document.matches('\n').count(), *step, words);
    }
    match find(WORDS) {
        Some((_, words, step)) => at(line - 1, *step, words),
        None => format!("yaml: {what}"),
    }
}

/// Of the first line Go says nothing.
fn at(line: usize, step: Step, words: &str) -> String {
    match (line, step) {
        (0, _) | (_, Step::Reader) => format!("yaml: {words}"),
        (line, Step::Scanner) => format!("yaml: line {}: {words}", line + 1),
        (line, Step::Parser) => format!("yaml: line {line}: {words}"),
    }
}

/// The name of the alias that is there.
fn named(document: &str, line: usize, column: usize) -> &str {
    let line = document.lines().nth(line - 1).unwrap_or_default();
    let start = line.char_indices().nth(column - 1).map_or(line.len(), |(at, _)| at);
    let name = line[start..].trim_start_matches('*');
    let end = name.find(|letter: char| !letter.is_alphanumeric() && !"_-".contains(letter));
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::super::yaml::read;

    #[track_caller]
    fn refused(document: &str, words: &str) {
        assert_eq!(read(document.as_bytes()).expect_err(document), format!("yaml: {words}"));
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_of_go() {
        refused("a: [\n", "line 1: did not find expected node content");
        refused("a: [b\n", "line 1: did not find expected ',' or ']'");
        refused("x: y\na: b: c\n", "line 2: mapping values are not allowed in this context");
        refused("a: ]\n", "did not find expected node content");
        refused("a:\n\tb: c\n", "line 2: found character that cannot start any token");
        refused("a: b\nc\n", "line 3: could not find expected ':'");
        refused("a: \u{1}\n", "control characters are not allowed");
        refused("a: [&x 1, *x]\nb: [*y]\n", "unknown anchor 'y' referenced");
        refused("x: &x [*x]\n", "anchor 'x' value contains itself");
    }

    #[test]
    fn any_place_has_some_name() {
        for (line, column) in [(1, 1), (1, 9), (7, 1), (1, 2)] {
            let name = super::named("ä*b]", line, column);
            assert!("b".contains(name) || name == "äb" || name == "ä", "{name}");
        }
    }
}

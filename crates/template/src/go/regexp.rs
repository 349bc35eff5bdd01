//! Go's regular expressions.

/// Compiles a pattern, or says what Go says of it.
pub(crate) fn compile(pattern: &str) -> Result<regex::Regex, String> {
    windlass_schema::pattern::go_regex(pattern)
}

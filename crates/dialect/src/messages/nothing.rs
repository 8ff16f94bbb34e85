//! JSON values that say nothing: whether they are given or not makes no difference.

/// `null`, `""`, `[]` or `{}`, from the text of one value without white space around it.
pub(crate) fn says_nothing(raw: &str) -> bool {
    let is_empty = |open: char, close: char| {
        raw.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).is_some_and(|inside| inside.trim().is_empty())
    };
    raw == "null" || raw == "\"\"" || is_empty('[', ']') || is_empty('{', '}')
}

//! Model names with `*`, as `models = ["claude-*"]`.

/// A list of patterns; `*` stands for any run of characters. An empty list allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs(Vec<String>);

impl Globs {
    /// From patterns as configured.
    pub fn new(patterns: Vec<String>) -> Self {
        Globs(patterns)
    }

    /// The patterns.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// Whether a name is allowed.
    pub fn allow(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| matches(pattern, name))
    }
}

/// Whether `name` is one that `pattern` describes. Linear in both, whatever the number of stars.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_run_of_characters() {
        for (pattern, name) in
            [("*", ""), ("a*", "abc"), ("*c", "abc"), ("a*c", "ac"), ("a*b*c", "axxbyyc"), ("a", "a")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a*", "ba"), ("*c", "cb"), ("a*c", "a"), ("ab*b", "ab"), ("a", "ab"), ("", "a")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}

//! The words of messages: the nearest known word, and lists of words.

/// The known word that was probably meant, if any is near.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let folded = word.to_lowercase().replace('-', "_");
    let distance = |other: &str| strsim::damerau_levenshtein(&folded, &other.to_lowercase().replace('-', "_"));
    let allowed = (word.chars().count() / 3).max(1);
    known.iter().map(|other| (distance(other), *other)).filter(|(d, _)| *d <= allowed).min().map(|(_, other)| other)
}

/// `"a", "b" or "c"`.
pub(super) fn quoted_list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        None => "nothing".into(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_only_when_it_is_near() {
        let known = ["listen", "max_body", "tls"];
        assert_eq!(nearest("lisen", &known), Some("listen"));
        assert_eq!(nearest("max-body", &known), Some("max_body"));
        assert_eq!(nearest("TLS", &known), Some("tls"));
        assert_eq!(nearest("port", &known), None);
    }

    #[test]
    fn a_list_of_words_reads_as_a_sentence_part() {
        assert_eq!(quoted_list(&["a", "b", "c"]), r#""a", "b" or "c""#);
        assert_eq!(quoted_list(&["a"]), r#""a""#);
    }
}

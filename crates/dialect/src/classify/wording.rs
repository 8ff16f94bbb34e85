//! How a provider's message is read as wording. Refusals quote what the caller wrote, so wording is looked for outside
//! quotations only, and what would cost an account its standing must be a sentence that the message begins with.

/// The message in lower case, with the inside of every quotation taken out. The quotation marks stay, so that what
/// follows a quotation never becomes the message's beginning. A quotation without an end reaches to the message's end.
pub(crate) fn unquoted(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut closing = None;
    let mut before = ' ';
    let mut chars = message.chars().peekable();
    while let Some(char) = chars.next() {
        // Inside a word it is an apostrophe.
        let apostrophe = |at_word: char| char == '\'' && at_word.is_alphanumeric();
        match closing {
            Some(end) if char == end && !apostrophe(chars.peek().copied().unwrap_or(' ')) => {
                out.push(char);
                closing = None;
            }
            Some(_) => {}
            None => {
                closing = match char {
                    '\'' if !apostrophe(before) => Some('\''),
                    '"' | '`' => Some(char),
                    '“' => Some('”'),
                    '‘' => Some('’'),
                    '«' => Some('»'),
                    _ => None,
                };
                out.extend(char.to_lowercase());
            }
        }
        before = char;
    }
    out
}

/// Whether an unquoted message has one of the wordings somewhere.
pub(crate) fn contains(unquoted: &str, wordings: &[&str]) -> bool {
    wordings.iter().any(|wording| unquoted.contains(wording))
}

/// Whether an unquoted message begins with one of the sentences, which must end there or at a punctuation mark.
pub(crate) fn begins(unquoted: &str, sentences: &[&str]) -> bool {
    sentences.iter().any(|sentence| {
        unquoted
            .strip_prefix(sentence)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ',', ':', ';', '!']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_emptied_and_apostrophes_are_none() {
        for (message, left) in [
            ("It's 'in' and `in` and \"in\" out", "it's '' and `` and \"\" out"),
            ("input_value='it's in', out", "input_value='', out"),
            ("your organization's limit, the users' limit", "your organization's limit, the users' limit"),
            ("“in” ‘in’ «in» OUT", "“” ‘’ «» out"),
            ("out `in", "out `"),
            ("", ""),
        ] {
            assert_eq!(unquoted(message), left);
        }
    }

    #[test]
    fn a_sentence_ends_where_it_says() {
        assert!(begins("too low", &["too low"]) && begins("too low: x", &["too low"]));
        assert!(!begins("too lowly", &["too low"]) && !begins("too low is it", &["too low"]));
        assert!(!begins("is too low", &["too low"]));
    }
}

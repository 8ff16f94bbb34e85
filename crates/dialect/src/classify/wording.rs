//! How a provider's message is read as wording. Refusals quote what the caller wrote, so wording is looked for outside
//! quotations only, and what would cost an account its standing must be a sentence that the message begins with.
//!
//! What cannot be told apart: an upstream that answers a status of the account, or a 400 in its provider's form (an error
//! object with a type or a code, and no field named), whose *whole* message is a caller's text that is one of the known
//! sentences; and one that puts a caller's text into `code` of such an error. No known provider does either.

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
                if char.is_ascii() {
                    out.push(char.to_ascii_lowercase());
                } else {
                    out.extend(char.to_lowercase());
                }
            }
        }
        before = char;
    }
    out
}

/// The message in lower case without what lies between its first quotation mark and its last: a caller whose text is quoted
/// may have ended the quotation, and begun the next. The two marks stay. Without a last one, all is quoted to the end.
pub(crate) fn outside(lower: &str) -> String {
    let Some(open) = first_mark(lower) else { return lower.to_owned() };
    let inside = open + lower[open..].chars().next().map_or(0, char::len_utf8);
    let after = |at: usize| lower[at..].chars().nth(1).unwrap_or(' ');
    let close = lower[inside..].char_indices().rev().find(|&(at, char)| match char {
        '"' | '`' | '”' | '»' | '“' | '›' | '」' => true,
        '\'' | '’' => !after(inside + at).is_alphanumeric(),
        _ => false,
    });
    let close = close.map_or("", |(at, _)| &lower[inside + at..]);
    format!("{}{close}", &lower[..inside])
}

/// The message up to the first quotation mark or colon.
pub(crate) fn lead(lower: &str) -> &str {
    let end = first_mark(lower).unwrap_or(lower.len());
    &lower[..lower.find(':').map_or(end, |colon| colon.min(end))]
}

/// Where the first quotation begins.
fn first_mark(text: &str) -> Option<usize> {
    let mut before = ' ';
    text.char_indices().find_map(|(at, char)| {
        let opens = match char {
            '"' | '`' | '“' | '”' | '„' | '‘' | '«' | '»' | '‹' | '「' => true,
            '\'' => !before.is_alphanumeric(),
            _ => false,
        };
        before = char;
        opens.then_some(at)
    })
}

/// Whether an unquoted message has one of the wordings somewhere.
pub(crate) fn contains(unquoted: &str, wordings: &[&str]) -> bool {
    wordings.iter().any(|wording| unquoted.contains(wording))
}

/// Whether a message in lower case is one of the sentences, and after it at most help on what to do. A `*` in a sentence is
/// one word, quoted or not: the thing that it names. A caller's own text at the message's beginning is no such message:
/// what an upstream then says of it is no help.
pub(crate) fn says_only(lower: &str, sentences: &[&str]) -> bool {
    let message = lower.trim();
    sentences.iter().any(|sentence| {
        let mut parts = sentence.split('*');
        let Some(mut tail) = parts.next().and_then(|start| message.strip_prefix(start)) else { return false };
        let mut ends = !sentence.ends_with('*');
        for part in parts {
            let end = tail.find(char::is_whitespace).unwrap_or(tail.len());
            if end == 0 || end > NAMED_BYTES {
                return false;
            }
            let Some(rest) = tail[end..].strip_prefix(part) else { return false };
            tail = rest;
            ends = !part.is_empty();
        }
        // A whole word ends the sentence; the word that it names took its own full stop.
        let whole = tail.is_empty() || tail.starts_with(['.', ',', ':', ';', '!']) || tail.starts_with(" (");
        (whole || !ends) && tail.len() <= HELP_BYTES && tail.split_whitespace().all(helps)
    })
}

/// Bytes of the one word that a sentence names.
const NAMED_BYTES: usize = 128;
/// Bytes of the help that may follow a sentence.
const HELP_BYTES: usize = 512;
/// The words of help: where to go, what to buy, when to come back. None of them can say that something is wrong. Sorted.
const HELP: &[&str] = &[
    "&",
    "a",
    "about",
    "access",
    "account",
    "add",
    "administrator",
    "after",
    "again",
    "ai",
    "all",
    "amount",
    "an",
    "and",
    "another",
    "anthropic",
    "api",
    "assistance",
    "at",
    "available",
    "balance",
    "billing",
    "buy",
    "by",
    "can",
    "check",
    "claude",
    "console",
    "contact",
    "continue",
    "credit",
    "credits",
    "current",
    "dashboard",
    "day",
    "details",
    "docs",
    "documentation",
    "email",
    "enable",
    "error",
    "few",
    "find",
    "for",
    "from",
    "fund",
    "funds",
    "go",
    "have",
    "head",
    "help",
    "here",
    "id",
    "if",
    "in",
    "increase",
    "information",
    "it",
    "key",
    "keys",
    "later",
    "learn",
    "limit",
    "limits",
    "link",
    "making",
    "manage",
    "max",
    "minute",
    "minutes",
    "moment",
    "moments",
    "month",
    "monthly",
    "more",
    "need",
    "new",
    "next",
    "obtain",
    "on",
    "openai",
    "or",
    "order",
    "our",
    "owner",
    "page",
    "paid",
    "pass",
    "pay",
    "payment",
    "plan",
    "plans",
    "platform",
    "please",
    "portal",
    "prepaid",
    "project",
    "purchase",
    "quota",
    "raise",
    "read",
    "recharge",
    "refer",
    "regain",
    "renew",
    "request",
    "requests",
    "reset",
    "resets",
    "retry",
    "second",
    "seconds",
    "see",
    "service",
    "settings",
    "some",
    "soon",
    "spending",
    "studio",
    "subscribe",
    "subscription",
    "support",
    "team",
    "the",
    "this",
    "time",
    "to",
    "top",
    "total",
    "try",
    "up",
    "update",
    "upgrade",
    "us",
    "usage",
    "use",
    "using",
    "utc",
    "valid",
    "via",
    "view",
    "visit",
    "wait",
    "will",
    "with",
    "workspace",
    "you",
    "your",
];

fn helps(word: &str) -> bool {
    let word = word.trim_matches(['.', ',', ':', ';', '!', '(', ')']);
    // An address, a date, an id of the request.
    let is_address = || {
        word.contains(['.', '/', '@'])
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-/_#?=&%~+@:".contains(&byte))
    };
    let is_number = || {
        word.contains(|char: char| char.is_ascii_digit())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_:.$".contains(&byte))
    };
    word.is_empty() || HELP.binary_search(&word).is_ok() || is_address() || is_number()
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
    fn a_sentence_may_be_followed_by_help_and_by_nothing_else() {
        assert!(HELP.is_sorted());
        let known = ["too low", "bad key: *"];
        for message in [
            "too low",
            " too low. ",
            "too low!",
            "too low. please go to plans & billing to upgrade, or purchase credits.",
            "too low, please check your plan and billing details: https://x.ai/billing.",
            "too low. you will regain access on 2026-12-01 at 00:00 utc.",
            "too low (request id: 20261130abc)",
            "bad key: xai-abc. you can obtain an api key from https://console.x.ai.",
            "bad key: sk-***",
        ] {
            assert!(says_only(message, &known), "{message}");
        }
        for message in [
            "",
            "too lowly",
            "too low is it",
            "is too low",
            "too low. is no role",
            "too low: unknown field",
            "too low, not one of '', ''",
            "too low. please is not a valid role",
            "too low. please `` help",
            "bad key:",
            "bad key: ",
            "bad key: a is wrong",
            "bad key:a",
        ] {
            assert!(!says_only(message, &known), "{message}");
        }
        assert!(!says_only(&format!("too low. {}", "please ".repeat(100)), &known));
        assert!(!says_only(&format!("bad key: {}", "k".repeat(129)), &known));
    }
}

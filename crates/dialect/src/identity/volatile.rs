//! What changes in a prompt from conversation to conversation, or from day to day, without changing what is asked. It is
//! left out of hashes, and never out of what is sent.

use memchr::memmem;
use std::borrow::Cow;

/// A block of the prompt that Claude Code puts first; its digits follow the user's first words.
const BILLING: &str = "x-anthropic-billing-header:";

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The longest line that is read for a date; longer ones are no such lines.
const LINE: usize = 400;

/// A system text without its volatile lines: billing headers, and lines that tell the date of today (a year from 2000 to
/// 2099 with its month, beside one of the words `date`, `today`, `time` or `now`). Its time is the text's length.
pub(super) fn system(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if memmem::find(bytes, b"20").is_none() && memmem::find(bytes, BILLING.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut kept, mut from) = (String::new(), 0, 0);
    while from < text.len() {
        let to = memchr::memchr(b'\n', &bytes[from..]).map_or(text.len(), |end| from + end + 1);
        let line = &text[from..to];
        if line.trim_start().starts_with(BILLING) || tells_today(line) {
            out.push_str(&text[kept..from]);
            kept = to;
        }
        from = to;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// The line tells the date of today.
fn tells_today(line: &str) -> bool {
    line.len() <= LINE && memmem::find_iter(line.as_bytes(), b"20").any(|at| tells_today_at(line, at))
}

/// The line tells the date of today by the year that stands at `at`.
fn tells_today_at(line: &str, at: usize) -> bool {
    let bytes = line.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let year = (at == 0 || !digit(at - 1)) && digit(at + 2) && digit(at + 3) && !digit(at + 4);
    if !year {
        return false;
    }
    let lower = line.to_ascii_lowercase();
    let numeric = matches!(bytes.get(at + 4), Some(b'-' | b'/' | b'.')) && digit(at + 5);
    (numeric || MONTHS.iter().any(|month| lower.contains(month)))
        && ["date", "today", "time", "now"].iter().any(|word| lower.contains(word))
}

/// A part of a message that is a reminder of the client's to the model and nothing else. Clients put them in and take
/// them out again.
pub(super) fn is_reminder(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_today_and_billing_headers_go_and_all_else_stays() {
        let text = "x-anthropic-billing-header: cc_version=2.1.3; cc_entrypoint=cli;\nYou are an agent.\nToday's date: 2026-11-30\n\
            Current date is Monday, November 30, 2026.\nReleased in 2024 for 2025-01.\nPort 12034, date 20501234\nEnd";
        assert_eq!(system(text), "You are an agent.\nReleased in 2024 for 2025-01.\nPort 12034, date 20501234\nEnd");
        assert!(matches!(system("You are an agent of 2026."), Cow::Borrowed(_)));
        assert_eq!(system("x-anthropic-billing-header: a"), "");
    }

    #[test]
    fn a_line_of_megabytes_is_read_once() {
        let long = "today 2026-11-30 ".repeat(200_000);
        assert!(matches!(system(&long), Cow::Borrowed(_)));
        let cut = format!("{long}\nToday's date: 2026-11-30\n{long}");
        assert_eq!(system(&cut).len(), 2 * long.len() + 1);
    }
}

//! What clients write into a conversation of their own accord, and write otherwise from one turn, run or day to the next
//! without meaning another conversation: reminders, the date, the state of the repository, a list of the folder's files.
//! It is left out of hashes, and never out of what is sent. A directory that is named in what is left out still counts.
//!
//! Every function reads its text a bounded number of times, whatever is in it.

use memchr::memmem::{self, Finder};
use std::borrow::Cow;
use std::sync::LazyLock;

/// A block of the prompt that Claude Code puts first; its digits follow the user's first words.
const BILLING: &str = "x-anthropic-billing-header:";

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The longest line that is read for a date; longer ones are no such lines.
const LINE: usize = 400;

/// Spaces before a reminder on its line; after more it is none.
const INDENT: usize = 16;

const REMINDER: (&str, &str) = ("<system-reminder>", "</system-reminder>");

/// What a client tells of where it runs, at the beginning of a part: Codex, Gemini CLI, Cline in an editor.
const SURROUNDINGS: [(&str, &str); 3] = [
    ("<environment_context>", "</environment_context>"),
    ("<session_context>", "</session_context>"),
    ("<environment_details>", "</environment_details>"),
];

/// Before the directory, on a line of its own in such a block or in a reminder.
const PLACES: [&str; 4] = [
    "Primary working directory: ",
    "Working directory: ",
    "I'm currently working in the directory: ",
    "Current Working Directory: ",
];

/// Before several directories, each on a line of its own.
const SEVERAL: [&str; 2] = ["Workspace Directories:**", "I'm currently working in the following directories:"];

static OPENS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(REMINDER.0));
static CLOSES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(REMINDER.1));
static DIRECTORY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("irector"));
static CENTURY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("20"));

/// What counts of a text that the user, a tool or the client said: all but reminders (each from a line's start to its end
/// tag), what the client tells of its surroundings at the beginning, and white space around it. `place` becomes the
/// directory that was named in what is left out.
pub(super) fn said<'t>(text: &'t str, place: &mut Option<&'t str>) -> Cow<'t, str> {
    let mut rest = text.trim();
    while let Some((inside, after)) = surroundings(rest) {
        *place = directory(inside).or(*place);
        rest = after.trim_start();
    }
    without_reminders(rest, place)
}

/// What counts of a system text, or of what a tool is for: as [`said`], and without billing headers, lines that tell the
/// date of today (a year from 2000 to 2099 with its month, beside one of the words `date`, `today`, `time` or `now`), and
/// the state of the repository: from a line `gitStatus` to the next heading or tag, and lines that begin with `git: `.
pub(super) fn system<'t>(text: &'t str, place: &mut Option<&'t str>) -> Cow<'t, str> {
    match said(text, place) {
        Cow::Borrowed(text) => without_lines(text),
        Cow::Owned(text) => match without_lines(&text) {
            Cow::Borrowed(_) => Cow::Owned(text),
            Cow::Owned(less) => Cow::Owned(less),
        },
    }
}

/// The inside of the block that a text begins with, and what follows it.
fn surroundings(text: &str) -> Option<(&str, &str)> {
    SURROUNDINGS.iter().find_map(|(opens, closes)| text.strip_prefix(opens)?.split_once(closes))
}

fn without_reminders<'t>(text: &'t str, place: &mut Option<&'t str>) -> Cow<'t, str> {
    let bytes = text.as_bytes();
    let (mut out, mut kept, mut from) = (String::new(), 0, 0);
    while let Some(found) = OPENS.find(&bytes[from..]) {
        let at = from + found;
        from = at + REMINDER.0.len();
        if !begins_line(&bytes[kept..at]) {
            continue;
        }
        let Some(length) = CLOSES.find(&bytes[from..]) else { break };
        *place = directory(&text[from..from + length]).or(*place);
        put(&mut out, &text[kept..at]);
        from += length + REMINDER.1.len();
        kept = from;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    put(&mut out, &text[kept..]);
    Cow::Owned(out)
}

/// `before`, what is kept before a reminder, is blank from the beginning of its last line; a few spaces may stand there.
fn begins_line(before: &[u8]) -> bool {
    let mut spaces = before.iter().rev().take(INDENT).skip_while(|byte| matches!(byte, b' ' | b'\t'));
    spaces.next().map_or(before.len() <= INDENT, |byte| *byte == b'\n')
}

/// Adds a piece on a line of its own.
fn put(out: &mut String, piece: &str) {
    let piece = piece.trim();
    if !piece.is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(piece);
    }
}

/// The directory, or the directories, that a block names as the client's own; the first that it names.
fn directory(block: &str) -> Option<&str> {
    if let Some((_, rest)) = block.split_once("<cwd>") {
        return rest.split_once("</cwd>").map(|(path, _)| path.trim());
    }
    let bytes = block.as_bytes();
    let mut from = 0;
    while let Some(found) = DIRECTORY.find(&bytes[from..]) {
        let start = memchr::memrchr(b'\n', &bytes[from..from + found]).map_or(from, |end| from + end + 1);
        let end = memchr::memchr(b'\n', &bytes[from + found..]).map_or(block.len(), |end| from + found + end + 1);
        let line = block[start..end].trim().trim_start_matches(['-', '*', '#', ' ']);
        if let Some(path) = PLACES.iter().find_map(|before| line.strip_prefix(before)) {
            return Some(path.trim());
        }
        // Cline, before the folder's files.
        let heading = line.strip_prefix("Current Working Directory (");
        if let Some((path, _)) = heading.and_then(|rest| rest.rsplit_once(')')) {
            return Some(path);
        }
        if SEVERAL.contains(&line) {
            return Some(listed(&block[end..]));
        }
        from = end;
    }
    None
}

/// The lines of a list at the beginning of a text.
fn listed(text: &str) -> &str {
    let item = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("- ") && !line.starts_with("- **")
    };
    let length = text.split_inclusive('\n').take_while(item).map(str::len).sum();
    text.get(..length).unwrap_or_default().trim()
}

/// A system text without its volatile lines.
fn without_lines(text: &str) -> Cow<'_, str> {
    let (mut out, mut kept, mut from) = (String::new(), 0, 0);
    let mut repository = false;
    for line in text.split_inclusive('\n') {
        let to = from + line.len();
        let words = line.trim();
        if words == "# gitStatus" || words.starts_with("gitStatus:") {
            repository = true;
        } else if words.starts_with(['#', '<']) {
            repository = false;
        }
        if repository || words.starts_with("git: ") || words.starts_with(BILLING) || tells_today(line) {
            out.push_str(&text[kept..from]);
            kept = to;
        }
        from = to;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    let end = out.trim_end().len();
    out.truncate(end);
    let start = out.len() - out.trim_start().len();
    out.drain(..start);
    Cow::Owned(out)
}

/// The line tells the date of today.
fn tells_today(line: &str) -> bool {
    line.len() <= LINE && CENTURY.find_iter(line.as_bytes()).any(|at| tells_today_at(line, at))
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
    let has = |word: &str| memmem::find(lower.as_bytes(), word.as_bytes()).is_some();
    let numeric = matches!(bytes.get(at + 4), Some(b'-' | b'/' | b'.')) && digit(at + 5);
    (numeric || MONTHS.iter().any(|month| has(month))) && ["date", "today", "time", "now"].iter().any(|word| has(word))
}

#[cfg(test)]
#[path = "volatile_tests.rs"]
mod tests;

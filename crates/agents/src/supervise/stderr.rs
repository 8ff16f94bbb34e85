//! What a child writes to its standard error, as log lines: each cut, so many a minute, without the secrets it was given.
//! The last lines are kept to explain an end or a start that failed.
//!
//! The lines are logged at `debug`: an agent may well write what it was asked.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use turnkeep_base::Secret;

/// Bytes of one line; the rest of a longer one is passed over, and as much of its end as may be a secret's beginning.
const LINE: usize = 1024;
/// Lines that are logged in a minute; of more only the number.
const LINES_A_MINUTE: u32 = 600;
/// Lines that are kept, of `KEPT_LINE` bytes each.
const KEPT: usize = 8;
const KEPT_LINE: usize = 200;
/// Shorter values of the environment are too common to be taken out of lines.
const SECRET_LENGTH: usize = 6;

/// The last lines, shared with who reads them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock();
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(cut(line, KEPT_LINE).to_owned());
    }

    /// As one text; empty if there was none.
    pub(crate) fn text(&self) -> String {
        self.0.lock().iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }
}

fn cut(line: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(line.len())).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0);
    line.get(..end).unwrap_or_default()
}

/// Reads until the end, which comes when the last member of the group has closed it.
pub(super) async fn log_lines(
    name: Arc<str>,
    secrets: Vec<Secret>,
    mut from: impl AsyncRead + Unpin + Send,
    tail: Tail,
) {
    let mut lines = Lines::new(name, secrets, tail);
    let mut buffer = [0u8; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        for &byte in buffer.get(..read).unwrap_or_default() {
            lines.byte(byte);
        }
    }
    lines.end_line();
}

struct Lines {
    name: Arc<str>,
    /// The longest first: a shorter one may be a part of it.
    secrets: Vec<Secret>,
    tail: Tail,
    line: Vec<u8>,
    /// Some of the line was passed over.
    cut: bool,
    minute: Instant,
    logged: u32,
    passed_over: u64,
}

impl Lines {
    fn new(name: Arc<str>, mut secrets: Vec<Secret>, tail: Tail) -> Lines {
        secrets.retain(|secret| secret.expose().len() >= SECRET_LENGTH);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        let minute = Instant::now();
        Lines { name, secrets, tail, line: Vec::new(), cut: false, minute, logged: 0, passed_over: 0 }
    }

    fn byte(&mut self, byte: u8) {
        if byte == b'\n' {
            self.end_line();
        } else if self.line.len() < LINE {
            self.line.push(byte);
        } else {
            self.cut = true;
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let was_cut = std::mem::take(&mut self.cut);
        let text = self.without_secrets(String::from_utf8_lossy(&line).trim(), was_cut);
        if text.is_empty() {
            return;
        }
        self.tail.push(&text);
        if self.minute.elapsed() >= Duration::from_secs(60) {
            if self.passed_over > 0 {
                tracing::debug!(process = %self.name, lines = self.passed_over, "more lines of its stderr were not logged");
            }
            (self.minute, self.logged, self.passed_over) = (Instant::now(), 0, 0);
        }
        if self.logged < LINES_A_MINUTE {
            self.logged += 1;
            tracing::debug!(process = %self.name, line = %text, "stderr");
        } else {
            self.passed_over += 1;
        }
    }

    fn without_secrets(&self, text: &str, was_cut: bool) -> String {
        let mut text: String = text.chars().filter(|c| !c.is_control()).collect();
        for secret in self.secrets.iter().map(Secret::expose) {
            if text.contains(secret) {
                text = text.replace(secret, "[secret]");
            }
        }
        if was_cut {
            // What is left of a character that was cut would count for more bytes than it had.
            let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
            let longest = self.secrets.first().map_or(0, |secret| secret.expose().len());
            text = cut(whole, whole.len().saturating_sub(longest)).to_owned();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_counted_and_freed_of_secrets() {
        let tail = Tail::default();
        let mut text = String::from("before\n");
        text.push_str(&"é".repeat(5000));
        text.push_str("\n\n the key is sk-very-secret\x1b[0m\nlast, without an end");
        log_lines("a".into(), vec![Secret::new("sk-very-secret".into())], text.as_bytes(), tail.clone()).await;
        let kept: Vec<String> = tail.0.lock().iter().cloned().collect();
        assert_eq!(kept.len(), 4);
        assert_eq!(kept[1].len(), KEPT_LINE);
        assert_eq!(kept[2..], ["the key is [secret][0m", "last, without an end"]);
    }

    #[test]
    fn no_part_of_a_secret_is_left_where_a_line_is_cut() {
        let secrets = ["sk-very-secret", "sk-very-secret-and-longer"];
        let rest = " and more than there is place for";
        for (at, secret) in (LINE - 30..LINE + 2).flat_map(|at| secrets.map(|secret| (at, secret))) {
            let known = secrets.map(|secret| Secret::new(secret.into())).to_vec();
            let mut lines = Lines::new("a".into(), known, Tail::default());
            format!("{}{secret}{rest}", "x".repeat(at)).bytes().for_each(|byte| lines.byte(byte));
            let shown = lines.without_secrets(&String::from_utf8_lossy(&lines.line), lines.cut);
            let after = shown.trim_start_matches('x');
            assert!(format!("[secret]{rest}").starts_with(after), "{at}: {after}");
        }
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let tail = Tail::default();
        let text: String = (0..100).map(|number| format!("line {number}\n")).collect();
        log_lines("a".into(), Vec::new(), text.as_bytes(), tail.clone()).await;
        assert!(tail.text().starts_with("line 92 | ") && tail.text().ends_with("line 99"));
    }
}

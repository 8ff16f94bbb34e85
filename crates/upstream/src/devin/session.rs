//! The two documents that the API answers with, read for what matters here; fields that nobody knows are passed over.

use super::stand::{Stand, stand};
use turnkeep_dialect::json::{Invalid, Kind, Reader};

/// The longest id, cursor, status or name of an event that is taken, in bytes.
const MAX_WORD: usize = 2048;
/// The prefix of a session's id in paths. The session's own document may leave it out.
const PREFIX: &str = "devin-";

/// A session as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    /// With its prefix.
    pub(super) id: String,
    status: String,
    detail: Option<String>,
    /// What it has cost so far, in thousandths of an ACU; `None` where it does not say.
    pub(super) milli_acus: Option<u64>,
}

impl Session {
    /// Reads a session. The error says what is missing, and quotes nothing.
    pub(super) fn read(body: &[u8]) -> Result<Session, Invalid> {
        let mut session = Session::default();
        let mut r = Reader::new(body)?;
        r.object::<Invalid>(|r, key| {
            match (key, r.kind()?) {
                ("session_id", Kind::String) => session.id = with_prefix(&word(r)?),
                ("status", Kind::String) => session.status = word(r)?,
                ("status_detail", Kind::String) => session.detail = Some(word(r)?),
                ("acus_consumed", Kind::Number) => session.milli_acus = milli(r.number()?),
                (_, _) => return r.skip().map(drop),
            }
            Ok(())
        })?;
        r.end()?;
        if session.id.is_empty() || session.status.is_empty() {
            return Err(missing("a session without `session_id` or `status`"));
        }
        Ok(session)
    }

    pub(super) fn stand(&self) -> Stand {
        stand(&self.status, self.detail.as_deref())
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.status == "suspended"
    }

    /// Its status and the detail of it, in one.
    pub(super) fn status_text(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}, {detail}", self.status),
            None => self.status.clone(),
        }
    }
}

fn with_prefix(id: &str) -> String {
    if id.is_empty() || id.starts_with(PREFIX) { id.to_owned() } else { format!("{PREFIX}{id}") }
}

/// Who said a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Devin,
    /// The user, or someone of whom the reference knows nothing: not a part of the answer.
    Other,
}

/// A message of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) event: String,
    pub(super) source: Source,
    pub(super) text: String,
}

/// A page of messages, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) items: Vec<Message>,
    /// Where the next one begins; the last page has none.
    pub(super) cursor: Option<String>,
    pub(super) more: bool,
}

impl Page {
    pub(super) fn read(body: &[u8]) -> Result<Page, Invalid> {
        let (mut page, mut has_items) = (Page::default(), false);
        let mut r = Reader::new(body)?;
        r.object::<Invalid>(|r, key| {
            match (key, r.kind()?) {
                ("items", Kind::Array) => {
                    has_items = true;
                    page.items.clear();
                    r.array::<Invalid>(|r, _| {
                        page.items.push(message(r)?);
                        Ok(())
                    })?;
                }
                ("end_cursor", Kind::String) => page.cursor = Some(word(r)?).filter(|cursor| !cursor.is_empty()),
                ("has_next_page", Kind::Bool) => page.more = r.bool()?,
                (_, _) => return r.skip().map(drop),
            }
            Ok(())
        })?;
        r.end()?;
        if has_items { Ok(page) } else { Err(missing("messages without `items`")) }
    }
}

fn message(r: &mut Reader<'_>) -> Result<Message, Invalid> {
    let mut message = Message { event: String::new(), source: Source::Other, text: String::new() };
    r.object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("event_id", Kind::String) => message.event = word(r)?,
            ("source", Kind::String) => {
                message.source = if r.string()? == "devin" { Source::Devin } else { Source::Other };
            }
            ("message", Kind::String) => message.text = r.string()?.into_owned(),
            (_, _) => return r.skip().map(drop),
        }
        Ok(())
    })?;
    if message.event.is_empty() { Err(missing("a message without `event_id`")) } else { Ok(message) }
}

fn word(r: &mut Reader<'_>) -> Result<String, Invalid> {
    let text = r.string()?;
    if text.len() > MAX_WORD {
        Err(r.fail(format!("a word of more than {MAX_WORD} bytes")))
    } else {
        Ok(text.into_owned())
    }
}

fn missing(what: &str) -> Invalid {
    Invalid { path: String::new(), message: what.to_owned(), at: 0 }
}

/// Thousandths of a number of ACUs; one that is no cost is none.
fn milli(number: &str) -> Option<u64> {
    let acus: f64 = number.parse().ok()?;
    // The conversion is total: what is beyond its range becomes the largest.
    (acus.is_finite() && acus >= 0.0).then(|| (acus * 1000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_with_what_nobody_knows_passed_over() {
        let body = br#"{"session_id":"abc","status":"running","status_detail":null,"acus_consumed":1.2345,"tags":[{}],"x":{}}"#;
        let session = Session::read(body).unwrap();
        assert_eq!((session.id.as_str(), session.milli_acus), ("devin-abc", Some(1235)));
        assert_eq!((session.stand(), session.status_text().as_str()), (Stand::Working, "running"));
        let waits = br#"{"session_id":"devin-abc","status":"running","status_detail":"finished","acus_consumed":null}"#;
        let session = Session::read(waits).unwrap();
        assert_eq!((session.id.as_str(), session.stand(), session.milli_acus), ("devin-abc", Stand::Waits, None));
    }

    #[test]
    fn what_is_no_session_is_an_error_without_a_quotation() {
        for body in [
            &b"{}"[..],
            b"[]",
            b"",
            b"{\"session_id\":\"x\"}",
            b"{\"status\":\"secret\"}",
            b"{\"session_id\":7,\"status\":1}",
        ] {
            let error = Session::read(body).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_page_is_read_and_an_unknown_source_is_not_devin() {
        let body = br#"{"items":[{"event_id":"1","source":"devin","message":"a","created_at":1},
            {"event_id":"2","source":"user","message":"b"},{"event_id":"3","source":"robot","message":"c"}],
            "end_cursor":null,"has_next_page":false,"total":3}"#;
        let page = Page::read(body).unwrap();
        let told: Vec<_> =
            page.items.iter().map(|item| (item.event.as_str(), item.source, item.text.as_str())).collect();
        assert_eq!(told, [("1", Source::Devin, "a"), ("2", Source::Other, "b"), ("3", Source::Other, "c")]);
        assert_eq!((page.cursor, page.more), (None, false));
        assert!(Page::read(b"{}").is_err());
        assert!(Page::read(br#"{"items":[{"source":"devin"}]}"#).is_err());
    }

    #[test]
    fn costs_are_thousandths_and_made_up_ones_are_bounded() {
        let rows = [("0", Some(0)), ("0.0005", Some(1)), ("12", Some(12_000)), ("1e-3", Some(1)), ("-1", None)];
        for (text, meant) in rows {
            assert_eq!(milli(text), meant, "{text}");
        }
        assert_eq!(milli("1e300"), Some(u64::MAX));
        assert_eq!(milli("1e999"), None);
    }
}

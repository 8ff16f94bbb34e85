//! What is kept of a session between turns: its id, and a place among its messages from which the later ones can be asked
//! for. The API gives no cursor for the last page, so the place is the end of the last page that had one.

use super::messages::Messages;
use std::sync::Arc;
use turnkeep_policy::conversations::MAX_HANDLE;

/// A session and a place in it. Its text is the id alone; or the id, on the next line the number of messages before the
/// place and the number of bytes of the event before it, and on the next that event and the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) id: String,
    /// Where the messages are asked for from; `None`: from the first.
    pub(super) cursor: Option<String>,
    /// How many messages stand before that.
    pub(super) before: u64,
    /// The event of the last of these.
    pub(super) last: Option<String>,
}

impl Handle {
    /// Of a session whose messages were read so far.
    pub(super) fn of(id: String, messages: &Messages) -> Handle {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Handle { id, cursor: owned(messages.cursor()), before: messages.before(), last: owned(messages.last()) }
    }

    /// Whatever is no place is none: all messages are read again then.
    pub(super) fn read(text: &str) -> Handle {
        let (id, place) = text.split_once('\n').unwrap_or((text, ""));
        let (cursor, before, last) = place_of(place).unwrap_or_default();
        Handle { id: id.to_owned(), cursor, before, last }
    }

    /// A cursor that makes it too long to be kept is left out: all messages are read again then.
    pub(super) fn text(&self) -> Arc<str> {
        let last = self.last.as_deref().unwrap_or_default();
        let place = |cursor| format!("{}\n{} {}\n{last}{cursor}", self.id, self.before, last.len());
        match self.cursor.as_ref().map(place).filter(|text| text.len() <= MAX_HANDLE) {
            Some(text) => text.into(),
            None => self.id.as_str().into(),
        }
    }
}

fn place_of(text: &str) -> Option<(Option<String>, u64, Option<String>)> {
    let (counts, rest) = text.split_once('\n')?;
    let (before, bytes) = counts.split_once(' ')?;
    let (last, cursor) = rest.split_at_checked(bytes.parse().ok()?)?;
    let last = Some(last.to_owned()).filter(|last| !last.is_empty());
    Some((Some(cursor.to_owned()), before.parse().ok()?, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(cursor: Option<&str>, before: u64, last: Option<&str>) -> Handle {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Handle { id: "devin-1".into(), cursor: owned(cursor), before, last: owned(last) }
    }

    #[test]
    fn a_handle_is_read_as_it_was_written() {
        for handle in [
            handle(None, 0, None),
            handle(Some("MTIz\n=="), 7, Some("event\n7 \u{e4}")),
            handle(Some(""), 1, None),
            handle(Some("9 9"), 2, Some("e")),
        ] {
            assert_eq!(Handle::read(&handle.text()), handle);
        }
    }

    #[test]
    fn a_cursor_that_is_too_long_is_left_out() {
        let long = "x".repeat(MAX_HANDLE);
        for handle in [handle(Some(&long), 9, None), handle(Some("x"), 9, Some(&long))] {
            assert_eq!(&*handle.text(), "devin-1");
        }
    }

    #[test]
    fn what_is_no_place_is_none() {
        for text in
            ["devin-1\n7\nMTIz", "devin-1\n7 9\nMTIz", "devin-1\n7 1\n\u{e4}", "devin-1\n", "devin-1\nx 0\nMTIz"]
        {
            assert_eq!(Handle::read(text), handle(None, 0, None), "{text:?}");
        }
    }
}

//! What is kept of a session between turns: its id, and a place among its messages from which the later ones can be asked
//! for. The API gives no cursor for the last page, so the place is the end of the last page that had one.

use std::sync::Arc;
use turnkeep_policy::conversations::MAX_HANDLE;

/// A session and a place in it. Its text is the id alone, or the id, the number of messages before the place and the
/// cursor, each on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) id: String,
    /// Where the messages are asked for from; `None`: from the first.
    pub(super) cursor: Option<String>,
    /// How many messages stand before that.
    pub(super) before: u64,
}

impl Handle {
    pub(super) fn read(text: &str) -> Handle {
        let mut lines = text.splitn(3, '\n');
        let id = lines.next().unwrap_or_default().to_owned();
        let before = lines.next().and_then(|count| count.parse().ok());
        match (before, lines.next()) {
            (Some(before), Some(cursor)) => Handle { id, cursor: Some(cursor.to_owned()), before },
            (_, _) => Handle { id, cursor: None, before: 0 },
        }
    }

    /// A cursor that makes it too long to be kept is left out: all messages are read again then.
    pub(super) fn text(&self) -> Arc<str> {
        let whole = self.cursor.as_ref().map(|cursor| format!("{}\n{}\n{cursor}", self.id, self.before));
        match whole.filter(|text| text.len() <= MAX_HANDLE) {
            Some(text) => text.into(),
            None => self.id.as_str().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_was_written() {
        for (cursor, before) in [(None, 0), (Some("MTIz\n=="), 7), (Some(""), 1)] {
            let handle = Handle { id: "devin-1".into(), cursor: cursor.map(str::to_owned), before };
            assert_eq!(Handle::read(&handle.text()), handle);
        }
    }

    #[test]
    fn a_cursor_that_is_too_long_is_left_out() {
        let handle = Handle { id: "devin-1".into(), cursor: Some("x".repeat(MAX_HANDLE)), before: 9 };
        assert_eq!(&*handle.text(), "devin-1");
    }
}

//! Which messages of a session have been seen. Pages are asked for from a place that moves on with every page that tells
//! one; what stands behind it is known by its event, so that a page that is read again gives nothing twice.

use super::session::{Message, Page};

/// Messages of one page at most. The API gives 200.
const MAX_ITEMS: usize = 1_000;

/// The messages of one session, as far as they have been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Messages {
    /// Where the next page is asked for from.
    cursor: Option<String>,
    /// How many stand before that.
    before: u64,
    /// The events of those behind it.
    seen: Vec<String>,
    /// The events of the page before it, should a server count the place itself among what comes after. Of a session that
    /// was left, the last of them alone.
    passed: Vec<String>,
}

impl Messages {
    /// Of a session that was left at this place; `last` is the event before it.
    pub(super) fn after(cursor: Option<String>, before: u64, last: Option<String>) -> Messages {
        Messages { cursor, before, seen: Vec::new(), passed: last.into_iter().collect() }
    }

    /// The event before the cursor.
    pub(super) fn last(&self) -> Option<&str> {
        self.passed.last().map(String::as_str)
    }

    pub(super) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// How many stand before the cursor.
    pub(super) fn before(&self) -> u64 {
        self.before
    }

    /// How many have been seen from the session's beginning.
    pub(super) fn position(&self) -> u64 {
        self.before + self.seen.len() as u64
    }

    /// Takes a page in; what is new is appended. Tells whether another one is to be asked for; the error is a page that
    /// leads nowhere.
    pub(super) fn take(&mut self, page: Page, news: &mut Vec<Message>) -> Result<bool, &'static str> {
        if page.items.len() > MAX_ITEMS {
            return Err("a page of more messages than were asked for");
        }
        for message in page.items {
            if !self.seen.contains(&message.event) && !self.passed.contains(&message.event) {
                self.seen.push(message.event.clone());
                news.push(message);
            }
        }
        let moves = page.cursor.is_some() && page.cursor != self.cursor;
        if moves {
            self.cursor = page.cursor;
            if !self.seen.is_empty() {
                self.before += self.seen.len() as u64;
                self.passed = std::mem::take(&mut self.seen);
            }
        }
        match (page.more, moves) {
            (true, false) => Err("a page that says that more follows, and not where"),
            (more, _) => Ok(more),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::Source;
    use super::*;

    fn page(items: &[&str], cursor: Option<&str>, more: bool) -> Page {
        let message = |event: &&str| Message { event: (*event).into(), source: Source::Devin, text: (*event).into() };
        Page { items: items.iter().map(message).collect(), cursor: cursor.map(str::to_owned), more }
    }

    /// What each page brings that is new, and whether another is asked for.
    fn taken(messages: &mut Messages, page: Page) -> (String, Result<bool, &'static str>) {
        let mut news = Vec::new();
        let more = messages.take(page, &mut news);
        (news.iter().map(|message| message.event.as_str()).collect(), more)
    }

    #[test]
    fn a_last_page_that_grows_gives_each_message_once() {
        let mut messages = Messages::default();
        assert_eq!(taken(&mut messages, page(&["a", "b"], Some("2"), true)), ("ab".into(), Ok(true)));
        assert_eq!(taken(&mut messages, page(&["c"], None, false)), ("c".into(), Ok(false)));
        assert_eq!(taken(&mut messages, page(&["c", "d"], None, false)), ("d".into(), Ok(false)));
        assert_eq!((messages.cursor(), messages.before(), messages.position()), (Some("2"), 2, 4));
        // The page has filled up and now tells where the next one begins.
        assert_eq!(taken(&mut messages, page(&["c", "d"], Some("4"), true)), ("".into(), Ok(true)));
        assert_eq!(taken(&mut messages, page(&[], None, false)), ("".into(), Ok(false)));
        assert_eq!((messages.cursor(), messages.before(), messages.position()), (Some("4"), 4, 4));
    }

    #[test]
    fn a_server_that_counts_the_place_itself_gives_nothing_twice() {
        let mut messages = Messages::default();
        assert_eq!(taken(&mut messages, page(&["a", "b"], Some("b"), false)).0, "ab");
        assert_eq!(taken(&mut messages, page(&["b", "c"], Some("c"), false)).0, "c");
        assert_eq!(taken(&mut messages, page(&["c"], Some("c"), false)).0, "");
        assert_eq!(messages.position(), 3);
        // Nor in the next turn, which knows no more than the place and the event before it.
        let (cursor, last) = (messages.cursor().map(str::to_owned), messages.last().map(str::to_owned));
        let mut messages = Messages::after(cursor, messages.before(), last);
        assert_eq!(taken(&mut messages, page(&["c", "d"], Some("d"), false)).0, "d");
        assert_eq!(messages.position(), 4);
    }

    #[test]
    fn a_page_that_leads_nowhere_is_an_error() {
        let mut messages = Messages::default();
        assert!(taken(&mut messages, page(&["a"], None, true)).1.is_err());
        assert!(taken(&mut messages, page(&["b"], Some("b"), true)).1.is_ok());
        assert!(taken(&mut messages, page(&["c"], Some("b"), true)).1.is_err());
        let long: Vec<String> = (0..=MAX_ITEMS).map(|number| number.to_string()).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        assert!(taken(&mut messages, page(&long, None, false)).1.is_err());
    }
}

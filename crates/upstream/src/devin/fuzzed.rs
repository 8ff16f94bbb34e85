//! The documents of the API by themselves; see [`crate::fuzzed`].

use super::session;
use turnkeep_dialect::json::Invalid;

/// A session as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// With its prefix.
    pub id: String,
    /// Its status with the detail.
    pub status: String,
    /// Thousandths of an ACU.
    pub milli_acus: Option<u64>,
}

/// Reads a session.
///
/// # Errors
/// It is none.
pub fn session(body: &[u8]) -> Result<Session, Invalid> {
    let read = session::Session::read(body)?;
    // It always means something.
    let _ = read.stand();
    Ok(Session { status: read.status_text(), milli_acus: read.milli_acus, id: read.id })
}

/// A page of messages as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The event of each message, and whether Devin said it.
    pub items: Vec<(String, bool)>,
    /// Where the next one begins.
    pub cursor: Option<String>,
    /// Another one follows.
    pub more: bool,
}

/// Reads a page of messages.
///
/// # Errors
/// It is none.
pub fn page(body: &[u8]) -> Result<Page, Invalid> {
    let session::Page { items, cursor, more } = session::Page::read(body)?;
    let of = |item: session::Message| (item.event, item.source == session::Source::Devin);
    Ok(Page { items: items.into_iter().map(of).collect(), cursor, more })
}

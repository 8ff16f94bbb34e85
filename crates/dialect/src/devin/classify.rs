//! What an error reply of Devin's API means, by the rows of `classify_table`, and what the reasons mean that it gives for a
//! session that stopped.

use super::classify_table::{MONEY, ROWS};
use crate::classify::{self, Classified};

/// Classifies a reply with an error status that was made at `made_ms`, in milliseconds since 1970 (0 is unknown).
/// `names_session`: the call named a session, and only there can a 404 mean that it is gone.
pub fn reply_at(status: u16, body: &[u8], made_ms: u64, names_session: bool) -> Classified {
    classify::by_rows(ROWS, status, body, made_ms, names_session)
}

/// A session was suspended because its organisation has no money or no plan left, by the reason that it gives. Limits that
/// may be the session's own are none of these.
pub fn is_out_of_money(status_detail: &str) -> bool {
    MONEY.contains(&status_detail)
}

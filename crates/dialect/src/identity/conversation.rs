//! The key under which a conversation that an upstream keeps is found again.

use super::{HashKey, of_parts};
use turnkeep_base::Fingerprint;

/// Whose conversation it is, and with whom. Two that differ in any of it never meet.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'a> {
    /// The caller.
    pub scope: &'a str,
    /// The model that was asked for, by the name that the client gave or that stands for it.
    pub model: &'a str,
    /// The client's session, as [`session`](super::session()) gives it.
    pub session: Option<&'a str>,
    /// As [`session_within`](super::session_within()) gives it.
    pub within: Option<&'a str>,
}

/// The key of the conversation with this system prompt and these tools ([`History::prefix`](super::History)) that ends with
/// this answer: the last of a request's [`History::answers`](super::History), or what [`answered`](super::answered())
/// gives for an answer just made. The directory that the client works in is in both, as it is in its text.
pub fn conversation(key: &HashKey, whose: &Whose<'_>, prefix: Fingerprint, answer: Fingerprint) -> Fingerprint {
    let Whose { scope, model, session, within } = whose;
    let names = [scope, model, session.unwrap_or_default(), within.unwrap_or_default()].map(str::as_bytes);
    let [scope, model, session, within] = names;
    of_parts(key, "conversation", &[scope, model, session, within, &prefix.0, &answer.0])
}

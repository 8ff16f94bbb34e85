//! A background response that is asked for again under its idempotency key: the one that is being made, or was, is the
//! answer, and nothing runs twice.

use super::library::{Held, Library};
use std::sync::Arc;
use turnkeep_base::{ClientError, Fingerprint};
use turnkeep_engine::idempotency_key_reused;
use turnkeep_engine::ports::{StoredKind, StoredThing};

/// A key that stands for nothing yet, taken for one response.
#[derive(Debug)]
pub(super) struct Retry {
    key: String,
    asked: Fingerprint,
    /// Until the response can be found by the key.
    _held: Held,
}

/// What a key stands for.
pub(super) enum Claim {
    /// For nothing yet.
    New(Retry),
    /// For this response.
    Again(String),
}

/// Looks for the response of a key. While another request with it begins, this one waits.
pub(super) async fn claim(
    library: &Arc<Library>,
    scope: &Arc<str>,
    key: &str,
    body: &[u8],
) -> Result<Claim, ClientError> {
    let asked = library.print("background", &[body]);
    // They are one request as far as waiting goes, whatever they ask.
    let same = library.print("key", &[key.as_bytes()]);
    let held = library.hold_after_same(StoredKind::Retry, scope, key, Some(same)).await;
    let Some(held) = held else {
        let message = "idempotency-key: another request with this key has been beginning for too long; try again";
        return Err(ClientError::new(503, "retry_is_beginning", message));
    };
    match library.retried(scope, key).await? {
        None => Ok(Claim::New(Retry { key: key.to_owned(), asked, _held: held })),
        Some((was, response)) if was == asked => Ok(Claim::Again(response)),
        Some(_) => Err(idempotency_key_reused()),
    }
}

impl Retry {
    /// What is written down of it: the response of this id.
    pub(super) fn thing(&self, library: &Library, scope: &Arc<str>, response: &str) -> StoredThing {
        library.retry_thing(scope, &self.key, &self.asked, response)
    }
}

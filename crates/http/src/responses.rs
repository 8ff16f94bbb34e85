//! What the Responses API keeps between turns: stored responses, conversations, and answers that are made in the
//! background. Here a turn gets the history that its client only names, and what it came to is stored; the upstream may
//! speak any dialect.

mod background;
mod begin;
mod conversations;
pub mod fuzzed;
mod history;
mod items;
mod keep;
mod library;
mod metadata;
mod outline;
mod page;
mod paths;
mod record;
mod retrieve;
mod retry;
mod running;
mod state;
#[cfg(test)]
mod test_library;

pub(crate) use background::{Background, start};
pub(crate) use begin::{Begin, Begun, begin, counted, plain};
pub(crate) use library::Library;
pub use paths::StoredPlace;
pub(crate) use paths::{methods, place};
pub(crate) use retrieve::{Wanted, again, answer};

use crate::reply_body::ReplyBody;
use crate::respond;
use http::{Response, StatusCode};
use turnkeep_base::{CallerScope, ClientError, Dialect, TurnId};

/// Whose everything is that is stored for a caller; `None` for one that nothing is kept for.
pub(crate) fn scope_name(caller: &CallerScope) -> Option<std::sync::Arc<str>> {
    caller.is_scoped().then(|| caller.owner())
}

/// An upgrade of this path is refused with the one status upon which clients take up HTTP at once.
pub(crate) fn no_socket(id: TurnId) -> Response<ReplyBody> {
    let message = "this gateway answers over HTTP; send POST /v1/responses";
    let mut response = respond::error(Dialect::Responses, &ClientError::new(426, "upgrade_required", message), id);
    *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
    response
}

/// What a shared key without a trusted user is told.
fn keeps_nothing(param: Option<&str>) -> ClientError {
    let message = "nothing can be stored for this key: it is shared, and no trusted proxy says for which user this \
                   request is";
    ClientError { param: param.map(str::to_owned), ..ClientError::new(404, "nothing_is_kept", message) }
}

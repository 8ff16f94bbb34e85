//! One look at a session: how it stands, then what was said. In this order whatever a session says before it waits is
//! seen together with the waiting.

use super::api::{Api, Failed, too_long};
use super::messages::Messages;
use super::session::{Message, Session};
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};

/// Pages of one look at most; what is left is for the next.
const MAX_PAGES: usize = 50;
/// Bytes of one look's pages at most, all together; what is left is for the next. Not less than one page may have.
const MAX_BYTES: usize = MAX_EVENT;

/// What a look brought. A page that could be read is not lost with one that could not.
pub(super) struct Looked {
    pub(super) messages: Messages,
    pub(super) news: Vec<Message>,
    /// How the session stands, if all of the look came about; `None`: messages are left unread, and until they are read
    /// nothing is over.
    pub(super) session: Result<Option<Session>, Fault>,
}

/// Looks once.
pub(super) async fn look(api: Api, id: String, mut messages: Messages) -> Looked {
    let mut news = Vec::new();
    let session = match api.session(&id).await {
        Ok(session) => {
            let read = self::messages(&api, &id, &mut messages, &mut news).await;
            read.map(|left| (left == Left::Nothing).then_some(session))
        }
        Err(failed) => Err(failed),
    };
    Looked { messages, news, session: session.map_err(|failed| failed.fault) }
}

/// What is left to read after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    /// More is left than one look reads.
    More,
}

/// Reads the messages that are new.
pub(super) async fn messages(
    api: &Api,
    id: &str,
    messages: &mut Messages,
    news: &mut Vec<Message>,
) -> Result<Left, Failed> {
    let mut room = MAX_BYTES;
    for _ in 0..MAX_PAGES {
        let Some((page, bytes)) = api.messages(id, messages.cursor(), room).await? else {
            // A page that does not fit beside the others is the next look's first; one that fits into none is no answer.
            return if room < MAX_BYTES { Ok(Left::More) } else { Err(too_long()) };
        };
        room = room.saturating_sub(bytes);
        match messages.take(page, news) {
            Ok(true) => {}
            Ok(false) => return Ok(Left::Nothing),
            Err(what) => {
                let text = format!("Devin's answer is not what its API documents: {what}");
                return Err(Failed::of(Fault::new(
                    FaultKind::MalformedResponse,
                    Phase::Answered,
                    Evidence::text(text),
                )));
            }
        }
    }
    Ok(Left::More)
}

//! One look at a session: how it stands, then what was said. In this order whatever a session says before it waits is
//! seen together with the waiting.

use super::api::{Api, Failed};
use super::messages::Messages;
use super::session::{Message, Session};
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};

/// Pages of one look at most; what is left is for the next.
const MAX_PAGES: usize = 50;

/// What a look brought. A page that could be read is not lost with one that could not.
pub(super) struct Looked {
    pub(super) messages: Messages,
    pub(super) news: Vec<Message>,
    /// How the session stands, if all of the look came about.
    pub(super) session: Result<Session, Fault>,
}

/// Looks once.
pub(super) async fn look(api: Api, id: String, mut messages: Messages) -> Looked {
    let mut news = Vec::new();
    let session = match api.session(&id).await {
        Ok(session) => self::messages(&api, &id, &mut messages, &mut news).await.map(|()| session),
        Err(failed) => Err(failed),
    };
    Looked { messages, news, session: session.map_err(|failed| failed.fault) }
}

/// Reads the messages that are new.
pub(super) async fn messages(
    api: &Api,
    id: &str,
    messages: &mut Messages,
    news: &mut Vec<Message>,
) -> Result<(), Failed> {
    for _ in 0..MAX_PAGES {
        let page = api.messages(id, messages.cursor()).await?;
        match messages.take(page, news) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
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
    Ok(())
}

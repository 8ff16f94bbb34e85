//! The decoders of the protocol by themselves, for the fuzz targets and nobody else (the layer check looks): bytes in, what
//! was read out, no process.

use super::lines::Lines;
use super::mailbox::Item;
use super::rpc::{self, ErrorReply, INVALID_PARAMS, Message};
use super::spec::ToolActivity;
use super::update::{self, Params, Unreadable};
use bytes::Bytes;

pub use super::lines::MAX_LINE;

/// The whole lines in what came in these pieces. `None`: one was longer than [`MAX_LINE`].
pub fn lines(pieces: &[&[u8]]) -> Option<Vec<Bytes>> {
    let (mut lines, mut out) = (Lines::default(), Vec::new());
    for piece in pieces {
        lines.push(piece);
        while let Some(line) = lines.next().ok()? {
            out.push(line);
        }
    }
    Some(out)
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A request: its id as it came, its method, and our refusal of it, as a line.
    Request(String, String, Vec<u8>),
    /// A notification with this method.
    Notification(String),
    /// An answer to our request of this number, and whether it is a good one.
    Response(u64, bool),
    /// An answer to nobody.
    Stray,
    /// No message.
    Unreadable,
}

/// Reads a line.
pub fn line(line: &[u8]) -> Line {
    match Message::read(line) {
        Ok(Message::Request { id, method, params: _ }) => {
            let error = ErrorReply { code: INVALID_PARAMS, message: method.clone().into_owned() };
            let reply = rpc::reply(id, Err::<(), _>(error)).unwrap_or_default();
            Line::Request(id.get().to_owned(), method.into_owned(), reply)
        }
        Ok(Message::Notification { method, params: _ }) => Line::Notification(method.into_owned()),
        Ok(Message::Response { id, outcome }) => Line::Response(id, outcome.is_ok()),
        Ok(Message::Stray) => Line::Stray,
        Err(_) => Line::Unreadable,
    }
}

/// What an update gives the turn's client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A piece of the answer.
    Text(String),
    /// A piece of its thinking.
    Thought(String),
    /// A note.
    Note(String),
    /// A sign of life.
    Alive,
    /// Nothing.
    Nothing,
}

/// Reads the parameters of `session/update`; `notes`: what tools do is shown.
///
/// # Errors
/// They are not of the protocol's form.
pub fn update(params: &str, notes: bool) -> Result<Told, String> {
    let Params { session: _, update } = rpc::object(params).map_err(|error| error.to_string())?;
    let activity = if notes { ToolActivity::Notes } else { ToolActivity::Drop };
    let told = update::read(update, activity).map_err(|Unreadable(why)| why)?;
    Ok(match told.item {
        Some(Item::Text(text)) => Told::Text(text),
        Some(Item::Thought(text)) => Told::Thought(text),
        Some(Item::Note(text)) => Told::Note(text),
        Some(Item::Alive) => Told::Alive,
        Some(Item::Ended(_)) | None => Told::Nothing,
    })
}

//! A client's request before it is known where it goes: what the gateway must know of it (model, mode, size), that it
//! has the form its dialect asks for, and the edits that a same-dialect route makes to its bytes.

use crate::identity::{Foreign, strip_edits, strip_opaque_state};
use crate::json::{Invalid, Span};
use crate::tool_names::ToolNames;
use crate::turn::Turn;
use crate::{chat, gemini, messages, responses};
use bytes::Bytes;
use turnkeep_base::Dialect;

/// What the client wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One answer.
    Generate,
    /// The number of input tokens.
    CountTokens,
    /// The continuation of a text (OpenAI's legacy completions; Chat only).
    Complete,
    /// Vectors of texts (OpenAI's embeddings; Chat only).
    Embed,
}

/// How a streamed answer is framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamForm {
    /// Server-sent events.
    #[default]
    Events,
    /// One JSON array, whose elements come one by one (Gemini without `alt=sse`).
    Array,
}

/// What a Gemini request says in its path, where the other dialects say it in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPath {
    /// The model, without `models/`.
    pub model: String,
    /// A stream is wanted.
    pub stream: bool,
    /// How it is framed.
    pub form: StreamForm,
}

/// Which version of the Messages API the headers ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiVersion {
    /// `2023-06-01`, the long-lived one, and whatever is unknown.
    #[default]
    V2023,
    /// `2026-10-21`, without sampling parameters.
    V2026,
}

impl ApiVersion {
    /// From the value of an `anthropic-version` header.
    pub fn from_header(value: Option<&str>) -> Self {
        if value == Some(ApiVersion::V2026.header()) { ApiVersion::V2026 } else { ApiVersion::V2023 }
    }

    /// The header's value.
    pub fn header(self) -> &'static str {
        match self {
            ApiVersion::V2023 => "2023-06-01",
            ApiVersion::V2026 => "2026-10-21",
        }
    }
}

/// A request whose form has been checked.
#[derive(Clone, Debug)]
pub struct ClientRequest {
    /// The client's dialect.
    pub dialect: Dialect,
    /// What it wants.
    pub operation: Operation,
    /// The body, byte for byte.
    pub body: Bytes,
    /// The model it names.
    pub model: String,
    /// It wants a stream.
    pub stream: bool,
    /// The most tokens of output it allows, if it says so.
    pub max_output: Option<u64>,
    /// How many answers at once (`n` in Chat); 1 if it does not say.
    pub choices: u64,
    /// A streamed Chat client wants the usage chunk.
    pub usage_wanted: bool,
    /// How a stream is framed.
    pub form: StreamForm,
    /// Where things stand in the body.
    pub spans: Spans,
    /// Texts that a turn borrows and that stand nowhere in the body; made when the turn is first read.
    pub made: Made,
}

/// JSON schemas written anew (Gemini's own kind of schema is none), by where the value they stand for begins in the body.
pub type Made = std::sync::OnceLock<std::collections::BTreeMap<usize, Box<str>>>;

/// Where the named spans stand in the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The value of the top-level `model`, quotes included.
    pub model: Span,
    /// The value of the top-level `stream_options`, if there is one (Chat).
    pub stream_options: Option<Span>,
    /// The value of `stream_options.include_usage`, if there is one.
    pub include_usage: Option<Span>,
}

/// A replacement of one span by other bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; empty for an insertion.
    pub span: Span,
    /// By what.
    pub with: Vec<u8>,
}

/// Reads and checks a request body. Missing fields, wrong types and ambiguous duplicates are errors that name the path.
///
/// A Gemini request is read by [`read_in_path`]: its model is not in the body.
pub fn read(dialect: Dialect, operation: Operation, body: Bytes) -> Result<ClientRequest, Invalid> {
    match (dialect, operation) {
        (Dialect::Chat, Operation::Generate | Operation::CountTokens) => chat::request::read(body),
        (Dialect::Chat, Operation::Complete) => chat::completions::read(body),
        (Dialect::Chat, Operation::Embed) => chat::embeddings::read(body),
        (Dialect::Responses, operation) => responses::request::read(operation, body),
        (Dialect::Messages, operation) => messages::request::read(operation, body),
        (Dialect::Gemini, _) => {
            let message = "the model of a Gemini request is in its path".to_owned();
            Err(Invalid { path: "model".into(), message, at: 0 })
        }
    }
}

/// Reads and checks a Gemini request body.
pub fn read_in_path(operation: Operation, path: InPath, body: Bytes) -> Result<ClientRequest, Invalid> {
    gemini::request::read(operation, path, body)
}

impl ClientRequest {
    /// The edits of a same-dialect route to the upstream's name for the model. Empty when the bytes can stay.
    pub fn edits(&self, upstream_model: &str) -> Vec<Edit> {
        let mut edits = Vec::new();
        if upstream_model != self.model && self.dialect != Dialect::Gemini {
            let mut with = Vec::with_capacity(upstream_model.len() + 2);
            crate::json::write_string(&mut with, upstream_model);
            edits.push(Edit { span: self.spans.model.clone(), with });
        }
        match self.dialect {
            Dialect::Chat => {
                edits.extend(chat::request::usage_edit(self));
                edits.extend(strip_edits(self, Foreign::Enveloped));
            }
            Dialect::Responses => edits.extend(responses::request::edits(self)),
            Dialect::Gemini => edits.extend(gemini::request::edits(self)),
            // Thinking that no Messages upstream made: the conversation has been elsewhere.
            Dialect::Messages => edits.extend(strip_edits(self, Foreign::Enveloped)),
        }
        edits.sort_by_key(|edit| edit.span.start);
        edits
    }

    /// The body for a same-dialect upstream: every byte kept but for [`ClientRequest::edits`].
    pub fn pass_through(&self, upstream_model: &str) -> Bytes {
        apply(&self.body, &self.edits(upstream_model))
    }

    /// The body for a same-dialect upstream whose owner did not make the signed or redacted thinking in it: the same
    /// without that thinking. What was taken is to be named as dropped (`thinking`); false when there was none.
    pub fn pass_through_elsewhere(&self, upstream_model: &str) -> (Bytes, bool) {
        let stripped = strip_edits(self, Foreign::All);
        let any = !stripped.is_empty();
        let mut edits = self.edits(upstream_model);
        // All of it covers what the ordinary edits take out.
        let inside =
            |edit: &Edit| !edit.span.is_empty() && stripped.iter().any(|other| overlaps(&edit.span, &other.span));
        edits.retain(|edit| !inside(edit));
        edits.extend(stripped);
        edits.sort_by_key(|edit| edit.span.start);
        (apply(&self.body, &edits), any)
    }

    /// The body for a Responses upstream that is to go on from its answer of this id with what stands from item `from` of
    /// the input on. `None` where the body cannot be cut there.
    pub fn pass_through_chained(&self, upstream_model: &str, previous: (&str, u32)) -> Option<Bytes> {
        let chain = responses::chain::edits(&self.body, Some(previous), false)?;
        let inside = |edit: &Edit| chain.iter().any(|other| overlaps(&edit.span, &other.span));
        let mut edits = self.edits(upstream_model);
        // What the ordinary edits take out of the part that does not stay is gone with it.
        edits.retain(|edit| edit.span.is_empty() || !inside(edit));
        edits.extend(chain);
        edits.sort_by_key(|edit| edit.span.start);
        Some(apply(&self.body, &edits))
    }

    /// What [`ClientRequest::pass_through`] takes out of the body, by the names that the client is told.
    pub fn dropped_in_passing(&self) -> Vec<String> {
        if !strip_edits(self, Foreign::Enveloped).is_empty() { vec!["thinking".into()] } else { Vec::new() }
    }

    /// The canonical turn. Texts to be embedded are none.
    pub fn turn(&self) -> Result<Turn<'_>, Invalid> {
        match self.dialect {
            Dialect::Chat => match self.operation {
                Operation::Generate | Operation::CountTokens => chat::request::decode(&self.body),
                Operation::Complete => chat::completions::decode(&self.body),
                Operation::Embed => Err(no_upstream("embeds")),
            },
            Dialect::Responses => responses::request::decode(&self.body),
            Dialect::Messages => messages::request::decode(&self.body),
            Dialect::Gemini => gemini::request::decode(self),
        }
    }
}

fn overlaps(one: &Span, other: &Span) -> bool {
    one.start < other.end && other.start < one.end
}

/// Applies edits, which are sorted and do not overlap.
pub fn apply(body: &Bytes, edits: &[Edit]) -> Bytes {
    if edits.is_empty() {
        return body.clone();
    }
    let added: usize = edits.iter().map(|edit| edit.with.len()).sum();
    let mut out = Vec::with_capacity(body.len() + added);
    let mut from = 0;
    for edit in edits {
        out.extend_from_slice(&body[from..edit.span.start]);
        out.extend_from_slice(&edit.with);
        from = edit.span.end;
    }
    out.extend_from_slice(&body[from..]);
    out.into()
}

/// A request written in the upstream's dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The body.
    pub body: Bytes,
    /// The fields of the client's request that the target has no place for, by their names, as
    /// [`crate::dropped::names`] makes them.
    pub dropped: Vec<String>,
    /// The Messages version that fits the body.
    pub version: ApiVersion,
    /// How the client knows the tools that are sent under another name, or in another form.
    pub names: ToolNames,
}

/// Writes a turn in the dialect of an upstream, for the upstream's name of the model. Content that cannot be carried is
/// an error with its path.
pub fn encode(target: Dialect, turn: &Turn<'_>, upstream_model: &str) -> Result<Encoded, Invalid> {
    crate::media::check(turn)?;
    let (turn, hosted) = crate::hosted::left_out(turn);
    let turn = turn.as_ref();
    let mut encoded = match target {
        Dialect::Chat => chat::request_encode::encode(turn, upstream_model),
        Dialect::Responses => responses::request_encode::encode(turn, upstream_model),
        Dialect::Messages => messages::request_encode::encode(turn, upstream_model),
        Dialect::Gemini => gemini::request_encode::encode(turn, upstream_model),
    }?;
    encoded.dropped.extend(hosted);
    encoded.dropped = crate::dropped::names(encoded.dropped);
    Ok(encoded)
}

/// Writes a client's request for an upstream of another dialect, whatever it asks for: an answer, a count of its input
/// tokens, the continuation of a text, or vectors. `elsewhere`: what the history holds of a provider's own making was made
/// at another upstream, which is not the target's; it is taken out and named as dropped (`thinking`).
///
/// Content that cannot be carried is an error with its path; an operation that no upstream of the target's kind has is one
/// at `model`.
pub fn write_for(
    request: &ClientRequest,
    target: Dialect,
    upstream_model: &str,
    elsewhere: bool,
) -> Result<Encoded, Invalid> {
    match request.operation {
        Operation::Embed => match target {
            Dialect::Gemini => {
                let mut encoded = chat::embeddings::to_gemini(&request.body, upstream_model)?;
                encoded.dropped = crate::dropped::names(encoded.dropped);
                return Ok(encoded);
            }
            Dialect::Chat | Dialect::Responses | Dialect::Messages => return Err(no_upstream("embeds")),
        },
        Operation::CountTokens if target == Dialect::Chat => return Err(no_upstream("counts tokens")),
        Operation::Generate | Operation::CountTokens | Operation::Complete => {}
    }
    write_turn(request, request.turn()?, target, upstream_model, elsewhere)
}

/// As [`write_for`], of a turn that was read from the request and may have been changed since. What is dropped, and where
/// an error stands, is told in the words of the client's dialect.
pub fn write_turn(
    request: &ClientRequest,
    mut turn: Turn<'_>,
    target: Dialect,
    upstream_model: &str,
    elsewhere: bool,
) -> Result<Encoded, Invalid> {
    let client = request.dialect;
    let stripped = elsewhere && strip_opaque_state(&mut turn);
    let mut encoded =
        encode(target, &turn, upstream_model).map_err(|error| crate::dropped::place_in_words(client, error))?;
    if stripped && !encoded.dropped.iter().any(|name| name == "thinking") {
        encoded.dropped.push("thinking".to_owned());
    }
    for name in &mut encoded.dropped {
        // A hint is the client's own word already.
        if !turn.hints.contains(name) {
            *name = crate::dropped::in_words(client, name).to_owned();
        }
    }
    crate::dropped::once(&mut encoded.dropped);
    match request.operation {
        Operation::CountTokens => crate::count::counting(target, encoded, upstream_model),
        Operation::Generate | Operation::Complete | Operation::Embed => Ok(encoded),
    }
}

/// Makes a turn ready for an upstream that speaks no client's dialect. Media are checked, tools that their provider runs
/// are left out beside others, and with `elsewhere` so is what the history holds of another provider's own making. Gives
/// the names of what has no place there, the client's hints too.
pub fn for_native(turn: &mut Turn<'_>, elsewhere: bool) -> Result<Vec<String>, Invalid> {
    crate::media::check(turn)?;
    let (ready, mut dropped) = crate::hosted::left_out(turn);
    if let std::borrow::Cow::Owned(ready) = ready {
        *turn = ready;
    }
    dropped.append(&mut turn.hints);
    if elsewhere && strip_opaque_state(turn) {
        dropped.push("thinking".to_owned());
    }
    Ok(dropped)
}

fn no_upstream(does: &str) -> Invalid {
    Invalid { path: "model".into(), message: format!("no upstream of this model {does}"), at: 0 }
}

/// The longest name of a model, and of an answer, that is kept; in bytes.
const NAME_BYTES: usize = 256;
/// What a model's name must be.
pub(crate) const BAD_NAME: &str = "expected a model's name of at most 256 bytes, without control characters";

/// Whether a name is fit for logs, metrics and the ledger.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES && !name.chars().any(char::is_control)
}

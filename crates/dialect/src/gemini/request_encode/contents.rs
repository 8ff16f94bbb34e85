//! The system prompt and the contents of a request to Gemini, part by part.

use super::{Dropped, at};
use crate::document::is_pdf;
use crate::envelope;
use crate::gemini::generation;
use crate::gemini::sentinel::SENTINEL;
use crate::json::{Array, Invalid, Object};
use crate::messages::conversation::{Answer, Group, Piece, groups};
use crate::messages::input::is_object;
use crate::messages::request_encode::system_text;
use crate::tool_id::from_messages_safe;
use crate::tool_names;
use crate::turn::{Body, File, FileSource, Image, Message, Part};
use std::borrow::Cow;
use std::collections::BTreeMap;
use turnkeep_base::Dialect;

/// What a call is told that the client never answered.
const NO_RESULT: &str = "no result was given";
/// What a failed tool said that said nothing.
const NO_MESSAGE: &str = "the tool failed without a message";

fn refused(part: &Part<'_>, message: impl Into<String>) -> Invalid {
    at(part.at.path(), message)
}

fn by_address(part: &Part<'_>, what: &str) -> Invalid {
    refused(
        part,
        format!(
            "{what} by its address cannot be carried to Gemini; the gateway fetches http and https addresses, and this one it did not"
        ),
    )
}

/// Writes `systemInstruction`.
pub(super) fn write_system(
    request: &mut Object<'_>,
    system: &[Message<'_>],
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    let mut texts = Vec::new();
    for part in system.iter().flat_map(|message| &message.parts) {
        if part.cache.is_some() {
            dropped.insert("cache_control".into());
        }
        texts.extend(system_text(part, dropped)?.filter(|text| !text.is_empty()));
    }
    if texts.is_empty() {
        return Ok(());
    }
    let mut instruction = request.object("systemInstruction");
    let mut parts = instruction.array("parts");
    texts.iter().for_each(|text| parts.object().string("text", text));
    Ok(())
}

/// Gemini's own proof that a part carries, or that stands for thinking.
fn own_proof<'t>(body: &'t Body<'_>) -> Option<&'t str> {
    match body {
        Body::Thinking { text: _, signature } => envelope::open(signature.as_deref()?, Dialect::Gemini),
        Body::RedactedThinking(data) => envelope::open(data, Dialect::Gemini),
        Body::Text(_)
        | Body::Image(_)
        | Body::File(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Refusal(_)
        | Body::Other(_) => None,
    }
}

/// Whether a piece leaves anything to send.
fn is_written(piece: &Piece<'_, '_>) -> bool {
    let (Piece::System(part) | Piece::Own(part)) = piece;
    match &part.body {
        Body::Text(text) | Body::Refusal(text) => !text.is_empty(),
        Body::Thinking { .. } | Body::RedactedThinking(_) => {
            matches!(piece, Piece::Own(_)) && own_proof(&part.body).is_some()
        }
        Body::File(File { source: FileSource::Plain(text), .. }) => !text.is_empty(),
        Body::Image(_) | Body::File(_) | Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Other(_) => true,
    }
}

/// Writes `contents`.
pub(super) fn write_contents(
    request: &mut Object<'_>,
    rest: &[Message<'_>],
    model: &str,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    for part in rest.iter().flat_map(|message| &message.parts) {
        if part.cache.is_some() {
            dropped.insert("cache_control".into());
        }
        if matches!(part.body, Body::Thinking { .. } | Body::RedactedThinking(_)) && own_proof(&part.body).is_none() {
            dropped.insert("thinking".into());
        }
    }
    let groups = groups(rest, is_written, dropped);
    if groups.is_empty() {
        return Err(at("messages", "no message with content is left to send"));
    }
    // Gemini looks at the calls since the user last said something, and at the first of each answer.
    let spoken = groups.iter().rposition(|group| !group.assistant && group.answers.is_empty());
    let mut names = BTreeMap::new();
    let mut contents = request.array("contents");
    for (index, group) in groups.iter().enumerate() {
        let mut content = contents.object();
        content.string("role", if group.assistant { "model" } else { "user" });
        let mut parts = content.array("parts");
        for answer in &group.answers {
            write_answer(&mut parts, answer, names.get(answer.id).copied().unwrap_or_default())?;
        }
        if group.assistant {
            names = calls(group);
            let current = spoken.is_none_or(|spoken| index > spoken);
            write_model(&mut parts, group, current && generation::wants_signatures(model), dropped)?;
        } else {
            write_user(&mut parts, group, dropped)?;
        }
        // Only for thinking that a user message claimed to hold.
        if parts.is_empty() {
            parts.object().string("text", "...");
        }
    }
    Ok(())
}

/// The names of a group's calls, by their ids.
fn calls<'t>(group: &Group<'t, '_>) -> BTreeMap<&'t str, &'t str> {
    let mut names = BTreeMap::new();
    for piece in &group.pieces {
        if let Piece::Own(Part { body: Body::ToolCall { id, name, arguments: _ }, .. }) = piece {
            names.entry(&**id).or_insert(&**name);
        }
    }
    names
}

fn write_user(parts: &mut Array<'_>, group: &Group<'_, '_>, dropped: &mut Dropped) -> Result<(), Invalid> {
    for piece in &group.pieces {
        match piece {
            Piece::System(part) => {
                if let Some(text) = system_text(part, dropped)? {
                    parts.object().string("text", &format!("<system>{text}</system>"));
                }
            }
            Piece::Own(part) => match &part.body {
                Body::Text(text) | Body::Refusal(text) => parts.object().string("text", text),
                Body::Image(image) => write_image(&mut parts.object(), part, image)?,
                Body::File(file) => write_file(&mut parts.object(), part, file)?,
                Body::ToolCall { .. } => {
                    let message = "a tool call outside a message of the assistant cannot be carried";
                    return Err(refused(part, message));
                }
                Body::Thinking { .. } | Body::RedactedThinking(_) => {
                    dropped.insert("thinking".into());
                }
                // Results were sorted out before.
                Body::ToolResult { .. } => return Err(refused(part, "a tool result cannot be carried here")),
                Body::Other(kind) => return Err(refused(part, format!("content of type `{kind}` cannot be carried"))),
            },
        }
    }
    Ok(())
}

/// Writes what the model said. A proof waits for the part behind its thinking; with `placeholder` the first call gets
/// one if it has none.
fn write_model(
    parts: &mut Array<'_>,
    group: &Group<'_, '_>,
    placeholder: bool,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    let mut waiting: Option<&str> = None;
    let mut first_call = true;
    for piece in &group.pieces {
        let (Piece::System(part) | Piece::Own(part)) = piece;
        match &part.body {
            Body::Thinking { .. } | Body::RedactedThinking(_) => {
                write_signature(parts, waiting.take());
                if let Body::Thinking { text, signature: _ } = &part.body
                    && !text.is_empty()
                {
                    let mut out = parts.object();
                    out.string("text", text);
                    out.bool("thought", true);
                }
                waiting = own_proof(&part.body);
                continue;
            }
            Body::Text(_)
            | Body::Image(_)
            | Body::File(_)
            | Body::ToolCall { .. }
            | Body::ToolResult { .. }
            | Body::Refusal(_)
            | Body::Other(_) => {}
        }
        let mut out = parts.object();
        let mut signature = waiting.take();
        match &part.body {
            Body::Text(text) | Body::Refusal(text) => out.string("text", text),
            Body::Image(image) => write_image(&mut out, part, image)?,
            Body::File(file) => write_file(&mut out, part, file)?,
            Body::ToolCall { id, name, arguments } => {
                if first_call && placeholder {
                    signature = signature.or(Some(SENTINEL));
                }
                first_call = false;
                let mut call = out.object("functionCall");
                call.string("id", &from_messages_safe(id));
                call.string("name", &tool_names::sent(name, Dialect::Gemini));
                write_args(&mut call, arguments);
            }
            Body::Thinking { .. } | Body::RedactedThinking(_) => {
                dropped.insert("thinking".into());
            }
            // One here is in a message of the assistant.
            Body::ToolResult { .. } => return Err(refused(part, "a tool result cannot be carried here")),
            Body::Other(kind) => return Err(refused(part, format!("content of type `{kind}` cannot be carried"))),
        }
        if let Some(signature) = signature {
            out.string("thoughtSignature", signature);
        }
    }
    write_signature(parts, waiting);
    Ok(())
}

/// A proof with no part behind it stands on an empty text, as Gemini itself gives it.
fn write_signature(parts: &mut Array<'_>, signature: Option<&str>) {
    if let Some(signature) = signature {
        let mut out = parts.object();
        out.string("text", "");
        out.string("thoughtSignature", signature);
    }
}

/// Arguments as an object: the text itself when it is one, none when there is none, and otherwise `{"input": "<text>"}`,
/// so that nothing the model said is lost.
fn write_args(call: &mut Object<'_>, arguments: &str) {
    let text = arguments.trim();
    if text.is_empty() || text == "null" {
        call.raw("args", "{}");
    } else if is_object(text) {
        call.raw("args", text);
    } else {
        call.object("args").string("input", arguments);
    }
}

fn write_answer(parts: &mut Array<'_>, answer: &Answer<'_, '_>, name: &str) -> Result<(), Invalid> {
    let mut part = parts.object();
    let mut response = part.object("functionResponse");
    response.string("id", &from_messages_safe(answer.id));
    response.string("name", &tool_names::sent(name, Dialect::Gemini));
    let Some(Part { body: Body::ToolResult { id: _, content, is_error }, .. }) = answer.part else {
        response.object("response").string("error", NO_RESULT);
        return Ok(());
    };
    let mut texts: Vec<&str> = Vec::new();
    let mut media = Vec::new();
    for inner in content {
        match &inner.body {
            Body::Text(text) | Body::Refusal(text) => texts.push(text),
            Body::File(File { source: FileSource::Plain(text), .. }) => texts.push(text),
            Body::Image(_) | Body::File(_) => media.push(inner),
            Body::Other(kind) => return Err(refused(inner, format!("content of type `{kind}` cannot be carried"))),
            Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Thinking { .. } | Body::RedactedThinking(_) => {
                return Err(refused(inner, "only texts, images and files can be carried in a tool result"));
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    let said: Cow<'_, str> = match texts.as_slice() {
        [] if *is_error => NO_MESSAGE.into(),
        [one] => (*one).into(),
        several => several.join("\n").into(),
    };
    response.object("response").string(if *is_error { "error" } else { "output" }, &said);
    if media.is_empty() {
        return Ok(());
    }
    let mut beside = response.array("parts");
    for inner in media {
        let mut out = beside.object();
        match &inner.body {
            Body::Image(image) => write_image(&mut out, inner, image)?,
            Body::File(file) => write_file(&mut out, inner, file)?,
            // Sorted out above.
            Body::Text(_)
            | Body::ToolCall { .. }
            | Body::ToolResult { .. }
            | Body::Thinking { .. }
            | Body::RedactedThinking(_)
            | Body::Refusal(_)
            | Body::Other(_) => {}
        }
    }
    Ok(())
}

fn write_image(out: &mut Object<'_>, part: &Part<'_>, image: &Image<'_>) -> Result<(), Invalid> {
    match image {
        Image::Data { media_type, data } => {
            write_blob(out, media_type, data);
            Ok(())
        }
        Image::Url(_) => Err(by_address(part, "an image")),
    }
}

fn write_file(out: &mut Object<'_>, part: &Part<'_>, file: &File<'_>) -> Result<(), Invalid> {
    match (&file.source, &file.media_type) {
        (FileSource::Plain(text), _) => out.string("text", text),
        (FileSource::Data(data), Some(media_type)) => write_blob(out, media_type, data),
        (FileSource::Data(data), None) if is_pdf(file) => write_blob(out, "application/pdf", data),
        (FileSource::Data(_), None) => return Err(refused(part, "a file without a media type cannot be carried")),
        (FileSource::Url(_), _) => return Err(by_address(part, "a file")),
    }
    Ok(())
}

fn write_blob(out: &mut Object<'_>, media_type: &str, data: &str) {
    let mut blob = out.object("inlineData");
    blob.string("mimeType", media_type);
    blob.string("data", data);
}

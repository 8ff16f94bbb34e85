//! The system prompt and the messages of a request to Messages, part by part.

use super::{Dropped, at, is_blank};
use crate::document::{essence, is_pdf, plain};
use crate::envelope;
use crate::json::{Array, Invalid, Object};
use crate::messages::conversation::{Answer, Group, Piece, groups};
use crate::messages::input;
use crate::tool_id;
use crate::tool_names;
use crate::turn::{Body, File, FileSource, Image, Message, Part};
use turnkeep_base::Dialect;

/// What a call is told that the client never answered.
const NO_RESULT: &str = "no result was given";

fn refused(part: &Part<'_>, message: impl Into<String>) -> Invalid {
    Invalid { path: part.at.path(), message: message.into(), at: 0 }
}

/// The proof as Anthropic made it, if it did.
fn native(proof: &str) -> Option<&str> {
    envelope::open(proof, Dialect::Messages)
}

/// Writes `system`: a string if it is one text without a cache mark. `mark`, if any, goes to the last text.
pub(super) fn write_system(
    request: &mut Object<'_>,
    system: &[Message<'_>],
    mark: Option<&str>,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    let mut texts = Vec::new();
    for part in system.iter().flat_map(|message| &message.parts) {
        match system_text(part, dropped)? {
            Some(text) if !is_blank(text) => texts.push((text, part.cache)),
            Some(_) | None => {}
        }
    }
    if let Some((_, cache)) = texts.last_mut() {
        *cache = cache.or(mark);
    }
    match texts.as_slice() {
        [] => {}
        [(text, None)] => request.string("system", text),
        several => {
            let mut blocks = request.array("system");
            for (text, cache) in several {
                write_text(&mut blocks, text, *cache);
            }
        }
    }
    Ok(())
}

/// The text of a part of a system message; for Gemini, too.
pub(crate) fn system_text<'t>(part: &'t Part<'_>, dropped: &mut Dropped) -> Result<Option<&'t str>, Invalid> {
    match &part.body {
        Body::Text(text) | Body::Refusal(text) => Ok(Some(text)),
        Body::Thinking { .. } | Body::RedactedThinking(_) => {
            dropped.insert("thinking".into());
            Ok(None)
        }
        Body::Image(_) => Err(refused(part, "an image in a system message cannot be carried")),
        Body::File(_) => Err(refused(part, "a file in a system message cannot be carried")),
        Body::ToolCall { .. } | Body::ToolResult { .. } => {
            Err(refused(part, "a tool call or result in a system message cannot be carried"))
        }
        Body::Other(kind) => Err(refused(part, format!("content of type `{kind}` cannot be carried"))),
    }
}

fn write_text(blocks: &mut Array<'_>, text: &str, cache: Option<&str>) {
    let mut block = blocks.object();
    block.string("type", "text");
    block.string("text", text);
    write_cache(&mut block, cache);
}

fn write_cache(block: &mut Object<'_>, cache: Option<&str>) {
    if let Some(cache) = cache {
        block.raw("cache_control", cache);
    }
}

/// Whether a piece leaves anything to send.
fn is_written(piece: &Piece<'_, '_>) -> bool {
    match piece {
        Piece::System(part) => match &part.body {
            Body::Text(text) | Body::Refusal(text) => !is_blank(text),
            Body::Thinking { .. } | Body::RedactedThinking(_) => false,
            Body::Image(_) | Body::File(_) | Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Other(_) => true,
        },
        Piece::Own(part) => match &part.body {
            Body::Text(text) | Body::Refusal(text) => !is_blank(text),
            Body::Thinking { signature, .. } => signature.as_deref().and_then(native).is_some(),
            Body::RedactedThinking(data) => native(data).is_some(),
            Body::Image(_) | Body::File(_) | Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Other(_) => true,
        },
    }
}

/// Writes `messages`. `mark`, if any, goes to the last block, if it is the user's.
pub(super) fn write_messages(
    request: &mut Object<'_>,
    rest: &[Message<'_>],
    mark: Option<&str>,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    let foreign = |part: &Part<'_>| match &part.body {
        Body::Thinking { .. } | Body::RedactedThinking(_) => !is_written(&Piece::Own(part)),
        Body::Text(_)
        | Body::Image(_)
        | Body::File(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Refusal(_)
        | Body::Other(_) => false,
    };
    if rest.iter().flat_map(|message| &message.parts).any(foreign) {
        dropped.insert("thinking".into());
    }
    let groups = groups(rest, is_written, dropped);
    if groups.is_empty() {
        return Err(at("messages", "no message with content is left to send"));
    }
    let mut messages = request.array("messages");
    let last = groups.len().saturating_sub(1);
    for (at, group) in groups.iter().enumerate() {
        let mark = mark.filter(|_| at == last && !group.assistant);
        let mut message = messages.object();
        message.string("role", if group.assistant { "assistant" } else { "user" });
        if let ([], [Piece::Own(Part { body: Body::Text(text), cache: None, .. })], None) =
            (group.answers.as_slice(), group.pieces.as_slice(), mark)
        {
            message.string("content", text);
            continue;
        }
        write_group(&mut message.array("content"), group, mark, dropped)?;
    }
    Ok(())
}

fn write_group(
    content: &mut Array<'_>,
    group: &Group<'_, '_>,
    mark: Option<&str>,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    let blocks = group.answers.len() + group.pieces.len();
    let mut mark_of = (1..=blocks).map(|number| mark.filter(|_| number == blocks));
    for answer in &group.answers {
        write_answer(content, answer, mark_of.next().flatten())?;
    }
    for piece in &group.pieces {
        let mark = mark_of.next().flatten();
        match piece {
            Piece::System(part) => {
                if let Some(text) = system_text(part, dropped)? {
                    write_text(content, &format!("<system>{text}</system>"), part.cache.or(mark));
                }
            }
            Piece::Own(part) => write_part(content, part, part.cache.or(mark), group.assistant, dropped)?,
        }
    }
    Ok(())
}

fn write_answer(content: &mut Array<'_>, answer: &Answer<'_, '_>, mark: Option<&str>) -> Result<(), Invalid> {
    let mut block = content.object();
    block.string("type", "tool_result");
    block.string("tool_use_id", &tool_id::to_messages_safe(answer.id));
    let Some(part) = answer.part else {
        block.string("content", NO_RESULT);
        block.bool("is_error", true);
        write_cache(&mut block, mark);
        return Ok(());
    };
    if let Body::ToolResult { id: _, content: inner, is_error } = &part.body {
        let is_sent = |part: &&Part<'_>| !matches!(&part.body, Body::Text(text) if text.is_empty());
        let inner: Vec<&Part<'_>> = inner.iter().filter(is_sent).collect();
        match inner.as_slice() {
            [] => block.string("content", ""),
            [Part { body: Body::Text(text), cache: None, .. }] => block.string("content", text),
            several => {
                let mut blocks = block.array("content");
                for part in several {
                    write_inner(&mut blocks, part)?;
                }
            }
        }
        if *is_error {
            block.bool("is_error", true);
        }
    }
    write_cache(&mut block, part.cache.or(mark));
    Ok(())
}

fn write_inner(blocks: &mut Array<'_>, part: &Part<'_>) -> Result<(), Invalid> {
    match &part.body {
        Body::Text(text) | Body::Refusal(text) => {
            if !is_blank(text) {
                write_text(blocks, text, part.cache);
            }
            Ok(())
        }
        Body::Image(image) => {
            write_image(blocks, image, part.cache);
            Ok(())
        }
        Body::File(file) => write_document(blocks, part, file, part.cache),
        Body::Other(kind) => Err(refused(part, format!("content of type `{kind}` cannot be carried"))),
        Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Thinking { .. } | Body::RedactedThinking(_) => {
            Err(refused(part, "only texts, images and documents can be carried in a tool result"))
        }
    }
}

fn write_image(blocks: &mut Array<'_>, image: &Image<'_>, cache: Option<&str>) {
    let mut block = blocks.object();
    block.string("type", "image");
    {
        let mut source = block.object("source");
        match image {
            Image::Data { media_type, data } => {
                source.string("type", "base64");
                source.string("media_type", media_type);
                source.string("data", data);
            }
            Image::Url(url) => {
                source.string("type", "url");
                source.string("url", url);
            }
        }
    }
    write_cache(&mut block, cache);
}

fn write_document(
    blocks: &mut Array<'_>,
    part: &Part<'_>,
    file: &File<'_>,
    cache: Option<&str>,
) -> Result<(), Invalid> {
    let text = plain(file);
    let audio = essence(file).is_some_and(|kind| kind.starts_with("audio/") || kind.starts_with("video/"));
    if text.is_none() && (audio || !(is_pdf(file) || matches!(file.source, FileSource::Url(_)))) {
        let kind = essence(file).unwrap_or("an unknown type");
        return Err(refused(part, format!("a file of {kind} cannot be carried, only PDF and text")));
    }
    let mut block = blocks.object();
    block.string("type", "document");
    {
        let mut source = block.object("source");
        match (&file.source, text) {
            (_, Some(text)) => {
                source.string("type", "text");
                source.string("media_type", "text/plain");
                source.string("data", &text);
            }
            (FileSource::Url(url), None) => {
                source.string("type", "url");
                source.string("url", url);
            }
            (FileSource::Data(data) | FileSource::Plain(data), None) => {
                source.string("type", "base64");
                source.string("media_type", "application/pdf");
                source.string("data", data);
            }
        }
    }
    if let Some(name) = &file.name {
        block.string("title", name);
    }
    write_cache(&mut block, cache);
    Ok(())
}

fn write_part(
    blocks: &mut Array<'_>,
    part: &Part<'_>,
    cache: Option<&str>,
    assistant: bool,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    match &part.body {
        Body::Text(text) | Body::Refusal(text) => write_text(blocks, text, cache),
        Body::Image(_) if assistant => {
            return Err(refused(part, "an image in a message of the assistant cannot be carried"));
        }
        Body::Image(image) => write_image(blocks, image, cache),
        Body::File(_) if assistant => {
            return Err(refused(part, "a file in a message of the assistant cannot be carried"));
        }
        Body::File(file) => write_document(blocks, part, file, cache)?,
        Body::ToolCall { .. } if !assistant => {
            return Err(refused(part, "a tool call outside a message of the assistant cannot be carried"));
        }
        Body::ToolCall { id, name, arguments } => {
            let mut block = blocks.object();
            block.string("type", "tool_use");
            block.string("id", &tool_id::to_messages_safe(id));
            block.string("name", &tool_names::sent(name, Dialect::Messages));
            input::write(&mut block, "input", arguments);
            write_cache(&mut block, cache);
        }
        Body::Thinking { .. } | Body::RedactedThinking(_) if !assistant => {
            dropped.insert("thinking".into());
        }
        Body::Thinking { text, signature } => {
            let mut block = blocks.object();
            block.string("type", "thinking");
            block.string("thinking", text);
            block.string("signature", signature.as_deref().and_then(native).unwrap_or_default());
        }
        Body::RedactedThinking(data) => {
            let mut block = blocks.object();
            block.string("type", "redacted_thinking");
            block.string("data", native(data).unwrap_or_default());
        }
        // Results were sorted out before; one here is in a message of the assistant.
        Body::ToolResult { .. } => return Err(refused(part, "a tool result cannot be carried here")),
        Body::Other(kind) => return Err(refused(part, format!("content of type `{kind}` cannot be carried"))),
    }
    Ok(())
}

//! The items of `input` as messages. The items of one turn of the model (reasoning, what it said, its calls) become one
//! message in their order, and so do the results that follow; everything else is a message of its own.

use super::parts::{List, Of, joined, list, of_result};
use super::tools::{Given, Names, tools};
use crate::chat::request::{missing, named};
use crate::envelope::REDACTED;
use crate::envelope::seal;
use crate::free_text::wrap;
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{At, Body, Message, Part, Role, Text};
use std::borrow::Cow;
use turnkeep_base::Dialect;

/// What the items come to.
#[derive(Debug, Default)]
pub(super) struct Items<'a> {
    /// The conversation.
    pub(super) messages: Vec<Message<'a>>,
    /// Its calls, whose names are still the client's.
    calls: Vec<Call<'a>>,
    /// Tools that items bring along.
    pub(super) tools: Vec<Given<'a>>,
}

/// Where a call stands, and what else the client says of its tool.
#[derive(Debug)]
struct Call<'a> {
    message: usize,
    part: usize,
    namespace: Option<Text<'a>>,
    custom: bool,
}

#[derive(Default)]
struct Fields<'a> {
    kind: Option<Text<'a>>,
    role: Option<Text<'a>>,
    has_id: bool,
    call_id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    namespace: Option<Text<'a>>,
    arguments: Option<Text<'a>>,
    input: Option<Text<'a>>,
    encrypted: Option<Text<'a>>,
    content: Option<List<'a>>,
    output: Option<List<'a>>,
    summary: Option<List<'a>>,
    tools: Option<Reader<'a>>,
}

fn field<'a>(
    r: &mut Reader<'a>,
    key: &str,
    index: u32,
    fields: &mut Fields<'a>,
    hints: &mut Vec<String>,
) -> Result<(), Invalid> {
    match (key, r.kind()?) {
        (_, Kind::Null) => r.null().map(drop)?,
        ("type", _) => fields.kind = Some(r.string()?),
        ("role", Kind::String) => fields.role = Some(r.string()?),
        ("call_id", Kind::String) => fields.call_id = Some(r.string()?),
        ("name", Kind::String) => fields.name = Some(r.string()?),
        ("namespace", Kind::String) => fields.namespace = Some(r.string()?),
        ("arguments", Kind::String) => fields.arguments = Some(r.string()?),
        ("input", Kind::String) => fields.input = Some(r.string()?),
        ("encrypted_content", Kind::String) => fields.encrypted = Some(r.string()?),
        ("content", _) => fields.content = Some(list(r, Of::Content(index), hints)?),
        ("output", _) => fields.output = Some(list(r, Of::Output(index), hints)?),
        ("summary", _) => fields.summary = Some(list(r, Of::Summary(index), hints)?),
        ("tools", Kind::Array) => {
            fields.tools = Some(r.clone());
            r.skip()?;
        }
        // Only the provider's store knows the item by its id, and an item that is sent back is done.
        ("id" | "status", _) => {
            fields.has_id |= key == "id";
            r.skip()?;
        }
        _ => named(r, hints, "input[].", key)?,
    }
    Ok(())
}

impl<'a> Items<'a> {
    /// Reads the next item.
    pub(super) fn item(&mut self, r: &mut Reader<'a>, index: u32, hints: &mut Vec<String>) -> Result<(), Invalid> {
        let mut fields = Fields::default();
        r.object(|r, key| field(r, key, index, &mut fields, hints))?;
        let at = At::Item(index);
        let kind = match fields.kind.take() {
            Some(kind) => kind,
            None if fields.role.is_none() && fields.has_id => Text::Borrowed("item_reference"),
            None => Text::Borrowed("message"),
        };
        let need = |text: Option<Text<'a>>, name: &str| text.ok_or_else(|| missing(r, name));
        match kind.as_ref() {
            "message" => {
                let Some(content) = fields.content else { return Err(missing(r, "content")) };
                let role = need(fields.role, "role")?;
                self.message(r, &role, at, content.parts()?)?;
            }
            "function_call" => {
                let body = Body::ToolCall {
                    id: need(fields.call_id, "call_id")?,
                    name: need(fields.name, "name")?,
                    arguments: need(fields.arguments, "arguments")?,
                };
                self.call(body, at, fields.namespace, false);
            }
            "custom_tool_call" => {
                let body = Body::ToolCall {
                    id: need(fields.call_id, "call_id")?,
                    name: need(fields.name, "name")?,
                    arguments: wrap(&need(fields.input, "input")?).into(),
                };
                self.call(body, at, fields.namespace, true);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let Some(output) = fields.output else { return Err(missing(r, "output")) };
                let content = of_result(output.parts()?);
                let id = need(fields.call_id, "call_id")?;
                self.result(Body::ToolResult { id, content, is_error: false }, at);
            }
            "reasoning" => self.reasoning(fields, at)?,
            "additional_tools" => match fields.tools {
                Some(mut list) => tools(&mut list, &mut self.tools, hints)?,
                None => return Err(missing(r, "tools")),
            },
            "item_reference" => {
                return Err(r.fail(
                    "an `item_reference` needs the state that its provider stored; send the item itself, with `store` false",
                ));
            }
            "compaction" | "compaction_trigger" => {
                return Err(r.fail(format!(
                    "an item of the type `{kind}` needs an upstream that speaks Responses and compacts conversations"
                )));
            }
            other => {
                let part = Part { body: Body::Other(other.to_owned()), at, cache: None };
                let answers = other.ends_with("_output") || other.ends_with("_response");
                if answers { self.said(Role::User, at, vec![part]) } else { self.assistant(at).push(part) }
            }
        }
        Ok(())
    }

    /// A message of its own.
    pub(super) fn said(&mut self, role: Role, at: At, parts: Vec<Part<'a>>) {
        self.messages.push(Message { role, at, parts });
    }

    fn message(&mut self, r: &Reader<'a>, role: &str, at: At, parts: Vec<Part<'a>>) -> Result<(), Invalid> {
        match role {
            "user" => self.said(Role::User, at, parts),
            "system" | "developer" => self.said(Role::System, at, parts),
            "assistant" => {
                let empty = |part: &Part<'a>| matches!(&part.body, Body::Text(text) if text.is_empty());
                let parts: Vec<_> = parts.into_iter().filter(|part| !empty(part)).collect();
                if !parts.is_empty() {
                    self.assistant(at).extend(parts);
                }
            }
            _ => return Err(r.fail("expected the role user, assistant, system or developer")),
        }
        Ok(())
    }

    /// The parts of the model's turn at hand.
    fn assistant(&mut self, at: At) -> &mut Vec<Part<'a>> {
        let open = self.messages.last().is_some_and(|last| last.role == Role::Assistant);
        self.parts(open, Role::Assistant, at)
    }

    fn result(&mut self, body: Body<'a>, at: At) {
        let open = self.messages.last().is_some_and(|last| {
            last.role == Role::User && matches!(last.parts.last(), Some(Part { body: Body::ToolResult { .. }, .. }))
        });
        self.parts(open, Role::User, at).push(Part { body, at, cache: None });
    }

    fn parts(&mut self, open: bool, role: Role, at: At) -> &mut Vec<Part<'a>> {
        if !open || self.messages.is_empty() {
            self.messages.push(Message { role, at, parts: Vec::new() });
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last].parts
    }

    fn call(&mut self, body: Body<'a>, at: At, namespace: Option<Text<'a>>, custom: bool) {
        let parts = self.assistant(at);
        let part = parts.len();
        parts.push(Part { body, at, cache: None });
        self.calls.push(Call { message: self.messages.len() - 1, part, namespace, custom });
    }

    /// The text is the thinking itself where the upstream showed it, and its summary elsewhere.
    fn reasoning(&mut self, fields: Fields<'a>, at: At) -> Result<(), Invalid> {
        let content = fields.content.unwrap_or_default().parts()?;
        let summary = fields.summary.unwrap_or_default().parts()?;
        let text = Some(joined(content)).filter(|text| !text.is_empty()).unwrap_or_else(|| joined(summary));
        let proof = fields.encrypted.filter(|proof| !proof.is_empty());
        let body = match proof {
            None if text.is_empty() => return Ok(()),
            None => Body::Thinking { text, signature: None },
            Some(proof) => match proof.strip_prefix(REDACTED) {
                Some(data) => Body::RedactedThinking(Cow::Owned(data.to_owned())),
                None => Body::Thinking { text, signature: Some(sealed(proof)) },
            },
        };
        self.assistant(at).push(Part { body, at, cache: None });
        Ok(())
    }

    /// Gives the calls the canonical names of their tools.
    pub(super) fn settle(&mut self, names: &mut Names<'a>) {
        for call in &self.calls {
            let part = self.messages.get_mut(call.message).and_then(|message| message.parts.get_mut(call.part));
            let Some(Part { body: Body::ToolCall { name, .. }, .. }) = part else { continue };
            names.called(name, call.namespace.as_ref(), call.custom);
        }
    }
}

fn sealed(proof: Text<'_>) -> Text<'_> {
    match proof {
        Cow::Borrowed(proof) => seal(Dialect::Responses, proof),
        Cow::Owned(proof) => Cow::Owned(seal(Dialect::Responses, &proof).into_owned()),
    }
}

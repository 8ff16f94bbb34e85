//! A Messages request as a canonical turn, for translated routes. Content without a canonical form becomes
//! `Other`, which the target's encoder refuses by name; fields that only steer become hints.

use super::hints::Hints;
use super::parts::{content, number};
use crate::json::{Invalid, Kind, Reader};
use crate::messages::nothing::says_nothing;
use crate::turn::{At, Message, Output, Role, Thinking, Tool, ToolChoice, ToolKind, Turn};
use std::borrow::Cow;

/// Decodes a body that [`super::read`] has accepted; any other body is an error or a turn with gaps, never a panic.
pub fn decode(body: &[u8]) -> Result<Turn<'_>, Invalid> {
    let mut turn = Turn::default();
    let mut hints = Hints::default();
    let mut system = None;
    let mut r = Reader::new(body)?;
    r.object::<Invalid>(|r, key| field(r, key, &mut turn, &mut system, &mut hints))?;
    r.end()?;
    if let Some(system) = system {
        turn.messages.insert(0, system);
    }
    turn.hints = hints.into_names();
    Ok(turn)
}

fn field<'a>(
    r: &mut Reader<'a>,
    key: &str,
    turn: &mut Turn<'a>,
    system: &mut Option<Message<'a>>,
    hints: &mut Hints,
) -> Result<(), Invalid> {
    // No field of a turn tells `null` from its absence.
    if r.null()? {
        return Ok(());
    }
    match key {
        "model" => turn.model = r.string()?,
        "stream" => turn.stream = r.bool()?,
        "max_tokens" => turn.max_output = Some(r.u64()?),
        "system" => {
            let parts = content(r, At::System, &|_| At::System, hints)?;
            *system = (!parts.is_empty()).then_some(Message { role: Role::System, at: At::System, parts });
        }
        "messages" => {
            turn.messages.clear();
            r.array::<Invalid>(|r, index| {
                turn.messages.push(message(r, number(index), hints)?);
                Ok(())
            })?;
        }
        "tools" => {
            turn.tools.clear();
            r.array::<Invalid>(|r, index| {
                turn.tools.push(tool(r, number(index), hints)?);
                Ok(())
            })?;
        }
        "tool_choice" => tool_choice(r, turn, hints)?,
        "temperature" => turn.temperature = Some(r.number()?),
        "top_p" => turn.top_p = Some(r.number()?),
        "top_k" => turn.top_k = Some(r.number()?),
        "stop_sequences" => {
            turn.stop.clear();
            r.array::<Invalid>(|r, _| {
                turn.stop.push(r.string()?);
                Ok(())
            })?;
        }
        "thinking" => thinking(r, turn, hints)?,
        "output_config" => output_config(r, turn, hints)?,
        "metadata" => r.object::<Invalid>(|r, key| match key {
            "user_id" => {
                turn.user = r.optional_string()?;
                Ok(())
            }
            other => hints.skip(r, "metadata.", other),
        })?,
        // These two change what the model can see and do: they are content, not hints.
        "container" | "mcp_servers" => {
            if !says_nothing(r.raw()?) {
                return Err(r.fail(format!("`{key}` cannot be carried to an upstream of another dialect")));
            }
        }
        other => hints.skip(r, "", other)?,
    }
    Ok(())
}

fn message<'a>(r: &mut Reader<'a>, index: u32, hints: &mut Hints) -> Result<Message<'a>, Invalid> {
    let mut message = Message { role: Role::User, at: At::Message(index), parts: Vec::new() };
    r.object::<Invalid>(|r, key| {
        match key {
            "role" => {
                message.role = match &*r.string()? {
                    "user" => Role::User,
                    "assistant" => Role::Assistant,
                    "system" => Role::System,
                    _ => return Err(r.fail("expected `user`, `assistant` or `system`")),
                }
            }
            "content" => {
                let place = |part| At::Content { message: index, part };
                message.parts = content(r, At::Message(index), &place, hints)?;
            }
            other => hints.skip(r, "messages[].", other)?,
        }
        Ok(())
    })?;
    Ok(message)
}

fn tool<'a>(r: &mut Reader<'a>, index: u32, hints: &mut Hints) -> Result<Tool<'a>, Invalid> {
    let (mut kind, mut name, mut description, mut schema, mut strict) = (None, None, None, None, None);
    let mut other: Vec<String> = Vec::new();
    r.object::<Invalid>(|r, key| {
        if r.null()? {
            return Ok(());
        }
        match key {
            "type" => kind = Some(r.string()?),
            "name" => name = Some(r.string()?),
            "description" => description = Some(r.string()?),
            "input_schema" => schema = Some(r.raw()?),
            "strict" => strict = Some(r.bool()?),
            key => {
                if !says_nothing(r.raw()?) {
                    other.push(format!("tools[].{key}"));
                }
            }
        }
        Ok(())
    })?;
    let kind = match (kind, name) {
        (Some(kind), _) if kind != "custom" => ToolKind::Hosted(kind.into_owned()),
        (_, Some(name)) => {
            other.into_iter().for_each(|name| hints.name(name));
            ToolKind::Function { name, description, schema, strict }
        }
        (_, None) => return Err(r.fail("a tool without `name`")),
    };
    Ok(Tool { index, kind })
}

fn tool_choice<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>, hints: &mut Hints) -> Result<(), Invalid> {
    let (mut kind, mut name) = (None, None);
    r.object::<Invalid>(|r, key| {
        if r.null()? {
            return Ok(());
        }
        match key {
            "type" => kind = Some(r.string()?),
            "name" => name = Some(r.string()?),
            "disable_parallel_tool_use" => turn.parallel_tools = Some(!r.bool()?),
            other => hints.skip(r, "tool_choice.", other)?,
        }
        Ok(())
    })?;
    turn.tool_choice = Some(match (kind.as_deref(), name) {
        (Some("auto"), _) => ToolChoice::Auto,
        (Some("none"), _) => ToolChoice::None,
        (Some("any"), _) => ToolChoice::Any,
        (Some("tool"), Some(name)) => ToolChoice::Named(name),
        (Some("tool"), None) => return Err(r.fail("a choice of type `tool` needs `name`")),
        (Some(other), _) => ToolChoice::Other(other.to_owned()),
        (None, _) => return Err(r.fail("a tool choice without `type`")),
    });
    Ok(())
}

fn thinking<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>, hints: &mut Hints) -> Result<(), Invalid> {
    let (mut kind, mut budget) = (Cow::Borrowed(""), None);
    r.object::<Invalid>(|r, key| {
        if r.null()? {
            return Ok(());
        }
        match key {
            "type" => kind = r.string()?,
            "budget_tokens" => budget = Some(r.u64()?),
            other => hints.skip(r, "thinking.", other)?,
        }
        Ok(())
    })?;
    turn.reasoning.mode = match (&*kind, budget) {
        ("enabled", Some(budget)) => Some(Thinking::Budget(budget)),
        ("enabled" | "adaptive", _) => Some(Thinking::Adaptive),
        ("disabled", _) => Some(Thinking::Off),
        ("between_tools", _) => {
            hints.name("thinking.type");
            Some(Thinking::Adaptive)
        }
        (_, _) => {
            hints.name("thinking");
            None
        }
    };
    Ok(())
}

fn output_config<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>, hints: &mut Hints) -> Result<(), Invalid> {
    r.object::<Invalid>(|r, key| {
        if r.null()? {
            return Ok(());
        }
        match key {
            "effort" => turn.reasoning.effort = Some(r.string()?),
            "format" => turn.output = format(r, hints)?,
            other => hints.skip(r, "output_config.", other)?,
        }
        Ok(())
    })
}

fn format<'a>(r: &mut Reader<'a>, hints: &mut Hints) -> Result<Output<'a>, Invalid> {
    let (mut kind, mut schema) = (None, None);
    r.object::<Invalid>(|r, key| {
        match key {
            "type" => kind = Some(r.string()?),
            "schema" if r.kind()? == Kind::Object => schema = Some(r.raw()?),
            other => hints.skip(r, "output_config.format.", other)?,
        }
        Ok(())
    })?;
    match (kind.as_deref(), schema) {
        (Some("json_schema"), Some(schema)) => Ok(Output::Schema { name: None, schema, strict: None }),
        (Some("json_schema"), None) => Err(r.fail("a `json_schema` format needs the object `schema`")),
        (Some("text"), _) => Ok(Output::Text),
        (_, _) => Err(r.fail("only the format `json_schema` can be carried to another dialect")),
    }
}

//! A Responses request as a canonical turn, for a route to another dialect. Content without a canonical form is refused
//! by its path, now or (as `Other`) by the target's encoder; hints without one are named.

use super::items::Items;
use super::settings::{reasoning, text, tool_choice};
use super::tools::{Given, Names, tools};
use crate::chat::request::{hint, missing, named, says_nothing};
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{At, Body, Message, Part, Role, Text, ToolChoice, Turn};

/// Reads a request, which [`super::read()`] has accepted, into a turn. Its `input` is the whole history.
pub fn decode(body: &[u8]) -> Result<Turn<'_>, Invalid> {
    let mut r = Reader::new(body)?;
    let mut turn = Turn::default();
    let mut rest = Rest::default();
    r.object(|r, key| top(r, key, &mut turn, &mut rest))?;
    r.end()?;
    if turn.model.is_empty() {
        return Err(missing(&r, "model"));
    }
    // Tools may stand behind the calls of them, so names are settled last.
    let mut names = Names::of(rest.tools, std::mem::take(&mut rest.items.tools), &mut turn);
    rest.items.settle(&mut names);
    match &mut turn.tool_choice {
        Some(ToolChoice::Named(name)) => names.rename(name),
        Some(ToolChoice::Allowed { names: allowed, .. }) => allowed.iter_mut().for_each(|name| names.rename(name)),
        None | Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Any | ToolChoice::Other(_)) => {}
    }
    turn.renamed = names.into_renamed();
    turn.messages = rest.items.messages;
    if let Some(text) = rest.instructions.filter(|text| !text.is_empty()) {
        let at = At::Instructions;
        let parts = vec![Part { body: Body::Text(text), at, cache: None }];
        turn.messages.insert(0, Message { role: Role::System, at, parts });
    }
    turn.user = match (rest.safety_identifier, rest.user) {
        (Some(id), Some(user)) if id != user => {
            hint(&mut turn.hints, "user");
            Some(id)
        }
        (id, user) => id.or(user),
    };
    Ok(turn)
}

#[derive(Default)]
struct Rest<'a> {
    instructions: Option<Text<'a>>,
    items: Items<'a>,
    tools: Vec<Given<'a>>,
    user: Option<Text<'a>>,
    safety_identifier: Option<Text<'a>>,
}

fn top<'a>(r: &mut Reader<'a>, key: &str, turn: &mut Turn<'a>, rest: &mut Rest<'a>) -> Result<(), Invalid> {
    if key != "model" && r.null()? {
        return Ok(());
    }
    match key {
        "model" => turn.model = r.string()?,
        "input" => {
            rest.items = Items::default();
            if r.kind()? == Kind::String {
                let body = Body::Text(r.string()?);
                rest.items.said(Role::User, At::Item(0), vec![Part { body, at: At::Item(0), cache: None }]);
            } else {
                r.array(|r, at| rest.items.item(r, at as u32, &mut turn.hints))?;
            }
        }
        "instructions" => rest.instructions = Some(r.string()?),
        "stream" => turn.stream = r.bool()?,
        "max_output_tokens" => turn.max_output = Some(r.u64()?),
        "temperature" => turn.temperature = Some(r.number()?),
        "top_p" => turn.top_p = Some(r.number()?),
        "tools" => {
            rest.tools.clear();
            tools(r, &mut rest.tools, &mut turn.hints)?;
        }
        "tool_choice" => turn.tool_choice = Some(tool_choice(r, &mut turn.hints)?),
        "parallel_tool_calls" => turn.parallel_tools = Some(r.bool()?),
        "reasoning" => reasoning(r, turn)?,
        "text" => text(r, turn)?,
        "user" => rest.user = Some(r.string()?),
        "safety_identifier" => rest.safety_identifier = Some(r.string()?),
        "prompt_cache_key" => turn.cache_key = Some(r.string()?),
        "include" => r.array(|r, _| {
            // Reasoning always carries its proof.
            if r.string()? != "reasoning.encrypted_content" {
                hint(&mut turn.hints, "include");
            }
            Ok::<(), Invalid>(())
        })?,
        "prompt" => {
            return Err(
                r.fail("a prompt template is stored at its provider; it needs an upstream that speaks Responses")
            );
        }
        // The gateway's own business, which has seen to them.
        "previous_response_id" | "conversation" | "store" | "background" | "background_options" => {
            r.skip()?;
        }
        "stream_options" => r.object(|r, key| {
            if key == "include_obfuscation" && r.kind()? == Kind::Bool {
                // Padding against listeners, which says nothing.
                return r.skip().map(drop);
            }
            named(r, &mut turn.hints, "stream_options.", key)
        })?,
        _ => {
            let raw = r.raw()?;
            if !says_nothing(raw) && !is_default(key, raw) {
                hint(&mut turn.hints, key);
            }
        }
    }
    Ok(())
}

/// The value is what the field means when it is not there.
fn is_default(key: &str, raw: &str) -> bool {
    match key {
        "top_logprobs" => raw.parse::<f64>() == Ok(0.0),
        "truncation" => raw == "\"disabled\"",
        "service_tier" => matches!(raw, "\"auto\"" | "\"default\""),
        _ => false,
    }
}

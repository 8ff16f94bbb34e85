//! A canonical turn as the service's request. The schema has a place for all that a turn holds; what is refused are things that
//! the client's own dialect alone knows, and what is dropped are other providers' opaque states and numbers that are none.

use super::STATE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use std::collections::BTreeSet;
use turnkeep_base::Dialect;
use turnkeep_dialect::envelope;
use turnkeep_dialect::free_text;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::tool_names::{self, ToolNames};
use turnkeep_dialect::turn::{
    Body, File, FileSource, Image, Message, Output, Part, Reasoning, Role, Thinking, Tool, ToolChoice, ToolKind, Turn,
};
use turnkeep_engine::ports::Writing;
use turnkeep_proto::connect::v1 as wire;

/// Tools are named as OpenAI's are.
const NAMES: Dialect = Dialect::Chat;

/// A request, and what became of the turn in it.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) request: wire::ChatRequest,
    pub(crate) dropped: Vec<String>,
    pub(crate) names: ToolNames,
}

/// Writes a turn.
pub(crate) fn request(turn: &Turn<'_>, how: Writing<'_>) -> Result<Written, Invalid> {
    let mut dropped = BTreeSet::new();
    let messages =
        turn.messages.iter().map(|message| self::message(message, &mut dropped)).collect::<Result<_, _>>()?;
    let request = wire::ChatRequest {
        model: how.model.to_owned(),
        messages,
        tools: turn.tools.iter().map(tool).collect::<Result<_, _>>()?,
        tool_choice: choice(turn)?,
        parallel_tool_calls: turn.parallel_tools,
        max_output_tokens: turn.max_output,
        sampling: sampling(turn, &mut dropped),
        stop: turn.stop.iter().map(|stop| stop.to_string()).collect(),
        output: output(&turn.output),
        reasoning: reasoning(&turn.reasoning),
        verbosity: owned(turn.verbosity.as_ref()),
        user: owned(turn.user.as_ref()),
        cache_key: owned(turn.cache_key.as_ref()),
        stream: how.stream,
    };
    let dropped = dropped.into_iter().map(str::to_owned).collect();
    Ok(Written { request, dropped, names: ToolNames::of(turn, NAMES) })
}

fn owned(text: Option<&Cow<'_, str>>) -> Option<String> {
    text.map(|text| text.to_string())
}

fn refuse(path: String, what: &str) -> Invalid {
    Invalid { path, message: format!("{what} cannot be carried to this model's upstream"), at: 0 }
}

fn message(message: &Message<'_>, dropped: &mut BTreeSet<&'static str>) -> Result<wire::Message, Invalid> {
    let role = match message.role {
        Role::System => wire::Role::System,
        Role::User => wire::Role::User,
        Role::Assistant => wire::Role::Assistant,
    };
    let mut parts = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        parts.extend(self::part(part, Some(message.role), dropped)?);
    }
    Ok(wire::Message { role: role.into(), parts })
}

/// One part; `None` for one that is nothing here. `role` is whose it is, `None` within a tool's result.
fn part(
    part: &Part<'_>,
    role: Option<Role>,
    dropped: &mut BTreeSet<&'static str>,
) -> Result<Option<wire::Part>, Invalid> {
    use wire::part::Body as To;
    let misplaced = || refuse(part.at.path(), &part.body.misplaced());
    let said_by_the_model = role == Some(Role::Assistant);
    let body = match &part.body {
        Body::Text(text) => To::Text(text.to_string()),
        Body::Image(image) => To::Image(self::image(image, part)?),
        Body::File(file) => To::File(self::file(file, part)?),
        Body::ToolCall { id, name, arguments } => {
            if !said_by_the_model {
                return Err(misplaced());
            }
            let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
            To::ToolCall(wire::ToolCall {
                id: id.to_string(),
                name: tool_names::sent(name, NAMES).into_owned(),
                arguments_json: arguments.to_owned(),
            })
        }
        Body::ToolResult { id, content, is_error } => {
            if role != Some(Role::User) {
                return Err(misplaced());
            }
            let mut inner = Vec::with_capacity(content.len());
            for piece in content {
                inner.extend(self::part(piece, None, dropped)?);
            }
            To::ToolResult(wire::ToolResult { id: id.to_string(), content: inner, is_error: *is_error })
        }
        Body::Thinking { text, signature } => {
            if !said_by_the_model {
                return Err(misplaced());
            }
            let own = signature.as_deref().and_then(|sealed| own_state(sealed, "thinking", dropped));
            if text.is_empty() && own.is_none() {
                return Ok(None);
            }
            To::Thinking(wire::Thinking { text: text.to_string(), signature: own })
        }
        Body::RedactedThinking(sealed) => {
            if !said_by_the_model {
                return Err(misplaced());
            }
            match own_state(sealed, "redacted_thinking", dropped) {
                Some(data) => To::RedactedThinking(data),
                None => return Ok(None),
            }
        }
        Body::Refusal(text) => {
            if !said_by_the_model {
                return Err(misplaced());
            }
            To::Refusal(text.to_string())
        }
        Body::Other(_) => return Err(misplaced()),
    };
    Ok(Some(wire::Part { body: Some(body), cache_mark_json: part.cache.map(str::to_owned) }))
}

/// The state as the backend made it. Another's is dropped; what nobody made is nothing.
fn own_state(sealed: &str, name: &'static str, dropped: &mut BTreeSet<&'static str>) -> Option<String> {
    let own = sealed.strip_prefix(STATE);
    if own.is_none() && envelope::origin(sealed).is_some() {
        dropped.insert(name);
    }
    own.map(str::to_owned)
}

fn bytes(base64: &str, part: &Part<'_>) -> Result<Vec<u8>, Invalid> {
    STANDARD.decode(base64).map_err(|error| Invalid {
        path: part.at.path(),
        message: format!("its bytes are not base64: {error}"),
        at: 0,
    })
}

fn image(image: &Image<'_>, part: &Part<'_>) -> Result<wire::Image, Invalid> {
    use wire::image::Source;
    Ok(match image {
        Image::Data { media_type, data } => {
            wire::Image { media_type: media_type.to_string(), source: Some(Source::Data(bytes(data, part)?)) }
        }
        Image::Url(url) => wire::Image { media_type: String::new(), source: Some(Source::Url(url.to_string())) },
    })
}

fn file(file: &File<'_>, part: &Part<'_>) -> Result<wire::File, Invalid> {
    use wire::file::Source;
    let source = match &file.source {
        FileSource::Data(data) => Source::Data(bytes(data, part)?),
        FileSource::Url(url) => Source::Url(url.to_string()),
        FileSource::Plain(text) => Source::Text(text.to_string()),
    };
    Ok(wire::File {
        media_type: owned(file.media_type.as_ref()).unwrap_or_default(),
        name: owned(file.name.as_ref()).unwrap_or_default(),
        source: Some(source),
    })
}

fn tool(tool: &Tool<'_>) -> Result<wire::Tool, Invalid> {
    let to = |name: &str, description: Option<String>, schema: Option<&str>, strict| wire::Tool {
        name: tool_names::sent(name, NAMES).into_owned(),
        description: description.unwrap_or_default(),
        parameters_json_schema: schema.unwrap_or_default().to_owned(),
        strict,
    };
    match &tool.kind {
        ToolKind::Function { name, description, schema, strict } => {
            Ok(to(name, owned(description.as_ref()), *schema, *strict))
        }
        ToolKind::Custom { name, description, format } => {
            let description = free_text::describe(description.as_deref(), format.as_deref());
            Ok(to(name, description, Some(free_text::SCHEMA), None))
        }
        ToolKind::Hosted(kind) => {
            Err(refuse(format!("tools[{}]", tool.index), &format!("a tool of the type `{kind}`")))
        }
    }
}

fn choice(turn: &Turn<'_>) -> Result<Option<wire::ToolChoice>, Invalid> {
    use wire::tool_choice::Mode;
    let sent = |name: &Cow<'_, str>| tool_names::sent(name, NAMES).into_owned();
    let (mode, only) = match &turn.tool_choice {
        None => return Ok(None),
        Some(ToolChoice::Auto) => (Mode::Auto, Vec::new()),
        Some(ToolChoice::None) => (Mode::None, Vec::new()),
        Some(ToolChoice::Any) => (Mode::Required, Vec::new()),
        Some(ToolChoice::Named(name)) => (Mode::Required, vec![sent(name)]),
        Some(ToolChoice::Allowed { required, names }) => {
            (if *required { Mode::Required } else { Mode::Auto }, names.iter().map(sent).collect())
        }
        Some(ToolChoice::Other(kind)) => {
            return Err(refuse("tool_choice".into(), &format!("a choice of the form `{kind}`")));
        }
    };
    if turn.tools.is_empty() {
        // Without tools there is nothing to choose; a forced choice could not be obeyed.
        return match mode {
            Mode::Required => {
                let message = "a tool must be called, but there are no tools".to_owned();
                Err(Invalid { path: "tool_choice".into(), message, at: 0 })
            }
            Mode::Auto | Mode::None | Mode::Unspecified => Ok(None),
        };
    }
    Ok(Some(wire::ToolChoice { mode: mode.into(), only }))
}

fn sampling(turn: &Turn<'_>, dropped: &mut BTreeSet<&'static str>) -> Option<wire::Sampling> {
    let mut real = |name: &'static str, written: Option<&str>| {
        let value = written?.parse::<f64>().ok().filter(|value| value.is_finite());
        if value.is_none() {
            dropped.insert(name);
        }
        value
    };
    let temperature = real("temperature", turn.temperature);
    let top_p = real("top_p", turn.top_p);
    let presence_penalty = real("presence_penalty", turn.presence_penalty);
    let frequency_penalty = real("frequency_penalty", turn.frequency_penalty);
    let top_k = turn.top_k.and_then(|written| whole(written, "top_k", dropped));
    let seed = turn.seed.and_then(|written| whole(written, "seed", dropped));
    let sampling = wire::Sampling { temperature, top_p, top_k, seed, presence_penalty, frequency_penalty };
    Some(sampling).filter(|sampling| *sampling != wire::Sampling::default())
}

/// A whole number; one with a fraction, or beyond its bounds, is a hint that cannot be carried.
fn whole<N: std::str::FromStr>(written: &str, name: &'static str, dropped: &mut BTreeSet<&'static str>) -> Option<N> {
    let value = written.parse().ok();
    if value.is_none() {
        dropped.insert(name);
    }
    value
}

fn output(output: &Output<'_>) -> Option<wire::OutputForm> {
    use wire::output_form::Kind;
    match output {
        Output::Text => None,
        Output::Json => Some(wire::OutputForm { kind: Kind::Json.into(), ..Default::default() }),
        Output::Schema { name, schema, strict } => Some(wire::OutputForm {
            kind: Kind::JsonSchema.into(),
            json_schema: (*schema).to_owned(),
            name: owned(name.as_ref()).unwrap_or_default(),
            strict: *strict,
        }),
    }
}

fn reasoning(reasoning: &Reasoning<'_>) -> Option<wire::Reasoning> {
    use wire::reasoning::Mode;
    let Reasoning { mode, effort } = reasoning;
    let (mode, budget_tokens) = match mode {
        None if effort.is_none() => return None,
        None => (Mode::Unspecified, None),
        Some(Thinking::Adaptive) => (Mode::Adaptive, None),
        Some(Thinking::Budget(tokens)) => (Mode::Budget, Some(*tokens)),
        Some(Thinking::Off) => (Mode::Off, None),
    };
    Some(wire::Reasoning { mode: mode.into(), budget_tokens, effort: owned(effort.as_ref()) })
}

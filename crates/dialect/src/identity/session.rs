//! The client's own name for its session, as real clients send it. It binds a conversation to an account for the sake of
//! the prompt cache; it proves nothing, so whatever does not look like an id is passed over.

use crate::json::{Invalid, Kind, Reader};
use crate::request::ClientRequest;

/// The longest id that is kept, in bytes, with the agent's behind it.
const ID_BYTES: usize = 256;

/// The header by which a program names its conversation to the gateway.
const NAMED: &str = "x-turnkeep-conversation";

/// Clients' own headers that name a session, the surest first, each with the header that names an agent or thread within it.
const HEADERS: [(&str, Option<&str>); 4] = [
    ("x-claude-code-session-id", Some("x-claude-code-agent-id")),
    ("session-id", Some("thread-id")),
    ("x-session-affinity", None),
    ("x-session-id", None),
];

/// The id of the client's session, from headers first (`x-turnkeep-conversation`, Claude Code's, Codex's, OpenCode's), then
/// from the body (the session in Messages' `metadata.user_id`, `prompt_cache_key`). Where an agent or a thread of the
/// session speaks, it is `session/agent`. Ids that are empty, over 256 bytes together, hold a control character, or are a
/// program's word for nothing are passed over as if they were not there.
pub fn session<'h>(request: &ClientRequest, header: &dyn Fn(&str) -> Option<&'h str>) -> Option<String> {
    named(header).or_else(|| own(request, header))
}

/// The client's own id of its session, where [`session()`] gives the conversation's name and not this. Both are part of the
/// key of a conversation: a name that is set once for a program does not make one of all its sessions.
pub fn session_within<'h>(request: &ClientRequest, header: &dyn Fn(&str) -> Option<&'h str>) -> Option<String> {
    named(header).and_then(|_| own(request, header))
}

fn named<'h>(header: &dyn Fn(&str) -> Option<&'h str>) -> Option<String> {
    joined(header(NAMED)?, None)
}

fn own<'h>(request: &ClientRequest, header: &dyn Fn(&str) -> Option<&'h str>) -> Option<String> {
    for (name, agent) in HEADERS {
        let agent = agent.and_then(header);
        if let Some(found) = header(name).and_then(|session| joined(session, agent)) {
            return Some(found);
        }
    }
    let agent = header("x-claude-code-agent-id");
    let body = in_body(request).unwrap_or_default();
    body.user.as_deref().and_then(|user| joined(&in_user(user)?, agent)).or_else(|| joined(&body.cache_key?, None))
}

fn joined(session: &str, agent: Option<&str>) -> Option<String> {
    let session = id(session)?;
    match agent.and_then(id).filter(|agent| *agent != session) {
        None => Some(session.to_owned()),
        Some(agent) if session.len() + 1 + agent.len() <= ID_BYTES => Some(format!("{session}/{agent}")),
        Some(_) => None,
    }
}

fn id(text: &str) -> Option<&str> {
    let text = text.trim();
    let nothing = ["NOT_GIVEN", "undefined", "null", "None", "[object Object]"].contains(&text);
    (!text.is_empty() && !nothing && text.len() <= ID_BYTES && !text.chars().any(char::is_control)).then_some(text)
}

#[derive(Default)]
struct InBody {
    user: Option<String>,
    cache_key: Option<String>,
}

fn in_body(request: &ClientRequest) -> Result<InBody, Invalid> {
    let mut found = InBody::default();
    Reader::new(&request.body)?.object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("metadata", Kind::Object) => r.object::<Invalid>(|r, key| {
                match (key, r.kind()?) {
                    ("user_id", Kind::String) => found.user = Some(r.string()?.into_owned()),
                    _ => r.skip().map(drop)?,
                }
                Ok(())
            })?,
            ("prompt_cache_key", Kind::String) => found.cache_key = Some(r.string()?.into_owned()),
            _ => r.skip().map(drop)?,
        }
        Ok(())
    })?;
    Ok(found)
}

/// The session in a user's id: a JSON text with `session_id`, or the older `user_…_session_<id>`. Any other user's id
/// names a user, not a session.
fn in_user(user: &str) -> Option<String> {
    if let Some((_, session)) = user.rsplit_once("_session_").filter(|_| user.starts_with("user_")) {
        return Some(session.to_owned());
    }
    let mut session = None;
    let read = Reader::over(user).object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("session_id", Kind::String) => session = Some(r.string()?.into_owned()),
            _ => r.skip().map(drop)?,
        }
        Ok(())
    });
    read.ok().and(session)
}

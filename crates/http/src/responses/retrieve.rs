//! Stored responses, asked for by their id.

use super::background;
use super::history::shown;
use super::outline::left_behind;
use super::page::{Page, pairs};
use super::record::StoredResponse;
use super::{StoredPlace, conversations, keeps_nothing, scope_name};
use crate::reply_body::ReplyBody;
use crate::respond;
use crate::service::Gateway;
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use std::sync::Arc;
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_base::{CallerScope, ClientError, Dialect, TurnId};
use turnkeep_dialect::json::Object;
use turnkeep_dialect::recorded::{self, Recorded};
use turnkeep_dialect::reply::{Facts, ReplyOptions};
use turnkeep_engine::ports::StoredKind;

/// A request for what is stored.
pub(crate) struct Wanted<'a> {
    pub(crate) place: StoredPlace<'a>,
    pub(crate) method: &'a Method,
    pub(crate) query: Option<&'a str>,
    pub(crate) body: Bytes,
    pub(crate) turn: TurnId,
}

/// Answers it.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    caller: &CallerScope,
    wanted: Wanted<'_>,
) -> Result<Response<ReplyBody>, ClientError> {
    let scope = scope_name(caller).ok_or_else(|| keeps_nothing(None))?;
    let decoded = |id: &str| crate::dialects::percent_decoded(id).into_owned();
    match wanted.place {
        StoredPlace::Response(id) if wanted.method == Method::DELETE => delete(gateway, &scope, &decoded(id)).await,
        StoredPlace::Response(id) => get(gateway, &scope, &decoded(id), &wanted).await,
        StoredPlace::Cancel(id) => cancel(gateway, &scope, &decoded(id)).await,
        StoredPlace::InputItems(id) => {
            let page = Page::of(wanted.query)?;
            let stored = stored(gateway, &scope, &decoded(id)).await?;
            Ok(respond::json(StatusCode::OK, page.list(&stored.input)?))
        }
        StoredPlace::Conversations | StoredPlace::Conversation(_) | StoredPlace::Items(_) | StoredPlace::Item(..) => {
            conversations::answer(gateway, &scope, wanted).await
        }
    }
}

fn missing(id: &str) -> ClientError {
    let message = format!("there is no stored response {:?} that this key can use", shown(id));
    ClientError::new(404, "response_not_found", message)
}

/// The response as it stands now.
async fn stored(gateway: &Arc<Gateway>, scope: &Arc<str>, id: &str) -> Result<StoredResponse, ClientError> {
    let library = &gateway.library;
    // Asked first: what has ended since is stored by then.
    let running = library.running(scope, id);
    let mut stored = library.response(scope, id).await?.ok_or_else(|| missing(id))?;
    if matches!(stored.status().as_str(), "queued" | "in_progress") {
        stored.response = match running {
            Some(running) => with_status(&stored.response, running.status()),
            None => left_behind(&stored),
        };
    }
    Ok(stored)
}

fn with_status(response: &str, status: &str) -> String {
    response.replacen("\"status\":\"queued\"", &format!("\"status\":\"{status}\""), 1)
}

async fn get(
    gateway: &Arc<Gateway>,
    scope: &Arc<str>,
    id: &str,
    wanted: &Wanted<'_>,
) -> Result<Response<ReplyBody>, ClientError> {
    let (mut stream, mut after) = (false, None);
    for (name, value) in pairs(wanted.query) {
        match (name.as_str(), value.as_str()) {
            ("stream", "true") => stream = true,
            ("stream", "false" | "") => stream = false,
            ("stream", other) => {
                let message = format!("stream: expected true or false, found {other:?}");
                return Err(ClientError::invalid("stream", message));
            }
            ("starting_after", text) => {
                let number = text.parse::<u64>().map_err(|_| {
                    let message = format!("starting_after: expected the number of an event, found {text:?}");
                    ClientError::invalid("starting_after", message)
                })?;
                after = Some(number);
            }
            _ => {}
        }
    }
    show(gateway, scope, id, stream, after, wanted.turn).await
}

/// A background response as the answer of a request that asks for it again.
pub(crate) async fn again(
    gateway: &Arc<Gateway>,
    scope: &Arc<str>,
    id: &str,
    stream: bool,
    turn: TurnId,
) -> Result<Response<ReplyBody>, ClientError> {
    show(gateway, scope, id, stream, None, turn).await
}

async fn show(
    gateway: &Arc<Gateway>,
    scope: &Arc<str>,
    id: &str,
    stream: bool,
    after: Option<u64>,
    turn: TurnId,
) -> Result<Response<ReplyBody>, ClientError> {
    let stored = stored(gateway, scope, id).await?;
    if !stream {
        if after.is_some() {
            let message = "starting_after: it stands for a place in a stream; ask with stream=true";
            return Err(ClientError::invalid("starting_after", message));
        }
        return Ok(respond::json(StatusCode::OK, stored.response));
    }
    let followed = gateway.library.followed(scope, id).filter(|running| running.can_be_followed());
    match (followed, after) {
        (Some(running), after) => Ok(background::follow(gateway, running, after, turn)),
        (None, Some(_)) => {
            let message = "starting_after: the events of this response are no longer kept; ask without it";
            Err(ClientError::invalid("starting_after", message))
        }
        (None, None) => anew(gateway, &stored),
    }
}

/// The whole answer as a stream, written anew.
fn anew(gateway: &Gateway, stored: &StoredResponse) -> Result<Response<ReplyBody>, ClientError> {
    let status = stored.status();
    if !matches!(status.as_str(), "completed" | "incomplete") {
        let message = format!("stream: this response is {status}, and its events are not kept; ask without stream");
        return Err(ClientError::invalid("stream", message));
    }
    let recorded = Recorded {
        dialect: Dialect::Responses,
        stream: false,
        bytes: stored.response.clone().into(),
        facts: Facts::default(),
    };
    let options = ReplyOptions {
        client: Dialect::Responses,
        upstream: Dialect::Responses,
        model: super::items::string_field(&stored.response, "model").unwrap_or_default(),
        usage_wanted: true,
        choices: 1,
        id: stored.id.trim_start_matches("resp_").to_owned(),
        created: gateway.library.now_ms() / 1000,
        max_event: MAX_EVENT,
        asked: turnkeep_dialect::reply::Asked { body: stored.response.clone().into(), ..Default::default() },
    };
    let pieces = recorded::replay(&recorded, &options, true).map_err(|fault| {
        tracing::info!(why = %fault.evidence.detail, "a stored response cannot be streamed");
        let message = "stream: this response holds what cannot be streamed again; ask without stream";
        ClientError::invalid("stream", message)
    })?;
    let body: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.bytes).collect();
    let mut response = respond::with_type(StatusCode::OK, "text/event-stream; charset=utf-8", body);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

async fn delete(gateway: &Arc<Gateway>, scope: &Arc<str>, id: &str) -> Result<Response<ReplyBody>, ClientError> {
    let library = &gateway.library;
    if library.running(scope, id).is_some() {
        let message = format!("the response {id:?} is still being made; cancel it first");
        return Err(ClientError::new(409, "response_is_running", message));
    }
    if !library.remove(StoredKind::Response, scope, id).await? {
        return Err(missing(id));
    }
    library.forget_events(scope, id);
    Ok(respond::json(StatusCode::OK, deleted("response", id)))
}

/// What a deletion is answered with.
pub(super) fn deleted(object: &str, id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut answer = Object::open(&mut out);
    answer.string("id", id);
    answer.string("object", object);
    answer.bool("deleted", true);
    drop(answer);
    out
}

async fn cancel(gateway: &Arc<Gateway>, scope: &Arc<str>, id: &str) -> Result<Response<ReplyBody>, ClientError> {
    let library = &gateway.library;
    if let Some(running) = library.running(scope, id) {
        running.cancel();
        running.ends().await;
    }
    let stored = stored(gateway, scope, id).await?;
    if !stored.background {
        let message = format!("the response {id:?} was not made in the background; only such a one can be cancelled");
        return Err(ClientError::new(400, "not_in_background", message));
    }
    Ok(respond::json(StatusCode::OK, stored.response))
}

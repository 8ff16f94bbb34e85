//! From a request to a turn: read, check, resolve, start.

use crate::accept::Peer;
use crate::callers::{Caller, KeyDigest};
use crate::catalog::Resolved;
use crate::client_body::ClientBody;
use crate::headers::Asked;
use crate::limits::{Refusal, told};
use crate::read_body::{self, Unread};
use crate::reply_body::ReplyBody;
use crate::responses::{Background, Begin, Begun, StoredPlace, Wanted};
use crate::service::Gateway;
use crate::{headers, remote, respond, responses};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;
use turnkeep_base::{CallerScope, ClientError, Dialect, FaultKind, TurnId};
use turnkeep_dialect::count::{count_body, estimate as estimated_tokens};
use turnkeep_dialect::identity;
use turnkeep_dialect::request::{self, ClientRequest, InPath, Operation};
use turnkeep_engine::ports::Permit;
use turnkeep_engine::route::{Route, Tier};
use turnkeep_engine::{Terms, TurnInput};
use turnkeep_policy::limits::{Amount, Spend};
use turnkeep_policy::settle;

/// What a path asks for.
pub struct Asks {
    /// In whose dialect.
    pub dialect: Dialect,
    /// What.
    pub operation: Operation,
    /// What else the path says, where the dialect has it there.
    pub in_path: Option<InPath>,
}

/// Answers a turn's request.
pub async fn turn(
    gateway: &Arc<Gateway>,
    caller: Arc<Caller>,
    key: KeyDigest,
    asks: Asks,
    request: Request<ClientBody>,
) -> Response<ReplyBody> {
    let id = gateway.engine.turn_id();
    let dialect = asks.dialect;
    let mut response = match admit(gateway, &caller, key, asks, request, id).await {
        Ok(Admitted::Turn(input, None)) => run(gateway, *input, dialect, id).await,
        Ok(Admitted::Turn(input, Some(background))) => {
            let started = responses::start(gateway, *input, *background).await;
            started.unwrap_or_else(|error| respond::error(dialect, &error, id))
        }
        Ok(Admitted::Answered(response)) => response,
        Err(Unread::Refused(error)) => {
            tracing::info!(turn = %id, caller = %caller.name, status = error.status, code = error.code, "refused");
            respond::error(dialect, &error, id)
        }
        // Mostly nobody reads this: the client has left. One that broke its framing may still be there.
        Err(Unread::Broken(error)) => {
            tracing::debug!(turn = %id, caller = %caller.name, why = error.message, "a body broke off");
            respond::error(dialect, &error, id)
        }
    };
    if !caller.limits.is_none() {
        let (left, now) = gateway.meters.left(&caller);
        response.headers_mut().extend(told(&left, now, dialect));
    }
    response
}

/// The caller's key, as the gateway knows it while the turn runs.
struct StillKnown {
    gateway: Arc<Gateway>,
    key: KeyDigest,
}

impl Permit for StillKnown {
    fn holds(&self) -> bool {
        self.gateway.callers.still(&self.key, self.gateway.engine.clock.unix_ms())
    }
}

enum Admitted {
    Turn(Box<TurnInput>, Option<Box<Background>>),
    /// Without a turn.
    Answered(Response<ReplyBody>),
}

async fn admit(
    gateway: &Arc<Gateway>,
    caller: &Arc<Caller>,
    key: KeyDigest,
    asks: Asks,
    request: Request<ClientBody>,
    id: TurnId,
) -> Result<Admitted, Unread> {
    let refuse = |error: ClientError| Unread::Refused(error);
    refuse_if_draining(gateway)?;
    let (head, body) = request.into_parts();
    check_content(&head.headers).map_err(refuse)?;
    let timeout = headers::timeout(&head.headers).map_err(|value| {
        let message = format!("x-turnkeep-timeout: {value:?} is not a time; write a number and ms, s or m, as in 30s");
        refuse(ClientError::invalid("x-turnkeep-timeout", message))
    })?;
    let asked = Asked::of(&head.headers).map_err(refuse)?;
    let limited = |refusal: Refusal| {
        gateway.engine.tally.fault_kind(refusal.kind());
        refuse(refusal.error())
    };
    // A caller that may begin nothing now need not have its body read.
    gateway.meters.look(caller).map_err(limited)?;
    let body = read_body::read(body, gateway.max_body.load(Ordering::Relaxed), &gateway.memory).await.inspect_err(
        |unread| {
            if let Unread::Refused(error) = unread {
                let kind = match error.status {
                    413 => Some(FaultKind::TooLarge),
                    408 => Some(FaultKind::BodyTimeout),
                    _ => None,
                };
                if let Some(kind) = kind {
                    gateway.engine.tally.fault_kind(kind);
                }
            }
        },
    )?;
    // Bodies can take long, and the gateway may have been asked to stop meanwhile.
    refuse_if_draining(gateway)?;
    let received = Instant::now();
    let Asks { dialect, operation, in_path } = asks;
    let peer = head.extensions.get::<Peer>();
    let whose = scope(gateway, caller, peer, &head.headers);
    let begun = match (dialect, operation) {
        (Dialect::Responses, Operation::Generate) => {
            let key = asked.idempotency.as_deref();
            match responses::begin(gateway, &whose, id, body.bytes, key).await.map_err(refuse)? {
                Begin::Turn(begun) => *begun,
                Begin::Again { scope, id: response, stream } => {
                    let shown = responses::again(gateway, &scope, &response, stream, id).await;
                    return shown.map(Admitted::Answered).map_err(refuse);
                }
            }
        }
        (Dialect::Responses, Operation::CountTokens) => {
            responses::counted(gateway, &whose, body.bytes).await.map_err(refuse)?
        }
        (Dialect::Chat | Dialect::Responses | Dialect::Messages | Dialect::Gemini, _) => responses::plain(body.bytes),
    };
    let Begun { body: bytes, shown, keep, background, trigger, share } = begun;
    let read = match in_path {
        Some(path) => request::read_in_path(operation, path, bytes),
        None => request::read(dialect, operation, bytes),
    };
    let read = read.map_err(|invalid| refuse(invalid.into()))?;
    let Resolved { label, routes, cache } = resolve(gateway, caller, &read).map_err(refuse)?;
    let routes = match operation {
        Operation::Generate | Operation::Complete => routes,
        Operation::Embed => embedding(&read.model, &routes).map_err(refuse)?,
        Operation::CountTokens => {
            let counting = counting(dialect, &routes);
            if counting.is_empty() {
                return count(dialect, &read, id).map(Admitted::Answered).map_err(refuse);
            }
            counting
        }
    };
    let routes = compacting(routes, trigger).map_err(refuse)?;
    let held = gateway.meters.reserve(caller, estimate(&read, &routes)).map_err(limited)?;
    let (fetched, fetched_share) = remote::fetch(gateway, &caller.name, &read, &routes).await.map_err(refuse)?;
    // Fetching can take long, too.
    refuse_if_draining(gateway)?;
    let header = |name: &str| head.headers.get(name)?.to_str().ok();
    let terms = Terms {
        session: identity::session(&read, &header),
        session_within: identity::session_within(&read, &header),
        // A background response has the id that its client was told, so it is never the answer of another turn.
        idempotency: asked.idempotency.filter(|_| background.is_none()),
        bypass: asked.bypass || background.is_some(),
        // An answer that says what it goes on from is nobody else's.
        cache: cache.filter(|_| shown.is_none()),
        labels: caller.labels.clone(),
        reservation: Some(Box::new(held)),
        shown,
        background: background.is_some(),
        keep,
    };
    let input = TurnInput {
        id,
        caller: whose,
        terms,
        permit: Arc::new(StillKnown { gateway: gateway.clone(), key }),
        model_label: label,
        routes,
        fetched,
        headers: headers::up(&head.headers),
        beta: head.uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "beta=true")),
        timeout,
        received,
        request: read,
        memory: Some(Box::new((body.share, share, fetched_share))),
    };
    Ok(Admitted::Turn(Box::new(input), background.map(Box::new)))
}

/// The routes that can answer a request to compact its conversation: only an upstream of the Responses API makes such an
/// item, and its client takes nothing else.
fn compacting(routes: Arc<[Route]>, trigger: Option<usize>) -> Result<Arc<[Route]>, ClientError> {
    let Some(index) = trigger else { return Ok(routes) };
    let able: Arc<[Route]> =
        routes.iter().filter(|route| route.upstream.dialect() == Some(Dialect::Responses)).cloned().collect();
    if able.is_empty() {
        let path = format!("input[{index}]");
        let message =
            format!("{path}: a compaction_trigger asks for compaction, and no upstream of this model compacts");
        return Err(ClientError::invalid(path, message));
    }
    Ok(able)
}

/// Answers a request for what the caller has stored.
pub async fn stored(
    gateway: &Arc<Gateway>,
    caller: &Arc<Caller>,
    place: StoredPlace<'_>,
    request: Request<ClientBody>,
) -> Result<Response<ReplyBody>, ClientError> {
    let (head, body) = request.into_parts();
    let whose = scope(gateway, caller, head.extensions.get::<Peer>(), &head.headers);
    let read = read_body::read(body, gateway.max_body.load(Ordering::Relaxed), &gateway.memory).await;
    let body = read.map_err(|unread| match unread {
        Unread::Refused(error) | Unread::Broken(error) => error,
    })?;
    let wanted = Wanted {
        place,
        method: &head.method,
        query: head.uri.query(),
        body: body.bytes,
        turn: gateway.engine.turn_id(),
    };
    responses::answer(gateway, &whose, wanted).await
}

/// The model's own routes whose upstreams count tokens: those of the client's dialect, which know the request as it is,
/// before the others.
fn counting(client: Dialect, routes: &[Route]) -> Arc<[Route]> {
    let able = || routes.iter().filter(|route| route.tier == Tier::Own && counts(route.upstream.dialect()));
    let own = able().filter(|route| route.upstream.dialect() == Some(client));
    own.chain(able().filter(|route| route.upstream.dialect() != Some(client))).cloned().collect()
}

/// Whether an upstream of this dialect counts tokens; one without any does not.
fn counts(upstream: Option<Dialect>) -> bool {
    match upstream {
        Some(Dialect::Messages | Dialect::Gemini | Dialect::Responses) => true,
        Some(Dialect::Chat) | None => false,
    }
}

/// The routes whose upstreams make embeddings.
fn embedding(model: &str, routes: &[Route]) -> Result<Arc<[Route]>, ClientError> {
    let able = |route: &&Route| match route.upstream.dialect() {
        Some(Dialect::Chat | Dialect::Gemini) => true,
        Some(Dialect::Responses | Dialect::Messages) | None => false,
    };
    let able: Arc<[Route]> = routes.iter().filter(able).cloned().collect();
    if able.iter().any(|route| route.tier == Tier::Own) {
        return Ok(able);
    }
    let message =
        format!("model: no upstream of {model:?} makes embeddings; name a model of an openai or gemini upstream");
    Err(ClientError::invalid("model", message))
}

/// What a turn may come to: all the output that it allows, at the dearest price that it may go to.
fn estimate(request: &ClientRequest, routes: &[Route]) -> Spend {
    match request.operation {
        // Counting costs nothing.
        Operation::CountTokens => Spend::default(),
        Operation::Generate | Operation::Complete | Operation::Embed => {
            let usage = settle::reserved(request.body.len() as u64, request.max_output, request.choices);
            let costs = routes.iter().filter_map(|route| Some(route.price?.cost(&usage)));
            Spend { tokens: usage.total(), nano_usd: costs.max().unwrap_or(0) }
        }
    }
}

/// Whom the turn is for: the key's one person or program, or the user of a shared key whom a trusted proxy names.
fn scope(gateway: &Gateway, caller: &Caller, peer: Option<&Peer>, headers: &HeaderMap) -> CallerScope {
    let key = caller.name.clone();
    if !caller.shared {
        return CallerScope::of_key(key);
    }
    match gateway.proxies.load().user(peer, headers) {
        Some(user) => CallerScope::Scoped { key, user: Some(user.into()) },
        None => CallerScope::Bare { key },
    }
}

fn refuse_if_draining(gateway: &Gateway) -> Result<(), Unread> {
    if gateway.is_draining() {
        let message = "the gateway is shutting down; try again in a moment";
        return Err(Unread::Refused(ClientError::new(503, "shutting_down", message)));
    }
    Ok(())
}

fn check_content(headers: &HeaderMap) -> Result<(), ClientError> {
    if let Some(value) = headers.get(header::CONTENT_TYPE) {
        let text = value.to_str().unwrap_or("");
        let kind = text.split(';').next().unwrap_or("").trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let message = format!("content-type: send application/json, not {text:?}");
            return Err(ClientError {
                param: Some("content-type".into()),
                ..ClientError::new(415, "unsupported_media_type", message)
            });
        }
    }
    if let Some(value) = headers.get(header::CONTENT_ENCODING)
        && !value.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let message = format!("content-encoding: compressed bodies ({value:?}) are not taken; send the body as it is");
        return Err(ClientError {
            param: Some("content-encoding".into()),
            ..ClientError::new(415, "unsupported_encoding", message)
        });
    }
    Ok(())
}

fn resolve(gateway: &Gateway, caller: &Caller, request: &ClientRequest) -> Result<Resolved, ClientError> {
    let catalog = gateway.catalog.load();
    let name = &request.model;
    if let Some(resolved) = catalog.resolve(name) {
        if caller.models.allow(name) || (&*resolved.label != "*" && caller.models.allow(&resolved.label)) {
            let resolved = resolved.within(&caller.models);
            let in_money = caller.limits.budget.is_some_and(|budget| matches!(budget.amount, Amount::NanoUsd(_)));
            return if in_money { resolved.priced().ok_or_else(|| unpriced(gateway, name)) } else { Ok(resolved) };
        }
        gateway.engine.tally.fault_kind(FaultKind::ModelForbidden);
        let message = format!("model: this key may not use {name:?}");
        return Err(ClientError { param: Some("model".into()), ..ClientError::new(403, "model_forbidden", message) });
    }
    let near = catalog.nearest(name, &caller.models);
    let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
    let message = format!("model: there is no model {name:?}{hint}");
    Err(ClientError { param: Some("model".into()), ..ClientError::new(404, "model_not_found", message) })
}

/// A budget in money holds only where the price is known.
fn unpriced(gateway: &Gateway, name: &str) -> ClientError {
    gateway.engine.tally.fault_kind(FaultKind::ModelForbidden);
    let message = format!(
        "model: {name:?} has no price, and this key's budget is in US dollars; the operator must set `price` in its \
         [[models]] entry, or give the key a budget in tokens"
    );
    ClientError { param: Some("model".into()), ..ClientError::new(403, "model_unpriced", message) }
}

/// No upstream of the model counts tokens: an estimate, which says that it is one.
fn count(dialect: Dialect, request: &ClientRequest, id: TurnId) -> Result<Response<ReplyBody>, ClientError> {
    let turn = request.turn().map_err(ClientError::from)?;
    let tokens = estimated_tokens(&turn);
    let mut response = respond::json(StatusCode::OK, count_body(dialect, tokens));
    let headers = response.headers_mut();
    headers.insert("x-turnkeep-estimated", HeaderValue::from_static("input_tokens"));
    if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
        headers.insert("x-turnkeep-turn", value.clone());
        headers.insert(dialect.request_id_header(), value);
    }
    Ok(response)
}

async fn run(gateway: &Arc<Gateway>, input: TurnInput, dialect: Dialect, id: TurnId) -> Response<ReplyBody> {
    let mut reader = gateway.engine.start(input);
    let head = poll_fn(|cx| reader.poll_head(cx)).await;
    let Some(head) = head else {
        let message = "the gateway made a mistake; its log has the turn's id";
        return respond::error(dialect, &ClientError::new(500, "gateway_bug", message), id);
    };
    let mut response = Response::new(ReplyBody::Turn { reader, left: head.length, receipts: gateway.receipts.clone() });
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

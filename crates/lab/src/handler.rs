//! One request: recorded, checked, given its rule, answered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::accounts::Accounts;
use crate::answer::{self, Answer, Numbering, Usage};
use crate::ask::{self, Ask, Dialect};
use crate::cascade::Cascade;
use crate::choose::{Chooser, Facts};
use crate::connections::Connections;
use crate::devin;
use crate::fault::{Fault, Point};
use crate::frame::{Mark, Piece, Refused};
use crate::gates::Gates;
use crate::kept::{self, Kept, KeptAnswer};
use crate::ledger::{Ledger, Recorded, Turn, header_list};
use crate::paths::{self, Route, route};
use crate::plan::{self, FaultBytes, Step};
use crate::play::{Broken, PlayedBody, Player};
use crate::script::{ContentEncoding, ErrorSpec, MAX_FAULT_BYTES, Rule, Script};
use crate::signature::Signatures;
use crate::socket::{Busy, Control};
use crate::{brain, chat, check, completions, embed, gemini, messages, models, moment, responses, spelling};

/// The largest body the lab reads.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// What all connections of a lab share.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub ledger: Arc<Ledger>,
    pub gates: Arc<Gates>,
    pub accounts: Arc<Accounts>,
    pub connections: Arc<Connections>,
    pub cascade: Arc<Cascade>,
    chooser: Mutex<Chooser>,
    pub numbering: Numbering,
    signatures: Signatures,
    pub kept: Kept,
    pub devin: devin::Sessions,
}

impl State {
    pub(crate) fn set_script(&self, script: Script) {
        self.accounts.reset(&script.account);
        self.devin.set_script(&script.devin, script.devin_page);
        *self.chooser() = Chooser::new(script);
    }

    pub(crate) fn chooser(&self) -> MutexGuard<'_, Chooser> {
        self.chooser.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reply before it is played.
pub(crate) struct Reply {
    pub status: u16,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub steps: Vec<Step>,
    /// The body's length is told beforehand.
    pub sized: bool,
    /// What the turn costs, of a reply that is one.
    pub usage: Option<Usage>,
}

/// Answers one request.
pub(crate) async fn handle(
    state: Arc<State>,
    control: Arc<Control>,
    busy: Busy,
    connection: u64,
    request: Request<Incoming>,
) -> Result<Response<PlayedBody>, Broken> {
    let mut turn = Turn::new(Arc::clone(&state.ledger));
    let (head, body) = request.into_parts();
    let account = check::credential(&head.headers);
    let mut visit = state.accounts.begin(account.as_deref().unwrap_or_default());
    let collected = Limited::new(body, MAX_BODY_BYTES).collect().await;
    let (body, unread) = match collected {
        Ok(body) => (body.to_bytes(), false),
        Err(_) => (Bytes::new(), true),
    };
    let sequence = turn.record(Recorded {
        sequence: 0,
        connection,
        method: head.method.clone(),
        target: head.uri.path_and_query().map_or_else(|| head.uri.to_string(), ToString::to_string),
        version: head.version,
        headers: header_list(&head.headers),
        body: body.clone(),
        account: account.clone(),
        client_closed_after: false,
        status: None,
        reported: None,
    });
    let asked = Asked { head: &head, body: &body, unread, account: account.as_deref().unwrap_or_default(), sequence };
    let (before, reply) = asked.answer(&state);
    visit.answered(reply.status, reply.usage);
    turn.answered(reply.status);
    let http2 = head.version == Version::HTTP_2;
    let mut player = Player {
        turn,
        visit,
        busy,
        http2,
        control,
        gates: Arc::clone(&state.gates),
        cascade: Arc::clone(&state.cascade),
    };
    player.before(before).await?;
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value);
    }
    if reply.sized {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(plan::length(&reply.steps)));
    }
    Ok(response.map(|()| player.body(reply.steps)))
}

/// The answer that a request goes on from.
fn previous(body: &Value) -> Option<&str> {
    body["previous_response_id"].as_str()
}

/// A request with what was said before in its input, where it goes on from an answer that is kept.
fn filled(mut body: Value, state: &State) -> Value {
    if let Some(mut items) = previous(&body).and_then(|id| state.kept.items(id)) {
        items.extend(kept::input(&body));
        body["input"] = Value::Array(items);
    }
    body
}

/// A request that was read.
pub(crate) struct Asked<'a> {
    pub head: &'a http::request::Parts,
    pub body: &'a Bytes,
    unread: bool,
    pub account: &'a str,
    sequence: u64,
}

impl Asked<'_> {
    fn answer(&self, state: &State) -> (Vec<Step>, Reply) {
        if let Some(called) = self.call(state) {
            return called;
        }
        let path = self.head.uri.path();
        if let Some(call) = devin::call(&self.head.method, &self.head.uri) {
            return self.devin(call, state);
        }
        let route = route(&self.head.uri);
        let dialect = paths::dialect(&route, path, &self.head.headers);
        let value: Option<Value> = serde_json::from_slice(self.body).ok();
        let value = if dialect == Dialect::Gemini { value.map(|value| spelling::camel(&value)) } else { value };
        let nothing = Value::Null;
        let in_path = match route {
            Route::Turn(_, path) | Route::CountTokens(_, path) | Route::Embed(_, path) => path,
            Route::Models | Route::Model(_) | Route::Transcript | Route::DevinTranscript | Route::Unknown => {
                ask::InPath::default()
            }
        };
        let value = match (&route, value) {
            (Route::Turn(Dialect::Responses, _), Some(body)) => Some(filled(body, state)),
            (_, value) => value,
        };
        let body = value.as_ref().unwrap_or(&nothing);
        // Counting may wrap what is counted.
        let counted = body.get("generateContentRequest").unwrap_or(body);
        let ask = ask::read(dialect, in_path, counted);
        let mut chooser = state.chooser();
        let refused = self.refused(&route, &ask, value.as_ref(), chooser.models(), state).err();
        let facts = Facts {
            path,
            method: self.head.method.as_str(),
            model: &ask.model,
            account: self.account,
            stream: ask.stream,
            body: self.body,
            refused: refused.is_some(),
        };
        let rule = chooser.rule(&facts);
        let known = chooser.models().to_vec();
        drop(chooser);
        if let Some(rule) = rule {
            return (plan::before_headers(&rule), self.scripted(&rule, &ask, state));
        }
        if let Some(refused) = refused {
            return (Vec::new(), self.error(dialect, refused.status, &refused.spec));
        }
        let plain = |body: Value| self.json(dialect, 200, body.to_string().into_bytes());
        let reply = match route {
            Route::Turn(..) => self.turn(&Rule::default(), &ask, state),
            Route::CountTokens(Dialect::Gemini, _) => plain(json!({"totalTokens": ask.prompt_words})),
            Route::CountTokens(Dialect::Responses, _) => {
                plain(json!({"object": "response.input_tokens", "input_tokens": ask.prompt_words}))
            }
            Route::CountTokens(Dialect::Chat | Dialect::Completions | Dialect::Messages, _) => {
                plain(json!({"input_tokens": ask.prompt_words}))
            }
            Route::Embed(..) => {
                let made = if dialect == Dialect::Gemini { embed::gemini(body) } else { embed::openai(body) };
                match made {
                    Ok(made) => plain(made),
                    Err(refused) => self.error(dialect, refused.status, &refused.spec),
                }
            }
            Route::Models => plain(models::list(dialect, &known)),
            Route::Model(id) => match models::get(dialect, id, &known) {
                Some(model) => plain(model),
                None => {
                    let spec = ErrorSpec { message: Some(format!("model: {id}")), ..ErrorSpec::default() };
                    self.error(dialect, 404, &spec)
                }
            },
            Route::Transcript => plain(state.ledger.transcript()),
            Route::DevinTranscript => plain(state.devin.transcript()),
            Route::Unknown => {
                let spec = ErrorSpec { message: Some(format!("The lab has no {path}.")), ..ErrorSpec::default() };
                self.error(dialect, 404, &spec)
            }
        };
        (Vec::new(), reply)
    }

    fn refused(
        &self,
        route: &Route<'_>,
        ask: &Ask,
        body: Option<&Value>,
        known: &[String],
        state: &State,
    ) -> Result<(), Refused> {
        if self.unread {
            return Err(Refused::new(413, "The request body is too large, or was not sent whole."));
        }
        let (headers, dialect) = (&self.head.headers, ask.dialect);
        let wanted = match route {
            Route::Turn(..) | Route::CountTokens(..) | Route::Embed(..) => Method::POST,
            Route::Models | Route::Model(_) => Method::GET,
            Route::Transcript | Route::DevinTranscript | Route::Unknown => return Ok(()),
        };
        if self.head.method != wanted {
            return Err(Refused::new(405, format!("Method not allowed: use {wanted}.")));
        }
        check::entitled(dialect, headers)?;
        if let (Route::Turn(Dialect::Responses, _), Some(id)) = (route, body.and_then(previous))
            && state.kept.items(id).is_none()
        {
            let text = format!("Previous response with id '{id}' not found.");
            return Err(Refused::bad(text).param("previous_response_id").code("previous_response_not_found"));
        }
        let model = match route {
            Route::Turn(..) | Route::CountTokens(..) | Route::Embed(..) => ask.model.as_str(),
            Route::Models | Route::Model(_) | Route::Transcript | Route::DevinTranscript | Route::Unknown => "",
        };
        state.accounts.check(dialect, self.account, model)?;
        match route {
            Route::Turn(..) => check::turn(dialect, headers, body, false, model, known, &state.signatures),
            Route::CountTokens(..) => check::turn(dialect, headers, body, true, model, known, &state.signatures),
            Route::Embed(..) => check::known_model(dialect, model, known),
            Route::Models | Route::Model(_) | Route::Transcript | Route::DevinTranscript | Route::Unknown => Ok(()),
        }
    }

    /// The reply of a rule.
    fn scripted(&self, rule: &Rule, ask: &Ask, state: &State) -> Reply {
        let reply = if rule.fault == Some(Fault::Html) {
            let page = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>";
            self.literal(rule, ask, 502, "text/html", plan::halves(None, page.to_vec()))
        } else if let Some(spec) =
            rule.error.as_ref().filter(|_| rule.fault != Some(Fault::ErrorInStream) || !ask.stream)
        {
            // With a status of its own the rule may wrap one error into the shell of another, or of a success.
            self.error(ask.dialect, spec.status.or(rule.status).unwrap_or(500), spec)
        } else if rule.fault == Some(Fault::ErrorInStream) && !ask.stream {
            self.error(ask.dialect, rule.status.unwrap_or(500), &ErrorSpec::default())
        } else if let Some(raw) = &rule.raw {
            let pieces = plan::halves(Some(rule), raw.clone().into_bytes());
            self.literal(rule, ask, 200, "application/json", pieces)
        } else if let Some(raw) = &rule.raw_bytes {
            self.literal(rule, ask, 200, "application/json", plan::halves(Some(rule), raw.clone()))
        } else if !rule.raw_frames.is_empty() {
            let last = rule.raw_frames.len() - 1;
            let piece = |(at, frame): (usize, &String)| {
                Piece::new(if at == last { Mark::Terminal } else { Mark::Word }, frame.clone())
            };
            let pieces = rule.raw_frames.iter().enumerate().map(piece).collect();
            let mut reply = self.literal(rule, ask, 200, "text/event-stream", pieces);
            reply.sized = false;
            reply
        } else {
            self.turn(rule, ask, state)
        };
        bent(rule, reply)
    }

    /// A call of Devin's API: refused, scripted or done.
    fn devin(&self, call: devin::Call<'_>, state: &State) -> (Vec<Step>, Reply) {
        let refused = call.refused(&state.accounts, Some(self.account));
        let facts = Facts {
            path: self.head.uri.path(),
            method: self.head.method.as_str(),
            model: "",
            account: self.account,
            stream: false,
            body: self.body,
            refused: refused.is_some(),
        };
        let rule = state.chooser().rule(&facts);
        let perform = || call.perform(&state.devin, &state.gates, self.account, self.body);
        let Some(rule) = rule else {
            return (Vec::new(), self.devin_reply(&Rule::default(), refused.unwrap_or_else(perform)));
        };
        let literal = rule.raw.is_some() || rule.raw_bytes.is_some() || rule.fault == Some(Fault::Html);
        if rule.done && (literal || rule.error.is_some()) {
            perform();
        }
        let reply = if let Some(spec) = &rule.error {
            let message = json!(spec.message.as_deref().unwrap_or("The lab says no."));
            let detail = match &spec.code {
                Some(code) => json!({"code": code, "message": message}),
                None => message,
            };
            let status = spec.status.or(rule.status).unwrap_or(500);
            self.devin_reply(
                &rule,
                devin::Done { status, body: devin::detail_of(detail), retry_after: spec.retry_after },
            )
        } else if literal {
            let ask = ask::read(Dialect::Chat, ask::InPath::default(), &Value::Null);
            return (plan::before_headers(&rule), self.scripted(&rule, &ask, state));
        } else {
            self.devin_reply(&rule, perform())
        };
        (plan::before_headers(&rule), bent(&rule, reply))
    }

    fn devin_reply(&self, rule: &Rule, done: devin::Done) -> Reply {
        let ask = ask::read(Dialect::Chat, ask::InPath::default(), &Value::Null);
        let pieces = plan::halves(Some(rule), done.body.to_string().into_bytes());
        let mut reply = self.literal(rule, &ask, done.status, "application/json", pieces);
        if let Some(seconds) = done.retry_after {
            reply.headers.push((header::RETRY_AFTER, HeaderValue::from(seconds)));
        }
        reply
    }

    /// A turn's reply: the rule's answer, or the lab's own, as the rule bends it.
    fn turn(&self, rule: &Rule, ask: &Ask, state: &State) -> Reply {
        let id = state.numbering.next();
        let mut answer = match rule.composes() {
            true => answer::scripted(rule, ask, id),
            false => brain::answer(ask, id),
        };
        answer::adjust(&mut answer, rule);
        if rule.fault == Some(Fault::OversizedEvent) {
            oversize(&mut answer, rule);
        }
        if let Some(thought) = &answer.thought {
            state.signatures.remember(&thought.signature);
        }
        if ask.dialect == Dialect::Responses && ask.body["store"] != json!(false) {
            let mut items = kept::input(&ask.body);
            items.extend(responses::output(ask, &answer));
            let previous = previous(&ask.body).map(str::to_owned);
            state.kept.put(KeptAnswer { id: responses::id(&answer), previous, items });
        }
        let bytes = fault_bytes(rule, ask);
        let usage = Some(answer.usage).filter(|_| rule.fault != Some(Fault::ErrorInStream));
        if ask.stream {
            let pieces = match ask.dialect {
                Dialect::Chat => chat::stream(ask, &answer),
                Dialect::Completions => completions::stream(ask, &answer),
                Dialect::Responses => responses::stream(ask, &answer),
                Dialect::Messages => messages::stream(&answer),
                Dialect::Gemini => gemini::stream(ask, &answer),
            };
            let steps = plan::body(rule, pieces, &bytes);
            let mut reply = Reply { status: 200, headers: Vec::new(), steps, sized: false, usage };
            let kind = if ask.array { "application/json" } else { "text/event-stream; charset=utf-8" };
            self.usual_headers(&mut reply, ask.dialect, kind);
            reply.headers.push((header::CACHE_CONTROL, HeaderValue::from_static("no-cache")));
            return reply;
        }
        let body = match ask.dialect {
            Dialect::Chat => chat::whole(ask, &answer),
            Dialect::Completions => completions::whole(&answer),
            Dialect::Responses => responses::whole(ask, &answer),
            Dialect::Messages => messages::whole(&answer),
            Dialect::Gemini => gemini::whole(&answer),
        };
        let whole = match rule.fault {
            Some(Fault::BadJson) => vec![Piece::new(Mark::Terminal, &b"{\"id\": broken"[..])],
            Some(Fault::BadSse) => vec![Piece::new(Mark::Terminal, &b"{\"id\": \"\xff\xfe\"}"[..])],
            Some(_) | None => plan::halves(Some(rule), body),
        };
        let quiet = matches!(rule.fault, Some(Fault::BadJson | Fault::BadSse));
        let steps = match quiet {
            true => plan::body(&Rule { fault: None, ..rule.clone() }, whole, &bytes),
            false => plan::body(rule, whole, &bytes),
        };
        let mut reply = Reply { status: 200, headers: Vec::new(), steps, sized: true, usage };
        self.usual_headers(&mut reply, ask.dialect, "application/json");
        reply
    }

    fn literal(&self, rule: &Rule, ask: &Ask, status: u16, kind: &'static str, pieces: Vec<Piece>) -> Reply {
        let steps = plan::body(rule, pieces, &fault_bytes(rule, ask));
        let mut reply = Reply { status, headers: Vec::new(), steps, sized: true, usage: None };
        self.usual_headers(&mut reply, ask.dialect, kind);
        reply
    }

    fn json(&self, dialect: Dialect, status: u16, body: Vec<u8>) -> Reply {
        let steps = vec![Step::Last(body.into())];
        let mut reply = Reply { status, headers: Vec::new(), steps, sized: true, usage: None };
        self.usual_headers(&mut reply, dialect, "application/json");
        reply
    }

    fn error(&self, dialect: Dialect, status: u16, spec: &ErrorSpec) -> Reply {
        let body = match dialect {
            Dialect::Chat | Dialect::Completions | Dialect::Responses => chat::error(status, spec),
            Dialect::Gemini => gemini::error(status, spec),
            Dialect::Messages => messages::error(status, spec, &self.request_id()),
        };
        let mut reply = self.json(dialect, status, body.to_string().into_bytes());
        if let Some(seconds) = spec.retry_after {
            reply.headers.push((header::RETRY_AFTER, HeaderValue::from(seconds)));
        }
        reply
    }

    fn request_id(&self) -> String {
        format!("req_lab{:06}", self.sequence)
    }

    fn usual_headers(&self, reply: &mut Reply, dialect: Dialect, kind: &'static str) {
        reply.headers.push((header::CONTENT_TYPE, HeaderValue::from_static(kind)));
        let name = match dialect {
            Dialect::Chat | Dialect::Completions | Dialect::Responses | Dialect::Gemini => {
                HeaderName::from_static("x-request-id")
            }
            Dialect::Messages => HeaderName::from_static("request-id"),
        };
        if let Ok(value) = HeaderValue::from_str(&self.request_id()) {
            reply.headers.push((name, value));
        }
        if dialect == Dialect::Messages {
            let organisation = HeaderValue::from_static("lab-organization");
            reply.headers.push((HeaderName::from_static("anthropic-organization-id"), organisation));
        }
    }
}

/// A reply as its rule bends it, whatever it says.
fn bent(rule: &Rule, mut reply: Reply) -> Reply {
    if let Some(status) = rule.status {
        reply.status = status;
    }
    if let Some(encoding) = rule.content_encoding {
        reply = encoded(reply, encoding, rule.fault != Some(Fault::TruncatedEncoding));
    }
    if let Some(size) = rule.chunk_bytes {
        reply.steps = plan::rechunk(reply.steps, size);
    }
    if matches!(rule.fault, Some(Fault::NoTerminal | Fault::BadChunk)) {
        reply.sized = false;
    }
    reply.headers.extend(headers_of(rule));
    reply
}

/// The headers that a rule adds, with the moments in them filled in.
pub(crate) fn headers_of(rule: &Rule) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let now = moment::now();
    rule.headers.iter().filter_map(move |(name, value)| {
        let value = HeaderValue::from_str(&moment::fill(value, now)).ok()?;
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
    })
}

fn encoded(mut reply: Reply, encoding: ContentEncoding, whole: bool) -> Reply {
    match plan::encode(std::mem::take(&mut reply.steps), encoding, whole) {
        Ok(steps) => {
            reply.steps = steps;
            reply.headers.push((header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name())));
        }
        Err(error) => {
            tracing::error!(%error, "the reply could not be compressed");
            reply.status = 500;
        }
    }
    reply
}

/// Puts a word of `fault_bytes` bytes (16 MiB without it) where the fault stands.
pub(crate) fn oversize(answer: &mut Answer, rule: &Rule) {
    let size = rule.fault_bytes.unwrap_or(16 * 1024 * 1024).min(MAX_FAULT_BYTES);
    let thought = answer.thought.as_ref().map_or(0, |thought| thought.words.len());
    let at = match rule.fault_at.unwrap_or_else(|| Fault::OversizedEvent.usual_place()) {
        Point::BeforeHeaders | Point::AfterPreamble => 0,
        Point::AfterWords(words) => (words as usize).saturating_sub(thought).min(answer.words.len()),
        Point::BeforeTerminal => answer.words.len(),
    };
    answer.words.insert(at, "x".repeat(size));
}

fn fault_bytes(rule: &Rule, ask: &Ask) -> FaultBytes {
    let spec = rule.error.clone().unwrap_or_default();
    let status = spec.status.unwrap_or(500);
    match ask.dialect {
        Dialect::Responses => FaultBytes {
            bad_json: Bytes::from_static(b"event: response.output_text.delta\ndata: {\"type\": broken\n\n"),
            bad_utf8: Bytes::from_static(b"event: response.output_text.delta\ndata: {\"type\": \"\xff\xfe\"}\n\n"),
            error: responses::error_event(&spec).into(),
        },
        Dialect::Gemini => FaultBytes {
            bad_json: Bytes::from_static(b"data: {\"candidates\": broken\n\n"),
            bad_utf8: Bytes::from_static(b"data: {\"modelVersion\": \"\xff\xfe\"}\n\n"),
            error: format!("data: {}\n\n", gemini::error(status, &spec)).into(),
        },
        Dialect::Chat | Dialect::Completions => FaultBytes {
            bad_json: Bytes::from_static(b"data: {\"id\": broken\n\n"),
            bad_utf8: Bytes::from_static(b"data: {\"id\": \"\xff\xfe\"}\n\n"),
            error: format!("data: {}\n\n", chat::error(status, &spec)).into(),
        },
        Dialect::Messages => FaultBytes {
            bad_json: Bytes::from_static(b"event: content_block_delta\ndata: {\"type\": broken\n\n"),
            bad_utf8: Bytes::from_static(b"event: content_block_delta\ndata: {\"type\": \"\xff\xfe\"}\n\n"),
            error: format!("event: error\ndata: {}\n\n", messages::error_event(status, &spec)).into(),
        },
    }
}

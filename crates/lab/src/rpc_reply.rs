//! The replies to calls: the chat service of the Connect schema, and the Cascade service.

use bytes::Bytes;
use http::{HeaderValue, header};
use turnkeep_proto::cascade::v1 as pb;
use turnkeep_proto::cascade::v1::{position_response, send_response, start_response, step, watch_response};
use turnkeep_proto::connect::v1 as chat;

use crate::answer::{self, Answer};
use crate::ask::{Ask, Dialect};
use crate::cascade::{Asked as InConversation, Logged, Sent};
use crate::choose::Facts;
use crate::fault::Fault;
use crate::frame::{Mark, Piece};
use crate::handler::{Asked, Reply, State, headers_of, oversize};
use crate::plan::{self, FaultBytes, Step};
use crate::rpc::{Failed, Manner, Spoken};
use crate::rpc_frames::{failed, head, one, plain, stream};
use crate::script::{RefusalSpec, Rule};
use crate::{brain, rpc_chat};

/// A call of one of the services, below whatever path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Chat,
    Start,
    Send,
    Watch,
    Position,
    Cancel,
    Health,
    Unknown,
}

fn method(path: &str) -> Option<Method> {
    let call = path.rfind("/turnkeep.").and_then(|at| path.get(at + 1..))?;
    Some(match call {
        "turnkeep.connect.v1.ChatService/Chat" => Method::Chat,
        "turnkeep.cascade.v1.CascadeService/Start" => Method::Start,
        "turnkeep.cascade.v1.CascadeService/Send" => Method::Send,
        "turnkeep.cascade.v1.CascadeService/Watch" => Method::Watch,
        "turnkeep.cascade.v1.CascadeService/Position" => Method::Position,
        "turnkeep.cascade.v1.CascadeService/Cancel" => Method::Cancel,
        "turnkeep.cascade.v1.CascadeService/Health" => Method::Health,
        _ => Method::Unknown,
    })
}

/// A request's message.
enum Called {
    Chat(Box<chat::ChatRequest>),
    Start(pb::StartRequest),
    Send(Box<pb::SendRequest>),
    Watch(pb::WatchRequest),
    Position(pb::PositionRequest),
    Cancel(pb::CancelRequest),
    Health,
}

impl Asked<'_> {
    /// The reply to a call; `None` if the request is none.
    pub(crate) fn call(&self, state: &State) -> Option<(Vec<Step>, Reply)> {
        let method = method(self.head.uri.path())?;
        let Some(mut spoken) = Spoken::of(&self.head.headers) else {
            return Some((Vec::new(), plain(415, "text/plain", Bytes::new())));
        };
        let called = match self.called(spoken, method) {
            Ok(called) => called,
            Err(error) => return Some((Vec::new(), failed(spoken, &error))),
        };
        let name = match &called {
            Called::Send(call) => call.conversation.as_str(),
            Called::Watch(call) => call.conversation.as_str(),
            Called::Position(call) => call.conversation.as_str(),
            Called::Cancel(call) => call.conversation.as_str(),
            Called::Chat(_) | Called::Start(_) | Called::Health => "",
        };
        let model = match &called {
            Called::Chat(call) => call.model.clone(),
            Called::Start(call) => call.model.clone(),
            Called::Send(_) | Called::Watch(_) | Called::Position(_) | Called::Cancel(_) | Called::Health => {
                state.cascade.model(name).unwrap_or_default()
            }
        };
        let refused = self.refuses(&model, state);
        let facts = Facts {
            path: self.head.uri.path(),
            method: self.head.method.as_str(),
            model: &model,
            account: self.account,
            stream: matches!(called, Called::Watch(_)) || matches!(&called, Called::Chat(call) if call.stream),
            body: self.body,
            refused: refused.is_some(),
        };
        let rule = state.chooser().rule(&facts);
        if let Some(refused) = refused.filter(|_| rule.is_none()) {
            return Some((Vec::new(), failed(spoken, &refused)));
        }
        let rule = rule.unwrap_or_default();
        spoken.coding = rule.content_encoding;
        let mut reply = self.scripted_call(spoken, &rule, called, state);
        if let Some(status) = rule.status {
            reply.status = status;
        }
        if let Some(size) = rule.chunk_bytes {
            reply.steps = plan::rechunk(reply.steps, size);
        }
        reply.headers.extend(headers_of(&rule));
        Some((plan::before_headers(&rule), reply))
    }

    fn called(&self, spoken: Spoken, method: Method) -> Result<Called, Failed> {
        let (headers, body) = (&self.head.headers, self.body);
        let bad = |error| Failed::new("invalid_argument", error);
        let streams = matches!(method, Method::Chat | Method::Watch);
        if (spoken.manner == Manner::ConnectStream) != streams && spoken.manner != Manner::Grpc {
            return Err(Failed::new("unimplemented", "the method is not called in this manner"));
        }
        Ok(match method {
            Method::Chat => Called::Chat(Box::new(spoken.read(headers, body).map_err(bad)?)),
            Method::Start => Called::Start(spoken.read(headers, body).map_err(bad)?),
            Method::Send => Called::Send(Box::new(spoken.read(headers, body).map_err(bad)?)),
            Method::Watch => Called::Watch(spoken.read(headers, body).map_err(bad)?),
            Method::Position => Called::Position(spoken.read(headers, body).map_err(bad)?),
            Method::Cancel => Called::Cancel(spoken.read(headers, body).map_err(bad)?),
            Method::Health => {
                let _read: pb::HealthRequest = spoken.read(headers, body).map_err(bad)?;
                Called::Health
            }
            Method::Unknown => return Err(Failed::new("unimplemented", "the lab has no such method")),
        })
    }

    /// What the state of the account, or the list of models, refuses.
    fn refuses(&self, model: &str, state: &State) -> Option<Failed> {
        if let Err(refused) = state.accounts.check(Dialect::Chat, self.account, model) {
            let message = refused.spec.message.clone();
            let spec = crate::ErrorSpec { message, ..crate::ErrorSpec::default() };
            return Some(Failed::of(&spec, refused.status));
        }
        let known = state.chooser().models().to_vec();
        let unknown = !model.is_empty() && !known.is_empty() && !known.iter().any(|name| name == model);
        unknown.then(|| Failed::new("not_found", format!("there is no model {model}")))
    }

    fn scripted_call(&self, spoken: Spoken, rule: &Rule, called: Called, state: &State) -> Reply {
        if rule.fault == Some(Fault::Html) {
            return plain(502, "text/html", Bytes::from_static(b"<html><body><h1>502 Bad Gateway</h1></body></html>"));
        }
        let raw = rule.raw.clone().map(String::into_bytes).or_else(|| rule.raw_bytes.clone());
        if let Some(raw) = raw {
            let steps = plan::body(rule, plan::halves(Some(rule), raw), &FaultBytes::default());
            let mut reply = Reply { status: 200, headers: Vec::new(), steps, sized: false, usage: None };
            head(&mut reply, spoken);
            return reply;
        }
        let in_stream = rule.fault == Some(Fault::ErrorInStream);
        let error = rule.error.as_ref().map(|spec| Failed::of(spec, spec.status.or(rule.status).unwrap_or(500)));
        if let Some(error) = error.as_ref().filter(|_| !in_stream) {
            // A server may fail after it has begun.
            if rule.takes_anyway
                && let Called::Send(call) = &called
            {
                let _taken = take(state, rule, call);
            }
            let mut reply = failed(spoken, error);
            if let Some(seconds) = rule.error.as_ref().and_then(|spec| spec.retry_after) {
                reply.headers.push((header::RETRY_AFTER, HeaderValue::from(seconds)));
            }
            return reply;
        }
        let error = error.unwrap_or_else(|| Failed::new("internal", "the lab fails in the middle"));
        match called {
            Called::Chat(call) => chats(spoken, rule, &call, &error, state),
            Called::Watch(call) => watches(spoken, rule, &call, &error, state),
            Called::Start(call) => {
                let outcome = match &rule.refuse {
                    Some(spec) => start_response::Outcome::Refused(state.cascade.refuse("", spec.refusal())),
                    None => {
                        let (conversation, instance) = state.cascade.start(&call.model);
                        start_response::Outcome::Started(pb::Conversation { conversation, position: 0, instance })
                    }
                };
                one(spoken, rule, &pb::StartResponse { outcome: Some(outcome) })
            }
            Called::Send(call) => {
                let taken = match &rule.refuse {
                    Some(spec) => {
                        if rule.takes_anyway {
                            let _taken = take(state, rule, &call);
                        }
                        Err(spec.refusal())
                    }
                    None => take(state, rule, &call),
                };
                let outcome = match taken {
                    Ok(offset) => send_response::Outcome::Taken(pb::Taken { offset }),
                    Err(refusal) => send_response::Outcome::Refused(state.cascade.refuse(&call.conversation, refusal)),
                };
                one(spoken, rule, &pb::SendResponse { outcome: Some(outcome) })
            }
            Called::Position(call) => {
                let conversation = call.conversation;
                let outcome = match state.cascade.position(&conversation) {
                    Ok((position, instance)) => {
                        position_response::Outcome::At(pb::Conversation { conversation, position, instance })
                    }
                    Err(refusal) => position_response::Outcome::Refused(refusal),
                };
                one(spoken, rule, &pb::PositionResponse { outcome: Some(outcome) })
            }
            Called::Cancel(call) => {
                state.cascade.cancel(&call.conversation, call.position, call.close);
                one(spoken, rule, &pb::CancelResponse {})
            }
            Called::Health => {
                let models = state.chooser().models().to_vec();
                one(spoken, rule, &pb::HealthResponse { instance: state.cascade.instance(), models })
            }
        }
    }
}

/// The answer of a rule, or the lab's own.
fn answered(rule: &Rule, ask: &Ask, state: &State) -> Answer {
    let id = state.numbering.next();
    let mut answer = match rule.composes() {
        true => answer::scripted(rule, ask, id),
        false => brain::answer(ask, id),
    };
    answer::adjust(&mut answer, rule);
    if rule.fault == Some(Fault::OversizedEvent) {
        oversize(&mut answer, rule);
    }
    answer
}

fn chats(spoken: Spoken, rule: &Rule, call: &chat::ChatRequest, error: &Failed, state: &State) -> Reply {
    let ask = rpc_chat::ask(&call.model, &call.messages, &call.tools, call);
    let answer = answered(rule, &ask, state);
    let pieces = rpc_chat::events(&answer).into_iter();
    let pieces = pieces.map(|(mark, event)| Piece::new(mark, spoken.write(&event))).collect();
    stream(spoken, rule, pieces, error, Some(answer.usage))
}

/// Takes a turn; its steps are worked out here, as the rule of the send says.
fn take(state: &State, rule: &Rule, call: &pb::SendRequest) -> Result<u64, pb::Refusal> {
    let nothing = chat::ChatRequest::default();
    let turn = call.turn.as_ref().unwrap_or(&nothing);
    let sent = Sent { name: &call.conversation, position: call.position, instance: &call.instance, turn };
    state.cascade.take(&sent, |asked: &InConversation<'_>| {
        let ask = rpc_chat::ask(asked.model, asked.messages, asked.tools, turn);
        let mut answer = answered(rule, &ask, state);
        if rule.usage.cached.is_none() {
            answer.usage.cached = asked.known_words.min(answer.usage.prompt);
        }
        let mut steps: Vec<Logged> = rpc_chat::events(&answer)
            .into_iter()
            .map(|(mark, event)| {
                // The end is the final step; the model's own finish is a step like others.
                let mark = if mark == Mark::Finish { Mark::Between } else { mark };
                Logged { mark, what: Some(step::What::Event(event)) }
            })
            .collect();
        match &rule.fail {
            None => {
                steps.push(Logged { mark: Mark::Finish, what: Some(step::What::Final(pb::Final {})) });
                (steps, Some(rpc_chat::answered(&answer)))
            }
            Some(spec) => {
                // It fails after its first word.
                let words = steps.iter().position(|step| step.mark == Mark::Word).map_or(steps.len(), |at| at + 1);
                steps.truncate(words);
                steps.push(Logged { mark: Mark::Finish, what: Some(step::What::Failed(spec.refusal())) });
                (steps, None)
            }
        }
    })
}

fn watches(spoken: Spoken, rule: &Rule, call: &pb::WatchRequest, error: &Failed, state: &State) -> Reply {
    let repeats = rule.fault == Some(Fault::RepeatSteps);
    let from = if repeats { 0 } else { call.offset };
    let Some(mut steps) = state.cascade.watch(&call.conversation, from) else {
        return failed(spoken, &Failed::new("not_found", "there is no such conversation"));
    };
    if rule.fault == Some(Fault::SkipStep)
        && let Some(second) = steps.iter().enumerate().filter(|(_, (_, step))| step.mark == Mark::Word).nth(1)
    {
        let at = second.0;
        steps.remove(at);
    }
    let mut pieces = Vec::new();
    let mut last = None;
    for (offset, step) in steps {
        let what = watch_response::What::Step(pb::Step { offset, what: step.what });
        let bytes = spoken.write(&pb::WatchResponse { what: Some(what) });
        if step.mark == Mark::Finish {
            last = Some((offset, bytes.clone()));
        }
        if repeats {
            pieces.push(Piece::new(step.mark, bytes.clone()));
        }
        pieces.push(Piece::new(step.mark, bytes));
    }
    let mut reply = stream(spoken, rule, pieces, error, None);
    if let Some((offset, bytes)) = last {
        // Whoever has the last step may send the next turn at once.
        let is_last = |step: &Step| matches!(step, Step::Send(sent) if sent.as_ptr() == bytes.as_ptr());
        if let Some(at) = reply.steps.iter().position(is_last) {
            reply.steps.insert(at, Step::Shown { name: call.conversation.clone(), offset });
        }
    }
    reply
}

impl RefusalSpec {
    fn refusal(&self) -> pb::Refusal {
        pb::Refusal {
            reason: pb::Reason::from_str_name(&format!("REASON_{}", self.reason.to_ascii_uppercase()))
                .unwrap_or(pb::Reason::Unspecified)
                .into(),
            message: self.message.clone().unwrap_or_else(|| format!("the lab refuses: {}", self.reason)),
            retry_after_ms: self.retry_after_ms,
            of_model: self.of_model,
        }
    }
}

/// The names of reasons that a script may give.
pub(crate) fn is_reason(name: &str) -> bool {
    pb::Reason::from_str_name(&format!("REASON_{}", name.to_ascii_uppercase())).is_some()
}

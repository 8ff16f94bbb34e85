//! A Cascade server: conversations are kept there, and a turn that goes on sends only what is new.
//!
//! A turn is sent at the position where the conversation is believed to be, so that it is taken once or not at all; its
//! answer is read by watching from an offset, so that a connection that breaks loses nothing. From the moment that a turn
//! may have been taken until its final step, a [`cancel::Guard`] stands behind it: whatever drops it, the server is told.
//!
//! It knows no lease: it tells what was refused, with proof, and how a conversation stands after a complete answer.

mod answer;
mod calls;
mod cancel;
pub(crate) mod fuzzed;
mod link;
mod looks;
mod refusal;
mod steps;

pub use link::{CascadeHost, CascadePlace};

use crate::connect_chat::write;
use crate::rpc::{Codec, RpcFault, RpcSpec, Told};
use crate::spec::EndpointError;
use answer::CascadeAnswer;
use bytes::{BufMut, BytesMut};
use cancel::Guard;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use link::{HEALTH_WAIT, Link, Links};
use prost::Message;
use refusal::{fault, is_failure, proof};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use steps::Steps;
use tokio::time::Instant;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Lease, Phase};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::turn::Turn;
use turnkeep_engine::ports::{Ask, Native, NativeAnswer, NativeWritten, SendFault, Writing};
use turnkeep_policy::conversations::{Conversation, RefusalProof};
use turnkeep_proto::cascade::v1::{SendRequest, SendResponse, send_response};

/// What a Cascade driver is made of.
#[derive(Clone)]
pub struct CascadeSpec {
    /// The server and how it is spoken to. With a host, `base_url` is not looked at. The codec is always the binary one.
    pub rpc: RpcSpec,
    /// Who knows where the server is, where that is not always the same place: a process that is started here.
    pub host: Option<Arc<dyn CascadeHost>>,
    /// How long it may take to tell its health.
    pub health_within: Duration,
}

impl CascadeSpec {
    /// A server that is always at the spec's own place, with 10 s to tell its health.
    pub fn new(rpc: RpcSpec) -> CascadeSpec {
        CascadeSpec { rpc, host: None, health_within: HEALTH_WAIT }
    }
}

impl fmt::Debug for CascadeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosted = self.host.is_some();
        f.debug_struct("CascadeSpec").field("rpc", &self.rpc).field("hosted", &hosted).finish()
    }
}

/// The driver of a Cascade server. Replay-safe, with mutable conversations.
#[derive(Debug)]
pub struct Cascade {
    links: Arc<Links>,
}

/// The first byte of a written turn: the answer is read as it is made.
const STREAMED: u8 = 1;

impl Cascade {
    /// Makes a driver; opens no connection and starts no process.
    pub fn new(spec: CascadeSpec) -> Result<Cascade, EndpointError> {
        Cascade::made(spec, None)
    }

    /// The driver that comes after another one whose host lends some of the same processes: what was known of those stays
    /// known, and turns that run in the other one tell this one, too.
    pub fn after(before: &Cascade, spec: CascadeSpec) -> Result<Cascade, EndpointError> {
        Cascade::made(spec, Some(&before.links))
    }

    fn made(mut spec: CascadeSpec, before: Option<&Links>) -> Result<Cascade, EndpointError> {
        spec.rpc.codec = Codec::Proto;
        Ok(Cascade { links: Arc::new(Links::new(spec, before)?) })
    }

    /// The upstream's name.
    pub fn name(&self) -> &Arc<str> {
        self.links.name()
    }

    /// By which way its calls leave: `direct`, or `proxy HOST:PORT`.
    pub fn egress(&self) -> &Arc<str> {
        self.links.egress()
    }

    /// Forgets an account that was removed.
    pub fn forget_account(&self, account: &AccountId) {
        self.links.forget(account);
    }

    /// Asks the server whether it takes turns.
    pub async fn health(&self, account: &AccountId, secret: &turnkeep_base::Secret) -> Result<(), Fault> {
        self.links.doubt(account);
        self.links.link(account, secret, None).await.map(drop)
    }

    /// `guard` stands behind the conversation that goes on; let go of, it ends that.
    async fn begin(&self, ask: Ask, mut guard: Option<Guard>) -> Result<Box<dyn NativeAnswer>, SendFault> {
        let begun = self.begin_guarded(ask, &mut guard).await;
        if let (Err(SendFault { refused: Some(_), .. }), Some(guard)) = (&begun, &mut guard) {
            // It goes on, later.
            guard.disarm();
        }
        begun
    }

    async fn begin_guarded(&self, ask: Ask, guard: &mut Option<Guard>) -> Result<Box<dyn NativeAnswer>, SendFault> {
        let until = Instant::now().checked_add(ask.time_left);
        let mut body = ask.body.clone();
        let (streamed, turn) = match body.split_first() {
            Some((first, _)) => (*first == STREAMED, body.split_off(1)),
            None => return Err(SendFault::unsure(bug("a turn without a body"))),
        };
        let mut link = match self.links.link(&ask.account, &ask.secret, until).await {
            Ok(link) => link.tracing(&ask.trace),
            Err(fault) => return Err(nothing_left(fault)),
        };
        let continued = ask.resume.is_some();
        let at = match &ask.resume {
            Some(conversation) => match self.found(&link, conversation, ask.reread).await {
                Ok(at) => at,
                Err(fault) => return Err(nothing_left(fault)),
            },
            None => match link.start(&ask.model).await {
                Ok(at) => {
                    link.is_of(at.instance);
                    at
                }
                Err(fault) => return Err(nothing_left(fault)),
            },
        };
        let behind = guard.get_or_insert_with(|| Guard::new(link.clone(), &at.handle, at.position));
        let head = SendRequest {
            conversation: at.handle.to_string(),
            position: at.position,
            instance: link.instance().to_be_bytes().to_vec(),
            turn: None,
        };
        // Fields may follow each other in any order, so the head goes before the turn as it was written.
        let mut message = BytesMut::with_capacity(head.encoded_len() + turn.len());
        message.put(head.encode_to_vec().as_slice());
        message.put(turn);
        let outcome = link.send(message.freeze(), continued).await;
        let refused = match outcome.and_then(|reply| taken(&reply, at.position)) {
            Ok(offset) => {
                let watched_until = until.filter(|_| !streamed);
                let behind = behind.take();
                let answer = CascadeAnswer::new(link, behind, &at.handle, Steps::new(offset), watched_until);
                return Ok(Box::new(answer));
            }
            Err(failed) => failed,
        };
        link.heard(&refused.fault);
        if !continued {
            // A conversation that was begun for this turn has nothing to keep.
            drop(guard.take());
        }
        Err(self.refused(refused))
    }

    /// Where a conversation that goes on stands.
    async fn found(&self, link: &Link, conversation: &Conversation, reread: bool) -> Result<At, Fault> {
        if conversation.instance != Some(link.instance()) {
            return Err(gone("another process of the server began the conversation"));
        }
        let handle = conversation.handle.clone();
        let known = conversation.position;
        if let Some(position) = known.filter(|_| !reread) {
            return Ok(At { handle, position, instance: link.instance() });
        }
        let at = link.position(&handle).await?;
        match known {
            Some(known) if known != at.position => {
                Err(gone(format!("the conversation stood at {known} and has moved to {}", at.position)))
            }
            Some(_) | None => Ok(at),
        }
    }

    /// A send that came to nothing, with its proof if there is one.
    fn refused(&self, failed: RpcFault) -> SendFault {
        let RpcFault { fault, told } = failed;
        let refused = match told {
            Told::Unsent => Some(RefusalProof::never_left()),
            Told::Refused => proof(&fault, false),
            Told::Failed => proof(&fault, true),
            Told::Unknown => None,
        };
        SendFault { fault, refused }
    }
}

/// A conversation at the server.
struct At {
    handle: Arc<str>,
    position: u64,
    instance: u128,
}

/// What a send was answered with: the first offset of its answer, or why not.
fn taken(reply: &Taken, position: u64) -> Result<u64, RpcFault> {
    match &reply.response.outcome {
        Some(send_response::Outcome::Taken(taken)) if taken.offset > position => Ok(taken.offset),
        Some(send_response::Outcome::Taken(taken)) => {
            let text = format!("the turn was taken at {position}, and its answer would begin at {}", taken.offset);
            Err(malformed(text).into())
        }
        Some(send_response::Outcome::Refused(refusal)) => {
            let fault = fault(refusal, reply.continued);
            let told = if is_failure(refusal, reply.continued) { Told::Failed } else { Told::Refused };
            Err(RpcFault { fault, told })
        }
        None => Err(malformed("the send was answered by nothing").into()),
    }
}

/// The reply to a send.
struct Taken {
    response: SendResponse,
    continued: bool,
}

/// Nothing of the turn has left, whatever has failed; a conversation that is gone is gone all the same. That its position
/// is still to be read, where it was, the lease knows.
fn nothing_left(fault: Fault) -> SendFault {
    let refused = (verdict(&fault).row.lease != Lease::Dead).then(RefusalProof::never_left);
    SendFault { fault, refused }
}

fn gone(what: impl Into<String>) -> Fault {
    Fault::new(FaultKind::ConversationGone, Phase::Unsent, Evidence::text(what))
}

fn malformed(what: impl Into<String>) -> Fault {
    Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(what))
}

fn bug(what: &str) -> Fault {
    Fault::new(FaultKind::GatewayBug, Phase::Unsent, Evidence::text(what))
}

impl Native for Cascade {
    fn write(&self, turn: &Turn<'_>, how: Writing<'_>) -> Result<NativeWritten, Invalid> {
        let mut written = write::request(turn, how)?;
        if how.goes_on {
            // They stay as they were.
            written.request.tools.clear();
        }
        let request = SendRequest { turn: Some(written.request), ..SendRequest::default() };
        let mut body = BytesMut::with_capacity(1 + request.encoded_len());
        body.put_u8(if how.stream { STREAMED } else { 0 });
        body.put(request.encode_to_vec().as_slice());
        Ok(NativeWritten { body: body.freeze(), dropped: written.dropped, names: written.names })
    }

    fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Box<dyn NativeAnswer>, SendFault>> {
        // From here on, not from the first poll on: the conversation counts as sent.
        let guard = ask.resume.as_ref().and_then(|conversation| {
            let link = self.links.known(&ask.account)?;
            let keeps = conversation.instance == Some(link.instance());
            keeps.then(|| Guard::new(link, &conversation.handle, conversation.position.unwrap_or_default()))
        });
        self.begin(ask, guard).boxed()
    }

    fn stands(&self, conversation: &Conversation) -> bool {
        self.links.stands(conversation)
    }

    fn forget(&self, account: &AccountId, conversation: Conversation) {
        if let Some(link) = self.links.known(account).filter(|link| conversation.instance == Some(link.instance())) {
            drop(Guard::new(link, &conversation.handle, conversation.position.unwrap_or_default()));
        }
    }
}

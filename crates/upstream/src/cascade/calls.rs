//! The calls of the service, typed, with their replies read and their refusals as faults.

use super::link::{CANCEL_WAIT, Link};
use super::refusal::fault;
use super::{At, Taken, malformed};
use crate::rpc::{Codec, RpcCall, RpcFault, RpcReply, RpcStream};
use bytes::Bytes;
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::{Fault, FaultKind};
use turnkeep_policy::conversations::MAX_HANDLE;
use turnkeep_proto::cascade::v1::{
    CancelRequest, CancelResponse, HealthRequest, HealthResponse, PositionRequest, PositionResponse, SendResponse,
    StartRequest, StartResponse, WatchRequest, position_response, start_response,
};

macro_rules! method {
    ($name:literal) => {
        concat!("/turnkeep.cascade.v1.CascadeService/", $name)
    };
}

const HEALTH: &str = method!("Health");
const START: &str = method!("Start");
const SEND: &str = method!("Send");
const WATCH: &str = method!("Watch");
const POSITION: &str = method!("Position");
const CANCEL: &str = method!("Cancel");

impl Link {
    fn call(&self, method: &'static str, message: Bytes, time_left: Option<Duration>) -> RpcCall {
        RpcCall {
            method,
            message,
            account: self.account.clone(),
            secret: self.secret.clone(),
            time_left,
            metadata: self.trace.clone(),
            stateful: false,
            continued: false,
        }
    }

    fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// A call that is let go of unanswered is remembered.
    async fn unary(&self, call: RpcCall) -> Result<RpcReply, RpcFault> {
        let mut waits = Waits(Some(self));
        let reply = self.rpc.unary(call).await;
        waits.0 = None;
        reply
    }

    /// A call that brings nothing of the turn.
    async fn ask<Q: Message, R: Message + Default>(&self, method: &'static str, message: &Q) -> Result<R, RpcFault> {
        let call = self.call(method, message.encode_to_vec().into(), self.left());
        let reply = self.unary(call).await.map_err(|mut failed| {
            if failed.fault.kind == FaultKind::DeadlineExceeded {
                // Of this call, not of the turn, which has not left: no conversation is spoilt by it.
                failed.fault.kind = FaultKind::UpstreamUnavailable;
            }
            failed
        })?;
        read(&reply.message)
    }

    /// Which process it is.
    pub(super) async fn health(&self) -> Result<u128, Fault> {
        let health: HealthResponse = self.ask(HEALTH, &HealthRequest {}).await.map_err(|failed| failed.fault)?;
        instance(&health.instance)
    }

    /// Begins a conversation.
    pub(super) async fn start(&self, model: &str) -> Result<At, Fault> {
        let started = self.ask::<_, StartResponse>(START, &StartRequest { model: model.to_owned() }).await;
        let started = started.map_err(|failed| self.noted(failed.fault))?;
        match started.outcome {
            Some(start_response::Outcome::Started(at)) => {
                if at.conversation.is_empty() || at.conversation.len() > MAX_HANDLE {
                    let bytes = at.conversation.len();
                    return Err(malformed(format!(
                        "a conversation's name of {bytes} bytes: 1 to {MAX_HANDLE} were expected"
                    )));
                }
                Ok(At { handle: Arc::from(at.conversation), position: at.position, instance: instance(&at.instance)? })
            }
            Some(start_response::Outcome::Refused(refusal)) => Err(fault(&refusal, false)),
            None => Err(malformed("the start was answered by nothing")),
        }
    }

    /// Brings a turn: the written message.
    pub(super) async fn send(&self, message: Bytes, continued: bool) -> Result<Taken, RpcFault> {
        let call = RpcCall { stateful: true, continued, ..self.call(SEND, message, self.left()) };
        let sent = async { read::<SendResponse>(&self.unary(call).await?.message) };
        match sent.await {
            Ok(response) => Ok(Taken { response, continued }),
            Err(mut failed) => {
                if continued {
                    names_the_conversation(&mut failed.fault);
                }
                Err(failed)
            }
        }
    }

    /// Opens a watch. `until`: when the server may give up.
    pub(super) async fn watch(&self, handle: &str, offset: u64, until: Option<Instant>) -> Result<RpcStream, Fault> {
        let request = WatchRequest { conversation: handle.to_owned(), offset };
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let call = RpcCall { continued: true, ..self.call(WATCH, request.encode_to_vec().into(), left) };
        self.rpc.stream(call).await.map_err(|failed| {
            let mut fault = failed.fault;
            names_the_conversation(&mut fault);
            fault
        })
    }

    /// Where a conversation that goes on stands.
    pub(super) async fn position(&self, handle: &Arc<str>) -> Result<At, Fault> {
        let request = PositionRequest { conversation: handle.to_string() };
        let told = self.ask::<_, PositionResponse>(POSITION, &request).await.map_err(|failed| {
            let mut fault = self.noted(failed.fault);
            names_the_conversation(&mut fault);
            fault
        })?;
        match told.outcome {
            Some(position_response::Outcome::At(at)) => {
                Ok(At { handle: handle.clone(), position: at.position, instance: instance(&at.instance)? })
            }
            Some(position_response::Outcome::Refused(refusal)) => Err(fault(&refusal, true)),
            None => Err(malformed("the position was answered by nothing")),
        }
    }

    /// Ends the turn that was sent at a position, and the conversation.
    pub(super) async fn close(&self, handle: String, position: u64) -> Result<(), Fault> {
        let request = CancelRequest { conversation: handle, position, close: true };
        let call = self.call(CANCEL, request.encode_to_vec().into(), Some(CANCEL_WAIT));
        let reply = self.unary(call).await.map_err(|failed| failed.fault)?;
        read::<CancelResponse>(&reply.message).map(drop).map_err(|failed| failed.fault)
    }

    fn noted(&self, fault: Fault) -> Fault {
        self.heard(&fault);
        fault
    }
}

/// A call that waits for its answer.
struct Waits<'a>(Option<&'a Link>);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.0 {
            link.unanswered();
        }
    }
}

fn read<M: Message + Default>(message: &[u8]) -> Result<M, RpcFault> {
    M::decode(message).map_err(|error| malformed(format!("a message is not protobuf: {error}")).into())
}

/// Of a call that names nothing but a conversation, `not_found` in whatever words is said of that.
fn names_the_conversation(fault: &mut Fault) {
    if fault.evidence.code.as_deref() == Some("not_found") && fault.kind != FaultKind::ModelNotFound {
        fault.kind = FaultKind::ConversationGone;
    }
}

/// A process's name for itself.
fn instance(bytes: &[u8]) -> Result<u128, Fault> {
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| {
        malformed(format!(
            "the server's `instance` has {} bytes: 16 that its process drew by chance were expected",
            bytes.len()
        ))
    })?;
    Ok(u128::from_be_bytes(bytes))
}

/// The codec is the binary one, whatever the server's spec says.
pub(super) const CODEC: Codec = Codec::Proto;

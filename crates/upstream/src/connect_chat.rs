//! The driver of private backends that implement our published service (`proto/turnkeep/connect/v1/chat.proto`): a turn goes
//! in whole, events come out, and nothing is kept between turns.

pub(crate) mod read;
pub(crate) mod write;

use crate::rpc::{Rpc, RpcCall, RpcSpec, RpcStream};
use crate::spec::EndpointError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use read::Events;
use std::task::{Context, Poll, ready};
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_base::{AccountId, Fault};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::turn::Turn;
use turnkeep_engine::ports::{Ask, Happening, Native, NativeAnswer, NativeWritten, SendFault, Writing};
use turnkeep_policy::conversations::Conversation;
use turnkeep_proto::connect::v1::ChatEvent;

/// What a [`ConnectChat`] is made of.
pub type ConnectSpec = RpcSpec;

const CHAT: &str = "/turnkeep.connect.v1.ChatService/Chat";

/// What marks the state that such a backend, or a Cascade server, has made (the proofs of its thinking) on its way through a
/// client, so that no provider is given it and they are given no provider's. It is one mark for all of them.
const STATE: &str = "turnkeep.connect.";

/// A backend. It keeps no conversations, and sending a turn again does nothing twice.
#[derive(Debug)]
pub struct ConnectChat {
    rpc: Rpc,
}

impl ConnectChat {
    /// Makes a driver; opens no connection.
    pub fn new(spec: &ConnectSpec) -> Result<ConnectChat, EndpointError> {
        Ok(ConnectChat { rpc: Rpc::new(spec)? })
    }

    /// The connections under it.
    pub fn rpc(&self) -> &Rpc {
        &self.rpc
    }

    async fn ask(&self, ask: Ask) -> Result<Box<dyn NativeAnswer>, SendFault> {
        let Ask { body, model: _, account, secret, caller: _, resume: _, reread: _, time_left, trace } = ask;
        let call = RpcCall {
            method: CHAT,
            message: body,
            account,
            secret,
            time_left: Some(time_left),
            metadata: trace,
            stateful: false,
            continued: false,
        };
        // An error instead of the first event is a refusal of the turn.
        let sent = async { self.rpc.stream(call).await?.begun().await };
        let stream = sent.await.map_err(|fault| fault.into_send_fault(false))?;
        Ok(Box::new(Answer { rpc_codec: self.rpc.codec(), stream, events: Events::default() }))
    }
}

impl Native for ConnectChat {
    fn write(&self, turn: &Turn<'_>, how: Writing<'_>) -> Result<NativeWritten, Invalid> {
        let written = write::request(turn, how)?;
        let refuse = |message: String| Invalid { path: "messages".into(), message, at: 0 };
        let body: Bytes = self.rpc.codec().write(&written.request).map_err(|fault| refuse(fault.evidence.detail))?;
        if body.len() > MAX_EVENT {
            let size = body.len();
            return Err(refuse(format!(
                "the request becomes {size} bytes for this model's server, which takes {MAX_EVENT}"
            )));
        }
        Ok(NativeWritten { body, dropped: written.dropped, names: written.names })
    }

    fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Box<dyn NativeAnswer>, SendFault>> {
        Box::pin(self.ask(ask))
    }

    fn stands(&self, _conversation: &Conversation) -> bool {
        false
    }

    fn forget(&self, _account: &AccountId, _conversation: Conversation) {}
}

/// An answer under way. Dropping it cancels the call.
struct Answer {
    rpc_codec: crate::rpc::Codec,
    stream: RpcStream,
    events: Events,
}

impl NativeAnswer for Answer {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>> {
        loop {
            match self.events.next_event() {
                Ok(Some(event)) => return Poll::Ready(Some(Ok(Happening::Event(event)))),
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Some(Err(fault))),
            }
            if self.events.are_ended() {
                return Poll::Ready(None);
            }
            match ready!(self.stream.poll_message(cx)) {
                Some(Ok(message)) => match self.rpc_codec.read::<ChatEvent>(&message) {
                    Ok(event) => self.events.take(event),
                    Err(fault) => return Poll::Ready(Some(Err(fault))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error.fault))),
                None => self.events.end(),
            }
        }
    }

    fn conversation(&self) -> Option<Conversation> {
        None
    }
}

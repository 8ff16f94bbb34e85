//! An agent's process as a service under supervision: it is ready when it has agreed on the protocol's version.

use super::faults::{self, Asked, Failed};
use super::peer::{self, CallFailed, Peer};
use super::rpc::{self, RpcError};
use super::sessions::{Initialized, VERSION};
use super::spec::{Permissions, ToolActivity};
use crate::supervise::{NotReady, Running, Service, Started, Supervisor, Variables};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{FaultKind, Phase};

/// Talks to the agent in a process.
#[derive(Debug)]
pub(super) struct AgentService {
    pub(super) name: Arc<str>,
    pub(super) policy: Permissions,
    pub(super) activity: ToolActivity,
    pub(super) answer_within: Duration,
}

/// A hold of a running agent.
#[derive(Clone)]
pub(super) struct Hold {
    pub(super) running: Arc<Running<Peer>>,
    pub(super) supervisor: Arc<Supervisor<AgentService>>,
}

impl Hold {
    pub(super) fn instance(&self) -> u128 {
        self.running.process.instance()
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.running.client
    }

    /// It gets no new turns, and ends with its last one.
    pub(super) fn retire(&self) {
        self.supervisor.retire(self.instance());
    }

    /// The same, and it counts as a failure of its own.
    pub(super) fn dismiss(&self) {
        self.supervisor.dismiss(self.instance());
    }

    /// It is of no use: it is ended now, and that counts as a failure of its own.
    pub(super) fn condemn(&self) {
        self.supervisor.condemn(&self.running);
    }
}

impl Service for AgentService {
    type Client = Peer;
    type Place = ();

    fn place(&self, _instance: u128) -> Result<(Variables, ()), NotReady> {
        Ok((Vec::new(), ()))
    }

    fn ready(&self, started: Started, (): ()) -> BoxFuture<'_, Result<Peer, NotReady>> {
        Box::pin(async move {
            let Started { instance: _, pid: _, stdin, stdout } = started;
            let peer = peer::connect(self.name.clone(), self.policy, self.activity, stdin, stdout);
            let params = json!({
                "protocolVersion": VERSION,
                // Files and terminals are the agent's own business, in its own directory.
                "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
                "clientInfo": {"name": "turnkeep", "title": "Turnkeep", "version": env!("CARGO_PKG_VERSION")},
            });
            let answer: Initialized =
                peer.shared.call("initialize", params, self.answer_within).await.map_err(not_ready)?;
            if answer.version.as_u64() != Some(VERSION) {
                return Err(NotReady::unavailable(format!(
                    "the agent does not speak version {VERSION} of the Agent Client Protocol; it offers {}",
                    answer.version
                )));
            }
            let agent = answer.agent();
            Ok(peer.is(agent))
        })
    }
}

fn not_ready(failed: CallFailed) -> NotReady {
    match failed {
        CallFailed::Late(method) => NotReady::unavailable(format!("the agent does not answer {method}")),
        CallFailed::Failed(Failed::Error(error @ RpcError { code: rpc::AUTH_REQUIRED, .. })) => NotReady {
            kind: FaultKind::CredentialRejected,
            message: format!("the agent wants a login: {}", error.message),
        },
        CallFailed::Failed(failed) => {
            let fault = faults::of(&failed, Asked::New, Phase::Unsent);
            NotReady::unavailable(format!("the agent's answer to initialize: {fault}"))
        }
    }
}

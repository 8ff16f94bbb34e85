//! What an upstream speaks, with all that is its kind's own: what does not go together cannot be said.

use super::kind::{self, Kind};
use super::process::{self, Process};
use super::remote::{self, Remote};
use crate::config::read::Fields;
use std::time::Duration;
use turnkeep_engine::route::Reuse;

pub use turnkeep_agents::acp::{Permissions, ToolActivity};
pub use turnkeep_upstream::rpc::{Codec, Protocol as RpcProtocol};

/// The protocol of an upstream with all that is its own.
#[derive(Clone, Debug)]
pub enum Speaks {
    /// OpenAI Chat Completions.
    Openai(Remote),
    /// OpenAI Responses.
    OpenaiResponses {
        /// Where it is.
        remote: Remote,
        /// Whether its chains are gone on with.
        reuse: Reuse,
    },
    /// Anthropic Messages.
    Anthropic(Remote),
    /// Gemini generateContent.
    Gemini(Remote),
    /// The gateway's own chat service.
    Connect {
        /// Where it is.
        remote: Remote,
        /// How it is called.
        rpc: Rpc,
    },
    /// The gateway's own service of conversations.
    Cascade {
        /// Where it is.
        server: CascadeServer,
        /// How it is called; messages are protobuf always.
        protocol: RpcProtocol,
        /// Whether its conversations are gone on with.
        reuse: Reuse,
    },
    /// An agent that is a program.
    Acp {
        /// The program; one runs for each account.
        process: Process,
        /// What it may do.
        permissions: Permissions,
        /// What becomes of what it tells of its tools.
        tool_activity: ToolActivity,
        /// Whether its sessions are gone on with.
        reuse: Reuse,
    },
    /// Devin's sessions.
    Devin {
        /// Where it is.
        remote: Remote,
        /// How long it says nothing more before an answer counts as complete.
        quiet: Duration,
        /// Whether its sessions are gone on with.
        reuse: Reuse,
    },
}

/// Where a server of conversations is.
#[derive(Clone, Debug)]
pub enum CascadeServer {
    /// At an address.
    Remote(Remote),
    /// In a process that the gateway starts.
    Process(Process),
}

/// How the gateway's own services are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rpc {
    /// The protocol.
    pub protocol: RpcProtocol,
    /// How messages are written.
    pub codec: Codec,
}

impl Speaks {
    /// The kind.
    pub fn kind(&self) -> Kind {
        match self {
            Speaks::Openai(_) => Kind::Openai,
            Speaks::OpenaiResponses { .. } => Kind::OpenaiResponses,
            Speaks::Anthropic(_) => Kind::Anthropic,
            Speaks::Gemini(_) => Kind::Gemini,
            Speaks::Connect { .. } => Kind::Connect,
            Speaks::Cascade { .. } => Kind::Cascade,
            Speaks::Acp { .. } => Kind::Acp,
            Speaks::Devin { .. } => Kind::Devin,
        }
    }

    /// Where it is called, if it is called at an address of the configuration.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Speaks::Openai(remote)
            | Speaks::OpenaiResponses { remote, .. }
            | Speaks::Anthropic(remote)
            | Speaks::Gemini(remote)
            | Speaks::Connect { remote, .. }
            | Speaks::Cascade { server: CascadeServer::Remote(remote), .. }
            | Speaks::Devin { remote, .. } => Some(remote),
            Speaks::Cascade { server: CascadeServer::Process(_), .. } | Speaks::Acp { .. } => None,
        }
    }

    /// The process that the gateway starts for it, if it does.
    pub fn process(&self) -> Option<&Process> {
        match self {
            Speaks::Cascade { server: CascadeServer::Process(process), .. } | Speaks::Acp { process, .. } => {
                Some(process)
            }
            Speaks::Openai(_)
            | Speaks::OpenaiResponses { .. }
            | Speaks::Anthropic(_)
            | Speaks::Gemini(_)
            | Speaks::Connect { .. }
            | Speaks::Cascade { server: CascadeServer::Remote(_), .. }
            | Speaks::Devin { .. } => None,
        }
    }

    /// Whether its conversations are gone on with.
    pub fn reuse(&self) -> Reuse {
        match self {
            Speaks::OpenaiResponses { reuse, .. }
            | Speaks::Cascade { reuse, .. }
            | Speaks::Acp { reuse, .. }
            | Speaks::Devin { reuse, .. } => *reuse,
            Speaks::Openai(_) | Speaks::Anthropic(_) | Speaks::Gemini(_) | Speaks::Connect { .. } => Reuse::Off,
        }
    }

    /// An account needs what only the configuration's file can say, so the store has none of its accounts.
    pub fn accounts_in_file_only(&self) -> bool {
        self.process().is_some() || self.kind() == Kind::Devin
    }
}

/// Where Devin is.
const DEVIN: &str = "https://api.devin.ai";
/// How long Devin is quiet before its answer counts as complete: a rule of thumb.
const QUIET: Duration = Duration::from_secs(20);

/// Reads the keys of a kind, and notes those that are another's.
pub(super) fn read(fields: &Fields<'_>, kind: Kind, upstream: &str, plain: bool) -> Option<Speaks> {
    kind::refuse_keys_of_other_kinds(fields, kind);
    match kind {
        Kind::Openai => remote::read(fields, kind, plain, None).map(Speaks::Openai),
        Kind::Anthropic => remote::read(fields, kind, plain, None).map(Speaks::Anthropic),
        Kind::Gemini => remote::read(fields, kind, plain, None).map(Speaks::Gemini),
        Kind::OpenaiResponses => {
            let (remote, reuse) = (remote::read(fields, kind, plain, None), read_reuse(fields));
            Some(Speaks::OpenaiResponses { remote: remote?, reuse: reuse? })
        }
        Kind::Connect => {
            let (remote, rpc) = (remote::read(fields, kind, plain, None), read_rpc(fields));
            Some(Speaks::Connect { remote: remote?, rpc: rpc? })
        }
        Kind::Cascade => {
            let (server, reuse) = (read_server(fields, upstream, plain), read_reuse(fields));
            Some(Speaks::Cascade { server: server?, protocol: read_protocol(fields)?, reuse: reuse? })
        }
        Kind::Acp => {
            let (process, reuse) = (process::read(fields, upstream), read_reuse(fields));
            let permissions = [Permissions::Deny, Permissions::AllowRead, Permissions::Allow];
            let permissions = word(fields, "permissions", &permissions.map(|one| (one.name(), one)));
            let tools = [ToolActivity::Drop, ToolActivity::Notes];
            let tool_activity = word(fields, "tool_activity", &tools.map(|one| (one.name(), one)));
            Some(Speaks::Acp {
                process: process?,
                permissions: permissions?,
                tool_activity: tool_activity?,
                reuse: reuse?,
            })
        }
        Kind::Devin => {
            let (remote, reuse) = (remote::read(fields, kind, plain, Some(DEVIN)), read_reuse(fields));
            let quiet = match fields.get("quiet") {
                Some(item) => item.duration(Duration::from_millis(1), Duration::from_secs(3600)),
                None => Some(QUIET),
            };
            Some(Speaks::Devin { remote: remote?, quiet: quiet?, reuse: reuse? })
        }
    }
}

/// At an address, or a process; never both.
fn read_server(fields: &Fields<'_>, upstream: &str, plain: bool) -> Option<CascadeServer> {
    if fields.get("command").is_none() {
        if let Some(item) = fields.get("memory") {
            item.fail::<()>("bounds a process that the gateway starts, and there is no command; remove it, or add one");
        }
        return remote::read(fields, Kind::Cascade, plain, None).map(CascadeServer::Remote);
    }
    for key in remote::KEYS {
        if let Some(item) = fields.get(key) {
            item.fail::<()>(format!(
                "stands beside command: a process that the gateway starts is called on this machine; keep one of both, \
                 {key} or command"
            ));
        }
    }
    process::read(fields, upstream).map(CascadeServer::Process)
}

fn read_rpc(fields: &Fields<'_>) -> Option<Rpc> {
    let protocol = read_protocol(fields);
    let codec = word(fields, "codec", &[("proto", Codec::Proto), ("json", Codec::Json)]);
    Some(Rpc { protocol: protocol?, codec: codec? })
}

fn read_protocol(fields: &Fields<'_>) -> Option<RpcProtocol> {
    word(fields, "protocol", &[("connect", RpcProtocol::Connect), ("grpc", RpcProtocol::Grpc)])
}

fn read_reuse(fields: &Fields<'_>) -> Option<Reuse> {
    word(fields, "reuse", &[("prefer", Reuse::Prefer), ("strict", Reuse::Strict), ("off", Reuse::Off)])
}

/// One of a few words; the default where there is none.
fn word<T: Copy + Default>(fields: &Fields<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
    fields.get(key).map_or_else(|| Some(T::default()), |item| item.word(words, &[]))
}

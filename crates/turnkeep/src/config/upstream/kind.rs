//! The kinds of upstreams, and which keys are whose. A key that a kind has no use for is a mistake, never left unread.

use crate::config::read::Fields;
use crate::config::text::quoted_list;

/// The protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// OpenAI Chat Completions.
    Openai,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
    /// The gateway's own chat service, over the Connect protocol or gRPC.
    Connect,
    /// The gateway's own service of conversations, over the Connect protocol or gRPC.
    Cascade,
    /// An agent that is a program, by the Agent Client Protocol.
    Acp,
    /// Devin's sessions.
    Devin,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] = [
        Kind::Openai,
        Kind::OpenaiResponses,
        Kind::Anthropic,
        Kind::Gemini,
        Kind::Connect,
        Kind::Cascade,
        Kind::Acp,
        Kind::Devin,
    ];

    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Openai => "openai",
            Kind::OpenaiResponses => "openai-responses",
            Kind::Anthropic => "anthropic",
            Kind::Gemini => "gemini",
            Kind::Connect => "connect",
            Kind::Cascade => "cascade",
            Kind::Acp => "acp",
            Kind::Devin => "devin",
        }
    }
}

/// A key that not every kind takes.
struct Particular {
    key: &'static str,
    /// Those that do.
    kinds: &'static [Kind],
    /// What is true of every other kind, after its name.
    others: &'static str,
}

const ADDRESSED: &[Kind] =
    &[Kind::Openai, Kind::OpenaiResponses, Kind::Anthropic, Kind::Gemini, Kind::Connect, Kind::Cascade, Kind::Devin];
const KEEPING: &[Kind] = &[Kind::OpenaiResponses, Kind::Cascade, Kind::Acp, Kind::Devin];
const STARTED: &[Kind] = &[Kind::Cascade, Kind::Acp];
const CALLED: &[Kind] = &[Kind::Connect, Kind::Cascade];
const NO_ADDRESS: &str = "is a program that the gateway starts, and calls no address";
const NO_PROCESS: &str = "is called at its base_url, and no process is started for it";

const OF_UPSTREAMS: &[Particular] = &[
    Particular { key: "base_url", kinds: ADDRESSED, others: NO_ADDRESS },
    Particular { key: "headers", kinds: ADDRESSED, others: NO_ADDRESS },
    Particular { key: "ca", kinds: ADDRESSED, others: NO_ADDRESS },
    Particular { key: "proxy", kinds: ADDRESSED, others: NO_ADDRESS },
    Particular { key: "reuse", kinds: KEEPING, others: "keeps no conversations that could be gone on with" },
    Particular { key: "protocol", kinds: CALLED, others: "is spoken in one way only" },
    Particular { key: "codec", kinds: &[Kind::Connect], others: "is written in one form only" },
    Particular { key: "command", kinds: STARTED, others: NO_PROCESS },
    Particular { key: "memory", kinds: STARTED, others: NO_PROCESS },
    Particular { key: "permissions", kinds: &[Kind::Acp], others: "never asks for leave to act" },
    Particular { key: "tool_activity", kinds: &[Kind::Acp], others: "does not tell what tools it uses by itself" },
    Particular { key: "quiet", kinds: &[Kind::Devin], others: "says itself when an answer is complete" },
];

const OF_ACCOUNTS: &[Particular] = &[
    Particular { key: "home", kinds: STARTED, others: NO_PROCESS },
    Particular { key: "env", kinds: STARTED, others: NO_PROCESS },
    Particular { key: "auth_method", kinds: &[Kind::Acp], others: "is not asked to log in" },
    Particular { key: "organization", kinds: &[Kind::Devin], others: "has no place for an organization" },
    Particular {
        key: "secret",
        kinds: ADDRESSED,
        others: "has no secret of the gateway's: it has logged in itself, in its home, or has a key in its env",
    },
];

/// Notes every key of an upstream that its kind has no use for.
pub(super) fn refuse_keys_of_other_kinds(fields: &Fields<'_>, kind: Kind) {
    refuse(fields, kind, OF_UPSTREAMS);
}

/// Notes every key of an account that its upstream's kind has no use for.
pub(super) fn refuse_account_keys_of_other_kinds(fields: &Fields<'_>, kind: Kind) {
    refuse(fields, kind, OF_ACCOUNTS);
}

fn refuse(fields: &Fields<'_>, kind: Kind, keys: &[Particular]) {
    for Particular { key, kinds, others } in keys.iter().filter(|key| !key.kinds.contains(&kind)) {
        if let Some(item) = fields.get(key) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            let (kind, names) = (kind.name(), quoted_list(&names));
            item.fail::<()>(format!("kind {kind:?} {others}; remove it ({key:?} belongs to kind {names})"));
        }
    }
}

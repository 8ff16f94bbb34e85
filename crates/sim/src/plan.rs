//! The plan of a run: everything that is going to happen, drawn from the seed before it begins. It is data alone, so that a
//! run can be written down, replayed and made smaller.

mod draw;

pub use draw::draw;

use serde::{Deserialize, Serialize};

/// A whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Where the streams of chance come from.
    pub seed: u64,
    /// The upstreams, by their families.
    pub upstreams: Vec<Upstream>,
    /// Callers.
    pub callers: u8,
    /// Milliseconds before each word of an answer.
    pub pace_ms: u64,
    /// `on_client_gone = finish` where true.
    pub finish: bool,
    /// Turns that may wait for an account at once; 0: as many as usual.
    #[serde(default)]
    pub queue_places: u16,
    /// Of a hundred connections, so many stall for a while or are reset, in either direction.
    #[serde(default)]
    pub rough: u8,
    /// What clients do.
    pub talks: Vec<Talk>,
    /// What goes wrong in answers.
    pub faults: Vec<Fault>,
    /// What the operator, the machine and the network do.
    pub events: Vec<Event>,
}

/// A family of upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Chat Completions.
    Chat,
    /// Messages.
    Messages,
    /// Responses.
    Responses,
    /// Gemini.
    Gemini,
    /// The chat service over Connect.
    Connect,
    /// A server of conversations.
    Cascade,
    /// Sessions of Devin.
    Devin,
    /// Agents of the Agent Client Protocol, which are processes.
    Acp,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 8] = [
        Family::Chat,
        Family::Messages,
        Family::Responses,
        Family::Gemini,
        Family::Connect,
        Family::Cascade,
        Family::Devin,
        Family::Acp,
    ];

    /// The upstream's name, its host and its model.
    pub fn name(self) -> &'static str {
        match self {
            Family::Chat => "chat",
            Family::Messages => "messages",
            Family::Responses => "responses",
            Family::Gemini => "gemini",
            Family::Connect => "connect",
            Family::Cascade => "cascade",
            Family::Devin => "devin",
            Family::Acp => "acp",
        }
    }

    /// A turn of it lasts as long as it must.
    pub fn works_long(self) -> bool {
        matches!(self, Family::Devin | Family::Acp)
    }

    /// It keeps conversations that go on.
    pub fn keeps(self) -> bool {
        matches!(self, Family::Responses | Family::Cascade | Family::Devin | Family::Acp)
    }
}

/// An upstream with its accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// Whose.
    pub family: Family,
    /// How many accounts it has.
    pub accounts: u8,
    /// How many attempts each takes at once.
    pub max_in_flight: u8,
}

/// A client's dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Chat Completions.
    Chat,
    /// Messages.
    Messages,
    /// Responses.
    Responses,
    /// Gemini.
    Gemini,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 4] = [Dialect::Chat, Dialect::Messages, Dialect::Responses, Dialect::Gemini];
}

/// A client's conversation: its turns one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Talk {
    /// Whose key it has.
    pub caller: u8,
    /// What it speaks.
    pub dialect: Dialect,
    /// The model; `any` goes to every upstream in turn.
    pub model: String,
    /// It wants its answers as streams.
    pub stream: bool,
    /// What it asks, in order.
    pub turns: Vec<Turn>,
}

/// A turn of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Not before this, in milliseconds since the run began, nor before the turn before it is over.
    pub at_ms: u64,
    /// Words of the question, and so of the answer; 0: a question that every account refuses.
    pub words: u16,
    /// The key of a request that may be sent again.
    pub idempotency: Option<u8>,
    /// How it behaves.
    pub client: Client,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Client {
    /// Reads everything.
    Stays,
    /// Closes so long after the request has gone, in milliseconds.
    LeavesAfter(u64),
    /// Resets when this many bytes of the reply have come.
    ResetsAt(u64),
    /// Waits so many milliseconds before each of its first reads.
    Slow(u64),
    /// Sends its request once more, at the same time.
    Twice,
    /// Asks the same again when it has read everything.
    Again,
    /// Closes so long after the request has gone, in milliseconds, and asks the same again a little later.
    Returns(u64),
}

/// What goes wrong in one request of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Whose.
    pub family: Family,
    /// Which of the family's accounts.
    pub account: u8,
    /// Which of the account's requests, from 1.
    pub nth: u32,
    /// What goes wrong.
    pub what: What,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// 429, and to wait so many seconds.
    Limited(u64),
    /// Of 429 nothing more is said.
    LimitedBare,
    /// 401.
    Rejected,
    /// 402, or its like.
    Quota,
    /// 403: suspended.
    Suspended,
    /// 404 of the model.
    NoModel,
    /// 400 of the request.
    Invalid,
    /// 500.
    Status500,
    /// 503, of a server that has begun all the same.
    FailsAnyway,
    /// 403 without a word of why.
    Shell,
    /// 503.
    Status503,
    /// 529.
    Overloaded,
    /// A page in the place of an answer.
    Html,
    /// The connection is reset before a byte of the reply.
    ResetBefore,
    /// It is closed before one.
    CloseBefore,
    /// It is reset inside the answer.
    ResetMid,
    /// It is closed there.
    CloseMid,
    /// The answer ends as HTTP wants it, and not as its dialect does.
    NoTerminal,
    /// Silence, from some place on.
    Hang,
    /// An event that is no JSON.
    BadJson,
    /// An error inside the stream.
    ErrorInStream,
    /// So many milliseconds before each word.
    Slow(u64),
    /// So many milliseconds before the headers.
    Late(u64),
}

/// Something that happens to the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, in milliseconds since the run began.
    pub at_ms: u64,
    /// What.
    pub what: Happens,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happens {
    /// The gateway dies and is started again, so many milliseconds later.
    Crash(u64),
    /// The gateway is told to end, and is started again.
    Drain,
    /// An account leaves the configuration, for so many milliseconds.
    Remove(Family, u8, u64),
    /// An account gets another secret.
    Rotate(Family, u8),
    /// The wall clock is set on, or back, by so many milliseconds.
    Jump(i64),
    /// Every connection to an upstream is refused, for so many milliseconds.
    Refuse(Family, u64),
    /// Every connection to an upstream is reset.
    Cut(Family),
    /// An upstream forgets its conversations.
    Forget(Family),
    /// Every upstream fails, for so many milliseconds.
    Outage(u64),
}

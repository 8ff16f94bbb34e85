//! Plain records as they are read back: the ledger, the standing of accounts, the audit log.

use std::fmt;
use turnkeep_base::{AccountId, AttemptId, NanoUsd, Usage};

/// One attempt in the ledger, or a turn that was answered without one: then the attempt's number is 0, the account and
/// the upstream's model are empty, and the outcome is how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The attempt.
    pub attempt: AttemptId,
    /// The caller's key, by name.
    pub caller: String,
    /// The account it went to.
    pub account: AccountId,
    /// The model the client named.
    pub model: String,
    /// The model the upstream was asked for.
    pub upstream_model: String,
    /// The client's dialect, by name.
    pub dialect: String,
    /// Unix milliseconds.
    pub opened_ms: u64,
    /// Input tokens guessed from the request.
    pub estimated_input: u64,
    /// Output tokens that it is taken to have made if its end is never known.
    pub estimated_output: u64,
    /// The key's labels, as a JSON object of strings.
    pub labels: String,
    /// What the estimated input costs; `None` for a model without a price.
    pub estimated_cost: Option<NanoUsd>,
    /// Its end; `None` while it runs.
    pub closed: Option<LedgerClose>,
}

/// The end of an attempt in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerClose {
    /// `completed`, `interrupted` or the fault's name; `hit`, `held` or `joined` where no upstream was asked.
    pub outcome: String,
    /// The tokens.
    pub usage: Usage,
    /// The provider reported them; otherwise they are an estimate.
    pub exact: bool,
    /// What they cost; `None` for a model without a price.
    pub cost: Option<NanoUsd>,
    /// What it cost in the provider's own units (Devin's ACUs), in thousandths; `None` where it told none.
    pub milli_units: Option<u64>,
    /// Unix milliseconds.
    pub closed_ms: u64,
}

/// What usage is added up by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageBy {
    /// The caller's key.
    Caller,
    /// The model the client named.
    Model,
    /// The model the upstream was asked for; empty where none was.
    UpstreamModel,
    /// The upstream; empty where none was asked.
    Upstream,
    /// `upstream/account`; empty where none was asked.
    Account,
    /// The outcome.
    Outcome,
    /// The key's label of this name; empty where it has none.
    Label(String),
}

/// Usage of one group of closed entries. Turns that were answered again are no attempts and used nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageRow {
    /// What they have in common, one for each thing that was asked for, in that order.
    pub keys: Vec<String>,
    /// How many attempts.
    pub attempts: u64,
    /// Of these, those whose tokens the provider reported.
    pub exact_attempts: u64,
    /// Of these, those of a model without a price: what they cost is in no sum.
    pub unpriced_attempts: u64,
    /// Turns answered from the response cache.
    pub hits: u64,
    /// Turns answered with an answer that had not arrived.
    pub held: u64,
    /// Turns answered with the answer of another turn.
    pub joined: u64,
    /// The attempts' tokens. One attempt adds at most 2^48 of a kind.
    pub usage: Usage,
    /// What the attempts cost. One adds at most 2^48.
    pub cost: NanoUsd,
    /// What the attempts cost in their providers' own units (Devin's ACUs), in thousandths. One adds at most 2^48.
    pub milli_units: u64,
}

/// What one attempt adds to a sum at most, so that a number made up by a provider spoils none.
pub(crate) const MOST: u64 = 1 << 48;

/// What a caller's attempts of one day used, however they ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spend {
    /// The caller's key, by name.
    pub caller: String,
    /// The day on which they were opened, in days since 1970, UTC.
    pub day: u32,
    /// Input, cached input and output.
    pub tokens: u64,
    /// What they cost; models without a price add nothing.
    pub nano_usd: NanoUsd,
}

/// What a caller has asked for lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// The caller's key, by name.
    pub caller: String,
    /// Its turns, those answered again too.
    pub requests: u64,
    /// Input, cached input and output of their attempts; the estimate of those that run.
    pub tokens: u64,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// The word in the database and in lists.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// The one with this word.
            pub fn from_name(word: &str) -> Option<Self> {
                match word { $($word => Some($name::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

words! {
    /// An account's status.
    StandingStatus {
        /// Serves.
        Active = "active",
        /// Out until its time.
        Errored = "errored",
        /// Out until the operator acts, by the provider's word.
        Suspended = "suspended",
        /// Out until the operator acts, by the operator's.
        Disabled = "disabled",
    }
}

words! {
    /// What a cooldown covers.
    CooldownScope {
        /// The whole account.
        Account = "account",
        /// The account with one model.
        Model = "model",
        /// Its money or plan.
        Quota = "quota",
        /// Its request rate.
        Rate = "rate",
    }
}

/// How an account stands, with its waits; written and read as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingRecord {
    /// The account.
    pub account: AccountId,
    /// Its status.
    pub status: StandingStatus,
    /// How many times in a row it has been errored.
    pub episode: u32,
    /// Since when it has this status, Unix milliseconds.
    pub since_ms: Option<u64>,
    /// When an errored account is tried again, Unix milliseconds.
    pub retry_at_ms: Option<u64>,
    /// Why it is suspended or errored, in words.
    pub reason: Option<String>,
    /// The error budget's faults, as the caller's own JSON.
    pub budget_json: String,
    /// When this was written down, Unix milliseconds; the caller's time.
    pub updated_ms: u64,
    /// All its waits. Saving replaces the ones saved before.
    pub cooldowns: Vec<CooldownRecord>,
}

/// One wait of an account. Whoever loads it takes `clamp(until_ms - now, 0, length_ms)` as what is left, so that a
/// clock set back between two runs cannot make a wait longer than it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CooldownRecord {
    /// What it covers.
    pub scope: CooldownScope,
    /// The model, where the scope names one.
    pub model: Option<String>,
    /// The fault that caused it, by name.
    pub fault: String,
    /// Its end, Unix milliseconds.
    pub until_ms: u64,
    /// Its whole length, milliseconds.
    pub length_ms: u64,
}

/// What the operator has switched and no gateway has taken up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The account.
    pub account: AccountId,
    /// In, or out.
    pub enabled: bool,
    /// When, Unix milliseconds; later than every earlier switch of the account, whatever the clock says, and so the
    /// name of this one.
    pub at_ms: u64,
}

/// Who changed what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Unix milliseconds.
    pub at_ms: u64,
    /// Who: an operator, or the command line.
    pub actor: String,
    /// What was done, as a verb: `create`, `revoke`.
    pub action: String,
    /// To what: `key laptop`.
    pub subject: String,
    /// More, free of secrets.
    pub detail: String,
}

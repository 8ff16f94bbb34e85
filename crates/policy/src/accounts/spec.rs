//! What the pool is told: the upstreams and accounts as configured, and what an attempt needs of them.

use crate::glob::Globs;
use crate::moment::Moment;
use std::sync::Arc;
use turnkeep_base::{AccountId, Fingerprint};

/// An account's place in the pool. It stays the same for as long as the account is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct AccountKey(pub u32);

/// An upstream as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamSpec {
    /// Its name.
    pub name: Arc<str>,
    /// How its calls leave: `direct`, or the proxy's host.
    pub egress: Arc<str>,
}

/// An account as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSpec {
    /// Its identity.
    pub id: AccountId,
    /// The most attempts at once.
    pub max_in_flight: u32,
    /// The models it serves, by the upstream's names.
    pub models: Globs,
    /// Its secret was found.
    pub has_secret: bool,
    /// The configuration lets it serve.
    pub enabled: bool,
    /// The provider-side limit that it shares with others; without one it is a group of its own.
    pub limit_group: Option<Arc<str>>,
    /// Requests a minute that it may be sent.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute that it may be sent.
    pub tokens_per_minute: Option<u32>,
    /// The generation of its secret, raised by whoever holds the secrets.
    pub generation: u64,
    /// Where its upstream keeps its conversations, as a digest of whoever knows: another one raises its epoch.
    pub place: Fingerprint,
}

/// How far a route is from what the client asked for. Later ones serve only when no earlier one can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The model's own route.
    Own,
    /// A configured fallback.
    Fallback,
    /// A model with a larger window, for a request that was too long.
    Larger,
}

/// One way to serve a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The upstream's name.
    pub upstream: &'a str,
    /// The model it is asked for.
    pub model: &'a str,
    /// Its distance from what was asked for.
    pub tier: Tier,
}

/// What an attempt needs.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// The routes, in order of preference within a tier.
    pub routes: &'a [Candidate<'a>],
    /// Routes before this one are out.
    pub from_route: usize,
    /// Only [`Tier::Larger`] routes will do; otherwise they never do.
    pub larger: bool,
    /// Accounts that this turn has tried.
    pub tried: &'a [AccountKey],
    /// Only this account will do (a replay on the same one).
    pub only: Option<AccountKey>,
    /// Accounts that the turn would rather have, the first before the others: a conversation's owner, then a session's
    /// binding. One serves in the place of the route's best account if it could serve anyway and at most a quarter more of
    /// its slots are taken than of the least loaded one's. It never decides whether a turn is served or by which route,
    /// and an errored account's due try goes before it.
    pub preferred: &'a [AccountKey],
    /// Breaks ties, so that callers spread over equal accounts.
    pub tie: u64,
    /// Tokens that the attempt is thought to cost.
    pub tokens: u64,
    /// A counted retry: it draws on the upstream's retry budget.
    pub retry: bool,
}

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The route's index in [`Need::routes`].
    pub route: usize,
    /// The account.
    pub account: AccountKey,
    /// It is the single try of an errored account.
    pub trial: bool,
    /// It is the single probe of an ejected endpoint.
    pub probe: bool,
    /// The account is one of [`Need::preferred`].
    pub preferred: bool,
    /// It is not, though one of those has the same upstream and would serve this model, now or within five minutes, but
    /// for its load, its slots, its own rate, a cooldown, or because the turn has tried it. What is bound to that one
    /// stays bound. False when there was none, or none that is coming back soon: what was bound may be bound anew.
    pub spilled: bool,
}

/// Why nobody serves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Unavailable {
    /// Every candidate cools (or is errored, some cooling).
    AllCooling {
        /// The soonest end.
        retry_at: Moment,
    },
    /// Some candidate would serve but for its slots or its own rate.
    AllBusy {
        /// When one may serve whatever becomes of the slots, if that is known.
        retry_at: Option<Moment>,
    },
    /// Every candidate's credential was refused too often.
    AllErrored {
        /// The soonest try.
        retry_at: Moment,
    },
    /// Some candidate would serve, but the gateway's own address is limited there.
    EgressClosed {
        /// The soonest end.
        retry_at: Moment,
    },
    /// Some candidate would serve, but its upstream has had its share of retries.
    RetriesSpent,
    /// No candidate's key may use the model.
    NoneEntitled,
    /// There is no candidate at all, or none that the operator lets serve.
    NoAccounts,
    /// Too many turns wait already.
    QueueFull,
    /// The turn's time was up before its turn came.
    DeadlinePassed,
}

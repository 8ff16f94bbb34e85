//! The numbers of blame, standing, admission and retries. Each has a default here and a key in the configuration; nothing
//! else in this crate holds one of them.

use std::time::Duration;
use turnkeep_base::limit;

/// All of them. Times are lengths; counts are of faults, accounts, places or dispatches.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    /// Budgeted faults within [`Tuning::budget_window`], without a success between, that make an account errored.
    pub budget: u32,
    /// The sliding window of the error budget; also the time within which a suspension must be named twice.
    #[serde(with = "crate::span")]
    pub budget_window: Duration,
    /// The first episode of an errored account; each further one is half as long again.
    #[serde(with = "crate::span")]
    pub episode: Duration,
    /// The longest episode.
    #[serde(with = "crate::span")]
    pub longest_episode: Duration,
    /// The longest episode where some model would be left without an active account.
    #[serde(with = "crate::span")]
    pub last_account_retry: Duration,
    /// When a try that was freed may be taken again.
    #[serde(with = "crate::span")]
    pub try_again: Duration,
    /// A rate limit's cooldown where the reply states none.
    #[serde(with = "crate::span")]
    pub rate_cooldown: Duration,
    /// A used-up quota's cooldown where the reply states none.
    #[serde(with = "crate::span")]
    pub quota_cooldown: Duration,
    /// How long it is remembered that a key may not use a model.
    #[serde(with = "crate::span")]
    pub model_blocked: Duration,
    /// The first overload's cooldown where the reply states none; it doubles with each in a row.
    #[serde(with = "crate::span")]
    pub overload_cooldown: Duration,
    /// The longest of those.
    #[serde(with = "crate::span")]
    pub longest_overload: Duration,
    /// The longest cooldown that is believed; longer ones are capped and tried again then.
    #[serde(with = "crate::span")]
    pub longest_cooldown: Duration,
    /// How long a health sample moves an account back in selection.
    #[serde(with = "crate::span")]
    pub sample_life: Duration,
    /// Accounts of different limit groups whose rate limits make an egress burst.
    pub egress_accounts: u32,
    /// The time within which they must come.
    #[serde(with = "crate::span")]
    pub egress_window: Duration,
    /// How long the (egress address, upstream, model) is closed then, at least.
    #[serde(with = "crate::span")]
    pub egress_closed: Duration,
    /// Network and upstream faults in a row that eject an endpoint while another route can serve.
    pub breaker_faults: u32,
    /// The first ejection; the n-th in a row is n times as long.
    #[serde(with = "crate::span")]
    pub ejection: Duration,
    /// The longest ejection.
    #[serde(with = "crate::span")]
    pub longest_ejection: Duration,
    /// Counted retries an upstream may get, as a share of its turns.
    pub retry_share: f64,
    /// Counted retries it may get beside them, per second.
    pub retries_per_second: f64,
    /// Counted attempts of one turn.
    pub attempts: u8,
    /// Dispatches of one turn, refused ones included.
    pub dispatches: u8,
    /// The longest first backoff; it doubles with each.
    #[serde(with = "crate::span")]
    pub backoff: Duration,
    /// The longest backoff.
    #[serde(with = "crate::span")]
    pub longest_backoff: Duration,
    /// How long a turn waits for a cooldown's end when every candidate cools.
    #[serde(with = "crate::span")]
    pub max_cooling_wait: Duration,
    /// How long a turn waits for a slot, or for an account's own rate.
    #[serde(with = "crate::span")]
    pub max_queue_wait: Duration,
    /// Turns that may wait for one upstream.
    pub queue_places: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Tuning {
            budget: 3,
            budget_window: minutes(30),
            episode: minutes(15),
            longest_episode: minutes(60),
            last_account_retry: seconds(60),
            try_again: seconds(5),
            rate_cooldown: limit::RATE_COOLDOWN,
            quota_cooldown: limit::QUOTA_COOLDOWN,
            model_blocked: limit::MODEL_BLOCKED,
            overload_cooldown: limit::OVERLOAD_COOLDOWN,
            longest_overload: limit::LONGEST_OVERLOAD,
            longest_cooldown: minutes(6 * 60),
            sample_life: minutes(5),
            egress_accounts: 3,
            egress_window: seconds(8),
            egress_closed: seconds(30),
            breaker_faults: 5,
            ejection: seconds(10),
            longest_ejection: minutes(5),
            retry_share: 0.2,
            retries_per_second: 3.0,
            attempts: limit::MAX_ATTEMPTS,
            dispatches: limit::MAX_DISPATCHES,
            backoff: Duration::from_millis(250),
            longest_backoff: seconds(5),
            max_cooling_wait: limit::MAX_COOLING_WAIT,
            max_queue_wait: limit::MAX_QUEUE_WAIT,
            queue_places: limit::QUEUE_PLACES,
        }
    }
}

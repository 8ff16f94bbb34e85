//! `[tuning]`: the numbers of blame, standing, admission and retries, and of streams that wait. What they do is other
//! rooms' business; here each has its key, its bounds, and the pairs that must agree.

use super::read::{Fields, Item, Known};
use super::units::show_duration;
use std::time::Duration;
use turnkeep_base::limit;
use turnkeep_policy::Tuning;

/// What a client that streams gets while its turn waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Headers and preamble are held back this long at most.
    pub open_after: Duration,
    /// Between two heartbeats of an open stream that has nothing to say.
    pub heartbeat: Duration,
}

impl Default for Stream {
    fn default() -> Self {
        Stream { open_after: limit::STREAM_OPEN_AFTER, heartbeat: limit::HEARTBEAT_EVERY }
    }
}

/// Both, as one table holds them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Both {
    pub(super) tuning: Tuning,
    pub(super) stream: Stream,
}

/// A key of the table: where its value is, and its bounds.
pub(super) enum Slot {
    /// A duration: from, to.
    Time(fn(&mut Both) -> &mut Duration, Duration, Duration),
    /// An integer: written, from, to.
    Count(fn(&mut Both, u32), u32, u32),
    /// A number: from, to.
    Number(fn(&mut Both) -> &mut f64, f64, f64),
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const FIVE_MINUTES: Duration = Duration::from_secs(300);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Every key, in the order of the documentation.
pub(super) const KEYS: &[(&str, Slot)] = &[
    ("budget", Slot::Count(|b, n| b.tuning.budget = n, 1, 100)),
    ("budget_window", Slot::Time(|b| &mut b.tuning.budget_window, MINUTE, DAY)),
    ("episode", Slot::Time(|b| &mut b.tuning.episode, SECOND, DAY)),
    ("longest_episode", Slot::Time(|b| &mut b.tuning.longest_episode, SECOND, DAY)),
    ("last_account_retry", Slot::Time(|b| &mut b.tuning.last_account_retry, SECOND, DAY)),
    ("try_again", Slot::Time(|b| &mut b.tuning.try_again, ms(100), HOUR)),
    ("rate_cooldown", Slot::Time(|b| &mut b.tuning.rate_cooldown, SECOND, HOUR)),
    ("quota_cooldown", Slot::Time(|b| &mut b.tuning.quota_cooldown, SECOND, DAY)),
    ("model_blocked", Slot::Time(|b| &mut b.tuning.model_blocked, SECOND, DAY)),
    ("overload_cooldown", Slot::Time(|b| &mut b.tuning.overload_cooldown, ms(100), HOUR)),
    ("longest_overload", Slot::Time(|b| &mut b.tuning.longest_overload, ms(100), HOUR)),
    ("longest_cooldown", Slot::Time(|b| &mut b.tuning.longest_cooldown, MINUTE, Duration::from_secs(7 * 86_400))),
    ("sample_life", Slot::Time(|b| &mut b.tuning.sample_life, SECOND, DAY)),
    ("egress_accounts", Slot::Count(|b, n| b.tuning.egress_accounts = n, 2, 1000)),
    ("egress_window", Slot::Time(|b| &mut b.tuning.egress_window, ms(100), HOUR)),
    ("egress_closed", Slot::Time(|b| &mut b.tuning.egress_closed, ms(100), HOUR)),
    ("breaker_faults", Slot::Count(|b, n| b.tuning.breaker_faults = n, 1, 1000)),
    ("ejection", Slot::Time(|b| &mut b.tuning.ejection, ms(100), HOUR)),
    ("longest_ejection", Slot::Time(|b| &mut b.tuning.longest_ejection, ms(100), DAY)),
    ("retry_share", Slot::Number(|b| &mut b.tuning.retry_share, 0.0, 1.0)),
    ("retries_per_second", Slot::Number(|b| &mut b.tuning.retries_per_second, 0.0, 1000.0)),
    ("attempts", Slot::Count(|b, n| b.tuning.attempts = small(n), 1, 10)),
    ("dispatches", Slot::Count(|b, n| b.tuning.dispatches = small(n), 1, 10)),
    ("backoff", Slot::Time(|b| &mut b.tuning.backoff, ms(1), MINUTE)),
    ("longest_backoff", Slot::Time(|b| &mut b.tuning.longest_backoff, ms(1), MINUTE)),
    ("max_cooling_wait", Slot::Time(|b| &mut b.tuning.max_cooling_wait, Duration::ZERO, HOUR)),
    ("max_queue_wait", Slot::Time(|b| &mut b.tuning.max_queue_wait, Duration::ZERO, HOUR)),
    ("queue_places", Slot::Count(|b, n| b.tuning.queue_places = n as usize, 1, 100_000)),
    ("stream_open_after", Slot::Time(|b| &mut b.stream.open_after, ms(100), FIVE_MINUTES)),
    ("heartbeat", Slot::Time(|b| &mut b.stream.heartbeat, SECOND, FIVE_MINUTES)),
];

/// Within the bounds of a key, which are below 256.
fn small(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

const NAMES: [&str; KEYS.len()] = {
    let mut names = [""; KEYS.len()];
    let mut at = 0;
    while at < KEYS.len() {
        names[at] = KEYS[at].0;
        at += 1;
    }
    names
};

const TUNING: Known = Known { table: "[tuning]", keys: &NAMES, later: &[] };

pub(super) fn read(item: Item<'_>) -> Option<Both> {
    let fields = item.table(&TUNING)?;
    let mut both = Both::default();
    for (key, slot) in KEYS {
        let Some(item) = fields.get(key) else { continue };
        match slot {
            Slot::Time(at, least, most) => {
                if let Some(time) = item.duration(*least, *most) {
                    *at(&mut both) = time;
                }
            }
            Slot::Count(write, least, most) => {
                if let Some(number) = item.integer(*least, *most) {
                    write(&mut both, number);
                }
            }
            Slot::Number(at, least, most) => {
                if let Some(number) = item.number(*least, *most) {
                    *at(&mut both) = number;
                }
            }
        }
    }
    agree(&fields, &both.tuning);
    Some(both)
}

/// The longest of something is not shorter than its first; told at the one of the two that is written.
fn agree(fields: &Fields<'_>, tuning: &Tuning) {
    let pairs = [
        ("episode", tuning.episode, "longest_episode", tuning.longest_episode),
        ("overload_cooldown", tuning.overload_cooldown, "longest_overload", tuning.longest_overload),
        ("ejection", tuning.ejection, "longest_ejection", tuning.longest_ejection),
        ("backoff", tuning.backoff, "longest_backoff", tuning.longest_backoff),
    ];
    for (first, first_time, longest, longest_time) in pairs {
        if longest_time < first_time
            && let Some(item) = fields.get(longest).or_else(|| fields.get(first))
        {
            let (first_time, longest_time) = (show_duration(first_time), show_duration(longest_time));
            item.fail::<()>(format!("{longest} ({longest_time}) must not be shorter than {first} ({first_time})"));
        }
    }
    if tuning.dispatches < tuning.attempts
        && let Some(item) = fields.get("dispatches").or_else(|| fields.get("attempts"))
    {
        let (dispatches, attempts) = (tuning.dispatches, tuning.attempts);
        item.fail::<()>(format!("dispatches ({dispatches}) must not be fewer than attempts ({attempts})"));
    }
}

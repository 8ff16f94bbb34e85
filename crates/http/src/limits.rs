//! What each caller's key has used of its limits, while the gateway runs: one table behind one short lock, over the state
//! machine of [`turnkeep_policy::limits`]. It knows neither the store nor what a turn is.

mod told;

use crate::callers::Caller;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;
use turnkeep_base::price::shown_usd;
use turnkeep_base::{ClientError, FaultKind};
use turnkeep_engine::ports::{Reservation, Spent, WallClock};
use turnkeep_policy::Moment;
use turnkeep_policy::limits::{Amount, Budget, DAY_MS, Left, Limits, Meter, Now, Per, Refused, Reserved, Spend};

pub(crate) use told::told;

/// How soon a turn may be tried again that waits for another one's end.
const SOON: Duration = Duration::from_secs(1);

/// The use that every key makes of its limits.
pub struct Meters {
    meters: Mutex<BTreeMap<Arc<str>, Meter>>,
    clock: Arc<dyn WallClock>,
    started: Instant,
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meters").field("callers", &self.meters.lock().len()).finish()
    }
}

/// One key's use, as an operator sees it.
#[derive(Clone, Debug)]
pub struct Used {
    /// The key's name.
    pub name: Arc<str>,
    /// Turns that run.
    pub in_flight: u32,
    /// What is set aside for them.
    pub reserved: Spend,
    /// What was spent in the window of its budget; without one, on this day.
    pub spent: Spend,
    /// Its limits.
    pub limits: Limits,
    /// What is left of them.
    pub left: Left,
}

impl Meters {
    /// With nothing used.
    pub fn new(clock: Arc<dyn WallClock>) -> Arc<Self> {
        Arc::new(Meters { meters: Mutex::default(), clock, started: Instant::now() })
    }

    fn now(&self) -> Now {
        let moment = Moment(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        Now { moment, unix_ms: self.clock.unix_ms() }
    }

    /// The keys there are, and their limits; what they have used stays. Keys that are gone and have used nothing this
    /// month are forgotten.
    pub fn set<'a>(&self, keys: impl IntoIterator<Item = (&'a Arc<str>, Limits)>) {
        let now = self.now();
        let mut meters = self.meters.lock();
        let mut named = std::collections::BTreeSet::new();
        for (name, limits) in keys {
            named.insert(name.clone());
            meters.entry(name.clone()).or_default().set(limits);
        }
        meters.retain(|name, meter| named.contains(name) || !meter.is_idle(now));
    }

    /// Counts what a key has spent on a day (since 1970, UTC) before this process began.
    pub fn remember(&self, name: &str, day: u64, spend: Spend) {
        let now = self.now();
        self.meters.lock().entry(name.into()).or_default().remember(now, day, spend);
    }

    /// Counts what a key has used in the last minute before this process began.
    pub fn remember_rates(&self, name: &str, requests: u64, tokens: u64) {
        let now = self.now();
        self.meters.lock().entry(name.into()).or_default().remember_rates(now, requests, tokens);
    }

    /// Since which day what was spent counts in any window that it is now.
    pub fn counts_since(&self) -> u64 {
        let day = self.clock.unix_ms() / DAY_MS;
        Per::ALL.into_iter().map(|per| per.first_day(day)).min().unwrap_or(day)
    }

    fn with<T>(&self, caller: &Caller, act: impl FnOnce(&mut Meter, Now) -> T) -> T {
        let now = self.now();
        let mut meters = self.meters.lock();
        if let Some(meter) = meters.get_mut(&caller.name) {
            if *meter.limits() != caller.limits {
                meter.set(caller.limits);
            }
            return act(meter, now);
        }
        act(meters.entry(caller.name.clone()).or_insert_with(|| Meter::new(caller.limits)), now)
    }

    /// Whether a turn of any size could begin now; asked before a body is read.
    pub(crate) fn look(&self, caller: &Caller) -> Result<(), Refusal> {
        self.with(caller, |meter, now| meter.look(now).map_err(|refused| Refusal { refused, now }))
    }

    /// Sets a turn's share aside, until it is settled or dropped.
    pub(crate) fn reserve(self: &Arc<Self>, caller: &Caller, estimate: Spend) -> Result<Held, Refusal> {
        let reserved =
            self.with(caller, |meter, now| meter.reserve(now, estimate).map_err(|refused| Refusal { refused, now }))?;
        Ok(Held { meters: self.clone(), caller: caller.name.clone(), reserved: Some(reserved) })
    }

    /// What is left of a caller's limits, and what time it is.
    pub(crate) fn left(&self, caller: &Caller) -> (Left, Now) {
        self.with(caller, |meter, now| (meter.left(now), now))
    }

    /// Every key's use, by name.
    pub fn used(&self) -> Vec<Used> {
        let now = self.now();
        let mut meters = self.meters.lock();
        let used = |(name, meter): (&Arc<str>, &mut Meter)| {
            let limits = *meter.limits();
            Used {
                name: name.clone(),
                in_flight: meter.in_flight(),
                reserved: meter.reserved(),
                spent: meter.spent(now, limits.budget.map_or(Per::Day, |budget| budget.per)),
                limits,
                left: meter.left(now),
            }
        };
        meters.iter_mut().map(used).collect()
    }
}

/// A turn's share of its caller's limits.
pub(crate) struct Held {
    meters: Arc<Meters>,
    caller: Arc<str>,
    reserved: Option<Reserved>,
}

impl Held {
    fn end(&mut self, act: impl FnOnce(&mut Meter, Now, Reserved)) {
        let Some(reserved) = self.reserved.take() else { return };
        let now = self.meters.now();
        // A key that is gone keeps its meter while a turn of it runs.
        if let Some(meter) = self.meters.meters.lock().get_mut(&self.caller) {
            act(meter, now, reserved);
        }
    }
}

impl Reservation for Held {
    fn settle(mut self: Box<Self>, spent: Spent) {
        let spent = Spend { tokens: spent.tokens, nano_usd: spent.nano_usd };
        self.end(|meter, now, reserved| meter.settle(now, reserved, spent));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end(|meter, now, reserved| meter.give_back(now, reserved));
    }
}

/// A turn that a limit refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    refused: Refused,
    now: Now,
}

impl Refusal {
    /// As it is counted.
    pub(crate) fn kind(&self) -> FaultKind {
        match self.refused {
            Refused::InFlight { .. } | Refused::Requests { .. } | Refused::Tokens { .. } => {
                FaultKind::CallerRateLimited
            }
            Refused::Budget { .. } => FaultKind::CallerBudgetExhausted,
        }
    }

    /// As the caller is told: which limit, what is left of it, and when it is free again.
    pub(crate) fn error(&self) -> ClientError {
        let (message, wait) = match self.refused {
            Refused::InFlight { limit } => {
                (format!("this key may run {limit} turns at once, and as many run; one must end first"), SOON)
            }
            Refused::Requests { limit, wait } => {
                (format!("this key may begin {limit} turns a minute; the next one may begin in {}", shown(wait)), wait)
            }
            Refused::Tokens { limit, left, wait } => {
                let free = shown(wait);
                let words = "this turn is estimated at more than that, and may begin in";
                (format!("this key may use {limit} tokens a minute, and {left} are left; {words} {free}"), wait)
            }
            Refused::Budget { budget, left, wait } => {
                let whole = of_budget(&budget);
                let anew = shown_time(self.now.unix_ms, wait);
                match left {
                    0 => (format!("this key's budget of {whole} is spent; it begins anew at {anew}"), wait),
                    left => {
                        let left = shown_amount(&budget.amount, left);
                        let words = "all of it is set aside for turns that run now; try again when one has ended. It \
                                     begins anew at";
                        (format!("of this key's budget of {whole}, {left} are left, and {words} {anew}"), SOON)
                    }
                }
            }
        };
        let code = self.kind().name();
        ClientError { retry_after: Some(wait), ..ClientError::new(429, code, message) }
    }
}

fn of_budget(budget: &Budget) -> String {
    let limit = match budget.amount {
        Amount::NanoUsd(limit) | Amount::Tokens(limit) => limit,
    };
    format!("{} a {}", shown_amount(&budget.amount, limit), budget.per.name())
}

/// A number in the unit of an amount.
fn shown_amount(unit: &Amount, number: u64) -> String {
    match unit {
        Amount::NanoUsd(_) => format!("{} USD", shown_usd(number)),
        Amount::Tokens(_) => format!("{number} tokens"),
    }
}

/// A wait in whole seconds, rounded up.
fn shown(wait: Duration) -> String {
    format!("{} s", seconds(wait).max(1))
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// The moment after a wait, as RFC 3339, in whole seconds and not before its end.
fn shown_time(unix_ms: u64, wait: Duration) -> String {
    let ms = unix_ms.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let at = OffsetDateTime::from_unix_timestamp(i64::try_from(ms.div_ceil(1_000)).unwrap_or(i64::MAX)).ok();
    at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_policy::glob::Globs;

    struct Stands;

    impl WallClock for Stands {
        fn unix_ms(&self) -> u64 {
            1_784_116_800_000
        }
    }

    fn caller(limits: Limits) -> Caller {
        Caller { limits, ..Caller::named("a", vec![], Globs::default()) }
    }

    fn tokens(limit: u64) -> Limits {
        Limits { budget: Some(Budget { amount: Amount::Tokens(limit), per: Per::Day }), ..Limits::default() }
    }

    #[test]
    fn what_is_set_aside_comes_back_once_whether_settled_or_dropped() {
        let meters = Meters::new(Arc::new(Stands));
        let caller = caller(tokens(100));
        let estimate = Spend { tokens: 60, nano_usd: 0 };
        let (first, second) = (meters.reserve(&caller, estimate).unwrap(), meters.reserve(&caller, estimate).unwrap());
        let refusal = meters.reserve(&caller, estimate).err().unwrap();
        assert_eq!(refusal.kind(), FaultKind::CallerBudgetExhausted);
        let told = refusal.error();
        assert!(told.message.contains("100 tokens a day, 100 tokens are left"), "{}", told.message);
        Box::new(first).settle(Spent { tokens: 40, nano_usd: 7 });
        drop(second);
        let used = &meters.used()[0];
        assert_eq!((used.in_flight, used.reserved), (0, Spend::default()));
        assert_eq!(used.spent, Spend { tokens: 40, nano_usd: 7 });
    }

    #[test]
    fn a_key_that_is_gone_keeps_its_use_while_a_turn_of_it_runs() {
        let meters = Meters::new(Arc::new(Stands));
        let caller = caller(tokens(100));
        let held = meters.reserve(&caller, Spend { tokens: 10, nano_usd: 0 }).unwrap();
        meters.set([]);
        assert_eq!(meters.used()[0].in_flight, 1);
        drop(held);
        meters.set([]);
        assert!(meters.used().is_empty());
    }

    #[test]
    fn a_spent_budget_says_when_it_begins_anew() {
        let meters = Meters::new(Arc::new(Stands));
        let caller = caller(tokens(100));
        meters.remember("a", Stands.unix_ms() / DAY_MS, Spend { tokens: 100, nano_usd: 0 });
        let told = meters.look(&caller).err().unwrap().error();
        assert!(told.message.contains("is spent") && told.message.contains("2026-07-16T00:00:00Z"), "{}", told.message);
        assert_eq!((told.status, told.code, told.retry_after_seconds()), (429, "caller_budget_exhausted", Some(600)));
    }
}

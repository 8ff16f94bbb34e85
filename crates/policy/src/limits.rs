//! What one caller's key may use: requests and tokens per minute, turns at once, and a budget per day, week or month in
//! money or tokens. A turn reserves an estimate before it may begin, and what it has used takes the estimate's place when
//! it closes; so turns that run at once overdraw nothing by more than one estimate.
//!
//! The spending of all three windows is counted whatever the limits are, so that a limit that is set later holds at once.

mod window;

#[cfg(test)]
mod tests;

use crate::moment::Moment;
use crate::rate::{Drawn, Rate, rate_of};
use std::time::Duration;
use turnkeep_base::NanoUsd;
pub use window::{DAY_MS, Per};

/// The limits of a key; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Turns that may begin a minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute, in and out.
    pub tokens_per_minute: Option<u32>,
    /// Turns at once.
    pub max_in_flight: Option<u32>,
    /// What may be spent.
    pub budget: Option<Budget>,
}

impl Limits {
    /// There is none.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }
}

/// What may be spent in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How much.
    pub amount: Amount,
    /// In which window.
    pub per: Per,
}

/// An amount of money or of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Billionths of a US dollar.
    NanoUsd(NanoUsd),
    /// Tokens, in and out.
    Tokens(u64),
}

/// What was, or may be, spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Their cost.
    pub nano_usd: NanoUsd,
}

impl Spend {
    fn plus(self, other: Spend) -> Spend {
        Spend {
            tokens: self.tokens.saturating_add(other.tokens),
            nano_usd: self.nano_usd.saturating_add(other.nano_usd),
        }
    }

    fn minus(self, other: Spend) -> Spend {
        Spend {
            tokens: self.tokens.saturating_sub(other.tokens),
            nano_usd: self.nano_usd.saturating_sub(other.nano_usd),
        }
    }
}

/// The time, by both clocks: rates run by the monotonic one, budgets by the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic.
    pub moment: Moment,
    /// Unix milliseconds.
    pub unix_ms: u64,
}

/// Which limit refuses a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many turns run as may.
    InFlight {
        /// How many may.
        limit: u32,
    },
    /// The minute's requests are used up.
    Requests {
        /// How many may begin a minute.
        limit: u32,
        /// Until the next one may.
        wait: Duration,
    },
    /// The minute's tokens are used up.
    Tokens {
        /// How many a minute.
        limit: u32,
        /// How many are left now; the turn was estimated at more.
        left: u64,
        /// Until the turn's estimate is free.
        wait: Duration,
    },
    /// The budget is spent, or set aside for turns that run.
    Budget {
        /// The budget.
        budget: Budget,
        /// How much of it is not spent; it is set aside.
        left: u64,
        /// Until its window ends.
        wait: Duration,
    },
}

/// What a turn has set aside. It is given back or settled, once: neither can be done twice, as both take it.
#[derive(Debug)]
#[must_use = "what is set aside stays so until it is settled or given back"]
pub struct Reserved {
    request: Drawn,
    tokens: Drawn,
    estimate: Spend,
}

/// What is left of each limit there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Requests.
    pub requests: Option<LeftOf>,
    /// Tokens.
    pub tokens: Option<LeftOf>,
    /// Budget, in its own unit; what is set aside is not left.
    pub budget: Option<(Budget, LeftOf)>,
}

/// What is left of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOf {
    /// The limit.
    pub limit: u64,
    /// What is left of it.
    pub left: u64,
    /// Until all of it is free again.
    pub reset: Duration,
}

/// One key's use of its limits.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    limits: Limits,
    requests: Option<Rate>,
    tokens: Option<Rate>,
    in_flight: u32,
    reserved: Spend,
    /// In the day, the week and the month of `day`.
    spent: [Spend; 3],
    day: u64,
}

impl Meter {
    /// With these limits, and nothing used.
    pub fn new(limits: Limits) -> Self {
        let mut meter = Meter::default();
        meter.set(limits);
        meter
    }

    /// Other limits. What is used and set aside stays so.
    pub fn set(&mut self, limits: Limits) {
        rate_of(&mut self.requests, limits.requests_per_minute);
        rate_of(&mut self.tokens, limits.tokens_per_minute);
        self.limits = limits;
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Turns that run.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// What is set aside for turns that run.
    pub fn reserved(&self) -> Spend {
        self.reserved
    }

    /// What was spent in the window that it is now.
    pub fn spent(&mut self, now: Now, per: Per) -> Spend {
        self.turn_the_page(now);
        self.spent[slot(per)]
    }

    /// Counts what was spent on a day (since 1970) before this process began. Days of other windows count for nothing.
    pub fn remember(&mut self, now: Now, day: u64, spend: Spend) {
        self.turn_the_page(now);
        for per in Per::ALL {
            if day <= self.day && per.first_day(day) == per.first_day(self.day) {
                self.spent[slot(per)] = self.spent[slot(per)].plus(spend);
            }
        }
    }

    /// Counts what was used in the last minute before this process began.
    pub fn remember_rates(&mut self, now: Now, requests: u64, tokens: u64) {
        if let Some(bucket) = &mut self.requests {
            let _ = bucket.draw(now.moment, requests);
        }
        if let Some(bucket) = &mut self.tokens {
            let _ = bucket.draw(now.moment, tokens);
        }
    }

    /// Whether a turn of any size could begin now. Nothing is set aside.
    ///
    /// # Errors
    /// The limit that refuses it.
    pub fn look(&mut self, now: Now) -> Result<(), Refused> {
        self.check(now, Spend { tokens: 1, nano_usd: 1 })
    }

    /// Sets a turn's share aside.
    ///
    /// # Errors
    /// The limit that refuses it; nothing is set aside then.
    pub fn reserve(&mut self, now: Now, estimate: Spend) -> Result<Reserved, Refused> {
        self.check(now, estimate)?;
        let draw = |bucket: &mut Option<Rate>, cost| bucket.as_mut().map(|b| b.draw(now.moment, cost));
        let request = draw(&mut self.requests, 1).unwrap_or_default();
        let tokens = draw(&mut self.tokens, estimate.tokens).unwrap_or_default();
        self.in_flight = self.in_flight.saturating_add(1);
        self.reserved = self.reserved.plus(estimate);
        Ok(Reserved { request, tokens, estimate })
    }

    /// The turn is over: what it has used takes the place of what was set aside, in the windows that it is now.
    pub fn settle(&mut self, now: Now, reserved: Reserved, spent: Spend) {
        self.turn_the_page(now);
        self.end(&reserved);
        if let Some(bucket) = &mut self.tokens {
            bucket.true_up(now.moment, reserved.tokens, spent.tokens);
        }
        for sum in &mut self.spent {
            *sum = sum.plus(spent);
        }
    }

    /// The turn came to nothing: everything comes back.
    pub fn give_back(&mut self, now: Now, reserved: Reserved) {
        self.end(&reserved);
        if let Some(bucket) = &mut self.requests {
            bucket.give_back(now.moment, reserved.request);
        }
        if let Some(bucket) = &mut self.tokens {
            bucket.give_back(now.moment, reserved.tokens);
        }
    }

    /// What is left of each limit.
    pub fn left(&mut self, now: Now) -> Left {
        self.turn_the_page(now);
        let of = |bucket: &Option<Rate>, limit: Option<u32>| {
            let (bucket, limit) = (bucket.as_ref()?, u64::from(limit?));
            let reset = now.moment.until(bucket.full_at());
            Some(LeftOf { limit, left: bucket.left(now.moment).min(limit), reset })
        };
        let budget = self.limits.budget.map(|budget| {
            let (limit, used) = match budget.amount {
                Amount::NanoUsd(limit) => (limit, self.used(budget.per).nano_usd),
                Amount::Tokens(limit) => (limit, self.used(budget.per).tokens),
            };
            let reset = until_end(now, budget.per);
            (budget, LeftOf { limit, left: limit.saturating_sub(used), reset })
        });
        Left {
            requests: of(&self.requests, self.limits.requests_per_minute),
            tokens: of(&self.tokens, self.limits.tokens_per_minute),
            budget,
        }
    }

    /// Nothing runs and nothing was spent this month.
    pub fn is_idle(&mut self, now: Now) -> bool {
        self.turn_the_page(now);
        self.in_flight == 0 && self.spent == [Spend::default(); 3]
    }

    fn end(&mut self, reserved: &Reserved) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.reserved = self.reserved.minus(reserved.estimate);
    }

    fn used(&self, per: Per) -> Spend {
        self.spent[slot(per)].plus(self.reserved)
    }

    fn check(&mut self, now: Now, estimate: Spend) -> Result<(), Refused> {
        self.turn_the_page(now);
        if let Some(limit) = self.limits.max_in_flight
            && self.in_flight >= limit
        {
            return Err(Refused::InFlight { limit });
        }
        if let Some(budget) = self.limits.budget {
            let (limit, used, spent) = match budget.amount {
                Amount::NanoUsd(limit) => {
                    (limit, self.used(budget.per).nano_usd, self.spent[slot(budget.per)].nano_usd)
                }
                Amount::Tokens(limit) => (limit, self.used(budget.per).tokens, self.spent[slot(budget.per)].tokens),
            };
            if used >= limit {
                let wait = until_end(now, budget.per);
                return Err(Refused::Budget { budget, left: limit.saturating_sub(spent), wait });
            }
        }
        if let (Some(bucket), Some(limit)) = (&self.requests, self.limits.requests_per_minute) {
            let at = bucket.available_at(1);
            if at > now.moment {
                return Err(Refused::Requests { limit, wait: now.moment.until(at) });
            }
        }
        if let (Some(bucket), Some(limit)) = (&self.tokens, self.limits.tokens_per_minute) {
            let at = bucket.available_at(estimate.tokens);
            if at > now.moment {
                let left = bucket.left(now.moment).min(u64::from(limit));
                return Err(Refused::Tokens { limit, left, wait: now.moment.until(at) });
            }
        }
        Ok(())
    }

    /// Windows that have ended begin anew. A clock that goes back opens none.
    fn turn_the_page(&mut self, now: Now) {
        let day = now.unix_ms / DAY_MS;
        if day <= self.day {
            return;
        }
        for per in Per::ALL {
            if per.first_day(day) != per.first_day(self.day) {
                self.spent[slot(per)] = Spend::default();
            }
        }
        self.day = day;
    }
}

fn slot(per: Per) -> usize {
    match per {
        Per::Day => 0,
        Per::Week => 1,
        Per::Month => 2,
    }
}

fn until_end(now: Now, per: Per) -> Duration {
    Duration::from_millis(per.end_ms(now.unix_ms).saturating_sub(now.unix_ms))
}

//! The one answer to "who serves this attempt?". Admission and selection are the same question: a pick succeeds if and
//! only if the attempt would be admitted.

mod preferred;
#[cfg(test)]
mod tests;

use super::eligible::{Eligible, TRYING};
use super::pool::Pool;
use super::ready::soonest;
use super::spec::{AccountKey, Candidate, Need, Pick, Tier, Unavailable};
use crate::moment::Moment;

const TIERS: [Tier; 3] = [Tier::Own, Tier::Fallback, Tier::Larger];

impl Pool {
    /// Who would serve, without taking the slot. The same answer as often as it is asked at one moment.
    pub fn pick(&mut self, now: Moment, need: &Need<'_>) -> Result<Pick, Unavailable> {
        let now = self.upkeep(now);
        let pick = self.decide(now, need, &Indexed(self))?;
        Ok(self.compare(now, need, pick))
    }

    fn decide(&self, now: Moment, need: &Need<'_>, look: &impl Look) -> Result<Pick, Unavailable> {
        if !self.is_any_out(need) {
            return self.choose(now, need, false, look);
        }
        // Some endpoint is out. It is left alone while another route can serve, and probed by one turn that has a spare.
        let Ok(spare) = self.choose(now, need, true, look) else { return self.choose(now, need, false, look) };
        let before = |route: usize, tier: Tier| {
            need.routes.get(spare.route).is_some_and(|other| (tier, route) < (other.tier, spare.route))
        };
        for (route, candidate) in TIERS.into_iter().flat_map(|tier| routes(need, tier)) {
            let upstream = self.upstream_index(candidate.upstream);
            let probed = upstream.filter(|&at| self.upstreams[at].breaker.may_probe(now));
            if let Some(upstream) = probed
                && before(route, candidate.tier)
                && self.is_open_to(now, upstream, candidate, need)
                && let Some((account, trial)) = look.find(now, upstream, candidate.model, need)
            {
                return Ok(Pick { route, account, trial, probe: true, preferred: false, spilled: false });
            }
        }
        Ok(spare)
    }

    fn is_any_out(&self, need: &Need<'_>) -> bool {
        self.ever_ejected
            && need.routes.iter().any(|candidate| {
                self.upstream_index(candidate.upstream).is_some_and(|at| self.upstreams[at].breaker.is_open())
            })
    }

    /// Neither a burst nor the retry budget keeps the attempt from this candidate.
    fn is_open_to(&self, now: Moment, upstream: usize, candidate: &Candidate<'_>, need: &Need<'_>) -> bool {
        let upstream = &self.upstreams[upstream];
        upstream.bursts.closed(now, candidate.model).is_none()
            && (!need.retry || upstream.retries.left(now, &self.tuning) > 0)
    }

    /// The first route of the first tier that can serve. A tier that is merely busy is waited for.
    fn choose(&self, now: Moment, need: &Need<'_>, leave_out: bool, look: &impl Look) -> Result<Pick, Unavailable> {
        let mut why = Why::default();
        for tier in TIERS {
            let left_out = |upstream: usize| leave_out && self.upstreams[upstream].breaker.is_open();
            for (route, candidate) in routes(need, tier) {
                let upstream = self.upstream_index(candidate.upstream).filter(|&at| !left_out(at));
                if let Some(upstream) = upstream
                    && self.is_open_to(now, upstream, candidate, need)
                    && let Some((account, trial)) = look.find(now, upstream, candidate.model, need)
                {
                    return Ok(Pick { route, account, trial, probe: false, preferred: false, spilled: false });
                }
            }
            for (_, candidate) in routes(need, tier) {
                let upstream = self.upstream_index(candidate.upstream).filter(|&at| !left_out(at));
                if let Some(at) = upstream {
                    let mut seen = Seen::default();
                    let closed = self.upstreams[at].bursts.closed(now, candidate.model);
                    // A closed address is told though this turn itself has tried all whose limits closed it.
                    let asked = if closed.is_some() { Need { tried: &[], ..*need } } else { *need };
                    look.see(now, at, candidate.model, &asked, &mut seen);
                    let spent = !self.is_open_to(now, at, candidate, need);
                    why.add(seen, closed, spent);
                }
            }
            if why.busy {
                break;
            }
        }
        Err(why.verdict())
    }
}

fn routes<'a>(need: &'a Need<'a>, tier: Tier) -> impl Iterator<Item = (usize, &'a Candidate<'a>)> {
    let all = need.routes.iter().enumerate().skip(need.from_route);
    all.filter(move |(_, candidate)| candidate.tier == tier && need.larger == (tier == Tier::Larger))
}

/// A way to look at one upstream's accounts.
trait Look {
    /// Who serves, and whether as the try of an errored account.
    fn find(&self, now: Moment, upstream: usize, model: &str, need: &Need<'_>) -> Option<(AccountKey, bool)>;
    /// What keeps those from serving who do not.
    fn see(&self, now: Moment, upstream: usize, model: &str, need: &Need<'_>, seen: &mut Seen);
}

/// By the index.
struct Indexed<'a>(&'a Pool);

impl Look for Indexed<'_> {
    fn find(&self, now: Moment, upstream: usize, model: &str, need: &Need<'_>) -> Option<(AccountKey, bool)> {
        if let Some(key) = need.only {
            return match self.only(now, upstream, key, model, need) {
                Some(Eligible::Yes { trial }) => Some((key, trial)),
                _ => None,
            };
        }
        let pool = self.0;
        let fits = |key| !need.tried.contains(&key) && pool.fits(now, key, need.tokens);
        let mut best = None;
        let mut trial: Option<(Moment, AccountKey)> = None;
        let at = upstream;
        let upstream = &pool.upstreams[at];
        for (shelf, places) in upstream.index.shelves() {
            let held = || shelf.held.iter().any(|held| held == model);
            if !upstream.allows(shelf.models, model) || held() {
                continue;
            }
            if let Some(rank) = places.best(need.tie, fits) {
                let order = rank.for_tie(need.tie);
                if best.is_none_or(|other| order < other) {
                    best = Some(order);
                }
            }
            if let Some(&due) = places.trials.iter().find(|(_, key)| fits(*key))
                && trial.is_none_or(|other| due < other)
            {
                trial = Some(due);
            }
        }
        let served = prefer(need, best.map(|(_, _, key)| key), trial.map(|(_, key)| key));
        match (served, best) {
            (Some((key, false)), Some(((least, ..), ..))) => {
                Some((pool.preferred(now, at, model, need, least).unwrap_or(key), false))
            }
            (served, _) => served,
        }
    }

    fn see(&self, now: Moment, upstream: usize, model: &str, need: &Need<'_>, seen: &mut Seen) {
        if let Some(key) = need.only {
            if let Some(eligible) = self.only(now, upstream, key, model, need) {
                seen.add(eligible);
            }
            return;
        }
        let pool = self.0;
        let asked = |key| !need.tried.contains(&key);
        let upstream = &pool.upstreams[upstream];
        for (shelf, places) in upstream.index.shelves() {
            if !upstream.allows(shelf.models, model) {
                seen.not_entitled |= places.any(asked);
                continue;
            }
            let held = shelf.held.iter().position(|held| held == model).and_then(|at| places.held.get(at));
            if let Some(held) = held {
                seen.not_entitled |= held.blocked.iter().any(|&key| asked(key));
                seen.cooling(soonest(&held.cooling, asked));
                seen.errored(soonest(&held.errored, asked));
                seen.errored(held.trying.iter().any(|&key| asked(key)).then(|| now.after(TRYING)));
                continue;
            }
            let ready = places.ready.iter().map(|rank| rank.key).chain(places.trials.iter().map(|&(_, key)| key));
            for key in ready.filter(|&key| asked(key)) {
                if pool.fits(now, key, need.tokens) {
                    seen.yes = true;
                    break;
                }
                seen.rate(pool.rate_at(key, need.tokens));
            }
            seen.busy |= places.busy.iter().any(|&key| asked(key));
            for &(least, key) in places.rate.iter().filter(|&&(_, key)| asked(key)) {
                if seen.rate.is_some_and(|soonest| soonest <= least) {
                    break;
                }
                seen.rate(pool.rate_at(key, need.tokens));
            }
            seen.cooling(soonest(&places.cooling, asked));
            seen.errored(soonest(&places.errored, asked));
            seen.errored(places.trying.iter().any(|&key| asked(key)).then(|| now.after(TRYING)));
        }
    }
}

impl Indexed<'_> {
    fn only(&self, now: Moment, upstream: usize, key: AccountKey, model: &str, need: &Need<'_>) -> Option<Eligible> {
        let account = self.0.account(key).filter(|account| account.upstream == upstream)?;
        Some(account.eligible(now, model, need.tokens))
    }
}

/// A due try goes first, so that recovery is a function of time, but not in a turn that has been refused already: it may
/// not spend its attempts on accounts that are likely dead. Where nobody else can serve, any turn takes it.
fn prefer(need: &Need<'_>, best: Option<AccountKey>, trial: Option<AccountKey>) -> Option<(AccountKey, bool)> {
    match (best, trial) {
        (best, Some(trial)) if need.tried.is_empty() || best.is_none() => Some((trial, true)),
        (Some(best), _) => Some((best, false)),
        (None, _) => None,
    }
}

/// What keeps one candidate's accounts from serving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    yes: bool,
    busy: bool,
    rate: Option<Moment>,
    cooling: Option<Moment>,
    errored: Option<Moment>,
    not_entitled: bool,
}

fn sooner(old: Option<Moment>, new: Option<Moment>) -> Option<Moment> {
    old.into_iter().chain(new).min()
}

impl Seen {
    fn add(&mut self, eligible: Eligible) {
        match eligible {
            Eligible::Yes { .. } => self.yes = true,
            Eligible::Out => {}
            Eligible::Busy => self.busy = true,
            Eligible::Rate(at) => self.rate(at),
            Eligible::Cooling(until) => self.cooling(Some(until)),
            Eligible::Errored(until) => self.errored(Some(until)),
            Eligible::NotEntitled => self.not_entitled = true,
        }
    }

    fn rate(&mut self, at: Moment) {
        self.rate = sooner(self.rate, Some(at));
    }

    fn cooling(&mut self, until: Option<Moment>) {
        self.cooling = sooner(self.cooling, until);
    }

    fn errored(&mut self, until: Option<Moment>) {
        self.errored = sooner(self.errored, until);
    }
}

/// Why nobody serves, over all candidates.
#[derive(Debug, Default)]
struct Why {
    busy: bool,
    rate: Option<Moment>,
    cooling: Option<Moment>,
    errored: Option<Moment>,
    egress: Option<Moment>,
    spent: bool,
    not_entitled: bool,
}

impl Why {
    fn add(&mut self, seen: Seen, closed: Option<Moment>, spent: bool) {
        let would = seen.yes || seen.busy || seen.rate.is_some();
        match closed {
            Some(until) if would => self.egress = sooner(self.egress, Some(until)),
            // Those whose limits have closed the address cool, too; the address is still what is to be told.
            Some(until) if seen.cooling.is_some() => {
                self.egress = sooner(self.egress, seen.cooling.map(|at| at.max(until)));
            }
            None if would && spent => self.spent = true,
            Some(_) | None => {
                self.busy |= seen.busy || seen.rate.is_some();
                self.rate = sooner(self.rate, seen.rate);
            }
        }
        // What cools behind a closed address serves when both are over.
        let both = |at: Option<Moment>| at.map(|at| closed.map_or(at, |closed| at.max(closed)));
        self.cooling = sooner(self.cooling, both(seen.cooling));
        self.errored = sooner(self.errored, both(seen.errored));
        self.not_entitled |= seen.not_entitled;
    }

    fn verdict(&self) -> Unavailable {
        let soonest = [self.rate, self.cooling, self.errored, self.egress].into_iter().flatten().min();
        match (soonest, self.cooling) {
            _ if self.busy => Unavailable::AllBusy { retry_at: soonest },
            (Some(retry_at), _) if self.egress.is_some() => Unavailable::EgressClosed { retry_at },
            _ if self.spent => Unavailable::RetriesSpent,
            (Some(retry_at), Some(_)) => Unavailable::AllCooling { retry_at },
            (Some(retry_at), None) => Unavailable::AllErrored { retry_at },
            (None, _) if self.not_entitled => Unavailable::NoneEntitled,
            (None, _) => Unavailable::NoAccounts,
        }
    }
}

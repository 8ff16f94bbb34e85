//! Accounts that a turn would rather have, because a conversation or a warm cache is there. A preference decides among
//! those that could serve anyway and changes nothing else: not whether a turn is served, nor by which route, nor whether
//! it is an errored account's try or an endpoint's probe.

use super::super::eligible::{Account, Eligible};
use super::super::pool::Pool;
use super::super::spec::{AccountKey, Need, Pick};
use crate::moment::Moment;
use std::time::Duration;

/// How far the load share of a preferred account may be above that of the least loaded one, in millionths of the limit:
/// a quarter of the account's slots. More would pile up the turns of one prefix on one account beside idle ones.
pub(super) const LEAN: u64 = 250_000;

/// A preferred account that will serve again within this time keeps what is bound to it. It is the shortest life of a
/// provider's cache: after it there is nothing left there that would be worth coming back for.
const WORTH_WAITING: Duration = Duration::from_secs(5 * 60);

impl Pool {
    /// The first preferred account that may serve in the place of the best one, whose load is the least.
    pub(super) fn preferred(
        &self,
        now: Moment,
        upstream: usize,
        model: &str,
        need: &Need<'_>,
        least: u64,
    ) -> Option<AccountKey> {
        let serves = |account: &Account| {
            account.upstream == upstream
                && account.load() <= least.saturating_add(LEAN)
                && account.eligible(now, model, need.tokens) == (Eligible::Yes { trial: false })
        };
        let mut untried = need.preferred.iter().copied().filter(|key| !need.tried.contains(key));
        untried.find(|&key| self.account(key).is_some_and(serves))
    }

    /// What a choice means for what is bound to the preferred accounts.
    pub(super) fn compare(&self, now: Moment, need: &Need<'_>, mut pick: Pick) -> Pick {
        pick.preferred = need.preferred.contains(&pick.account);
        if pick.preferred || need.preferred.is_empty() {
            return pick;
        }
        let upstream = self.account(pick.account).map(|account| account.upstream);
        let model = need.routes.get(pick.route).map_or("", |candidate| candidate.model);
        let comes_back = |account: &Account| match account.eligible(now, model, need.tokens) {
            Eligible::Yes { .. } | Eligible::Busy => true,
            Eligible::Rate(at) | Eligible::Cooling(at) | Eligible::Errored(at) => at <= now.after(WORTH_WAITING),
            Eligible::NotEntitled | Eligible::Out => false,
        };
        let mut preferred = need.preferred.iter().filter_map(|&key| self.account(key));
        pick.spilled = preferred.any(|account| Some(account.upstream) == upstream && comes_back(account));
        pick
    }
}

//! Bursts of one egress address: when accounts that share no limit are limited at once for the same model, it is the
//! gateway's own address that the provider limits. Counted over all turns; an account whose reply shows its own window
//! used up explains itself and does not count.

use crate::moment::Moment;
use crate::tuning::Tuning;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Models that are watched per upstream; the quietest gives way.
const MODELS: usize = 256;
/// Limit groups remembered per model.
const GROUPS: usize = 64;

/// Whose limit it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// A group that accounts share.
    Shared(Arc<str>),
    /// An account's own.
    Own(u32),
}

#[derive(Clone, Debug, Default)]
struct Watch {
    limited: Vec<(Moment, Group)>,
    closed_until: Moment,
}

/// The bursts of one upstream by its one egress address.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    models: BTreeMap<Arc<str>, Watch>,
    /// No model is closed from then on; spares the look-up.
    all_open_at: Moment,
}

impl Bursts {
    /// An account of this group was limited without an explanation. True when that closes the model.
    pub(super) fn limited(&mut self, now: Moment, tuning: &Tuning, model: &str, group: Group) -> bool {
        if !self.models.contains_key(model) {
            if self.models.len() >= MODELS {
                let last =
                    |watch: &Watch| watch.closed_until.max(watch.limited.last().map_or(Moment(0), |(at, _)| *at));
                let quietest = self.models.iter().min_by_key(|(_, watch)| last(watch)).map(|(model, _)| model.clone());
                quietest.map(|model| self.models.remove(&model));
            }
            self.models.insert(model.into(), Watch::default());
        }
        let Some(watch) = self.models.get_mut(model) else { return false };
        watch.limited.retain(|(at, other)| now.since(*at) < tuning.egress_window && *other != group);
        if watch.limited.len() >= GROUPS {
            watch.limited.remove(0);
        }
        watch.limited.push((now, group));
        if watch.limited.len() < tuning.egress_accounts as usize {
            return false;
        }
        watch.limited.clear();
        watch.closed_until = watch.closed_until.max(now.after(tuning.egress_closed));
        self.all_open_at = self.all_open_at.max(watch.closed_until);
        true
    }

    /// A turn completed: what was limited before it was not a burst.
    pub(super) fn success(&mut self, model: &str) {
        if let Some(watch) = self.models.get_mut(model) {
            watch.limited.clear();
        }
    }

    /// Until when the model is closed.
    pub(super) fn closed(&self, now: Moment, model: &str) -> Option<Moment> {
        if self.all_open_at <= now {
            return None;
        }
        self.models.get(model).map(|watch| watch.closed_until).filter(|&until| until > now)
    }

    /// All that is closed.
    pub(super) fn all_closed(&self, now: Moment) -> Vec<(Arc<str>, Moment)> {
        let all = self.models.iter().map(|(model, watch)| (model.clone(), watch.closed_until));
        all.filter(|(_, until)| *until > now).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(bursts: &mut Bursts, at: u64, group: u32) -> bool {
        bursts.limited(Moment(at), &Tuning::default(), "m", Group::Own(group))
    }

    #[test]
    fn three_groups_within_eight_seconds_close_the_model_and_only_that_one() {
        let mut bursts = Bursts::default();
        assert!(!limited(&mut bursts, 0, 1));
        assert!(!limited(&mut bursts, 4_000, 2));
        assert!(limited(&mut bursts, 7_999, 3));
        assert_eq!(bursts.closed(Moment(8_000), "m"), Some(Moment(37_999)));
        assert_eq!(bursts.closed(Moment(8_000), "n"), None);
        assert_eq!(bursts.closed(Moment(37_999), "m"), None);
    }

    #[test]
    fn one_group_however_often_two_groups_or_three_too_slowly_are_no_burst() {
        let mut bursts = Bursts::default();
        assert!((0..9).all(|at| !limited(&mut bursts, at, 1)));
        assert!((0..9).all(|at| !limited(&mut bursts, at, (at % 2) as u32)));
        let mut bursts = Bursts::default();
        assert!((0..9).all(|at| !limited(&mut bursts, at * 4_000, at as u32)));
        let shared = || Group::Shared("org".into());
        assert!((0..9).all(|at| !bursts.limited(Moment(at), &Tuning::default(), "n", shared())));
    }

    #[test]
    fn a_success_between_starts_over_and_what_is_watched_is_bounded() {
        let mut bursts = Bursts::default();
        limited(&mut bursts, 0, 1);
        limited(&mut bursts, 1, 2);
        bursts.success("m");
        assert!(!limited(&mut bursts, 2, 3) && !limited(&mut bursts, 3, 1) && limited(&mut bursts, 4, 2));
        for n in 0..2 * MODELS {
            bursts.limited(Moment(5), &Tuning::default(), &n.to_string(), Group::Own(1));
        }
        assert_eq!(bursts.models.len(), MODELS);
        assert!(bursts.closed(Moment(6), "m").is_some(), "what is closed is not forgotten before what is quiet");
    }
}

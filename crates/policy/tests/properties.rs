//! What holds for a pool whatever happens to it.

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use support::{Event, HOUR, Run, UM, World, events, faults, need};
use turnkeep_base::verdict::row;
use turnkeep_base::{FaultKind, Origin};
use turnkeep_policy::accounts::{AccountKey, Need, Pool, SavedStatus, Scope, Status, Unavailable};
use turnkeep_policy::{Moment, Tuning};

const ACCOUNTS: u32 = 6;

/// Statuses among which 401 and 403 make shells of some faults.
const ANY: &[u16] = &[0, 200, 400, 401, 403, 429, 500, 503];
const NO_SHELLS: &[u16] = &[0, 200, 400, 404, 429, 500, 503];

fn all_kinds() -> Vec<FaultKind> {
    FaultKind::ALL.to_vec()
}

fn keys() -> impl Iterator<Item = AccountKey> {
    (0..ACCOUNTS).map(AccountKey)
}

/// The ends of all cooldowns that run.
fn ends(run: &Run) -> BTreeMap<(AccountKey, Scope), Moment> {
    let now = run.world.now;
    let of = |key| {
        let snapshot = run.world.snapshot(key);
        let running = snapshot.standing.cooldowns().running(now).map(|(scope, it)| ((key, scope.clone()), it.until));
        running.collect::<Vec<_>>()
    };
    keys().flat_map(of).collect()
}

fn is_whole(scope: &Scope) -> bool {
    !matches!(scope, Scope::Model(_))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_faults_of_others_changes_a_status_a_budget_or_a_whole_account_cooldown(
        events in events(
            faults(all_kinds().into_iter().filter(|kind| row(*kind).origin != Origin::Account).collect(), NO_SHELLS), 2)
    ) {
        let mut run = Run::new(World::of(ACCOUNTS));
        for event in &events {
            run.step(event);
            for key in keys() {
                let standing = run.world.snapshot(key).standing;
                prop_assert_eq!(standing.status(), &Status::Active);
                prop_assert_eq!(standing.budget_used(run.world.now), 0);
                prop_assert!(!standing.cooldowns().running(run.world.now).any(|(scope, _)| is_whole(scope)));
            }
        }
    }

    #[test]
    fn cooldowns_only_extend(events in events(faults(all_kinds(), ANY), 3)) {
        let mut run = Run::new(World::of(ACCOUNTS));
        let mut before = BTreeMap::new();
        for event in &events {
            run.step(event);
            let now = ends(&run);
            for (what, end) in before {
                if end > run.world.now {
                    prop_assert!(now.get(&what).is_some_and(|later| *later >= end), "{:?} {:?}", what, event);
                }
            }
            let longest = run.world.now.after(Tuning::default().longest_cooldown);
            prop_assert!(now.values().all(|end| *end <= longest));
            before = now;
        }
    }

    #[test]
    fn given_time_every_account_that_is_not_suspended_serves_again(events in events(faults(all_kinds(), ANY), 2)) {
        let mut run = Run::new(World::of(ACCOUNTS));
        events.iter().for_each(|event| run.step(event));
        for taken in std::mem::take(&mut run.live) {
            run.world.pool.release(run.world.now, taken, true);
        }
        run.world.pass(Tuning::default().longest_cooldown);
        // Turns come and succeed; nobody asks for an account by name.
        for _ in 0..4 * ACCOUNTS {
            if let Ok(taken) = run.world.take(&need(UM)) {
                run.world.succeed(taken);
            }
            run.world.pass(Duration::from_secs(1));
        }
        for key in keys() {
            let status = run.world.status(key);
            let serves = run.world.pick(&Need { only: Some(key), ..need(UM) });
            prop_assert!(status == "suspended" || (status == "active" && serves.is_ok()), "{} {:?}", status, serves);
        }
        prop_assert_eq!(run.world.pool.in_flight(), 0);
    }

    #[test]
    fn what_is_written_down_at_any_point_comes_back_and_is_never_longer(
        events in events(faults(all_kinds(), ANY), 2), pause in 0..HOUR
    ) {
        let mut run = Run::new(World::of(ACCOUNTS));
        for event in &events {
            run.step(event);
            if matches!(event, Event::Pass(_)) {
                continue;
            }
            let now = run.world.now;
            for key in keys() {
                let saved = run.world.snapshot(key).saved(now);
                // Another process, whose clock begins anew.
                let mut other = World::of(ACCOUNTS);
                other.begin_anew(Moment(pause % 50), ACCOUNTS);
                other.pool.restore(other.now, &run.world.snapshot(key).id, saved.clone());
                prop_assert_eq!(&other.snapshot(key).saved(other.now), &saved);
                let here = run.world.snapshot(key).standing.budget_used(now);
                prop_assert_eq!(other.snapshot(key).standing.budget_used(other.now), here);
                let retry = |status: &SavedStatus| match status {
                    SavedStatus::Errored { left } => Some(*left),
                    SavedStatus::Active | SavedStatus::Suspended | SavedStatus::Disabled => None,
                };
                other.pass(Duration::from_millis(pause));
                let later = other.snapshot(key).saved(other.now);
                let shorter = |left: Duration| left.saturating_sub(Duration::from_millis(pause));
                prop_assert_eq!(retry(&later.status), retry(&saved.status).map(shorter));
                for (scope, left, _) in &later.cooldowns {
                    let was = saved.cooldowns.iter().find(|(other, ..)| other == scope).map(|(_, left, _)| *left);
                    prop_assert_eq!(Some(*left), was.map(shorter));
                }
            }
        }
    }

    #[test]
    fn what_was_written_down_cannot_be_made_longer_by_a_hostile_record(left in any::<u64>(), ago in any::<u64>()) {
        let mut world = World::of(1);
        let key = AccountKey(0);
        let mut saved = world.snapshot(key).saved(world.now);
        let left = Duration::from_secs(left);
        saved.status = SavedStatus::Errored { left };
        saved.budget = vec![Duration::from_secs(ago); 3];
        saved.cooldowns = vec![(Scope::Account, left, FaultKind::RateLimited)];
        world.pool.restore(world.now, &world.snapshot(key).id, saved);
        let saved = world.snapshot(key).saved(world.now);
        let tuning = Tuning::default();
        let bounded = matches!(saved.status, SavedStatus::Errored { left } if left <= tuning.longest_episode);
        prop_assert!(bounded);
        prop_assert!(saved.cooldowns.iter().all(|(_, left, _)| *left <= tuning.longest_cooldown));
        prop_assert!(saved.budget.iter().all(|ago| *ago < tuning.budget_window));
    }
}

#[test]
fn a_pool_without_accounts_has_none() {
    let mut pool = Pool::new(Tuning::default());
    assert_eq!(pool.pick(Moment(0), &need(UM)), Err(Unavailable::NoAccounts));
    assert!(!pool.has_usable() && pool.snapshots().is_empty());
}

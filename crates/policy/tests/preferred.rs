//! Accounts that a turn would rather have: when they serve, when they do not, and what becomes of what is bound to them.

mod support;

use std::time::Duration;
use support::{UM, World, account, fault, need, own};
use turnkeep_base::{Declared, FaultKind, Fingerprint};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{AccountKey, AccountSpec, Need, Pick, Taken, Unavailable};
use turnkeep_policy::affinity::{Affinities, ENTRIES, TTL};

const SECOND: Duration = Duration::from_secs(1);
const A: AccountKey = AccountKey(0);
const B: AccountKey = AccountKey(1);

fn slots(n: u32, slots: u32) -> AccountSpec {
    AccountSpec { max_in_flight: slots, ..account("u", n) }
}

fn bound(preferred: &[AccountKey]) -> Need<'_> {
    Need { preferred, ..need(UM) }
}

fn told(pick: Pick) -> (AccountKey, bool, bool) {
    (pick.account, pick.preferred, pick.spilled)
}

fn loads(world: &World, count: u32) -> Vec<u32> {
    (0..count).map(|n| world.snapshot(AccountKey(n)).in_flight).collect()
}

/// What an engine does with bindings: asks for the bound account, and binds after each delivery but a spilled one's.
struct Sessions {
    affinities: Affinities,
}

impl Sessions {
    fn new() -> Sessions {
        Sessions { affinities: Affinities::new(ENTRIES) }
    }

    fn begin(&mut self, world: &mut World, session: u8) -> Option<(Pick, Taken)> {
        let key = Fingerprint([session; 16]);
        let bound = self.affinities.find(world.now, &key).and_then(|id| world.pool.key_of(id));
        let preferred: Vec<AccountKey> = bound.into_iter().collect();
        let need = Need { preferred: &preferred, tie: u64::from(session), ..need(UM) };
        let pick = world.pick(&need).ok()?;
        let taken = world.pool.take(world.now, &pick, &need);
        if !pick.spilled {
            let id = world.pool.id(pick.account)?.clone();
            self.affinities.bind(world.now, key, id, TTL);
        }
        Some((pick, taken))
    }
}

#[test]
fn nothing_in_the_order_among_the_eligible_comes_before_a_preferred_account() {
    let mut world = World::of(4);
    let last = AccountKey(3);
    // It has failed, and was used last.
    let taken = world.take_of(last);
    world.judge(taken, &fault(FaultKind::UpstreamInternal));
    let held = world.take_of(last);
    assert!((0..50).all(|tie| world.pick(&Need { tie, ..need(UM) }).unwrap().account != last));
    let wanted = [last];
    assert!((0..50).all(|tie| told(world.pick(&Need { tie, ..bound(&wanted) }).unwrap()) == (last, true, false)));
    world.succeed(held);
    let both = [B, last];
    assert_eq!(told(world.pick(&bound(&both)).unwrap()), (B, true, false), "the first of several");
}

#[test]
fn a_preferred_account_serves_until_a_quarter_more_of_its_slots_are_taken_than_of_the_least_loaded() {
    let mut world = World::new(vec![slots(0, 8), slots(1, 8)]);
    let wanted = [A];
    let mut live = Vec::new();
    for _ in 0..3 {
        assert_eq!(told(world.pick(&bound(&wanted)).unwrap()), (A, true, false));
        live.push(world.take(&bound(&wanted)).unwrap());
    }
    assert_eq!(told(world.pick(&bound(&wanted)).unwrap()), (B, false, true), "3/8 is too far above 0/8");
    let second = [AccountKey(9), A, B];
    assert_eq!(told(world.pick(&bound(&second)).unwrap()), (B, true, false), "the next one will do");
    live.push(world.take_of(B));
    assert_eq!(told(world.pick(&bound(&wanted)).unwrap()), (A, true, false), "3/8 beside 1/8");
    live.into_iter().for_each(|taken| world.succeed(taken));
}

#[test]
fn a_preferred_account_without_a_slot_or_rate_is_not_waited_for_and_keeps_what_is_bound_to_it() {
    let limited = AccountSpec { requests_per_minute: Some(1), ..slots(2, 9) };
    let mut world = World::new(vec![slots(0, 1), slots(1, 9), limited]);
    let (held, rated) = (world.take_of(A), world.take_of(AccountKey(2)));
    world.succeed(rated);
    for wanted in [A, AccountKey(2)] {
        assert_eq!(told(world.pick(&bound(&[wanted])).unwrap()), (B, false, true));
    }
    world.succeed(held);
    assert_eq!(told(world.pick(&bound(&[A])).unwrap()), (A, true, false));
}

#[test]
fn a_cooldown_or_a_failed_try_moves_the_turn_but_a_binding_only_when_it_is_long() {
    let mut world = World::of(2);
    let wanted = [A];
    let tried = Need { tried: &[A], ..bound(&wanted) };
    assert_eq!(told(world.pick(&tried).unwrap()), (B, false, true), "the failover of a turn");
    let waits =
        |wait: Duration| fault(FaultKind::RateLimited).declaring(Declared { wait: Some(wait), ..Declared::default() });
    world.fail(A, &waits(20 * SECOND));
    assert_eq!(told(world.pick(&bound(&wanted)).unwrap()), (B, false, true));
    world.pass(20 * SECOND);
    assert_eq!(told(world.pick(&bound(&wanted)).unwrap()), (A, true, false));
    world.fail(A, &waits(3600 * SECOND));
    assert_eq!(told(world.pick(&bound(&wanted)).unwrap()), (B, false, false), "its cache will be cold by then");
    world.evict(B);
    assert!(matches!(world.pick(&bound(&wanted)), Err(Unavailable::AllCooling { .. })));
}

#[test]
fn the_due_try_of_an_errored_account_goes_before_a_preferred_one() {
    let mut world = World::of(3);
    world.evict(B);
    let wanted = [A];
    assert_eq!(told(world.pick(&bound(&wanted)).unwrap()), (A, true, false));
    world.pass(Duration::from_secs(3600));
    let pick = world.pick(&bound(&wanted)).unwrap();
    assert_eq!((told(pick), pick.trial), ((B, false, true), true));
    let on_try = world.take(&bound(&wanted)).unwrap();
    let errored = [B, A];
    let pick = world.pick(&bound(&errored)).unwrap();
    assert_eq!((told(pick), pick.trial), ((A, true, false), false), "a single try, whoever prefers the account");
    world.succeed(on_try);
    assert_eq!(told(world.pick(&bound(&errored)).unwrap()), (B, true, false));
}

#[test]
fn a_preference_chooses_no_route_and_no_ejected_endpoint() {
    let mut world = World::new(vec![slots(0, 9), account("v", 1)]);
    let routes = [own("u", "m"), own("v", "n")];
    let wanted = [B];
    let wants = Need { preferred: &wanted, ..need(&routes) };
    let pick = world.pick(&wants).unwrap();
    assert_eq!((pick.route, told(pick)), (0, (A, false, false)), "nothing of this upstream is bound");
    // The second route's endpoint is out; the turn that may probe it has no spare but the first.
    let turned = [own("v", "n"), own("u", "m")];
    let bound_to_v = Need { preferred: &wanted, ..need(&turned) };
    for _ in 0..5 {
        let only = Need { only: Some(B), ..bound_to_v };
        let taken = world.take(&only).unwrap();
        world.judge(taken, &fault(FaultKind::ConnectRefused));
    }
    assert_eq!(world.pick(&bound_to_v).map(|pick| (pick.route, pick.account)), Ok((1, A)));
}

#[test]
fn a_replay_on_one_account_stays_there_whatever_is_preferred() {
    let mut world = World::of(2);
    let wanted = [A];
    assert_eq!(told(world.pick(&Need { only: Some(B), ..bound(&wanted) }).unwrap()), (B, false, true));
    assert_eq!(told(world.pick(&Need { only: Some(A), ..bound(&wanted) }).unwrap()), (A, true, false));
}

#[test]
fn sessions_that_keep_coming_back_starve_no_account() {
    let mut world = World::new((0..4).map(|n| slots(n, 8)).collect());
    let mut sessions = Sessions::new();
    // All are bound to the first account.
    let id = world.snapshot(A).id;
    for session in 0..24 {
        sessions.affinities.bind(world.now, Fingerprint([session; 16]), id.clone(), TTL);
    }
    let live: Vec<_> = (0..24).filter_map(|session| sessions.begin(&mut world, session)).collect();
    assert_eq!(live.len(), 24);
    let loads = loads(&world, 4);
    assert!(loads.iter().all(|load| (5..=8).contains(load)), "{loads:?}");
    for (_, taken) in live {
        world.succeed(taken);
    }
    // One after another, they all find the account that they are bound to.
    for session in 0..24 {
        let (pick, taken) = sessions.begin(&mut world, session).unwrap();
        assert_eq!(told(pick), (A, true, false));
        world.succeed(taken);
    }
}

#[test]
fn a_prefix_that_all_turns_share_does_not_put_all_of_them_on_one_account() {
    let mut world = World::new((0..8).map(|n| slots(n, 20)).collect());
    let wanted = [A];
    let mut live = Vec::new();
    while let Ok(taken) = world.take(&bound(&wanted)) {
        live.push(taken);
        let loads = loads(&world, 8);
        let least = loads.iter().min().unwrap();
        assert!(loads.iter().all(|load| load - least <= 6), "a quarter of 20, and the turn itself: {loads:?}");
    }
    assert_eq!(live.len(), 160, "no slot is left empty by it");
}

#[test]
fn a_session_bound_to_an_account_that_is_gone_is_served_and_bound_anew() {
    let mut world = World::of(3);
    let mut sessions = Sessions::new();
    let (first, taken) = sessions.begin(&mut world, 7).unwrap();
    world.succeed(taken);
    let gone = first.account.0;
    let rest = (0..3).filter(|n| *n != gone).map(|n| account("u", n)).collect();
    world.reconfigure(rest);
    let (second, taken) = sessions.begin(&mut world, 7).unwrap();
    world.succeed(taken);
    assert!(second.account != first.account && !second.spilled);
    for _ in 0..5 {
        let (pick, taken) = sessions.begin(&mut world, 7).unwrap();
        assert_eq!(told(pick), (second.account, true, false));
        world.succeed(taken);
    }
    // The same for one that the operator takes out, and for a suspended one.
    let id = world.snapshot(second.account).id;
    world.pool.set_enabled(world.now, &id, false);
    let (third, taken) = sessions.begin(&mut world, 7).unwrap();
    assert!(third.account != second.account && !third.spilled);
    world.succeed(taken);
    let unknown = [AccountKey(77)];
    assert_eq!(told(world.pick(&bound(&unknown)).unwrap()), (third.account, false, false));
    assert_eq!(world.pool.pick(Moment(0), &need(&[own("w", "m")])), Err(Unavailable::NoAccounts));
}

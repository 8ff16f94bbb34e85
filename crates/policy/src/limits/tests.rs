//! What a key's limits let through, and that nothing set aside is lost or counted twice.

use super::*;
use proptest::prelude::*;

const DOLLAR: u64 = 1_000_000_000;
/// Noon of Wednesday, 15 July 2026.
const NOON: u64 = 20_649 * DAY_MS + DAY_MS / 2;

fn at(ms: u64) -> Now {
    Now { moment: Moment(ms), unix_ms: NOON + ms }
}

fn usd(dollars: u64, per: Per) -> Limits {
    Limits { budget: Some(Budget { amount: Amount::NanoUsd(dollars * DOLLAR), per }), ..Limits::default() }
}

fn cost(dollars: u64) -> Spend {
    Spend { tokens: 10, nano_usd: dollars * DOLLAR }
}

#[test]
fn a_budget_admits_while_spent_and_set_aside_are_below_it() {
    let mut meter = Meter::new(usd(10, Per::Day));
    let turns: Vec<Reserved> = (0..3).map(|_| meter.reserve(at(0), cost(4)).unwrap()).collect();
    // 12 of 10 are set aside: over by less than one estimate.
    let refused = meter.reserve(at(0), cost(4)).unwrap_err();
    let Refused::Budget { left, wait, .. } = refused else { panic!("{refused:?}") };
    assert_eq!((left, wait), (10 * DOLLAR, Duration::from_secs(12 * 3600)));
    for turn in turns {
        meter.settle(at(1), turn, cost(1));
    }
    assert_eq!((meter.spent(at(1), Per::Day), meter.reserved()), (Spend { tokens: 30, ..cost(3) }, Spend::default()));
    assert_eq!(meter.left(at(1)).budget.unwrap().1.left, 7 * DOLLAR);
    let turn = meter.reserve(at(1), cost(4)).unwrap();
    meter.give_back(at(1), turn);
    assert_eq!(meter.left(at(1)).budget.unwrap().1.left, 7 * DOLLAR);
}

#[test]
fn each_window_ends_on_its_own_day_and_what_is_set_aside_is_spent_where_it_is_settled() {
    for (per, days) in [(Per::Day, 1), (Per::Week, 5), (Per::Month, 17)] {
        let mut meter = Meter::new(usd(1, per));
        let turn = meter.reserve(at(0), cost(1)).unwrap();
        meter.settle(at(0), turn, cost(1));
        let last = at((days - 1) * DAY_MS + DAY_MS / 2 - 1);
        assert!(meter.look(last).is_err(), "{per:?}");
        let first = at((days - 1) * DAY_MS + DAY_MS / 2);
        let turn = meter.reserve(first, cost(1)).unwrap();
        meter.settle(at(40 * DAY_MS), turn, cost(1));
        assert!(meter.look(at(40 * DAY_MS)).is_err(), "{per:?}");
    }
}

#[test]
fn days_before_the_start_count_in_the_windows_they_are_in() {
    let mut meter = Meter::new(usd(1, Per::Month));
    let today = NOON / DAY_MS;
    for (day, dollars) in [(today, 1), (today - 2, 2), (today - 3, 4), (today - 15, 8), (today + 1, 16)] {
        meter.remember(at(0), day, cost(dollars));
    }
    let spent = |meter: &mut Meter, per| meter.spent(at(0), per).nano_usd / DOLLAR;
    assert_eq!(Per::ALL.map(|per| spent(&mut meter, per)), [1, 3, 7]);
    assert!(meter.look(at(0)).is_err());
}

#[test]
fn turns_at_once_and_turns_a_minute_are_told_apart() {
    let limits = Limits { max_in_flight: Some(1), requests_per_minute: Some(2), ..Limits::default() };
    let mut meter = Meter::new(limits);
    let first = meter.reserve(at(0), Spend::default()).unwrap();
    assert_eq!(meter.look(at(0)), Err(Refused::InFlight { limit: 1 }));
    meter.settle(at(0), first, Spend::default());
    let second = meter.reserve(at(0), Spend::default()).unwrap();
    meter.settle(at(0), second, Spend::default());
    let refused = Refused::Requests { limit: 2, wait: Duration::from_secs(30) };
    assert_eq!(meter.look(at(0)), Err(refused));
    let left = meter.left(at(0)).requests.unwrap();
    assert_eq!((left.limit, left.left, left.reset), (2, 0, Duration::from_secs(60)));
    assert!(meter.look(at(30_000)).is_ok());
}

#[test]
fn a_minutes_tokens_are_estimated_and_put_right() {
    let mut meter = Meter::new(Limits { tokens_per_minute: Some(600), ..Limits::default() });
    let turn = meter.reserve(at(0), Spend { tokens: 500, nano_usd: 0 }).unwrap();
    let refused = meter.reserve(at(0), Spend { tokens: 200, nano_usd: 0 }).unwrap_err();
    assert_eq!(refused, Refused::Tokens { limit: 600, left: 100, wait: Duration::from_secs(10) });
    meter.settle(at(0), turn, Spend { tokens: 50, nano_usd: 0 });
    assert_eq!(meter.left(at(0)).tokens.unwrap().left, 550);
    assert!(meter.reserve(at(0), Spend { tokens: 200, nano_usd: 0 }).is_ok());
}

#[test]
fn other_limits_hold_at_once_for_what_was_used_before() {
    let mut meter = Meter::new(Limits::default());
    let turn = meter.reserve(at(0), cost(5)).unwrap();
    meter.settle(at(0), turn, cost(5));
    let running = meter.reserve(at(0), cost(5)).unwrap();
    meter.set(usd(5, Per::Week));
    assert!(meter.look(at(0)).is_err());
    meter.set(Limits { max_in_flight: Some(1), ..Limits::default() });
    assert_eq!(meter.look(at(0)), Err(Refused::InFlight { limit: 1 }));
    meter.give_back(at(0), running);
    assert!(meter.look(at(0)).is_ok());
}

#[test]
fn a_clock_that_goes_back_opens_no_window() {
    let mut meter = Meter::new(usd(1, Per::Day));
    let turn = meter.reserve(at(0), cost(1)).unwrap();
    meter.settle(at(0), turn, cost(1));
    let back = Now { moment: Moment(1), unix_ms: NOON - 3 * DAY_MS };
    assert!(meter.look(back).is_err() && meter.look(at(1)).is_err());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(u64),
    Settle(usize, u64),
    GiveBack(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..200u64).prop_map(Step::Begin),
        2 => (any::<usize>(), 0..200u64).prop_map(|(turn, used)| Step::Settle(turn, used)),
        1 => any::<usize>().prop_map(Step::GiveBack),
        1 => (0..20 * 3_600_000u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the order of beginnings and ends: no window is overdrawn by more than one estimate while no turn uses more
    /// than its own, the sums are exact, and at the end nothing is set aside.
    #[test]
    fn no_interleaving_overdraws_a_budget_by_more_than_one_estimate(steps in steps(), limit in 100..2_000u64) {
        let budget = Budget { amount: Amount::Tokens(limit), per: Per::Day };
        let limits = Limits { budget: Some(budget), max_in_flight: Some(20), ..Limits::default() };
        let mut meter = Meter::new(limits);
        let (mut now, mut turns, mut window, mut spent) = (0, Vec::new(), NOON / DAY_MS, 0u64);
        for step in steps {
            match step {
                Step::Begin(tokens) => {
                    if let Ok(turn) = meter.reserve(at(now), Spend { tokens, nano_usd: 0 }) {
                        turns.push((turn, tokens));
                    }
                }
                Step::Settle(at_turn, used) if !turns.is_empty() => {
                    let (turn, estimate) = turns.swap_remove(at_turn % turns.len());
                    let used = used.min(estimate);
                    meter.settle(at(now), turn, Spend { tokens: used, nano_usd: 0 });
                    spent += used;
                }
                Step::GiveBack(at_turn) if !turns.is_empty() => {
                    let (turn, _) = turns.swap_remove(at_turn % turns.len());
                    meter.give_back(at(now), turn);
                }
                Step::Settle(..) | Step::GiveBack(_) => {}
                Step::Wait(ms) => {
                    now += ms;
                    let day = at(now).unix_ms / DAY_MS;
                    if day != window {
                        (window, spent) = (day, 0);
                    }
                }
            }
            let reserved: u64 = turns.iter().map(|(_, tokens)| tokens).sum();
            let largest = 199;
            prop_assert_eq!(meter.spent(at(now), Per::Day).tokens, spent);
            prop_assert_eq!(meter.reserved().tokens, reserved);
            prop_assert_eq!(meter.in_flight() as usize, turns.len());
            prop_assert!(turns.len() <= 20);
            prop_assert!(spent + reserved < limit + largest, "{spent} and {reserved} of {limit}");
        }
        for (turn, _) in turns {
            meter.give_back(at(now), turn);
        }
        prop_assert_eq!((meter.reserved(), meter.in_flight()), (Spend::default(), 0));
    }
}

use super::*;
use crate::accounts::cooldown::Scope;
use turnkeep_base::{Declared, Evidence, FaultKind, LimitScope, Phase, Window};

const EPISODE: Duration = Duration::from_secs(15 * 60);

fn fault(kind: FaultKind) -> Fault {
    Fault::new(kind, Phase::Answered, Evidence::default())
}

fn shell() -> Fault {
    Fault::new(FaultKind::UpstreamInternal, Phase::Answered, Evidence::default().with_status(403))
}

/// A standing and how it is judged, with the default numbers.
struct Bench {
    standing: Standing,
    tuning: Tuning,
    attempts: u64,
}

impl Bench {
    fn new() -> Self {
        let tuning = Tuning::default();
        Bench { standing: Standing::new(&tuning), tuning, attempts: 0 }
    }

    fn attempt(&mut self, at: u64, fault: &Fault, bearing: Bearing, last_one: bool) -> Outcome {
        self.attempts += 1;
        let attempt = Attempt { id: self.attempts, model: "m", current_secret: true };
        self.standing.judge(Moment(at), &self.tuning, fault, attempt, bearing, last_one)
    }

    fn judge(&mut self, at: u64, fault: &Fault) -> Outcome {
        self.attempt(at, fault, Bearing::Full, false)
    }

    fn refuse(&mut self, at: u64, times: u32) {
        (0..times).for_each(|_| {
            self.judge(at, &fault(FaultKind::CredentialRejected));
        });
    }

    fn succeed(&mut self, at: u64) -> bool {
        self.attempts += 1;
        let attempt = Attempt { id: self.attempts, model: "m", current_secret: true };
        self.standing.succeed(Moment(at), attempt)
    }

    /// The next attempt is the try.
    fn next_is_try(&mut self) {
        self.standing.begin_trial(self.attempts + 1);
    }

    fn status(&self) -> &Status {
        self.standing.status()
    }

    fn used(&self, at: u64) -> u32 {
        self.standing.budget_used(Moment(at))
    }
}

fn errored(episode: u32, retry_at: Moment) -> Status {
    Status::Errored { episode, retry_at }
}

#[test]
fn three_of_any_fault_but_the_credential_ones_leave_an_account_active_with_an_empty_budget() {
    for &kind in FaultKind::ALL {
        let mut bench = Bench::new();
        for n in 0..4 {
            bench.judge(n, &fault(kind));
        }
        let evicts = matches!(kind, FaultKind::CredentialRejected | FaultKind::AccountSuspended);
        assert_eq!(bench.status() != &Status::Active, evicts, "{kind}");
        if !evicts {
            assert_eq!(bench.used(9), 0, "{kind}");
        }
    }
}

#[test]
fn the_third_refusal_within_half_an_hour_flips_and_a_success_between_ends_the_chain() {
    let mut bench = Bench::new();
    bench.refuse(0, 2);
    assert!(bench.succeed(1), "an emptied budget is worth writing down");
    assert!(!bench.succeed(1));
    bench.refuse(2, 2);
    assert_eq!(bench.status(), &Status::Active);
    bench.refuse(4, 1);
    assert_eq!(bench.status(), &errored(1, Moment(4).after(EPISODE)));
    assert!(bench.standing.reason().is_some_and(|reason| reason.contains("credential_rejected")));
}

#[test]
fn refusals_half_an_hour_apart_do_not_add_up() {
    let mut bench = Bench::new();
    for n in 0..9 {
        bench.refuse(n * 16 * 60_000, 1);
    }
    assert_eq!(bench.status(), &Status::Active);
}

#[test]
fn each_failed_try_opens_an_episode_half_as_long_again_up_to_an_hour_and_the_successful_one_ends_them() {
    let mut bench = Bench::new();
    bench.refuse(0, 3);
    let mut lengths = vec![];
    for episode in 2..=6 {
        bench.next_is_try();
        bench.refuse(10, 1);
        let Status::Errored { episode: counted, retry_at } = *bench.status() else { panic!("{:?}", bench.status()) };
        assert_eq!(counted, episode);
        lengths.push((retry_at.0 - 10) / 1000);
    }
    assert_eq!(lengths, [1350, 2025, 3037, 3600, 3600]);
    bench.succeed(20);
    assert_eq!(bench.status().name(), "errored", "a late success of an older attempt revives nothing");
    bench.next_is_try();
    assert!(bench.succeed(30));
    assert_eq!((bench.status(), bench.standing.episode(), bench.standing.in_trial()), (&Status::Active, 0, false));
    bench.refuse(40, 3);
    assert_eq!(bench.status(), &errored(1, Moment(40).after(EPISODE)));
}

#[test]
fn a_try_that_meets_anything_but_a_refusal_is_freed_after_five_seconds_without_a_longer_episode() {
    for &kind in FaultKind::ALL {
        if matches!(kind, FaultKind::CredentialRejected | FaultKind::AccountSuspended) {
            continue;
        }
        let mut bench = Bench::new();
        bench.refuse(0, 3);
        bench.next_is_try();
        bench.judge(10, &fault(kind));
        assert_eq!(bench.status(), &errored(1, Moment(5010)), "{kind}");
        assert!(!bench.standing.in_trial());
    }
}

#[test]
fn a_refusal_outside_the_try_is_recorded_and_does_not_touch_the_episode() {
    let mut bench = Bench::new();
    bench.refuse(0, 3);
    bench.next_is_try();
    bench.attempts += 10;
    let late = bench.judge(10, &fault(FaultKind::CredentialRejected));
    assert!(matches!(late.applied[..], [Applied::Recorded(_)]));
    assert!(bench.standing.in_trial(), "it was another's try");
    let limited = bench.judge(10, &fault(FaultKind::RateLimited));
    assert!(matches!(limited.applied[..], [Applied::Recorded(_)]));
    assert_eq!(bench.status(), &errored(1, Moment(0).after(EPISODE)));
}

#[test]
fn where_a_model_would_have_nobody_left_the_account_is_tried_again_within_a_minute() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        bench.attempt(0, &fault(FaultKind::CredentialRejected), Bearing::Full, true);
    }
    assert_eq!(bench.status(), &errored(1, Moment(60_000)));
}

#[test]
fn overloads_in_a_row_cool_the_model_for_longer_and_longer_up_to_a_minute() {
    let mut bench = Bench::new();
    let mut ends = Vec::new();
    for _ in 0..7 {
        bench.judge(0, &fault(FaultKind::ModelOverloaded));
        ends.push(bench.standing.cooldowns().until(Moment(0), "m").map_or(0, |end| end.0 / 1000));
    }
    assert_eq!(ends, [2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(bench.standing.cooldowns().until(Moment(0), "other"), None);
    bench.succeed(60_000);
    bench.judge(60_000, &fault(FaultKind::ModelOverloaded));
    assert_eq!(bench.standing.cooldowns().until(Moment(60_000), "m"), Some(Moment(62_000)));
}

#[test]
fn suspension_takes_the_provider_naming_it_twice_within_half_an_hour_and_only_the_operator_ends_it() {
    let mut bench = Bench::new();
    let named = fault(FaultKind::AccountSuspended);
    bench.judge(0, &named);
    assert_eq!((bench.status(), bench.used(0)), (&Status::Active, 1));
    bench.judge(30 * 60_000, &named);
    assert_eq!(bench.status(), &Status::Active, "too long ago");
    let second = bench.judge(31 * 60_000, &named);
    assert_eq!(second.applied, [Applied::Suspended]);
    bench.succeed(31 * 60_000);
    assert!(!bench.standing.new_secret(Moment(31 * 60_000)));
    assert_eq!(bench.status().name(), "suspended");
    assert!(bench.standing.set_enabled(Moment(31 * 60_000), true));
    assert_eq!((bench.status(), bench.used(31 * 60_000)), (&Status::Active, 0));
}

#[test]
fn every_used_up_window_cools_its_own_scope_and_the_wait_cools_the_whole_account() {
    let seconds = Duration::from_secs;
    let window = |scope, wait| Window { scope, wait: seconds(wait) };
    let windows = vec![
        window(LimitScope::Requests, 5),
        window(LimitScope::Account, 7),
        window(LimitScope::Account, 6),
        window(LimitScope::Quota, 9 * 3600),
        window(LimitScope::Model, 11),
    ];
    let mut bench = Bench::new();
    let declared = Declared { wait: None, windows: windows.clone(), names_model: false };
    bench.judge(0, &fault(FaultKind::RateLimited).declaring(declared));
    let ends = |bench: &Bench| -> Vec<(Scope, u64)> {
        bench.standing.cooldowns().running(Moment(0)).map(|(scope, it)| (scope.clone(), it.until.0 / 1000)).collect()
    };
    let model = Scope::Model("m".into());
    assert_eq!(ends(&bench), [(Scope::Account, 7), (model.clone(), 11), (Scope::Quota, 6 * 3600), (Scope::Rate, 5)]);
    let mut bench = Bench::new();
    let named = Declared { wait: Some(seconds(20)), windows: vec![], names_model: true };
    bench.judge(0, &fault(FaultKind::RateLimited).declaring(named));
    assert_eq!(ends(&bench), [(model, 20)]);
    let mut bench = Bench::new();
    bench.judge(0, &fault(FaultKind::RateLimited));
    let short = vec![window(LimitScope::Quota, 8)];
    bench.judge(0, &fault(FaultKind::QuotaExhausted).declaring(Declared { windows: short, ..Declared::default() }));
    assert!(ends(&bench).contains(&(Scope::Quota, 8)), "the stated reset, not the default");
    bench.judge(0, &fault(FaultKind::QuotaExhausted).declaring(Declared { windows, ..Declared::default() }));
    let ends_now = ends(&bench);
    assert!(ends_now.contains(&(Scope::Account, 15)) && ends_now.contains(&(Scope::Quota, 6 * 3600)));
}

#[test]
fn a_stated_wait_of_nothing_cools_nothing() {
    let mut bench = Bench::new();
    let outcome = bench.judge(7, &fault(FaultKind::RateLimited).wait(Some(Duration::ZERO)));
    assert_eq!(outcome.applied, []);
    assert!(bench.standing.cooldowns().is_empty());
}

#[test]
fn a_client_that_left_lets_facts_stand_and_judgements_go() {
    let mut bench = Bench::new();
    for kind in [FaultKind::CredentialRejected, FaultKind::AccountSuspended, FaultKind::UpstreamInternal] {
        for _ in 0..9 {
            bench.attempt(0, &fault(kind), Bearing::DeclaredOnly, false);
            bench.attempt(0, &shell(), Bearing::DeclaredOnly, false);
        }
    }
    assert_eq!(bench.standing, Bench::new().standing);
    let limited = bench.attempt(0, &fault(FaultKind::RateLimited), Bearing::DeclaredOnly, false);
    assert!(matches!(limited.applied[..], [Applied::Cooled { .. }]));
}

#[test]
fn a_clock_that_the_caller_set_costs_the_account_nothing() {
    let clock = turnkeep_base::Clock { kind: turnkeep_base::ClockKind::Total, set_by_caller: true };
    let mut bench = Bench::new();
    bench.judge(0, &Fault::clock(FaultKind::DeadlineExceeded, Phase::MaybeSent, clock));
    assert_eq!(bench.standing, Bench::new().standing);
}

#[test]
fn the_fifth_shell_is_charged_and_taking_it_back_undoes_that_and_the_episode_it_opened() {
    let mut bench = Bench::new();
    bench.refuse(0, 2);
    let before = bench.standing.clone();
    let charged: Vec<bool> = (0..5).map(|_| bench.judge(0, &shell()).shell_charge).collect();
    assert_eq!(charged, [false, false, false, false, true]);
    assert_eq!(bench.status().name(), "errored");
    assert!(bench.standing.take_back(Moment(1), &bench.tuning, bench.attempts));
    assert_eq!((bench.status(), bench.used(1)), (&Status::Active, 2));
    assert_eq!(bench.standing.budget, before.budget);
    assert!(!bench.standing.take_back(Moment(1), &bench.tuning, bench.attempts), "once");
    bench.refuse(2, 1);
    assert_eq!(bench.status().name(), "errored", "what others spent still counts");
}

#[test]
fn a_shell_that_did_not_open_the_episode_leaves_it_when_taken_back() {
    let mut bench = Bench::new();
    (0..5).for_each(|_| {
        bench.judge(0, &shell());
    });
    let charge = bench.attempts;
    assert_eq!(bench.used(0), 1);
    bench.refuse(0, 1);
    let mut other = bench.standing.clone();
    assert!(other.take_back(Moment(0), &bench.tuning, charge));
    assert_eq!(other.budget_used(Moment(0)), 1);
    bench.refuse(0, 1);
    assert!(!bench.standing.take_back(Moment(0), &bench.tuning, charge));
    assert_eq!(bench.status().name(), "errored");
}

#[test]
fn a_shell_that_failed_the_try_gives_the_earlier_episode_back() {
    let mut bench = Bench::new();
    bench.refuse(0, 3);
    (0..5).for_each(|_| {
        bench.next_is_try();
        bench.judge(10, &shell());
    });
    assert_eq!(bench.standing.episode(), 2);
    assert!(bench.standing.take_back(Moment(20), &bench.tuning, bench.attempts));
    assert_eq!(bench.status(), &errored(1, Moment(5020)));
}

#[test]
fn another_secret_lets_an_errored_account_be_tried_at_once_and_faults_of_the_older_one_are_recorded() {
    let mut bench = Bench::new();
    bench.refuse(0, 3);
    bench.next_is_try();
    assert!(bench.standing.new_secret(Moment(50)));
    assert_eq!((bench.status(), bench.standing.in_trial()), (&errored(1, Moment(50)), false));
    bench.next_is_try();
    bench.succeed(60);
    for id in 100..110 {
        let old = Attempt { id, model: "m", current_secret: false };
        for fault in [fault(FaultKind::CredentialRejected), fault(FaultKind::AccountSuspended), shell()] {
            bench.standing.judge(Moment(70), &bench.tuning, &fault, old, Bearing::Full, false);
        }
    }
    assert_eq!((bench.status(), bench.used(70)), (&Status::Active, 0));
    let old = Attempt { id: 150, model: "m", current_secret: false };
    for _ in 0..4 {
        bench.standing.judge(Moment(75), &bench.tuning, &shell(), old, Bearing::Full, false);
    }
    bench.judge(75, &shell());
    assert_eq!(bench.used(75), 0, "its shells do not count towards a run of the new one");
    bench.refuse(80, 1);
    let old = Attempt { id: 200, model: "m", current_secret: false };
    bench.standing.succeed(Moment(80), old);
    assert_eq!(bench.used(80), 1, "nor does its success speak for the new one");
}

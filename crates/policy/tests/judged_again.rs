//! What a judgement was made from is all that it is made from: made again elsewhere it comes out the same.

mod support;

use proptest::prelude::*;
use support::{Run, World, events, faults};
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{Applied, Scope};

/// Statuses among which 401 and 403 make shells of some faults.
const ANY: &[u16] = &[0, 200, 401, 401, 403, 403, 429, 503];

/// As a judgement tells it that was made at 0, without the model's name.
fn since(at: Moment, applied: &Applied) -> Applied {
    let since = |moment: Moment| Moment(moment.0.saturating_sub(at.0));
    match applied.clone() {
        Applied::Errored { episode, retry_at } => Applied::Errored { episode, retry_at: since(retry_at) },
        Applied::Cooled { scope: Scope::Model(_), until } => {
            Applied::Cooled { scope: Scope::Model(String::new()), until: since(until) }
        }
        Applied::Cooled { scope, until } => Applied::Cooled { scope, until: since(until) },
        other @ (Applied::Recorded(_)
        | Applied::Budget { .. }
        | Applied::Suspended
        | Applied::Sample
        | Applied::Misconfigured) => other,
    }
}

fn check(run: &mut Run, events: &[support::Event]) -> Result<usize, TestCaseError> {
    let mut judged_again = 0;
    for event in events {
        let Some((fault, judged)) = run.step_judging(event) else { continue };
        let Some(grounds) = &judged.grounds else { continue };
        let again = grounds.judge(fault);
        let before: Vec<Applied> = judged.applied.iter().map(|applied| since(grounds.at, applied)).collect();
        prop_assert_eq!(&again.applied, &before, "{:?} on {:?}", fault, grounds);
        prop_assert_eq!(again.shell_charge, judged.charge.is_some());
        judged_again += 1;
    }
    Ok(judged_again)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_judgement_comes_out_the_same_again(events in events(faults(FaultKind::ALL.to_vec(), ANY), 1)) {
        check(&mut Run::new(World::of(6)), &events)?;
    }

    #[test]
    fn a_judgement_of_an_account_in_trouble_comes_out_the_same_again(
        events in events(faults(vec![
            FaultKind::CredentialRejected,
            FaultKind::AccountSuspended,
            FaultKind::UpstreamInternal,
            FaultKind::ModelOverloaded,
            FaultKind::RateLimited,
        ], ANY), 1)
    ) {
        check(&mut Run::new(World::of(2)), &events)?;
    }
}

#[test]
fn the_last_of_a_run_of_shells_is_charged_again_and_a_growing_overload_cools_as_long_again() {
    let mut world = World::of(1);
    let key = world.key("u", 0);
    let shell = Fault::new(FaultKind::UpstreamInternal, Phase::Answered, Evidence::default().with_status(401));
    let charges: Vec<bool> = (0..5)
        .map(|_| {
            let judged = world.fail(key, &shell);
            let again = judged.grounds.as_ref().unwrap().judge(&shell);
            assert_eq!(again.shell_charge, judged.charge.is_some());
            again.shell_charge
        })
        .collect();
    assert_eq!(charges, [false, false, false, false, true]);
    let overload = Fault::new(FaultKind::ModelOverloaded, Phase::Answered, Evidence::default().with_status(529));
    let waits: Vec<u64> = (0..3)
        .map(|_| {
            world.pass(std::time::Duration::from_secs(60));
            let again = world.fail(key, &overload).grounds.unwrap().judge(&overload);
            let Some(Applied::Cooled { until, .. }) = again.applied.first() else { panic!("{again:?}") };
            until.0
        })
        .collect();
    assert_eq!(waits, [2_000, 4_000, 8_000]);
}

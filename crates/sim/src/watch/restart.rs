//! What a restart keeps: how the accounts of one life stood when it ended, against how they stand when the next one begins.

use super::Watch;
use super::accounts::{Accounts, SAVED_WITHIN};
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::{AccountId, FaultKind};
use turnkeep_http::Gateway;
use turnkeep_policy::accounts::{Scope, Snapshot};

/// What a wait may differ by, for clocks that round and for the commit between.
const ROUNDING: Duration = Duration::from_millis(1100);
/// No process of a run is gone for longer.
const GONE_AT_MOST: Duration = Duration::from_secs(6);

#[derive(Debug)]
struct Stood {
    id: AccountId,
    status: &'static str,
    /// What will be left of what is used of its budget, at least, and what is used.
    budget: (u32, u32),
    cooling: Vec<(Scope, Duration, FaultKind)>,
}

/// The end of a life.
#[derive(Debug)]
pub struct Before {
    at: Instant,
    accounts: Vec<Stood>,
}

impl Before {
    /// How the accounts stand whose changes are written down by now.
    pub fn of(gateway: &Gateway, known: &Accounts, orderly: bool) -> Before {
        let (at, admission) = (Instant::now(), &gateway.engine().admission);
        let now = admission.present();
        let stood = |snapshot: &Snapshot| {
            let standing = &snapshot.standing;
            let cooling = standing.cooldowns().running(now);
            Stood {
                id: snapshot.id.clone(),
                status: standing.status().name(),
                budget: (standing.budget_used(now.after(GONE_AT_MOST)), standing.budget_used(now)),
                cooling: cooling.map(|(scope, one)| (scope.clone(), now.until(one.until), one.cause)).collect(),
            }
        };
        let written = |id: &AccountId| orderly || known.unchanged_since(id, at - SAVED_WITHIN);
        let accounts = admission.snapshots();
        let accounts = accounts.iter().filter(|one| one.configured && !known.jumped() && written(&one.id));
        Before { at, accounts: accounts.map(stood).collect() }
    }

    /// Nothing of it is lost, and nothing has come to it.
    pub fn compare(&self, gateway: &Gateway, watch: &Watch) {
        let admission = &gateway.engine().admission;
        let (now, gone) = (admission.present(), self.at.elapsed());
        let snapshots = admission.snapshots();
        for stood in &self.accounts {
            let id = &stood.id;
            let Some(snapshot) = snapshots.iter().find(|snapshot| snapshot.id == *id) else { continue };
            let standing = &snapshot.standing;
            let status = standing.status().name();
            if status != stood.status {
                watch.broken(13, format_args!("{id} was {} when the process ended, and is {status}", stood.status));
            }
            let (used, (least, most)) = (standing.budget_used(now), stood.budget);
            if used < least || used > most {
                watch.broken(13, format_args!("{id} had used {most} of its budget, and after the restart {used}"));
            }
            for (scope, left, cause) in stood.cooling.iter().filter(|(_, left, _)| *left > gone + ROUNDING) {
                let after = standing.cooldowns().running(now).find(|(other, _)| *other == scope);
                let after = after.map(|(_, one)| (now.until(one.until), one.cause));
                let kept = after.is_some_and(|(after, because)| {
                    because == *cause && after + ROUNDING + gone >= *left && after <= *left
                });
                if !kept {
                    watch.broken(
                        13,
                        format_args!("{id} had {left:?} of its wait for {} left, and has {after:?}", cause.name()),
                    );
                }
            }
        }
    }
}

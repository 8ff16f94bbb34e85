//! What the operator switches from the command line, beside a running gateway or while there is none. The command line
//! only writes the switch down; the gateway applies it, writes the standing that follows from it, and only then marks it
//! as taken. So a switch is never lost, whatever happens in between, and nobody but the gateway writes a standing.

use super::Book;
use std::collections::{BTreeMap, BTreeSet};
use turnkeep_base::AccountId;
use turnkeep_engine::admission::Admission;
use turnkeep_policy::accounts::Snapshot;
use turnkeep_store::StoreError;

/// The switches that were applied and not taken yet, by their times: they are not applied again when the store could
/// not write them, as a second time would forgive what the account has done since.
#[derive(Debug, Default)]
pub(super) struct Switches {
    applied: BTreeMap<AccountId, u64>,
}

impl Switches {
    /// Takes up what is open. A switch of an account that is not there stays open until it is. An error leaves open what
    /// could not be written; it is applied all the same.
    pub(super) async fn take_up(&mut self, book: &Book) -> Result<(), StoreError> {
        let (admission, store) = (&book.admission, &book.store);
        let mut open = store.open_switches().await?;
        if open.is_empty() {
            self.applied.clear();
            return Ok(());
        }
        let there: BTreeSet<AccountId> = configured(admission).map(|snapshot| snapshot.id).collect();
        open.retain(|switch| there.contains(&switch.account));
        for switch in &open {
            if self.applied.get(&switch.account) != Some(&switch.at_ms) {
                admission.switch(&switch.account, switch.enabled);
                tracing::info!(account = %switch.account, enabled = switch.enabled, "the operator switched an account");
            }
        }
        self.applied = open.iter().map(|switch| (switch.account.clone(), switch.at_ms)).collect();
        let switched: Vec<Snapshot> =
            configured(admission).filter(|snapshot| self.applied.contains_key(&snapshot.id)).collect();
        book.write(&switched).await?;
        for snapshot in switched {
            if let Some(at_ms) = self.applied.get(&snapshot.id) {
                store.take_switch(snapshot.id, *at_ms).await?;
            }
        }
        Ok(())
    }
}

fn configured(admission: &Admission) -> impl Iterator<Item = Snapshot> {
    admission.snapshots().into_iter().filter(|snapshot| snapshot.configured)
}

//! What the parts around the engine tell the operator: whether the store writes, which secrets are not to be had, and how
//! the configuration stands.

use crate::secrets::Keeper;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;
use turnkeep_base::AccountId;
use turnkeep_http::{ConfigState, Health};
use turnkeep_store::Store;

/// How the configuration stands, as the one task that takes it up says.
#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<ConfigState>);

impl Notices {
    /// Changes what is told.
    pub(super) fn change(&self, with: impl FnOnce(&mut ConfigState)) {
        with(&mut self.0.lock());
    }
}

/// The parts that are asked.
pub(super) struct Parts {
    pub(super) store: Arc<dyn Store>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) notices: Arc<Notices>,
}

impl Health for Parts {
    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.store.health().await.map_err(|error| error.to_string()) })
    }

    fn faults_lost(&self) -> u64 {
        self.store.faults_lost()
    }

    fn ledger_lost(&self) -> u64 {
        self.store.ledger_lost()
    }

    fn answers_lost(&self) -> u64 {
        self.store.answers_lost()
    }

    fn secret_problem(&self, account: &AccountId) -> Option<String> {
        self.keeper.problem(account)
    }

    fn config(&self) -> ConfigState {
        self.notices.0.lock().clone()
    }
}

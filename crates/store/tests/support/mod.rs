//! Makes stores and entries for the tests of this folder.
#![allow(dead_code, reason = "each test file is a crate of its own and uses its part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use turnkeep_base::{AccountId, AttemptId, Dialect, Secret, TurnId, Usage};
use turnkeep_engine::ports::{AttemptClosed, AttemptOpened, AttemptOutcome, WallClock};
use turnkeep_store::{
    MasterKey, MemoryStore, NewAccount, OpenError, Role, SecretInput, SecretRef, SqliteStore, Store, StoreOptions,
};

/// What the clock of every store here says.
pub const NOW: u64 = 1_700_000_000_000;

pub struct FixedClock;

impl WallClock for FixedClock {
    fn unix_ms(&self) -> u64 {
        NOW
    }
}

pub fn literal(text: &str) -> Secret {
    Secret::new(text.into())
}

pub fn master() -> MasterKey {
    MasterKey::parse(&literal(&"ab".repeat(32))).unwrap()
}

pub fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(FixedClock), Some(&master())).unwrap())
}

pub fn path(folder: &Path) -> PathBuf {
    folder.join("turnkeep.db")
}

pub fn options(role: Role, master_key: Option<MasterKey>) -> StoreOptions {
    StoreOptions { role, master_key, clock: Arc::new(FixedClock) }
}

pub fn try_open(folder: &Path, role: Role, master_key: Option<MasterKey>) -> Result<Arc<SqliteStore>, OpenError> {
    SqliteStore::open(&path(folder), options(role, master_key)).map(Arc::new)
}

pub fn sqlite(folder: &Path) -> Arc<SqliteStore> {
    try_open(folder, Role::Gateway, Some(master())).unwrap()
}

pub fn account(upstream: &str, account: &str) -> AccountId {
    AccountId { upstream: upstream.into(), account: account.into() }
}

pub fn by_reference(name: &str) -> NewAccount {
    NewAccount {
        id: account("openai", name),
        secret: SecretInput::Reference(SecretRef::Env("OPENAI_API_KEY".into())),
        models: vec!["*".into()],
        max_in_flight: Some(4),
    }
}

pub fn turn_at(unix_ms: u64, random: u128) -> TurnId {
    TurnId::new(unix_ms, random)
}

/// An entry of the caller `laptop`, opened when its turn was made.
pub fn opened(turn: TurnId, number: u8) -> AttemptOpened {
    AttemptOpened {
        attempt: AttemptId { turn, number },
        caller: "laptop".into(),
        account: account("openai", "a"),
        model: "gpt".into(),
        upstream_model: "gpt-1".into(),
        dialect: Dialect::Chat,
        opened_ms: u64::try_from(turn.bits() >> 80).unwrap(),
        estimated_input: 77,
    }
}

pub fn closed(attempt: AttemptId, outcome: AttemptOutcome, input: u64) -> AttemptClosed {
    let usage = Usage { input, cache_read: 0, cache_write: 0, output: input.saturating_mul(10), reasoning: 1 };
    AttemptClosed { attempt, outcome, usage, exact: true, closed_ms: 2_000 }
}

//! Makes stores and entries for the tests of this folder.
#![allow(dead_code, unused_macros, reason = "each test file is a crate of its own and uses its part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use turnkeep_base::{AccountId, AttemptId, Dialect, Fingerprint, Secret, TurnId, Usage};
use turnkeep_engine::ports::{
    Again, AnsweredAgain, AttemptClosed, AttemptOpened, AttemptOutcome, FaultRecord, KeptAnswer, KeptFor, KeptKey,
    WallClock,
};
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

/// Runs a test on the store in memory and on the one in a file.
macro_rules! on_every_store {
    ($(async fn $name:ident($store:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            async fn body($store: Arc<dyn Store>) $body

            #[tokio::test]
            async fn in_memory() {
                body(support::memory()).await;
            }

            #[tokio::test]
            async fn in_a_file() {
                let folder = tempfile::tempdir().unwrap();
                let store = support::sqlite(folder.path());
                body(store.clone()).await;
                store.shutdown().await.unwrap();
            }
        })*
    };
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

/// The newest schema: as many as there are migrations.
pub fn schema() -> i64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let files = std::fs::read_dir(folder).unwrap();
    files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "sql")).count() as i64
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
    let secret = SecretInput::Reference(SecretRef::Env("OPENAI_API_KEY".into()));
    NewAccount { models: vec!["*".into()], max_in_flight: Some(4), ..NewAccount::new(account("openai", name), secret) }
}

pub fn turn_at(unix_ms: u64, random: u128) -> TurnId {
    TurnId::new(unix_ms, random)
}

/// A proof of that turn with everything that a proof may have.
pub fn fault(at_ms: u64, turn: TurnId, account: Option<AccountId>) -> FaultRecord {
    FaultRecord {
        at_ms,
        turn,
        attempt: Some(AttemptId { turn, number: 3 }),
        account,
        model: "gpt-1".into(),
        fault: "rate_limited".into(),
        origin: "account".into(),
        phase: "answered".into(),
        status: Some(429),
        code: Some("rate_limit_exceeded".into()),
        detail: "slow down, \u{e9}\0 \"please\"".into(),
        offset: Some(17),
        clock: Some("first_content, set by the gateway".into()),
        wait_ms: Some(15_000),
        effect: "cooled for 15 s".into(),
        until_ms: Some(at_ms + 15_000),
    }
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
        estimated_output: 9,
        estimated_cost: None,
        labels: "{}".into(),
        conversation: None,
    }
}

pub fn closed(attempt: AttemptId, outcome: AttemptOutcome, input: u64) -> AttemptClosed {
    let usage = Usage { input, cache_read: 0, cache_write: 0, output: input.saturating_mul(10), reasoning: 1 };
    AttemptClosed { attempt, outcome, usage, exact: true, cost: None, closed_ms: 2_000 }
}

/// A turn of the caller `laptop` that was answered again when it was made.
pub fn again(turn: TurnId, how: Again) -> AnsweredAgain {
    AnsweredAgain {
        turn,
        how,
        caller: "laptop".into(),
        labels: "{}".into(),
        model: "gpt".into(),
        dialect: Dialect::Chat,
        at_ms: u64::try_from(turn.bits() >> 80).unwrap(),
    }
}

pub fn kept_key(kept: KeptFor, caller: &str, number: u8) -> KeptKey {
    KeptKey { kept, caller: caller.into(), key: Fingerprint([number; 16]) }
}

/// An answer whose time is over an hour after [`NOW`].
pub fn kept(kept: KeptFor, caller: &str, number: u8, text: &str) -> KeptAnswer {
    let content = text.as_bytes().to_vec().into();
    KeptAnswer { key: kept_key(kept, caller, number), until_ms: NOW + 3_600_000, content }
}

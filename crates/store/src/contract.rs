//! The contract that every store keeps. Its test suite is `tests/contract.rs` and runs on each of them.

use crate::account::{AccountRecord, NewAccount, OpenedSecret, SecretInput};
use crate::backup::Progress;
use crate::error::RecordError;
use crate::key::{KeyRecord, KeySnapshot, NewKey};
use crate::prune::{Keep, Pruned};
use crate::record::{AuditEntry, LedgerEntry, Recent, Spend, StandingRecord, Switch, UsageBy, UsageRow};
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::time::Duration;
use turnkeep_base::{AccountId, Secret, TurnId};
use turnkeep_engine::ports::{
    AnswerStore, ContentStore, ConversationStore, FaultLog, FaultRecord, KeptAnswer, KeptConversation, Ledger,
    StoreError,
};

/// A store. Every write answers when it is committed (and so survives the death of this process), except
/// [`Ledger::close`], which answers when it is queued; [`Store::flush`] waits for those. Writes are applied in the
/// order in which they were queued. Dropping a future gives the answer up, and may or may not undo the write, except
/// for [`Ledger::open`]: an entry nobody waited for is taken back, for its attempt was not dispatched.
///
/// [`Ledger::close`] of an attempt whose entry could not be opened writes the entry whole, as it was to be opened: the
/// store remembers a bounded number of those. An end without an entry that is not remembered is lost and counted
/// ([`Store::ledger_lost`]); one that used nothing because nothing was sent is not missed.
///
/// [`Ledger::again`] and [`AnswerStore`] never wait: what they hand over is written with a next transaction, tried again
/// if it could not be, and lost and counted where there is no room. Kept answers hold content: they reach a file sealed
/// under the master key, and without one not at all.
///
/// [`ContentStore`] answers when a thing is committed. In a store without a master key its things live in memory.
///
/// [`FaultLog::note`] never waits and promises least: a proof is written with the next transaction, one that could not
/// be is tried again, and what finds no room is lost and counted. Its texts are cut to their bounds. Proofs are kept
/// until they are too old ([`Store::prune`]) or too many: then the oldest give way.
pub trait Store: Ledger + FaultLog + AnswerStore + ConversationStore + ContentStore {
    /// Waits until every write that was queued before is committed, what nobody waits for too. An error means the writes
    /// with an answer or an end of their own; a fault, an entry of a turn answered again, or a kept answer that could
    /// not be written is not one.
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Whether the store can write now, found out by writing. The caller bounds the wait.
    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Writes everything queued, tidies up and refuses every later write. A second call changes nothing.
    fn shutdown(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// How many entries of earlier runs were found open at the start and closed as interrupted, with their estimate.
    fn recovered(&self) -> usize;
    /// Entries that are open now.
    fn ledger_open_count(&self) -> BoxFuture<'_, Result<u64, StoreError>>;
    /// The newest entries, newest first, at most `limit`.
    fn ledger_entries(&self, limit: usize) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>>;
    /// Sums over the closed entries that were opened at `since_ms` or later, in groups by all of `by`, in the order of
    /// their names; by nothing, one sum. An attempt more than a day younger than its turn may be missed at the edge.
    fn usage(&self, since_ms: u64, by: Vec<UsageBy>) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>>;
    /// What each caller's attempts of that day and later have used, as far as they are closed; by day and caller. It
    /// agrees with the ledger at any instant, and outlives its entries.
    fn spent(&self, since_day: u32) -> BoxFuture<'_, Result<Vec<Spend>, StoreError>>;
    /// What each caller has asked for since then, by caller: for limits per minute after a restart.
    fn recent(&self, since_ms: u64) -> BoxFuture<'_, Result<Vec<Recent>, StoreError>>;
    /// Ledger entries that are missing or have lost their end, since start: what found no room, and ends without an
    /// entry. An entry without its end is closed with its estimate at the next start.
    fn ledger_lost(&self) -> u64;

    /// The kept answers whose time is not over, the soonest to end first. Those past it and those that do not open, as
    /// without the master key they were sealed under, are deleted.
    fn kept_answers(&self) -> BoxFuture<'_, Result<Vec<KeptAnswer>, StoreError>>;
    /// Changes to kept answers and upstreams' conversations that were never written, since start, those of one sweep as
    /// one; those that a store without a master key leaves undone are not counted.
    fn answers_lost(&self) -> u64;
    /// The upstreams' conversations that are in no turn, whose time is not over, the soonest to end first. Those past it
    /// and those that do not open are deleted.
    fn kept_conversations(&self) -> BoxFuture<'_, Result<Vec<KeptConversation>, StoreError>>;
    /// A key for fingerprints, the same for the life of the database and unlike any other's: what is kept under one is
    /// found again after a restart.
    fn fingerprint_key(&self) -> [u8; 32];
    /// Writes a consistent copy of the database to a file that is not there yet, readable by its owner alone, while
    /// everything goes on; answers its bytes. It is there whole or not at all. `progress` is told now and then.
    fn backup(&self, to: PathBuf, progress: Progress) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// The turn's attempts, in their order.
    fn attempts_of_turn(&self, turn: TurnId) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>>;

    /// The newest faults of this account, newest first, at most `limit`.
    fn faults_of_account(&self, id: &AccountId, limit: usize) -> BoxFuture<'_, Result<Vec<FaultRecord>, StoreError>>;
    /// The turn's faults, oldest first; at most 1 000.
    fn faults_of_turn(&self, turn: TurnId) -> BoxFuture<'_, Result<Vec<FaultRecord>, StoreError>>;
    /// Faults that were noted and never written, since start.
    fn faults_lost(&self) -> u64;
    /// Deletes what is older than it is kept, and answers how much that was. Long, and made to be: it goes in small
    /// batches between the writes of turns. An error or a dropped future leaves the batches before it deleted.
    fn prune(&self, keep: Keep) -> BoxFuture<'_, Result<Pruned, StoreError>>;

    /// Makes a key. The secret is in the answer and nowhere else.
    fn create_key(&self, new: NewKey) -> BoxFuture<'_, Result<(KeyRecord, Secret), RecordError>>;
    /// Every key, revoked ones too, by name.
    fn list_keys(&self) -> BoxFuture<'_, Result<Vec<KeyRecord>, StoreError>>;
    /// Ends a key at once. Revoking a revoked key changes nothing.
    fn revoke_key(&self, name: String) -> BoxFuture<'_, Result<KeyRecord, RecordError>>;
    /// Gives a key a new secret. The old one is accepted until `overlap` from now; one older than that no more.
    fn rotate_key(&self, name: String, overlap: Duration) -> BoxFuture<'_, Result<(KeyRecord, Secret), RecordError>>;
    /// The keys that are not revoked, with what it takes to check a secret against them.
    fn keys_snapshot(&self) -> BoxFuture<'_, Result<KeySnapshot, StoreError>>;

    /// Adds an account.
    fn add_account(&self, new: NewAccount) -> BoxFuture<'_, Result<AccountRecord, RecordError>>;
    /// Every account, by upstream and name.
    fn list_accounts(&self) -> BoxFuture<'_, Result<Vec<AccountRecord>, StoreError>>;
    /// Takes an account in or out.
    fn set_account_enabled(&self, id: AccountId, enabled: bool) -> BoxFuture<'_, Result<AccountRecord, RecordError>>;
    /// Gives an account another secret of the same principal; its generation rises by one.
    fn rotate_account_secret(
        &self,
        id: AccountId,
        secret: SecretInput,
    ) -> BoxFuture<'_, Result<AccountRecord, RecordError>>;
    /// Takes an account out of the store, its secret with it, and writes that to the audit log in the same commit, as
    /// done by `actor`. Its ledger entries, faults and standing stay: an account's name means the same for ever.
    fn remove_account(&self, id: AccountId, actor: String) -> BoxFuture<'_, Result<AccountRecord, RecordError>>;
    /// The account's secret: a reference for the caller to follow, or the text unsealed.
    fn open_secret(&self, id: AccountId) -> BoxFuture<'_, Result<OpenedSecret, RecordError>>;
    /// Rises with every change to a key or an account, other processes' changes too. Cheap; for polling.
    fn revision(&self) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Writes the standing of these accounts, each with all its cooldowns, in one commit. Others keep theirs.
    fn save_standing(&self, rows: Vec<StandingRecord>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Every standing written, by account; cooldowns by scope and model.
    fn load_standing(&self) -> BoxFuture<'_, Result<Vec<StandingRecord>, StoreError>>;

    /// Writes down that the operator takes an account in or out, over what was switched before, and writes that to the
    /// audit log in the same commit, as done by `actor`. The account need not be one of the store. Standings are the
    /// gateway's alone: it reads this with [`Store::open_switches`].
    fn switch_account(&self, id: AccountId, enabled: bool, actor: String) -> BoxFuture<'_, Result<(), StoreError>>;
    /// The switches that nobody has taken, by account. Cheap; for polling.
    fn open_switches(&self) -> BoxFuture<'_, Result<Vec<Switch>, StoreError>>;
    /// Marks the account's switch of `at_ms` as taken up. Changes nothing if that is no longer its last one.
    fn take_switch(&self, id: AccountId, at_ms: u64) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Writes a line of the audit log.
    fn audit(&self, entry: AuditEntry) -> BoxFuture<'_, Result<(), StoreError>>;
    /// The newest lines, newest first, at most `limit`.
    fn audit_entries(&self, limit: usize) -> BoxFuture<'_, Result<Vec<AuditEntry>, StoreError>>;
    /// Writes a named value. Names of the store itself begin with `store.` and are refused.
    fn put_meta(&self, name: String, value: Vec<u8>) -> BoxFuture<'_, Result<(), RecordError>>;
    /// A named value.
    fn get_meta(&self, name: String) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>>;
}

/// What the audit log says of an account's removal.
pub(crate) fn removal(id: &AccountId, actor: String, at_ms: u64) -> AuditEntry {
    let subject = format!("account {id}");
    AuditEntry { at_ms, actor, action: "remove".into(), subject, detail: String::new() }
}

/// What the audit log says of an account's switch.
pub(crate) fn switched(id: &AccountId, enabled: bool, actor: String, at_ms: u64) -> AuditEntry {
    let action = if enabled { "enable" } else { "disable" };
    AuditEntry { at_ms, actor, action: action.into(), subject: format!("account {id}"), detail: String::new() }
}

/// Refuses a name that the store keeps for itself.
pub(crate) fn own_name(name: &str) -> Result<(), RecordError> {
    if name.is_empty() || name.starts_with("store.") {
        return Err(RecordError::Invalid(format!("the name {name:?} is the store's own")));
    }
    Ok(())
}

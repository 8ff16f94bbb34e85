//! The store in memory: for the demonstration, for simulation and for tests. It keeps the same contract as the file,
//! short of surviving the process, and is bounded: the oldest closed ledger entries, faults and audit lines go.

use crate::account::{self, AccountRecord, NewAccount, OpenedSecret, SecretInput, StoredSecret};
use crate::backup::Progress;
use crate::contract::{Store, own_name, removal, switched};
use crate::error::RecordError;
use crate::key::{self, KeyRecord, KeySnapshot, NewKey, Pepper, random_bytes};
use crate::ledger_sql::was_never_sent;
use crate::memory_conversations::MemoryConversations;
use crate::memory_faults::MemoryFaults;
use crate::memory_kept::MemoryKept;
use crate::memory_stored::MemoryStored;
use crate::memory_usage::{self, DAY_MS, tokens};
use crate::prune::{Keep, Pruned};
use crate::record::{
    AuditEntry, CooldownRecord, LedgerClose, LedgerEntry, MOST, Recent, Spend, StandingRecord, Switch, UsageBy,
    UsageRow,
};
use crate::seal::{MasterKey, SealKey};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{AccountId, AttemptId, Secret, TurnId, Usage};
use turnkeep_engine::ports::{
    AnswerStore, AnsweredAgain, AttemptClosed, AttemptOpened, AttemptOutcome, ContentStore, ConversationKey,
    ConversationStore, FaultLog, FaultRecord, KeptAnswer, KeptConversation, KeptKey, Ledger, StoreError, StoredKey,
    StoredThing, WallClock,
};

/// Ledger entries kept.
const ENTRIES: usize = 100_000;
/// Audit lines kept.
const AUDIT: usize = 10_000;

/// The store in memory.
pub struct MemoryStore {
    state: Mutex<State>,
    faults: MemoryFaults,
    answers: MemoryKept,
    conversations: MemoryConversations,
    stored: MemoryStored,
    pepper: Pepper,
    seal: Option<SealKey>,
    clock: Arc<dyn WallClock>,
}

#[derive(Default)]
struct State {
    shut: bool,
    ledger: BTreeMap<AttemptId, LedgerEntry>,
    lost: u64,
    /// Tokens and cost, by day and caller.
    spend: BTreeMap<(u32, String), (u64, u64)>,
    keys: BTreeMap<String, KeyRecord>,
    accounts: BTreeMap<AccountId, (AccountRecord, StoredSecret)>,
    standing: BTreeMap<AccountId, StandingRecord>,
    /// The last one of each account, and whether it was taken.
    switches: BTreeMap<AccountId, (Switch, bool)>,
    audit: VecDeque<AuditEntry>,
    meta: BTreeMap<String, Vec<u8>>,
    revision: u64,
}

impl MemoryStore {
    /// An empty store. Fails only if the system gives no randomness, or the passphrase cannot be used.
    pub fn new(clock: Arc<dyn WallClock>, master_key: Option<&MasterKey>) -> Result<Self, StoreError> {
        let salt = random_bytes()?;
        let seal = master_key.map(|master| SealKey::derive(master, &salt)).transpose()?;
        Ok(MemoryStore {
            state: Mutex::default(),
            faults: MemoryFaults::default(),
            answers: MemoryKept::default(),
            conversations: MemoryConversations::default(),
            stored: MemoryStored::default(),
            pepper: Pepper::random()?,
            seal,
            clock,
        })
    }

    /// An empty store without a master key, whose keys for hashes come from this seed: two of one seed do the same.
    pub fn seeded(clock: Arc<dyn WallClock>, seed: [u8; 32]) -> Self {
        MemoryStore {
            state: Mutex::default(),
            faults: MemoryFaults::default(),
            answers: MemoryKept::default(),
            conversations: MemoryConversations::default(),
            stored: MemoryStored::default(),
            pepper: Pepper::from_bytes(seed),
            seal: None,
            clock,
        }
    }

    /// What the file's store does when it is opened: entries that an earlier run has left open are closed as interrupted,
    /// with their estimate. Answers how many they were.
    pub fn recover(&self) -> usize {
        let (closed_ms, mut recovered) = (self.clock.unix_ms(), 0);
        let State { ledger, spend, .. } = &mut *self.state.lock();
        for entry in ledger.values_mut().filter(|entry| entry.closed.is_none()) {
            let usage = Usage { input: entry.estimated_input, output: entry.estimated_output, ..Usage::default() };
            let spent = spend.entry((day(entry.opened_ms), entry.caller.clone())).or_default();
            spent.0 = spent.0.saturating_add(tokens(&usage));
            spent.1 = spent.1.saturating_add(entry.estimated_cost.unwrap_or(0));
            entry.closed = Some(LedgerClose {
                outcome: AttemptOutcome::Interrupted.name().into(),
                usage,
                exact: false,
                cost: entry.estimated_cost,
                milli_units: None,
                closed_ms,
            });
            recovered += 1;
        }
        recovered
    }

    /// Does it when first polled, not before, as the file's store does.
    fn with<'a, T: 'a, E: From<StoreError> + 'a>(
        &'a self,
        work: impl FnOnce(&mut State) -> Result<T, E> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, E>> {
        Box::pin(async move {
            let mut state = self.state.lock();
            if state.shut { Err(StoreError("the store is shut down".into()).into()) } else { work(&mut state) }
        })
    }
}

impl State {
    /// Makes room for one more entry, by the oldest closed one.
    fn make_room(&mut self) -> Result<(), StoreError> {
        if self.ledger.len() < ENTRIES {
            return Ok(());
        }
        let oldest = self.ledger.iter().find(|(_, entry)| entry.closed.is_some()).map(|(attempt, _)| *attempt);
        let oldest = oldest.ok_or_else(|| StoreError("too many attempts are open".into()))?;
        self.ledger.remove(&oldest);
        Ok(())
    }

    fn key(&self, name: &str) -> Result<KeyRecord, RecordError> {
        self.keys.get(name).cloned().ok_or_else(|| RecordError::Unknown(format!("key named {name:?}")))
    }

    fn put_key(&mut self, record: &KeyRecord) {
        self.keys.insert(record.name.clone(), record.clone());
        self.revision += 1;
    }

    fn audit(&mut self, entry: AuditEntry) {
        if self.audit.len() == AUDIT {
            self.audit.pop_front();
        }
        self.audit.push_back(entry);
    }

    fn account(&mut self, id: &AccountId) -> Result<&mut (AccountRecord, StoredSecret), RecordError> {
        self.revision += 1;
        self.accounts.get_mut(id).ok_or_else(|| RecordError::Unknown(format!("account {id}")))
    }
}

impl Ledger for MemoryStore {
    fn open(&self, entry: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |state| {
            if state.ledger.contains_key(&entry.attempt) {
                return Err(StoreError(format!("the attempt {} is in the ledger already", entry.attempt)));
            }
            state.make_room()?;
            let kept = LedgerEntry {
                attempt: entry.attempt,
                caller: entry.caller.to_string(),
                account: entry.account,
                model: entry.model.to_string(),
                upstream_model: entry.upstream_model.to_string(),
                dialect: entry.dialect.name().into(),
                opened_ms: entry.opened_ms,
                estimated_input: entry.estimated_input,
                estimated_output: entry.estimated_output,
                labels: entry.labels.to_string(),
                estimated_cost: entry.estimated_cost,
                closed: None,
            };
            state.ledger.insert(entry.attempt, kept);
            if let Some(taken) = &entry.conversation {
                self.conversations.remove(taken);
            }
            Ok(())
        })
    }

    fn close(&self, entry: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |state| {
            match state.ledger.get_mut(&entry.attempt) {
                Some(kept) if kept.closed.is_some() => {}
                Some(kept) => {
                    kept.closed = Some(LedgerClose {
                        outcome: entry.outcome.name().into(),
                        usage: entry.usage,
                        exact: entry.exact,
                        cost: entry.cost,
                        milli_units: entry.milli_units,
                        closed_ms: entry.closed_ms,
                    });
                    let spent = state.spend.entry((day(kept.opened_ms), kept.caller.clone())).or_default();
                    spent.0 = spent.0.saturating_add(tokens(&entry.usage));
                    spent.1 = spent.1.saturating_add(entry.cost.unwrap_or(0));
                }
                None if was_never_sent(&entry) => {}
                None => state.lost += 1,
            }
            Ok(())
        })
    }

    fn again(&self, entry: AnsweredAgain) {
        let mut state = self.state.lock();
        let attempt = AttemptId { turn: entry.turn, number: 0 };
        if state.shut || state.make_room().is_err() {
            state.lost += 1;
            return;
        }
        let closed = LedgerClose {
            outcome: entry.how.name().into(),
            usage: turnkeep_base::Usage::default(),
            exact: true,
            cost: Some(0),
            milli_units: None,
            closed_ms: entry.at_ms,
        };
        state.ledger.entry(attempt).or_insert_with(|| LedgerEntry {
            attempt,
            caller: entry.caller.to_string(),
            account: AccountId { upstream: "".into(), account: "".into() },
            model: entry.model.to_string(),
            upstream_model: String::new(),
            dialect: entry.dialect.name().into(),
            opened_ms: entry.at_ms,
            estimated_input: 0,
            estimated_output: 0,
            labels: entry.labels.to_string(),
            estimated_cost: Some(0),
            closed: Some(closed),
        });
    }
}

impl AnswerStore for MemoryStore {
    fn keep(&self, answer: KeptAnswer) {
        self.answers.keep(answer);
    }

    fn forget(&self, key: KeptKey) {
        self.answers.forget(&key);
    }
}

impl ConversationStore for MemoryStore {
    fn keep_conversation(&self, kept: KeptConversation) {
        self.conversations.keep(kept);
    }

    fn forget_conversations(&self, keys: Vec<ConversationKey>) {
        keys.iter().for_each(|key| self.conversations.remove(key));
    }
}

impl ContentStore for MemoryStore {
    fn put_stored(&self, things: Vec<StoredThing>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |_| {
            self.stored.put(things, self.clock.unix_ms());
            Ok(())
        })
    }

    fn get_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<Option<StoredThing>, StoreError>> {
        self.with(move |_| Ok(self.stored.get(&key, self.clock.unix_ms())))
    }

    fn touch_stored(&self, key: StoredKey, until_ms: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |_| {
            self.stored.touch(&key, until_ms);
            Ok(())
        })
    }

    fn remove_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.with(move |_| Ok(self.stored.remove(&key)))
    }
}

impl FaultLog for MemoryStore {
    fn note(&self, record: FaultRecord) {
        self.faults.note(record);
    }
}

impl Store for MemoryStore {
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |_| Ok(()))
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |_| Ok(()))
    }

    fn shutdown(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.state.lock().shut = true;
            self.faults.close();
            Ok(())
        })
    }

    fn recovered(&self) -> usize {
        0
    }

    fn ledger_open_count(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.with(move |state| Ok(state.ledger.values().filter(|entry| entry.closed.is_none()).count() as u64))
    }

    fn ledger_entries(&self, limit: usize) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        self.with(move |state| Ok(state.ledger.values().rev().take(limit).cloned().collect()))
    }

    fn usage(&self, since_ms: u64, by: Vec<UsageBy>) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>> {
        self.with(move |state| {
            Ok(memory_usage::usage(state.ledger.values().filter(|entry| entry.opened_ms >= since_ms), &by))
        })
    }

    fn spent(&self, since_day: u32) -> BoxFuture<'_, Result<Vec<Spend>, StoreError>> {
        self.with(move |state| {
            let days = state.spend.range((since_day, String::new())..);
            let spend = |((day, caller), (tokens, nano_usd)): (&(u32, String), &(u64, u64))| Spend {
                caller: caller.clone(),
                day: *day,
                tokens: *tokens,
                nano_usd: *nano_usd,
            };
            Ok(days.map(spend).collect())
        })
    }

    fn recent(&self, since_ms: u64) -> BoxFuture<'_, Result<Vec<Recent>, StoreError>> {
        self.with(move |state| {
            let mut callers = BTreeMap::<String, (BTreeSet<TurnId>, u64)>::new();
            for (attempt, entry) in state.ledger.iter().filter(|(_, entry)| entry.opened_ms >= since_ms) {
                let (turns, sum) = callers.entry(entry.caller.clone()).or_default();
                turns.insert(attempt.turn);
                let guessed = entry.estimated_input.min(MOST) + entry.estimated_output.min(MOST);
                *sum += entry.closed.as_ref().map_or(guessed, |closed| tokens(&closed.usage));
            }
            let recent = |(caller, (turns, tokens)): (String, (BTreeSet<TurnId>, u64))| Recent {
                caller,
                requests: turns.len() as u64,
                tokens,
            };
            Ok(callers.into_iter().map(recent).collect())
        })
    }

    fn ledger_lost(&self) -> u64 {
        self.state.lock().lost
    }

    fn kept_answers(&self) -> BoxFuture<'_, Result<Vec<KeptAnswer>, StoreError>> {
        self.with(move |_| Ok(self.answers.load(self.clock.unix_ms())))
    }

    fn answers_lost(&self) -> u64 {
        self.answers.lost()
    }

    fn kept_conversations(&self) -> BoxFuture<'_, Result<Vec<KeptConversation>, StoreError>> {
        self.with(move |_| Ok(self.conversations.load(self.clock.unix_ms())))
    }

    fn fingerprint_key(&self) -> [u8; 32] {
        self.pepper.fingerprint_key()
    }

    fn backup(&self, _: PathBuf, _: Progress) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.with(move |_| Err(StoreError("a store in memory has no file to copy".into())))
    }

    fn attempts_of_turn(&self, turn: TurnId) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        let bound = move |number| AttemptId { turn, number };
        self.with(move |state| {
            Ok(state.ledger.range(bound(u8::MIN)..=bound(u8::MAX)).map(|(_, e)| e.clone()).collect())
        })
    }

    fn faults_of_account(&self, id: &AccountId, limit: usize) -> BoxFuture<'_, Result<Vec<FaultRecord>, StoreError>> {
        let id = id.clone();
        self.with(move |_| Ok(self.faults.of_account(&id, limit)))
    }

    fn faults_of_turn(&self, turn: TurnId) -> BoxFuture<'_, Result<Vec<FaultRecord>, StoreError>> {
        self.with(move |_| Ok(self.faults.of_turn(turn)))
    }

    fn faults_lost(&self) -> u64 {
        self.faults.lost()
    }

    fn prune(&self, keep: Keep) -> BoxFuture<'_, Result<Pruned, StoreError>> {
        self.with(move |state| {
            let (from, had) = (keep.ledger_from(), state.ledger.len());
            state.ledger.retain(|attempt, entry| *attempt >= from || entry.closed.is_none());
            let ledger = (had - state.ledger.len()) as u64;
            let (from_day, had) = (keep.spend_from(), state.spend.len());
            state.spend.retain(|(day, _), _| u64::from(*day) >= from_day);
            let spend = (had - state.spend.len()) as u64;
            let answers = self.answers.prune(keep.now_ms)
                + self.stored.prune(keep.now_ms)
                + self.conversations.prune(keep.now_ms);
            Ok(Pruned { faults: self.faults.prune(keep.faults_from()) as u64, ledger, answers, spend })
        })
    }

    fn create_key(&self, new: NewKey) -> BoxFuture<'_, Result<(KeyRecord, Secret), RecordError>> {
        self.with(move |state| {
            let (record, secret) = key::make(&self.pepper, new, self.clock.unix_ms())?;
            if state.keys.contains_key(&record.name) {
                return Err(RecordError::Exists(format!("a key named {:?}", record.name)));
            }
            state.put_key(&record);
            Ok((record, secret))
        })
    }

    fn list_keys(&self) -> BoxFuture<'_, Result<Vec<KeyRecord>, StoreError>> {
        self.with(move |state| Ok(state.keys.values().cloned().collect()))
    }

    fn revoke_key(&self, name: String) -> BoxFuture<'_, Result<KeyRecord, RecordError>> {
        self.with(move |state| {
            let mut record = state.key(&name)?;
            if record.revoked_ms.is_none() {
                record.revoked_ms = Some(self.clock.unix_ms());
                state.put_key(&record);
            }
            Ok(record)
        })
    }

    fn rotate_key(&self, name: String, overlap: Duration) -> BoxFuture<'_, Result<(KeyRecord, Secret), RecordError>> {
        self.with(move |state| {
            let (record, secret) = key::rotate(&self.pepper, state.key(&name)?, overlap, self.clock.unix_ms())?;
            state.put_key(&record);
            Ok((record, secret))
        })
    }

    fn keys_snapshot(&self) -> BoxFuture<'_, Result<KeySnapshot, StoreError>> {
        self.with(move |state| {
            let keys = state.keys.values().filter(|key| key.revoked_ms.is_none()).cloned().collect();
            Ok(KeySnapshot { pepper: self.pepper, keys })
        })
    }

    fn add_account(&self, new: NewAccount) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.with(move |state| {
            let (record, secret) = account::admit(self.seal.as_ref(), new, self.clock.unix_ms())?;
            if state.accounts.contains_key(&record.id) {
                return Err(RecordError::Exists(format!("an account {}", record.id)));
            }
            state.accounts.insert(record.id.clone(), (record.clone(), secret));
            state.revision += 1;
            Ok(record)
        })
    }

    fn list_accounts(&self) -> BoxFuture<'_, Result<Vec<AccountRecord>, StoreError>> {
        self.with(move |state| Ok(state.accounts.values().map(|(record, _)| record.clone()).collect()))
    }

    fn set_account_enabled(&self, id: AccountId, enabled: bool) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.with(move |state| {
            let (record, _) = state.account(&id)?;
            record.enabled = enabled;
            Ok(record.clone())
        })
    }

    fn rotate_account_secret(
        &self,
        id: AccountId,
        secret: SecretInput,
    ) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.with(move |state| {
            let secret = account::keep(self.seal.as_ref(), &id, secret)?;
            let kept = state.account(&id)?;
            *kept = (account::rotated(kept.0.clone(), &secret), secret);
            Ok(kept.0.clone())
        })
    }

    fn remove_account(&self, id: AccountId, actor: String) -> BoxFuture<'_, Result<AccountRecord, RecordError>> {
        self.with(move |state| {
            let record = state.account(&id)?.0.clone();
            state.accounts.remove(&id);
            state.audit(removal(&id, actor, self.clock.unix_ms()));
            Ok(record)
        })
    }

    fn open_secret(&self, id: AccountId) -> BoxFuture<'_, Result<OpenedSecret, RecordError>> {
        self.with(move |state| {
            let kept = state.accounts.get(&id).ok_or_else(|| RecordError::Unknown(format!("account {id}")))?;
            account::open(self.seal.as_ref(), &id, kept.1.clone())
        })
    }

    fn revision(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.with(move |state| Ok(state.revision))
    }

    fn save_standing(&self, rows: Vec<StandingRecord>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |state| {
            for mut row in rows {
                row.cooldowns = latest(row.cooldowns);
                state.standing.insert(row.account.clone(), row);
            }
            Ok(())
        })
    }

    fn load_standing(&self) -> BoxFuture<'_, Result<Vec<StandingRecord>, StoreError>> {
        self.with(move |state| Ok(state.standing.values().cloned().collect()))
    }

    fn switch_account(&self, id: AccountId, enabled: bool, actor: String) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |state| {
            let line = switched(&id, enabled, actor, self.clock.unix_ms());
            let after = state.switches.get(&id).map_or(0, |(before, _)| before.at_ms + 1);
            let switch = Switch { account: id.clone(), enabled, at_ms: line.at_ms.max(after) };
            state.switches.insert(id, (switch, false));
            state.audit(line);
            Ok(())
        })
    }

    fn open_switches(&self) -> BoxFuture<'_, Result<Vec<Switch>, StoreError>> {
        self.with(move |state| {
            let open = state.switches.values().filter(|(_, taken)| !taken);
            Ok(open.map(|(switch, _)| switch.clone()).collect())
        })
    }

    fn take_switch(&self, id: AccountId, at_ms: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |state| {
            if let Some((switch, taken)) = state.switches.get_mut(&id) {
                *taken |= switch.at_ms == at_ms;
            }
            Ok(())
        })
    }

    fn audit(&self, entry: AuditEntry) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(move |state| {
            state.audit(entry);
            Ok(())
        })
    }

    fn audit_entries(&self, limit: usize) -> BoxFuture<'_, Result<Vec<AuditEntry>, StoreError>> {
        self.with(move |state| Ok(state.audit.iter().rev().take(limit).cloned().collect()))
    }

    fn put_meta(&self, name: String, value: Vec<u8>) -> BoxFuture<'_, Result<(), RecordError>> {
        self.with(move |state| {
            own_name(&name)?;
            state.meta.insert(name, value);
            Ok(())
        })
    }

    fn get_meta(&self, name: String) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        self.with(move |state| Ok(state.meta.get(&name).cloned()))
    }
}

/// The day of a time, in days since 1970.
fn day(unix_ms: u64) -> u32 {
    u32::try_from(unix_ms / DAY_MS).unwrap_or(u32::MAX)
}

/// In the order of scope and model; of two for the same, the later end.
fn latest(cooldowns: Vec<CooldownRecord>) -> Vec<CooldownRecord> {
    let mut kept = BTreeMap::<(&'static str, Option<String>), CooldownRecord>::new();
    for wait in cooldowns {
        let place = kept.entry((wait.scope.name(), wait.model.clone())).or_insert_with(|| wait.clone());
        if wait.until_ms > place.until_ms {
            *place = wait;
        }
    }
    kept.into_values().collect()
}

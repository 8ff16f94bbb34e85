//! What the gateway counts. Everything is present from the start at 0; nothing here is labelled with a value that a
//! client can make up.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use turnkeep_base::{Dialect, Fault, FaultKind, Origin, Usage, verdict};

/// Label sets that are kept; further ones are counted under `other`.
const LABEL_SETS: usize = 2_000;

/// A counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// So many more.
    pub fn add_many(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    /// The count since start.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Durations in fixed buckets.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; Durations::BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Durations {
    /// The buckets' upper bounds, in seconds.
    pub const BOUNDS: [f64; 16] =
        [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0];

    /// Notes one duration.
    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(at) = Self::BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[at].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.micros.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Count, sum in seconds, and the counts per bucket (not cumulative).
    pub fn read(&self) -> (u64, f64, Vec<u64>) {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        (self.count.load(Relaxed), self.micros.load(Relaxed) as f64 / 1e6, buckets)
    }
}

/// How a turn ended, as a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnLabels {
    /// The client's dialect.
    pub dialect: Dialect,
    /// The upstream that was asked last; empty when none was.
    pub upstream: String,
    /// The configured model's name; `*` for names that pass through.
    pub model: String,
    /// `completed`, `interrupted` or `failed`.
    pub outcome: &'static str,
    /// `delivered`, `undelivered` or `none`.
    pub delivery: &'static str,
}

/// All counters of one gateway.
#[derive(Debug)]
pub struct Tally {
    faults: Vec<Counter>,
    /// Attempts on another account than the one before.
    pub failover_hops: Counter,
    /// Those caused by a used-up quota.
    pub quota_failover_hops: Counter,
    /// Turns that ran out of candidates after at least one attempt.
    pub failover_exhausted: Counter,
    /// Turns refused at admission.
    pub pool_exhausted: Counter,
    /// Repeats on the same account.
    pub transient_replays: Counter,
    /// Requests that a second account's same refusal has convicted.
    pub corroborated: Counter,
    /// Times that an answer was not read on until its client had taken more of it.
    pub paused_for_client: Counter,
    /// Completed turns whose reply has arrived.
    pub delivered: Counter,
    /// Completed turns whose reply has not.
    pub undelivered: Counter,
    /// Turns whose client left before the answer began.
    pub client_gone_before_answer: Counter,
    /// Turns whose client left in the middle of it.
    pub client_gone_mid_answer: Counter,
    /// Turns under way.
    pub turns_open: AtomicU64,
    /// Time spent waiting for a slot.
    pub queue: Durations,
    /// From the last byte of the request to the first content.
    pub first_content: Durations,
    /// Whole turns.
    pub turn: Durations,
    /// Last byte in to first byte out, less the upstream.
    pub overhead: Durations,
    /// What attempts have cost, in billionths of a US dollar; models without a price add nothing.
    pub cost_nano_usd: Counter,
    /// Attempts that went on though their ledger entry could not be written.
    pub unrecorded: Counter,
    /// URLs in requests whose content was to be fetched.
    pub fetches: Counter,
    /// Those whose content could not be had, or may not be.
    pub fetches_failed: Counter,
    /// Bytes of the others.
    pub fetched_bytes: Counter,
    tokens: [Counter; 5],
    turns: Mutex<BTreeMap<TurnLabels, u64>>,
    attempts: Mutex<BTreeMap<(String, &'static str), u64>>,
    upstream_faults: Mutex<BTreeMap<(FaultKind, &'static str, String), u64>>,
    warned: Mutex<Vec<String>>,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            faults: FaultKind::ALL.iter().map(|_| Counter::default()).collect(),
            failover_hops: Counter::default(),
            quota_failover_hops: Counter::default(),
            failover_exhausted: Counter::default(),
            pool_exhausted: Counter::default(),
            transient_replays: Counter::default(),
            corroborated: Counter::default(),
            paused_for_client: Counter::default(),
            delivered: Counter::default(),
            undelivered: Counter::default(),
            client_gone_before_answer: Counter::default(),
            client_gone_mid_answer: Counter::default(),
            turns_open: AtomicU64::new(0),
            queue: Durations::default(),
            first_content: Durations::default(),
            turn: Durations::default(),
            overhead: Durations::default(),
            cost_nano_usd: Counter::default(),
            unrecorded: Counter::default(),
            fetches: Counter::default(),
            fetches_failed: Counter::default(),
            fetched_bytes: Counter::default(),
            tokens: Default::default(),
            turns: Mutex::default(),
            attempts: Mutex::default(),
            upstream_faults: Mutex::default(),
            warned: Mutex::default(),
        }
    }
}

impl Tally {
    /// Counts a fault of an attempt or a turn. Unclassified codes are warned about once each, 64 of them at most.
    pub fn fault(&self, fault: &Fault, upstream: &str) {
        self.fault_kind(fault.kind);
        let origin = verdict::verdict(fault).origin.name();
        bump(&self.upstream_faults, (fault.kind, origin, upstream.to_owned()));
        if fault.kind == FaultKind::Unclassified {
            let code: String = fault
                .evidence
                .code
                .clone()
                .unwrap_or_else(|| fault.evidence.detail.clone())
                .chars()
                .take(120)
                .collect();
            let mut warned = self.warned.lock();
            if warned.len() < 64 && !warned.contains(&code) {
                tracing::warn!(upstream, status = fault.evidence.status, code = %code, "an unclassified fault");
                warned.push(code);
            }
        }
    }

    /// Counts a fault that no upstream had a part in.
    pub fn fault_kind(&self, kind: FaultKind) {
        if let Some(at) = FaultKind::ALL.iter().position(|&other| other == kind) {
            self.faults[at].add();
        }
    }

    /// The count of a fault.
    pub fn faults(&self, kind: FaultKind) -> u64 {
        FaultKind::ALL.iter().position(|&other| other == kind).map_or(0, |at| self.faults[at].get())
    }

    /// The sum of the network faults.
    pub fn transport_faults(&self) -> u64 {
        let network = FaultKind::ALL.iter().filter(|&&kind| verdict::row(kind).origin == Origin::Network);
        network.map(|&kind| self.faults(kind)).sum()
    }

    /// Counts an attempt's end; `fault` is `none` for a completed one.
    pub fn attempt(&self, upstream: &str, fault: &'static str) {
        bump(&self.attempts, (upstream.to_owned(), fault));
    }

    /// Counts a turn's end.
    pub fn turn_ended(&self, labels: TurnLabels) {
        bump(&self.turns, labels);
    }

    /// Counts tokens.
    pub fn usage(&self, usage: &Usage) {
        let counts = [usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning];
        for (counter, count) in self.tokens.iter().zip(counts) {
            counter.add_many(count);
        }
    }

    /// Tokens by kind.
    pub fn tokens(&self) -> [(&'static str, u64); 5] {
        let kinds = ["input", "cache_read", "cache_write", "output", "reasoning"];
        std::array::from_fn(|at| (kinds[at], self.tokens[at].get()))
    }

    /// Turns by label.
    pub fn turns(&self) -> Vec<(TurnLabels, u64)> {
        self.turns.lock().iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }

    /// Attempts by upstream and fault.
    pub fn attempts(&self) -> Vec<((String, &'static str), u64)> {
        self.attempts.lock().iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }

    /// Faults by kind, origin and upstream.
    pub fn upstream_faults(&self) -> Vec<((FaultKind, &'static str, String), u64)> {
        self.upstream_faults.lock().iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }
}

fn bump<K: Ord>(map: &Mutex<BTreeMap<K, u64>>, key: K) {
    let mut map = map.lock();
    if let Some(count) = map.get_mut(&key) {
        *count += 1;
    } else if map.len() < LABEL_SETS {
        map.insert(key, 1);
    }
}

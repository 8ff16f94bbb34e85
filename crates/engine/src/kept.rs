//! Answers that outlive their turn: those of the response cache, those that were paid for and did not arrive, those under
//! an idempotency key; and the turns under way that another may join.
//!
//! Everything is within one caller's scope: nothing here can be found by another. What is held or cached is decided by the
//! closings (`turnkeep_policy::settle`); this only keeps it.

use crate::ports::{Again, AnswerStore, KeptAnswer, KeptFor, KeptKey};
use crate::tally::Counter;
use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use turnkeep_base::limit::{HELD_ANSWERS, HELD_BYTES, HELD_FOR, IDEMPOTENT_FOR};
use turnkeep_base::{Fingerprint, Receipt};
use turnkeep_dialect::recorded::Recorded;
use turnkeep_policy::Moment;
use turnkeep_policy::shelf::{Shelf, ShelfBounds};

/// Answers under idempotency keys, and in the response cache.
const MANY_ANSWERS: usize = 10_000;
/// What an answer takes beside its bytes.
const OVERHEAD: usize = 512;
/// The bytes before an answer in the store's form: the request it answers.
const REQUEST_BYTES: usize = 16;

/// An answer and the request it answers.
#[derive(Clone, Debug)]
struct Answer {
    recorded: Arc<Recorded>,
    request: Fingerprint,
}

/// What a turn that may be joined has come to.
#[derive(Clone, Debug)]
pub(crate) enum Lead {
    /// It runs.
    Running,
    /// Its answer is complete.
    Answered(Arc<Recorded>),
    /// It ended without one that can be given.
    Ended,
}

/// By what a running turn is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Request(Fingerprint),
    Idempotency(Fingerprint),
    /// It is complete, and whether its reply arrives is not known yet. The last one, so that it is told from the others by
    /// its place.
    Arriving(Fingerprint),
}

#[derive(Debug)]
struct Running {
    request: Fingerprint,
    lead: watch::Receiver<Lead>,
    number: u64,
}

type AllRunning = BTreeMap<(Arc<str>, Name), Running>;

#[derive(Debug)]
struct Shelves {
    cache: Shelf<Answer>,
    held: Shelf<Answer>,
    idempotent: Shelf<Answer>,
}

impl Shelves {
    fn of(&mut self, kept: KeptFor) -> &mut Shelf<Answer> {
        match kept {
            KeptFor::Cache => &mut self.cache,
            KeptFor::Held => &mut self.held,
            KeptFor::Idempotent => &mut self.idempotent,
        }
    }
}

/// All kept answers of one gateway.
pub struct Kept {
    shelves: Mutex<Shelves>,
    running: Mutex<(AllRunning, u64)>,
    store: Arc<dyn AnswerStore>,
    /// Answers put into the response cache.
    pub cache_stores: Counter,
    /// Turns that the response cache, or an idempotency key's answer, served.
    pub cache_hits: Counter,
    /// Answers held.
    pub holds: Counter,
    /// Turns that a held answer served.
    pub held_served: Counter,
    /// Turns that joined another.
    pub joins: Counter,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookUp<'a> {
    pub(crate) caller: &'a Arc<str>,
    pub(crate) request: Fingerprint,
    /// The request as its idempotency key stands for it.
    pub(crate) named: Fingerprint,
    pub(crate) idempotency: Option<Fingerprint>,
    /// The model's cache is on.
    pub(crate) cache: bool,
    /// Held and cached answers are not wanted.
    pub(crate) bypass: bool,
    /// The turn has not waited for another one yet. One that did, and got nothing, runs: those who wait for one that fails
    /// do not queue behind each other.
    pub(crate) first: bool,
}

/// What was found.
pub(crate) enum Found {
    /// Nothing: the turn runs.
    Nothing,
    /// An answer.
    Answer(Arc<Recorded>, Again),
    /// The answer of the idempotency key.
    Remembered(Arc<Recorded>),
    /// A turn that runs and will have one.
    Running(watch::Receiver<Lead>),
    /// The idempotency key is another request's.
    Reused,
}

/// A running turn's place among those that may be joined; given up when dropped.
pub(crate) struct Leading {
    kept: Arc<Kept>,
    place: (Arc<str>, Name),
    number: u64,
    lead: watch::Sender<Lead>,
}

impl Leading {
    /// It stands for an idempotency key, under which nothing else may run.
    pub(crate) fn is_of_key(&self) -> bool {
        match self.place.1 {
            Name::Idempotency(_) => true,
            Name::Request(_) | Name::Arriving(_) => false,
        }
    }

    /// Those who joined get this answer.
    pub(crate) fn publish(&self, recorded: &Arc<Recorded>) {
        self.lead.send_replace(Lead::Answered(recorded.clone()));
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        let mut running = self.kept.running.lock();
        if running.0.get(&self.place).is_some_and(|running| running.number == self.number) {
            running.0.remove(&self.place);
        }
        drop(running);
        self.lead.send_if_modified(|lead| {
            let open = matches!(lead, Lead::Running);
            if open {
                *lead = Lead::Ended;
            }
            open
        });
    }
}

impl Kept {
    /// Nothing is kept yet.
    pub(crate) fn new(store: Arc<dyn AnswerStore>) -> Arc<Self> {
        let bounds = |count| ShelfBounds { count, bytes: HELD_BYTES };
        let shelves = Shelves {
            cache: Shelf::new(bounds(MANY_ANSWERS)),
            held: Shelf::new(bounds(HELD_ANSWERS)),
            idempotent: Shelf::new(bounds(MANY_ANSWERS)),
        };
        Arc::new(Kept {
            shelves: Mutex::new(shelves),
            running: Mutex::default(),
            store,
            cache_stores: Counter::default(),
            cache_hits: Counter::default(),
            holds: Counter::default(),
            held_served: Counter::default(),
            joins: Counter::default(),
        })
    }

    /// Something is kept for, or led by, this caller, so that its request must be known.
    pub(crate) fn concerns(&self, now: Moment, caller: &Arc<str>) -> bool {
        if self.shelves.lock().held.any(now, caller) {
            return true;
        }
        match self.holds_from(caller, Name::Request(Fingerprint([0; 16]))) {
            Some(Name::Request(_) | Name::Idempotency(_)) => true,
            Some(Name::Arriving(_)) | None => false,
        }
    }

    /// Looks for an answer. In the same step the turn becomes one that others may join: under its idempotency key, and under
    /// its request where nothing is found and the model's cache is on.
    pub(crate) fn look_up(self: &Arc<Self>, now: Moment, look: &LookUp<'_>) -> (Found, Vec<Leading>) {
        let mut running = self.running.lock();
        let mut leading = Vec::new();
        if let Some(key) = look.idempotency {
            if let Some(kept) = self.shelves.lock().idempotent.get(now, look.caller, &key) {
                let same = kept.request == look.named;
                let found = if same { Found::Remembered(kept.recorded.clone()) } else { Found::Reused };
                return (found, leading);
            }
            let name = Name::Idempotency(key);
            if let Some(other) = running.0.get(&(look.caller.clone(), name)) {
                let same = other.request == look.named;
                let found = if same { Found::Running(other.lead.clone()) } else { Found::Reused };
                return (found, leading);
            }
            leading.push(self.lead(&mut running, look.caller, name, look.named));
        }
        if look.bypass {
            return (Found::Nothing, leading);
        }
        {
            let shelves = self.shelves.lock();
            if let Some(kept) = shelves.held.get(now, look.caller, &look.request) {
                return (Found::Answer(kept.recorded.clone(), Again::Held), leading);
            }
            if look.cache
                && let Some(kept) = shelves.cache.get(now, look.caller, &look.request)
            {
                return (Found::Answer(kept.recorded.clone(), Again::Hit), leading);
            }
        }
        if !look.first {
            return (Found::Nothing, leading);
        }
        let name = Name::Request(look.request);
        if let Some(other) = running.0.get(&(look.caller.clone(), name)) {
            return (Found::Running(other.lead.clone()), leading);
        }
        if look.cache {
            leading.push(self.lead(&mut running, look.caller, name, look.request));
        }
        (Found::Nothing, leading)
    }

    /// A complete answer is on its way: the same bytes, asked again, wait a moment for what becomes of it. `None` if another
    /// is waited for already.
    pub(crate) fn arriving(self: &Arc<Self>, caller: &Arc<str>, bytes: Fingerprint) -> Option<Leading> {
        self.take(caller, Name::Arriving(bytes), bytes)
    }

    /// Some answer is on its way to this caller.
    pub(crate) fn is_awaited(&self, caller: &Arc<str>) -> bool {
        self.holds_from(caller, Name::Arriving(Fingerprint([0; 16]))).is_some()
    }

    /// What becomes of the answer to these bytes, if it is on its way to this caller.
    pub(crate) fn awaited(&self, caller: &Arc<str>, bytes: Fingerprint) -> Option<watch::Receiver<Lead>> {
        let running = self.running.lock();
        running.0.get(&(caller.clone(), Name::Arriving(bytes))).map(|other| other.lead.clone())
    }

    /// The first of this caller's places from here on.
    fn holds_from(&self, caller: &Arc<str>, name: Name) -> Option<Name> {
        let running = self.running.lock();
        let ((whose, name), _) = running.0.range((caller.clone(), name)..).next()?;
        (whose == caller).then_some(*name)
    }

    fn take(self: &Arc<Self>, caller: &Arc<str>, name: Name, request: Fingerprint) -> Option<Leading> {
        let mut running = self.running.lock();
        let taken = running.0.contains_key(&(caller.clone(), name));
        (!taken).then(|| self.lead(&mut running, caller, name, request))
    }

    /// A turn whose client has left runs on: the same request may join it. `None` if another leads already.
    pub(crate) fn lead_on(self: &Arc<Self>, caller: &Arc<str>, request: Fingerprint) -> Option<Leading> {
        self.take(caller, Name::Request(request), request)
    }

    fn lead(
        self: &Arc<Self>,
        running: &mut (AllRunning, u64),
        caller: &Arc<str>,
        name: Name,
        request: Fingerprint,
    ) -> Leading {
        let (lead, led) = watch::channel(Lead::Running);
        running.1 += 1;
        let (place, number) = ((caller.clone(), name), running.1);
        running.0.insert(place.clone(), Running { request, lead: led, number });
        Leading { kept: self.clone(), place, number, lead }
    }

    /// Puts a delivered answer into the response cache. It takes the reply's receipt.
    pub(crate) fn cache(
        &self,
        _: &Receipt,
        at: At,
        caller: &Arc<str>,
        request: Fingerprint,
        ttl: Duration,
        recorded: &Arc<Recorded>,
    ) {
        self.cache_stores.add();
        self.put(KeptFor::Cache, at, caller, request, request, ttl, recorded);
    }

    /// Holds an answer that has not arrived.
    pub(crate) fn hold(&self, at: At, caller: &Arc<str>, request: Fingerprint, recorded: &Arc<Recorded>) {
        self.holds.add();
        self.put(KeptFor::Held, at, caller, request, request, HELD_FOR, recorded);
    }

    /// Remembers an answer under its idempotency key.
    pub(crate) fn remember(
        &self,
        at: At,
        caller: &Arc<str>,
        key: Fingerprint,
        request: Fingerprint,
        recorded: &Arc<Recorded>,
    ) {
        self.put(KeptFor::Idempotent, at, caller, key, request, IDEMPOTENT_FOR, recorded);
    }

    /// The held answer of this request has arrived. It takes the reply's receipt.
    pub(crate) fn spend(&self, _: &Receipt, caller: &Arc<str>, request: Fingerprint) {
        if self.shelves.lock().held.take(caller, &request).is_some() {
            self.store.forget(KeptKey { kept: KeptFor::Held, caller: caller.clone(), key: request });
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one place writes all three kinds")]
    fn put(
        &self,
        kept: KeptFor,
        at: At,
        caller: &Arc<str>,
        key: Fingerprint,
        request: Fingerprint,
        ttl: Duration,
        recorded: &Arc<Recorded>,
    ) {
        let content = stored(request, recorded);
        let bytes = content.len() + OVERHEAD;
        let answer = Answer { recorded: recorded.clone(), request };
        let gone = self.shelves.lock().of(kept).put(at.now, caller.clone(), key, bytes, at.now.after(ttl), answer);
        let until_ms = at.wall_ms.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self.store.keep(KeptAnswer { key: KeptKey { kept, caller: caller.clone(), key }, until_ms, content });
        for (caller, key) in gone {
            self.store.forget(KeptKey { kept, caller, key });
        }
    }

    /// Takes up what an earlier run kept.
    pub(crate) fn take_up(&self, at: At, answers: Vec<KeptAnswer>) {
        let mut shelves = self.shelves.lock();
        for KeptAnswer { key: KeptKey { kept, caller, key }, until_ms, content } in answers {
            let Some((request, recorded)) = read(&content) else { continue };
            let left = Duration::from_millis(until_ms.saturating_sub(at.wall_ms));
            let answer = Answer { recorded: Arc::new(recorded), request };
            // A wall clock that was set back makes nothing live longer than it was to.
            let left = match kept {
                KeptFor::Held => left.min(HELD_FOR),
                KeptFor::Idempotent => left.min(IDEMPOTENT_FOR),
                KeptFor::Cache => left,
            };
            shelves.of(kept).put(at.now, caller, key, content.len() + OVERHEAD, at.now.after(left), answer);
        }
    }

    /// Turns under way that another may join, and replies on their way.
    pub fn joinable(&self) -> usize {
        self.running.lock().0.len()
    }

    /// Answers in the response cache, and held ones.
    pub fn sizes(&self, now: Moment) -> (usize, usize) {
        let mut shelves = self.shelves.lock();
        shelves.cache.expire(now);
        shelves.held.expire(now);
        (shelves.cache.len(), shelves.held.len())
    }
}

/// A time, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) now: Moment,
    pub(crate) wall_ms: u64,
}

/// An answer in the store's form.
fn stored(request: Fingerprint, recorded: &Recorded) -> Bytes {
    let recorded = recorded.to_bytes();
    let mut content = BytesMut::with_capacity(REQUEST_BYTES + recorded.len());
    content.put_slice(&request.0);
    content.put_slice(&recorded);
    content.freeze()
}

fn read(content: &Bytes) -> Option<(Fingerprint, Recorded)> {
    let request = content.get(..REQUEST_BYTES)?.try_into().ok()?;
    Some((Fingerprint(request), Recorded::from_bytes(content.slice(REQUEST_BYTES..))?))
}

#[cfg(test)]
mod tests;

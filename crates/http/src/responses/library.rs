//! Where responses and conversations are found: by their owner and id, nowhere else, and as long as they are used.

use super::record::{StoredConversation, StoredResponse};
use super::running::Running;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use turnkeep_base::limit::IDEMPOTENT_FOR;
use turnkeep_base::{ClientError, Fingerprint};
use turnkeep_dialect::identity;
use turnkeep_engine::ports::{ContentStore, StoreError, StoredKey, StoredKind, StoredThing, WallClock};
use turnkeep_policy::Moment;
use turnkeep_policy::shelf::{Shelf, ShelfBounds};

/// How long a stored thing that is not used is kept, by itself.
const IDLE: Duration = Duration::from_secs(30 * 86_400);
/// However much it is used, it ends after so many times the idle time.
const LONGEST: u64 = 3;
/// Its use is noted when that moves its end by this part of the idle time.
const NOTED: u64 = 100;

/// Events of background responses that are kept to be followed: at most of so many, and so many bytes.
const FOLLOWED: ShelfBounds = ShelfBounds { count: 4096, bytes: 128 << 20 };
/// How long after the last event.
const FOLLOWED_FOR: Duration = Duration::from_secs(2 * 3600);

/// Conversations that are known to have lost a turn, so many at most; they have no bytes of their own.
const LOST: ShelfBounds = ShelfBounds { count: 4096, bytes: 1 };

/// Background responses that run at once: of one caller, and of all.
const RUNNING_EACH: usize = 100;
const RUNNING_ALL: usize = 4096;

/// How long a repeated request waits for the one before it.
const SAME_WAIT: Duration = Duration::from_secs(600);

/// Whose and which.
type Name = (Arc<str>, String);

/// Everything that is stored.
pub(crate) struct Library {
    store: Arc<dyn ContentStore>,
    hash_key: [u8; 32],
    clock: Arc<dyn WallClock>,
    idle_ms: AtomicU64,
    /// What one request has for itself, with what that request is known by.
    locked: Mutex<BTreeMap<(StoredKind, Name), Option<Fingerprint>>>,
    freed: Notify,
    running: Mutex<BTreeMap<Name, Arc<Running>>>,
    followed: Mutex<Shelf<Arc<Running>>>,
    /// Conversations that are no longer whole, and may not say so where they are stored.
    lost: Mutex<Shelf<()>>,
    started: Instant,
}

/// A conversation or an idempotency key that one request has for itself.
pub(super) struct Held {
    library: Arc<Library>,
    name: (StoredKind, Name),
}

/// A background response that begins. Dropped before its turn has, it does not run.
#[must_use]
pub(super) struct Begins(Option<(Arc<Library>, Arc<str>, String)>);

impl Begins {
    /// Its turn has begun, whose closing says when it ends.
    pub(super) fn begun(mut self) {
        self.0 = None;
    }
}

impl Drop for Begins {
    fn drop(&mut self) {
        if let Some((library, scope, id)) = self.0.take() {
            library.end_running(&scope, &id);
        }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.library.locked.lock().remove(&self.name);
        self.library.freed.notify_waiters();
    }
}

/// The store could not be read or written.
fn unavailable(error: &StoreError) -> ClientError {
    tracing::warn!(%error, "what callers have stored cannot be read or written");
    ClientError::new(503, "store_unavailable", "the gateway's store does not answer; try again in a moment")
}

impl Library {
    pub(crate) fn new(store: Arc<dyn ContentStore>, hash_key: [u8; 32], clock: Arc<dyn WallClock>) -> Arc<Self> {
        Arc::new(Library {
            store,
            hash_key,
            clock,
            idle_ms: AtomicU64::new(ms(IDLE)),
            locked: Mutex::default(),
            freed: Notify::new(),
            running: Mutex::default(),
            followed: Mutex::new(Shelf::new(FOLLOWED)),
            lost: Mutex::new(Shelf::new(LOST)),
            started: Instant::now(),
        })
    }

    /// How long what is not used is kept from now on.
    pub(crate) fn keep_for(&self, idle: Duration) {
        self.idle_ms.store(ms(idle), Ordering::Relaxed);
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.unix_ms()
    }

    /// By which something that a client sent is known again.
    pub(super) fn print(&self, what: &str, parts: &[&[u8]]) -> Fingerprint {
        let mut all = vec![what.as_bytes()];
        all.extend_from_slice(parts);
        identity::of_parts(&self.hash_key, "repeated", &all)
    }

    fn fingerprint(&self, kind: StoredKind, id: &str) -> Fingerprint {
        identity::of_parts(&self.hash_key, "stored", &[kind.name().as_bytes(), id.as_bytes()])
    }

    fn key(&self, kind: StoredKind, scope: &Arc<str>, id: &str) -> StoredKey {
        StoredKey { kind, caller: scope.clone(), key: self.fingerprint(kind, id) }
    }

    /// When a thing ends that is used now.
    fn until(&self, made_ms: u64, now_ms: u64) -> u64 {
        let idle = self.idle_ms.load(Ordering::Relaxed);
        now_ms.saturating_add(idle).min(made_ms.saturating_add(idle.saturating_mul(LONGEST)))
    }

    async fn get(&self, kind: StoredKind, scope: &Arc<str>, id: &str) -> Result<Option<StoredThing>, ClientError> {
        let key = self.key(kind, scope, id);
        let found = self.store.get_stored(key.clone()).await.map_err(|error| unavailable(&error))?;
        let Some(thing) = found else { return Ok(None) };
        let until = self.until(thing.made_ms, self.now_ms());
        let step = self.idle_ms.load(Ordering::Relaxed) / NOTED;
        if until > thing.until_ms.saturating_add(step)
            && let Err(error) = self.store.touch_stored(key, until).await
        {
            // It is still there for as long as it was.
            tracing::debug!(%error, "the use of a stored thing was not noted");
        }
        Ok(Some(thing))
    }

    /// A thing to be put.
    pub(super) fn thing(
        &self,
        kind: StoredKind,
        scope: &Arc<str>,
        id: &str,
        made_ms: u64,
        content: Bytes,
    ) -> StoredThing {
        let until_ms = self.until(made_ms, self.now_ms());
        StoredThing { key: self.key(kind, scope, id), made_ms, until_ms, content }
    }

    /// Writes all of them, or none.
    pub(super) async fn put(&self, things: Vec<StoredThing>) -> Result<(), ClientError> {
        self.store.put_stored(things).await.map_err(|error| unavailable(&error))
    }

    pub(super) async fn remove(&self, kind: StoredKind, scope: &Arc<str>, id: &str) -> Result<bool, ClientError> {
        self.store.remove_stored(self.key(kind, scope, id)).await.map_err(|error| unavailable(&error))
    }

    pub(super) async fn response(&self, scope: &Arc<str>, id: &str) -> Result<Option<StoredResponse>, ClientError> {
        let found = self.get(StoredKind::Response, scope, id).await?;
        Ok(found.and_then(|thing| StoredResponse::from_bytes(&thing.content)))
    }

    /// With the time it was made.
    pub(super) async fn conversation(
        &self,
        scope: &Arc<str>,
        id: &str,
    ) -> Result<Option<(StoredConversation, u64)>, ClientError> {
        let found = self.get(StoredKind::Conversation, scope, id).await?;
        let lost = self.lost.lock().get(Moment(0), scope, &self.fingerprint(StoredKind::Conversation, id)).is_some();
        Ok(found.and_then(|thing| {
            let mut conversation = StoredConversation::from_bytes(&thing.content)?;
            conversation.gone |= lost;
            Some((conversation, thing.made_ms))
        }))
    }

    /// A turn of this conversation could not be stored, which a store that does not answer cannot be told: until the process
    /// ends, or many more have come, it is not taken for whole.
    pub(super) fn lose(&self, scope: &Arc<str>, id: &str) {
        let key = self.fingerprint(StoredKind::Conversation, id);
        self.lost.lock().put(Moment(0), scope.clone(), key, 0, Moment(u64::MAX), ());
    }

    /// The response that holds this item, by the item's id or its maker's.
    pub(super) async fn holder(&self, scope: &Arc<str>, item: &str) -> Result<Option<String>, ClientError> {
        let found = self.get(StoredKind::Item, scope, item).await?;
        Ok(found.and_then(|thing| String::from_utf8(thing.content.to_vec()).ok()))
    }

    /// The response of an idempotency key, and what was asked for with it.
    pub(super) async fn retried(
        &self,
        scope: &Arc<str>,
        key: &str,
    ) -> Result<Option<(Fingerprint, String)>, ClientError> {
        let key = self.key(StoredKind::Retry, scope, key);
        let found = self.store.get_stored(key).await.map_err(|error| unavailable(&error))?;
        Ok(found.and_then(|thing| {
            let (asked, response) = thing.content.split_first_chunk()?;
            Some((Fingerprint(*asked), String::from_utf8(response.to_vec()).ok()?))
        }))
    }

    /// The response of an idempotency key, to be put. Its use does not prolong it.
    pub(super) fn retry_thing(&self, scope: &Arc<str>, key: &str, asked: &Fingerprint, response: &str) -> StoredThing {
        let made_ms = self.now_ms();
        let content = [&asked.0[..], response.as_bytes()].concat().into();
        let until_ms = made_ms.saturating_add(ms(IDEMPOTENT_FOR));
        StoredThing { key: self.key(StoredKind::Retry, scope, key), made_ms, until_ms, content }
    }

    /// Takes a conversation for one change; `None` while another has it.
    pub(super) fn hold(self: &Arc<Self>, scope: &Arc<str>, id: &str) -> Option<Held> {
        self.hold_as(StoredKind::Conversation, scope, id, None).ok()
    }

    /// Takes it, or tells by what the request is known that has it.
    fn hold_as(
        self: &Arc<Self>,
        kind: StoredKind,
        scope: &Arc<str>,
        id: &str,
        known: Option<Fingerprint>,
    ) -> Result<Held, Option<Fingerprint>> {
        let name = (kind, (scope.clone(), id.to_owned()));
        match self.locked.lock().entry(name.clone()) {
            Entry::Occupied(other) => Err(*other.get()),
            Entry::Vacant(free) => {
                free.insert(known);
                Ok(Held { library: self.clone(), name })
            }
        }
    }

    /// Takes it, after any other that is the same request: a repeated one waits for the one before it. `None` while another
    /// request has it.
    pub(super) async fn hold_after_same(
        self: &Arc<Self>,
        kind: StoredKind,
        scope: &Arc<str>,
        id: &str,
        known: Option<Fingerprint>,
    ) -> Option<Held> {
        let until = Instant::now() + SAME_WAIT;
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            match self.hold_as(kind, scope, id, known) {
                Ok(held) => return Some(held),
                Err(other) if known.is_some() && other == known => {}
                Err(_) => return None,
            }
            timeout_at(until, freed).await.ok()?;
        }
    }

    /// A background response begins, unless too many run.
    pub(super) fn begin_running(
        self: &Arc<Self>,
        scope: &Arc<str>,
        id: &str,
        running: &Arc<Running>,
    ) -> Result<Begins, ClientError> {
        let mut all = self.running.lock();
        if all.len() >= RUNNING_ALL {
            let message = format!(
                "background: the gateway makes {RUNNING_ALL} responses in the background, and no more at once; try again in \
                 a moment, or ask without `background`"
            );
            let error = ClientError::new(503, "gateway_exhausted", message);
            return Err(ClientError { param: Some("background".into()), ..error });
        }
        let own = all.range((scope.clone(), String::new())..).take_while(|((whose, _), _)| whose == scope).count();
        if own >= RUNNING_EACH {
            let message = format!(
                "background: {own} responses of this key are being made in the background, and at most {RUNNING_EACH} may \
                 be at once; wait for one of them, or cancel it"
            );
            let error = ClientError::new(429, "too_many_in_background", message);
            return Err(ClientError { param: Some("background".into()), ..error });
        }
        all.insert((scope.clone(), id.to_owned()), running.clone());
        Ok(Begins(Some((self.clone(), scope.clone(), id.to_owned()))))
    }

    /// It has ended; its events can be followed for a while.
    pub(super) fn end_running(&self, scope: &Arc<str>, id: &str) {
        self.running.lock().remove(&(scope.clone(), id.to_owned()));
    }

    /// The background response of this id, while it runs.
    pub(super) fn running(&self, scope: &Arc<str>, id: &str) -> Option<Arc<Running>> {
        self.running.lock().get(&(scope.clone(), id.to_owned())).cloned()
    }

    fn moment(&self) -> Moment {
        Moment(ms(self.started.elapsed()))
    }

    /// Its events take so many bytes. Those that no room is left for are given up.
    pub(super) fn followed_bytes(&self, scope: &Arc<str>, id: &str, bytes: usize, running: &Arc<Running>) {
        let key = self.fingerprint(StoredKind::Response, id);
        let now = self.moment();
        let until = now.after(FOLLOWED_FOR);
        let gone = self.followed.lock().put(now, scope.clone(), key, bytes, until, running.clone());
        for (caller, gone) in gone {
            if caller == *scope && gone == key {
                running.lose_events();
            } else if let Some(other) = self.runs_as(&caller, &gone) {
                // What has ended is let go with the shelf's own hold on it.
                other.lose_events();
            }
        }
    }

    fn runs_as(&self, scope: &Arc<str>, key: &Fingerprint) -> Option<Arc<Running>> {
        let running = self.running.lock();
        let own = running.range((scope.clone(), String::new())..).take_while(|((whose, _), _)| whose == scope);
        let mut named = own.filter(|((_, id), _)| self.fingerprint(StoredKind::Response, id) == *key);
        named.next().map(|(_, running)| running.clone())
    }

    /// The events of a background response that can still be followed.
    pub(super) fn followed(&self, scope: &Arc<str>, id: &str) -> Option<Arc<Running>> {
        let key = self.fingerprint(StoredKind::Response, id);
        let found = self.followed.lock().get(self.moment(), scope, &key).cloned();
        found.or_else(|| self.running(scope, id))
    }

    /// The response is deleted: its events go too.
    pub(super) fn forget_events(&self, scope: &Arc<str>, id: &str) {
        let key = self.fingerprint(StoredKind::Response, id);
        self.followed.lock().take(scope, &key);
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::test_library::library;
    use super::*;
    use futures_util::FutureExt;

    const HOUR: u64 = 3_600_000;

    fn ann() -> Arc<str> {
        "ann".into()
    }

    fn stored(id: &str) -> StoredResponse {
        StoredResponse {
            id: id.into(),
            previous: None,
            conversation: None,
            background: false,
            input: Vec::new(),
            response: "{}".into(),
        }
    }

    async fn put(library: &Library, id: &str) {
        let thing = library.thing(StoredKind::Response, &ann(), id, library.now_ms(), stored(id).to_bytes());
        library.put(vec![thing]).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_used_stays_and_what_is_not_goes_after_the_idle_time() {
        let (library, things) = library();
        library.keep_for(Duration::from_secs(10 * 3600));
        put(&library, "used").await;
        put(&library, "left").await;
        for _ in 0..3 {
            things.pass(4 * HOUR);
            assert!(library.response(&ann(), "used").await.unwrap().is_some());
        }
        assert!(library.response(&ann(), "left").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn however_much_it_is_used_it_ends_after_three_times_the_idle_time() {
        let (library, things) = library();
        library.keep_for(Duration::from_secs(10 * 3600));
        put(&library, "used").await;
        let mut hours = 0;
        while library.response(&ann(), "used").await.unwrap().is_some() {
            things.pass(HOUR);
            hours += 1;
        }
        assert_eq!(hours, 30);
    }

    #[tokio::test]
    async fn use_after_use_writes_only_when_it_moves_the_end() {
        let (library, things) = library();
        library.keep_for(Duration::from_secs(100 * 3600));
        put(&library, "used").await;
        let touched = || things.touched.load(Ordering::Relaxed);
        for _ in 0..100 {
            library.response(&ann(), "used").await.unwrap();
        }
        assert_eq!(touched(), 0);
        things.pass(2 * HOUR);
        for _ in 0..100 {
            library.response(&ann(), "used").await.unwrap();
        }
        assert_eq!(touched(), 1);
    }

    #[tokio::test]
    async fn a_key_stands_for_its_background_response_for_a_day_however_it_is_used() {
        let (library, things) = library();
        let asked = Fingerprint([1; 16]);
        library.put(vec![library.retry_thing(&ann(), "key", &asked, "resp_1")]).await.unwrap();
        things.pass(23 * HOUR);
        assert_eq!(library.retried(&ann(), "key").await.unwrap(), Some((asked, "resp_1".into())));
        assert_eq!(library.retried(&"bob".into(), "key").await.unwrap(), None);
        things.pass(HOUR);
        assert_eq!(library.retried(&ann(), "key").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_repeated_request_waits_for_its_first_and_another_does_not() {
        let (library, _) = library();
        let kind = StoredKind::Conversation;
        let (one, two) = (Some(Fingerprint([1; 16])), Some(Fingerprint([2; 16])));
        let first = library.hold_after_same(kind, &ann(), "c", one).await.unwrap();
        for known in [two, None] {
            assert!(library.hold_after_same(kind, &ann(), "c", known).await.is_none());
        }
        assert!(library.hold(&ann(), "c").is_none() && library.hold(&"bob".into(), "c").is_some());
        let scope = ann();
        let mut again = Box::pin(library.hold_after_same(kind, &scope, "c", one));
        assert!(again.as_mut().now_or_never().is_none());
        drop(first);
        assert!(again.await.is_some());
        let unnamed = library.hold(&ann(), "c").unwrap();
        assert!(
            library.hold_after_same(kind, &ann(), "c", None).await.is_none(),
            "who names nothing is nobody's repeat"
        );
        drop(unnamed);
    }

    #[test]
    fn a_caller_that_floods_the_background_is_stopped_and_others_are_not() {
        let (library, _) = library();
        let running = Running::new();
        for number in 0..RUNNING_EACH {
            library.begin_running(&ann(), &format!("r{number}"), &running).unwrap().begun();
        }
        let error = library.begin_running(&ann(), "more", &running).err().unwrap();
        assert_eq!((error.status, error.code), (429, "too_many_in_background"));
        library.begin_running(&"bob".into(), "r", &running).unwrap().begun();
        library.end_running(&ann(), "r7");
        library.begin_running(&ann(), "more", &running).unwrap().begun();
    }

    #[test]
    fn what_does_not_come_to_its_turn_takes_no_place() {
        let (library, _) = library();
        let begins = library.begin_running(&ann(), "r", &Running::new()).unwrap();
        assert!(library.running(&ann(), "r").is_some());
        drop(begins);
        assert!(library.running(&ann(), "r").is_none());
    }

    #[test]
    fn a_gateway_that_makes_all_it_may_says_so_and_not_that_the_key_has_too_many() {
        let (library, _) = library();
        let running = Running::new();
        for number in 0..RUNNING_ALL {
            let scope: Arc<str> = format!("caller {}", number / RUNNING_EACH).into();
            library.begin_running(&scope, &format!("r{number}"), &running).unwrap().begun();
        }
        let error = library.begin_running(&ann(), "r", &running).err().unwrap();
        assert_eq!((error.status, error.code), (503, "gateway_exhausted"));
        assert!(error.message.contains("4096") && !error.message.contains("key"), "{}", error.message);
    }
}

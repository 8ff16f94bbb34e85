//! A library over a store and a clock of the test's own.

use super::library::Library;
use futures_util::future::{BoxFuture, FutureExt, ready};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use turnkeep_engine::ports::{ContentStore, StoreError, StoredKey, StoredThing, WallClock};

#[derive(Default)]
pub(super) struct Things {
    pub(super) all: Mutex<BTreeMap<StoredKey, StoredThing>>,
    pub(super) touched: AtomicU64,
    /// It takes nothing new.
    pub(super) full: AtomicBool,
    now_ms: AtomicU64,
}

impl Things {
    pub(super) fn pass(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl WallClock for Things {
    fn unix_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }
}

impl ContentStore for Things {
    fn put_stored(&self, things: Vec<StoredThing>) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.full.load(Ordering::Relaxed) {
            return ready(Err(StoreError("full".into()))).boxed();
        }
        self.all.lock().extend(things.into_iter().map(|thing| (thing.key.clone(), thing)));
        ready(Ok(())).boxed()
    }

    fn get_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<Option<StoredThing>, StoreError>> {
        let found = self.all.lock().get(&key).filter(|thing| thing.until_ms > self.unix_ms()).cloned();
        ready(Ok(found)).boxed()
    }

    fn touch_stored(&self, key: StoredKey, until_ms: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.touched.fetch_add(1, Ordering::Relaxed);
        if let Some(thing) = self.all.lock().get_mut(&key) {
            thing.until_ms = until_ms;
        }
        ready(Ok(())).boxed()
    }

    fn remove_stored(&self, key: StoredKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        ready(Ok(self.all.lock().remove(&key).is_some())).boxed()
    }
}

pub(super) fn library() -> (Arc<Library>, Arc<Things>) {
    let things = Arc::new(Things::default());
    (Library::new(things.clone(), [7; 32], things.clone()), things)
}

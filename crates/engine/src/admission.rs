//! Slots as RAII leases. The pool and the queue are pure and live behind one lock; this file adds the waiting.
//!
//! In-flight is the number of live [`SlotLease`]s: a lease that is dropped, on whatever path, gives its slot back and
//! hands it to the next waiter.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use turnkeep_base::limit::{MAX_COOLING_WAIT, MAX_QUEUE_WAIT};
use turnkeep_base::{AccountId, Fault, Secret};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{AccountKey, Candidate, Need, Pick, Pool, Snapshot, Standing, Status, Unavailable};
use turnkeep_policy::queue::{Queue, Ticket};

use crate::route::Route;

/// What a turn's next attempt needs, owned, so that it can wait.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The routes that may still serve.
    pub routes: Arc<[Route]>,
    /// The first of them that may.
    pub from_route: usize,
    /// Accounts that have been tried.
    pub tried: Vec<AccountKey>,
    /// Only this account.
    pub only: Option<AccountKey>,
    /// Breaks ties.
    pub tie: u64,
}

impl Wanted {
    fn pick(&self, pool: &Pool, now: Moment) -> Result<Pick, Unavailable> {
        let routes = self.routes.get(self.from_route..).unwrap_or(&[]);
        let mut few: [Candidate<'_>; 8] = [Candidate { upstream: "", model: "" }; 8];
        let many: Vec<Candidate<'_>>;
        let candidates: &[Candidate<'_>] = if routes.len() <= few.len() {
            for (place, route) in few.iter_mut().zip(routes) {
                *place = candidate(route);
            }
            &few[..routes.len()]
        } else {
            many = routes.iter().map(candidate).collect();
            &many
        };
        let need = Need { routes: candidates, tried: &self.tried, only: self.only, tie: self.tie };
        pool.pick(now, &need).map(|pick| Pick { route: pick.route + self.from_route, ..pick })
    }
}

fn candidate(route: &Route) -> Candidate<'_> {
    Candidate { upstream: &route.upstream.name, model: &route.model }
}

#[derive(Debug)]
struct Waiting {
    wanted: Wanted,
    /// A slot, or nothing: look again, the accounts are no longer only busy.
    grant: oneshot::Sender<Option<SlotLease>>,
}

#[derive(Debug, Default)]
struct Inner {
    pool: Pool,
    queue: Queue<Waiting>,
    changed: BTreeSet<AccountKey>,
}

/// Admission and selection over all accounts.
#[derive(Debug)]
pub struct Admission {
    inner: Mutex<Inner>,
    secrets: Vec<Option<Secret>>,
    origin: Instant,
    changes: Notify,
}

impl Admission {
    /// Over a pool; `secrets` are in the pool's order.
    pub fn new(pool: Pool, secrets: Vec<Option<Secret>>, origin: Instant) -> Arc<Self> {
        let inner = Inner { pool, ..Inner::default() };
        Arc::new(Admission { inner: Mutex::new(inner), secrets, origin, changes: Notify::new() })
    }

    /// The pure time of an instant.
    pub fn moment(&self, at: Instant) -> Moment {
        Moment(u64::try_from(at.saturating_duration_since(self.origin).as_millis()).unwrap_or(u64::MAX))
    }

    fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    fn instant(&self, moment: Moment) -> Instant {
        self.origin + Duration::from_millis(moment.0)
    }

    /// Takes a slot of whoever serves the first route that can, waiting while all are only busy, or the soonest
    /// cooldown ends soon. Dropping the future gives the place in the queue up.
    pub async fn acquire(
        self: &Arc<Self>,
        wanted: Wanted,
        caller: &str,
        deadline: Instant,
    ) -> Result<SlotLease, Unavailable> {
        let began = Instant::now();
        let queue_end = deadline.min(began + MAX_QUEUE_WAIT);
        loop {
            let outcome = {
                let mut inner = self.inner.lock();
                match wanted.pick(&inner.pool, self.now()) {
                    Ok(pick) => {
                        inner.pool.take(&pick);
                        return Ok(self.lease(&inner.pool, pick, &wanted.routes));
                    }
                    Err(Unavailable::AllBusy { retry_at }) => {
                        let upstream = wanted.routes.get(wanted.from_route).map_or("", |route| &route.upstream.name);
                        let (grant, granted) = oneshot::channel();
                        let waiting = Waiting { wanted: wanted.clone(), grant };
                        let Some(ticket) = inner.queue.join(caller, upstream, waiting) else {
                            return Err(Unavailable::QueueFull);
                        };
                        Ok((ticket, granted, retry_at))
                    }
                    Err(other) => Err(other),
                }
            };
            match outcome {
                Ok((ticket, granted, retry_at)) => {
                    let place = Place { admission: self, ticket };
                    if let Some(lease) = self.wait_in_queue(place, &wanted, granted, retry_at, queue_end).await? {
                        return Ok(lease);
                    }
                }
                Err(Unavailable::AllCooling { retry_at } | Unavailable::AllErrored { retry_at })
                    if self.now().until(retry_at) <= MAX_COOLING_WAIT
                        && began.elapsed() <= MAX_COOLING_WAIT
                        && self.instant(retry_at) < deadline =>
                {
                    tokio::time::sleep_until(self.instant(retry_at)).await;
                }
                Err(other) => return Err(other),
            }
        }
    }

    async fn wait_in_queue(
        self: &Arc<Self>,
        place: Place<'_>,
        wanted: &Wanted,
        mut granted: oneshot::Receiver<Option<SlotLease>>,
        mut retry_at: Option<Moment>,
        end: Instant,
    ) -> Result<Option<SlotLease>, Unavailable> {
        loop {
            let wake = retry_at.map_or(end, |moment| self.instant(moment).min(end));
            tokio::select! {
                biased;
                grant = &mut granted => return grant.map_err(|_| Unavailable::QueueFull),
                () = tokio::time::sleep_until(wake) => {}
            }
            if wake >= end {
                drop(place);
                // A grant may have been on its way while the place was given up.
                return granted.try_recv().map_err(|_| Unavailable::AllBusy { retry_at });
            }
            self.serve_waiters();
            // The wait may have been lengthened since, or another account may cool now.
            retry_at = match wanted.pick(&self.inner.lock().pool, self.now()) {
                Err(Unavailable::AllBusy { retry_at }) => retry_at,
                Ok(_) | Err(_) => None,
            };
        }
    }

    /// Hands free slots to waiters, in order of fairness, and sends those back who no longer wait for a slot.
    fn serve_waiters(self: &Arc<Self>) {
        loop {
            let (grant, lease) = {
                let mut inner = self.inner.lock();
                if inner.queue.is_empty() {
                    return;
                }
                let now = self.now();
                let Inner { pool, queue, .. } = &mut *inner;
                let next = queue.next_for(|waiting| match waiting.wanted.pick(pool, now) {
                    Err(Unavailable::AllBusy { .. }) => None,
                    other => Some(other.ok()),
                });
                let Some((waiting, pick)) = next else { return };
                let lease = pick.map(|pick| {
                    inner.pool.take(&pick);
                    self.lease(&inner.pool, pick, &waiting.wanted.routes)
                });
                (waiting.grant, lease)
            };
            // A waiter that has just left drops the lease, which comes back here; the lock is not held.
            drop(grant.send(lease));
        }
    }

    fn lease(self: &Arc<Self>, pool: &Pool, pick: Pick, routes: &Arc<[Route]>) -> SlotLease {
        let id = pool.id(pick.account).cloned();
        let route = routes[pick.route].clone();
        let id = id.unwrap_or_else(|| AccountId { upstream: route.upstream.name.clone(), account: "".into() });
        SlotLease { admission: self.clone(), pick, id, route, judged: false }
    }

    fn changed(&self, inner: &mut Inner, key: AccountKey) {
        inner.changed.insert(key);
        self.changes.notify_one();
    }

    /// Waits until a standing has changed, and gives the changed accounts as they are now. For the one task that
    /// writes them down.
    pub async fn changes(&self) -> Vec<Snapshot> {
        loop {
            let changed = self.take_changes();
            if !changed.is_empty() {
                return changed;
            }
            self.changes.notified().await;
        }
    }

    /// The changed accounts that nobody has taken yet.
    pub fn take_changes(&self) -> Vec<Snapshot> {
        let mut inner = self.inner.lock();
        let keys = std::mem::take(&mut inner.changed);
        keys.into_iter().filter_map(|key| inner.pool.snapshot(key)).collect()
    }

    /// All accounts as they are.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.inner.lock().pool.snapshots()
    }

    /// Some account could serve, now or after a wait.
    pub fn has_usable(&self) -> bool {
        self.inner.lock().pool.has_usable()
    }

    /// Attempts under way.
    pub fn in_flight(&self) -> u64 {
        self.inner.lock().pool.in_flight()
    }

    /// Turns that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.inner.lock().queue.len()
    }

    /// Puts a persisted standing back.
    pub fn restore(&self, id: &AccountId, standing: Standing) {
        self.inner.lock().pool.restore(id, standing);
    }

    /// The operator takes an account out, or brings it back with a clean sheet; what runs on it may finish. False when
    /// there is no such account.
    pub fn switch(self: &Arc<Self>, id: &AccountId, enabled: bool) -> bool {
        let known = self.inner.lock().pool.set_enabled(id, enabled);
        self.serve_waiters();
        known
    }

    /// The present moment, for views of [`Admission::snapshots`].
    pub fn present(&self) -> Moment {
        self.now()
    }
}

/// A place in the queue, given up when dropped.
struct Place<'a> {
    admission: &'a Admission,
    ticket: Ticket,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        drop(self.admission.inner.lock().queue.leave(self.ticket));
    }
}

/// One slot of one account, taken. Ends in [`SlotLease::judge`], [`SlotLease::succeed`] or by being dropped, which
/// judges nothing.
#[derive(Debug)]
pub struct SlotLease {
    admission: Arc<Admission>,
    pick: Pick,
    id: AccountId,
    route: Route,
    judged: bool,
}

impl SlotLease {
    /// The account.
    pub fn account(&self) -> AccountKey {
        self.pick.account
    }

    /// The account's identity.
    pub fn id(&self) -> &AccountId {
        &self.id
    }

    /// The route's place in the turn's list.
    pub fn route_index(&self) -> usize {
        self.pick.route
    }

    /// The route.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// The account's credential.
    pub fn secret(&self) -> Option<Secret> {
        self.admission.secrets.get(self.pick.account.0 as usize).cloned().flatten()
    }

    /// The attempt ended with a fault: what the blame table says happens to the account, and the slot comes back.
    pub fn judge(mut self, fault: &Fault) {
        self.judged = true;
        let admission = self.admission.clone();
        let mut inner = admission.inner.lock();
        let status = |inner: &Inner| inner.pool.status(self.pick.account).cloned();
        let before = status(&inner);
        inner.pool.judge(admission.now(), self.pick.account, &self.route.model, self.pick.trial, fault);
        let after = status(&inner);
        admission.changed(&mut inner, self.pick.account);
        drop(inner);
        if before != after
            && let Some(after) = after
            && after != Status::Active
        {
            tracing::warn!(account = %self.id, status = after.name(), why = %fault, "an account is out");
        }
    }

    /// The upstream completed the turn: the account's success, and the slot comes back.
    pub fn succeed(mut self) {
        self.judged = true;
        let admission = self.admission.clone();
        let mut inner = admission.inner.lock();
        let before = self.pick.trial;
        inner.pool.succeed(self.pick.account, &self.route.model, self.pick.trial);
        if before {
            admission.changed(&mut inner, self.pick.account);
        }
    }
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        {
            let mut inner = self.admission.inner.lock();
            inner.pool.release(self.pick.account);
            if !self.judged {
                inner.pool.end_unjudged(self.admission.now(), self.pick.account, self.pick.trial);
            }
        }
        self.admission.serve_waiters();
    }
}

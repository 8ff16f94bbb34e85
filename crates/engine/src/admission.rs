//! Slots as RAII leases. The pool and the queue are pure and live behind one lock; this file adds the waiting.
//!
//! In-flight is the number of live [`SlotLease`]s: a lease that is dropped, on whatever path, gives its slot back and
//! hands it to the next waiter.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use turnkeep_base::{AccountId, Fault, Fingerprint, Secret};
use turnkeep_policy::accounts::{
    AccountKey, AccountSpec, Applied, Bearing, Candidate, ChargeRef, Judged, Need, Pick, Pool, Saved, Snapshot, Taken,
    Tier, Unavailable, UpstreamSnapshot, UpstreamSpec,
};
use turnkeep_policy::queue::{Queue, Ticket};
use turnkeep_policy::{Moment, Tuning};

use crate::ports::Native;
use crate::route::{Route, UpstreamEntry};

/// What a turn's next attempt needs, owned, so that it can wait.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The turn's routes.
    pub routes: Arc<[Route]>,
    /// The first of them that may serve.
    pub from_route: usize,
    /// Only the routes to models with a larger window; otherwise only the others.
    pub larger: bool,
    /// Accounts that have been tried.
    pub tried: Vec<AccountKey>,
    /// Only this account.
    pub only: Option<AccountKey>,
    /// Breaks ties.
    pub tie: u64,
    /// Tokens that the attempt will likely cost.
    pub tokens: u64,
    /// It is a counted retry.
    pub retry: bool,
    /// Where it would go best, if that costs nobody else: the first that can.
    pub preferred: Vec<AccountKey>,
    /// The owner of the conversation that it goes on with, which comes before anybody else.
    pub owner: Option<Owner>,
}

/// Who keeps the conversation that a turn goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The account.
    pub account: AccountKey,
    /// The turn's route on which it goes on.
    pub route: usize,
    /// Nobody else will do as long as this one can come to serve.
    pub strict: bool,
}

/// Who is asked, and on which of the turn's routes.
#[derive(Clone, Copy)]
struct Whom {
    only: Option<AccountKey>,
    from_route: usize,
    /// Routes from this one on are out.
    to_route: usize,
}

impl Wanted {
    /// Asks with this turn's need.
    fn with_need<T>(&self, whom: Whom, ask: impl FnOnce(&Need<'_>) -> T) -> T {
        let mut few = [Candidate { upstream: "", model: "", tier: Tier::Own }; 8];
        let many: Vec<Candidate<'_>>;
        let routes: &[Candidate<'_>] = if self.routes.len() <= few.len() {
            for (place, route) in few.iter_mut().zip(self.routes.iter()) {
                *place = candidate(route);
            }
            &few[..self.routes.len()]
        } else {
            many = self.routes.iter().map(candidate).collect();
            &many
        };
        ask(&Need {
            routes: &routes[..whom.to_route.min(routes.len())],
            from_route: whom.from_route,
            larger: self.larger,
            tried: &self.tried,
            only: whom.only,
            tie: self.tie,
            tokens: self.tokens,
            retry: self.retry,
            preferred: &self.preferred,
        })
    }

    /// In whose queue the turn waits.
    fn first_upstream(&self) -> &str {
        if let Some(owner) = self.owner_to_ask().filter(|owner| owner.strict)
            && let Some(route) = self.routes.get(owner.route)
        {
            return &route.upstream.name;
        }
        self.routes_asked().next().map_or("", |(_, route)| &route.upstream.name)
    }

    /// The routes that may serve.
    fn routes_asked(&self) -> impl Iterator<Item = (usize, &Route)> {
        let routes = self.routes.iter().enumerate().skip(self.from_route);
        routes.filter(|(_, route)| (route.tier == Tier::Larger) == self.larger)
    }

    /// The conversation's owner, if it is to be asked before anybody else: it has not been tried, and its route is no
    /// fallback as long as one of the model's own may serve.
    fn owner_to_ask(&self) -> Option<Owner> {
        let owner = self.owner.filter(|owner| self.only.is_none() && !self.tried.contains(&owner.account))?;
        let (_, its) = self.routes_asked().find(|(at, _)| *at == owner.route)?;
        self.routes_asked().all(|(_, route)| route.tier >= its.tier).then_some(owner)
    }

    /// The owner's endpoint is set aside for its faults, and another one may serve.
    fn is_set_aside(&self, pool: &Pool, owner: &Owner) -> bool {
        let its = self.routes.get(owner.route).map(|route| &route.upstream.name);
        its.is_some_and(|its| pool.is_ejected(its) && self.routes_asked().any(|(_, route)| route.upstream.name != *its))
    }

    fn pick(&self, pool: &mut Pool, now: Moment) -> Result<Pick, Unavailable> {
        self.owner_first(pool, |pool, whom| self.with_need(whom, |need| pool.pick(now, need)))
    }

    fn take(&self, pool: &mut Pool, now: Moment) -> Result<(Pick, Taken), Unavailable> {
        self.owner_first(pool, |pool, whom| {
            self.with_need(whom, |need| {
                let pick = pool.pick(now, need)?;
                let taken = pool.take(now, &pick, need);
                Ok((pick, taken))
            })
        })
    }

    /// Asks the conversation's owner, and then everybody.
    fn owner_first<T>(
        &self,
        pool: &mut Pool,
        mut ask: impl FnMut(&mut Pool, Whom) -> Result<T, Unavailable>,
    ) -> Result<T, Unavailable> {
        let everybody = Whom { only: self.only, from_route: self.from_route, to_route: usize::MAX };
        let Some(owner) = self.owner_to_ask() else { return ask(pool, everybody) };
        if !owner.strict && self.is_set_aside(pool, &owner) {
            return ask(pool, everybody);
        }
        // On the route of its conversation alone: on a later one it may serve another model.
        let its = Whom { only: Some(owner.account), from_route: owner.route, to_route: owner.route + 1 };
        match ask(pool, its) {
            Ok(found) => Ok(found),
            // It is there and will serve again.
            Err(busy @ (Unavailable::AllBusy { .. } | Unavailable::AllCooling { .. })) if owner.strict => Err(busy),
            Err(_) => ask(pool, everybody),
        }
    }
}

fn candidate(route: &Route) -> Candidate<'_> {
    Candidate { upstream: &route.upstream.name, model: &route.model, tier: route.tier }
}

#[derive(Debug)]
struct Waiting {
    wanted: Wanted,
    /// A slot, or nothing: look again, the accounts are no longer only busy.
    grant: oneshot::Sender<Option<SlotLease>>,
}

/// An account's credential and how many there have been.
#[derive(Debug, Default)]
struct Credential {
    secret: Option<Secret>,
    /// The one before, while there is none: the same one is no new one when it comes back.
    missed: Option<Secret>,
    generation: u64,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    queue: Queue<Waiting>,
    changed: BTreeSet<AccountKey>,
    credentials: BTreeMap<AccountId, Credential>,
    /// The upstreams as they are now: an attempt goes to what the configuration names when it begins.
    entries: BTreeMap<Arc<str>, Arc<UpstreamEntry>>,
    max_cooling_wait: Duration,
    max_queue_wait: Duration,
}

/// All that admission is configured with; applied as one.
#[derive(Debug, Default)]
pub struct Setup {
    /// The numbers.
    pub tuning: Tuning,
    /// The upstreams, with the way that their calls leave.
    pub upstreams: Vec<UpstreamSpec>,
    /// Their drivers: an attempt goes to the one that its upstream has when it begins. One without stays where it was.
    pub entries: Vec<Arc<UpstreamEntry>>,
    /// The accounts with their credentials. `has_secret` and `generation` are set here.
    pub accounts: Vec<(AccountSpec, Option<Secret>)>,
    /// The configured (upstream, model) pairs.
    pub routes: Vec<(Arc<str>, Arc<str>)>,
    /// The standings of an earlier run, for accounts that are new to this one.
    pub saved: Vec<(AccountId, Saved)>,
}

/// Admission and selection over all accounts.
#[derive(Debug)]
pub struct Admission {
    inner: Mutex<Inner>,
    origin: Instant,
    changes: Notify,
    /// How many accounts are configured.
    accounts: AtomicUsize,
}

impl Admission {
    /// Over no account yet.
    pub fn new(tuning: Tuning, origin: Instant) -> Arc<Self> {
        let inner = Inner {
            max_cooling_wait: tuning.max_cooling_wait,
            max_queue_wait: tuning.max_queue_wait,
            queue: Queue::new(tuning.queue_places),
            pool: Pool::new(tuning),
            changed: BTreeSet::new(),
            credentials: BTreeMap::new(),
            entries: BTreeMap::new(),
        };
        Arc::new(Admission { inner: Mutex::new(inner), origin, changes: Notify::new(), accounts: AtomicUsize::new(0) })
    }

    /// Takes a configuration up, as one. What runs goes on; standings, cooldowns and slots in use survive; accounts that
    /// are no longer there take no new attempt. A secret that differs from the one before raises its generation.
    pub fn reconfigure(self: &Arc<Self>, setup: Setup) {
        {
            let mut inner = self.inner.lock();
            inner.max_cooling_wait = setup.tuning.max_cooling_wait;
            inner.max_queue_wait = setup.tuning.max_queue_wait;
            inner.queue.set_places(setup.tuning.queue_places);
            let mut gone = std::mem::take(&mut inner.credentials);
            let accounts = setup.accounts.into_iter().map(|(mut spec, secret)| {
                let mut credential = gone.remove(&spec.id).unwrap_or_default();
                spec.has_secret = secret.is_some();
                spec.generation = credential.put(secret);
                inner.credentials.insert(spec.id.clone(), credential);
                spec
            });
            let accounts: Vec<AccountSpec> = accounts.collect();
            self.accounts.store(accounts.len(), Ordering::Relaxed);
            inner.entries = setup.entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
            let now = self.now();
            inner.pool.reconfigure(now, setup.tuning, setup.upstreams, accounts, setup.routes);
            // Of an account that is no longer there only the number of its secrets is kept, as long as the pool knows it.
            gone.retain(|id, _| inner.pool.key_of(id).is_some());
            let numbers = gone
                .into_iter()
                .map(|(id, old)| (id, Credential { generation: old.generation, ..Credential::default() }));
            inner.credentials.extend(numbers);
            // Before anybody who waits is served by them.
            for (id, saved) in setup.saved {
                inner.pool.restore(now, &id, saved);
            }
        }
        self.serve_waiters();
    }

    /// Gives an account another credential, or takes it. False when there is no such account.
    pub fn set_secret(self: &Arc<Self>, id: &AccountId, secret: Option<Secret>) -> bool {
        let known = {
            let mut inner = self.inner.lock();
            let has_secret = secret.is_some();
            let Some(credential) = inner.credentials.get_mut(id) else { return false };
            let generation = credential.put(secret);
            let now = self.now();
            let known = inner.pool.set_secret(now, id, has_secret, generation);
            self.mark(&mut inner, id);
            known
        };
        self.serve_waiters();
        known
    }

    /// The pure time of an instant.
    pub fn moment(&self, at: Instant) -> Moment {
        Moment(u64::try_from(at.saturating_duration_since(self.origin).as_millis()).unwrap_or(u64::MAX))
    }

    /// What its moments count from.
    pub(crate) fn origin(&self) -> Instant {
        self.origin
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
        loop {
            let (outcome, max_cooling_wait, max_queue_wait) = {
                let mut inner = self.inner.lock();
                let now = self.now();
                // Who waits already comes first: with others in the queue a turn goes through it, too.
                let others_wait = !inner.queue.is_empty() && wanted.only.is_none();
                let answer = match others_wait {
                    true => wanted.pick(&mut inner.pool, now).map(|_| None),
                    false => wanted.take(&mut inner.pool, now).map(Some),
                };
                let retry_at = match answer {
                    Ok(Some((pick, taken))) => return Ok(self.lease(&inner, &pick, taken, &wanted.routes)),
                    Ok(None) => Ok(Some(now)),
                    Err(Unavailable::AllBusy { retry_at }) if wanted.only.is_none() => Ok(retry_at),
                    // A repeat on one account waits for no slot: elsewhere there may be one.
                    Err(other) => Err(other),
                };
                let outcome = match retry_at {
                    Ok(retry_at) => {
                        let (grant, granted) = oneshot::channel();
                        let waiting = Waiting { wanted: wanted.clone(), grant };
                        match inner.queue.join(caller, wanted.first_upstream(), waiting) {
                            Some(ticket) => Ok((ticket, granted, retry_at)),
                            None => match wanted.take(&mut inner.pool, now) {
                                Ok((pick, taken)) => return Ok(self.lease(&inner, &pick, taken, &wanted.routes)),
                                Err(_) => return Err(Unavailable::QueueFull),
                            },
                        }
                    }
                    Err(other) => Err(other),
                };
                (outcome, inner.max_cooling_wait, inner.max_queue_wait)
            };
            match outcome {
                Ok((ticket, granted, retry_at)) => {
                    let place = Place { admission: self, ticket };
                    let end = deadline.min(began + max_queue_wait);
                    if let Some(lease) = self.wait_in_queue(place, &wanted, granted, retry_at, end).await? {
                        return Ok(lease);
                    }
                }
                Err(
                    Unavailable::AllCooling { retry_at }
                    | Unavailable::AllErrored { retry_at }
                    | Unavailable::EgressClosed { retry_at },
                ) if self.now().until(retry_at) <= max_cooling_wait
                    && began.elapsed() <= max_cooling_wait
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
            if retry_at.is_some_and(|at| at <= self.now()) {
                self.serve_waiters();
                retry_at = self.retry_at(wanted);
            }
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
        }
    }

    /// When what keeps a waiting turn may be over by itself: looked at again no sooner than a millisecond from now.
    fn retry_at(&self, wanted: &Wanted) -> Option<Moment> {
        let now = self.now();
        let soon = now.after(Duration::from_millis(1));
        match wanted.pick(&mut self.inner.lock().pool, now) {
            // The wait may have been lengthened since, or another account may cool now.
            Err(Unavailable::AllBusy { retry_at }) => retry_at.map(|at| at.max(soon)),
            Ok(_) | Err(_) => Some(soon),
        }
    }

    /// Hands free slots to waiters, in order of fairness, and sends those back who no longer wait for a slot.
    fn serve_waiters(self: &Arc<Self>) {
        if turnkeep_base::seeded::is("a-waiter-is-never-woken") {
            return;
        }
        loop {
            let (grant, lease) = {
                let mut inner = self.inner.lock();
                if inner.queue.is_empty() {
                    return;
                }
                let now = self.now();
                let Inner { pool, queue, .. } = &mut *inner;
                let next = queue.next_for(|waiting| match waiting.wanted.take(pool, now) {
                    Err(Unavailable::AllBusy { .. }) => None,
                    other => Some(other.ok()),
                });
                let Some((waiting, taken)) = next else { return };
                let lease = taken.map(|(pick, taken)| self.lease(&inner, &pick, taken, &waiting.wanted.routes));
                (waiting.grant, lease)
            };
            // A waiter that has just left drops the lease, which comes back here; the lock is not held.
            drop(grant.send(lease));
        }
    }

    fn lease(self: &Arc<Self>, inner: &Inner, pick: &Pick, taken: Taken, routes: &Arc<[Route]>) -> SlotLease {
        let mut route = routes[pick.route].clone();
        if let Some(entry) = inner.entries.get(&route.upstream.name) {
            // Where the upstream is now; the credential is today's, too.
            route.upstream = entry.clone();
        }
        let id = inner.pool.id(pick.account).cloned();
        let id = id.unwrap_or_else(|| AccountId { upstream: route.upstream.name.clone(), account: "".into() });
        let secret = inner.credentials.get(&id).and_then(|credential| credential.secret.clone());
        SlotLease {
            admission: self.clone(),
            account: pick.account,
            route_index: pick.route,
            taken: Some(taken),
            id,
            route,
            secret,
            sent: false,
            preferred: pick.preferred,
            spilled: pick.spilled,
        }
    }

    fn changed(&self, inner: &mut Inner, key: AccountKey) {
        inner.changed.insert(key);
        self.changes.notify_one();
    }

    fn mark(&self, inner: &mut Inner, id: &AccountId) {
        if let Some(key) = inner.pool.key_of(id) {
            self.changed(inner, key);
        }
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

    /// All upstreams as they are.
    pub fn upstreams(&self) -> Vec<UpstreamSnapshot> {
        let now = self.now();
        self.inner.lock().pool.upstreams(now)
    }

    /// There is more than one account.
    pub fn has_choice(&self) -> bool {
        self.accounts.load(Ordering::Relaxed) > 1
    }

    /// The places of these accounts, those that are known.
    pub fn keys_of(&self, accounts: &[AccountId]) -> Vec<AccountKey> {
        if accounts.is_empty() {
            return Vec::new();
        }
        let inner = self.inner.lock();
        accounts.iter().filter_map(|id| inner.pool.key_of(id)).collect()
    }

    /// The epoch of an account, and the driver of its upstream where that has a protocol of its own. Removal, suspension and
    /// another place raise the epoch; an account that was never there has none.
    pub(crate) fn owner(&self, id: &AccountId) -> (Option<u64>, Option<Arc<dyn Native>>) {
        let inner = self.inner.lock();
        let native = inner.entries.get(&id.upstream).and_then(|entry| entry.native().cloned());
        (inner.pool.epoch_of(id), native)
    }

    /// Where conversations of an account are kept today, and its epoch there.
    pub(crate) fn place(&self, id: &AccountId) -> Option<(Fingerprint, u64)> {
        self.inner.lock().pool.place_of(id)
    }

    /// How often any account's epoch has risen.
    pub(crate) fn epoch_changes(&self) -> u64 {
        self.inner.lock().pool.epoch_changes()
    }

    /// The provider has suspended the account.
    pub(crate) fn is_suspended(&self, id: &AccountId) -> bool {
        self.inner.lock().pool.is_suspended(id)
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

    /// The operator takes an account out, or brings it back with a clean sheet; what runs on it may finish. False when
    /// there is no such account.
    pub fn switch(self: &Arc<Self>, id: &AccountId, enabled: bool) -> bool {
        let known = {
            let mut inner = self.inner.lock();
            let now = self.now();
            let known = inner.pool.set_enabled(now, id, enabled);
            self.mark(&mut inner, id);
            known
        };
        self.serve_waiters();
        known
    }

    /// Takes one charge back that a second account's same answer has shown to be the request's.
    pub fn take_back(self: &Arc<Self>, account: AccountKey, charge: ChargeRef) -> bool {
        let taken_back = {
            let mut inner = self.inner.lock();
            let now = self.now();
            let taken_back = inner.pool.take_back(now, charge);
            if taken_back {
                self.changed(&mut inner, account);
            }
            taken_back
        };
        self.serve_waiters();
        taken_back
    }

    /// The present moment, for views of [`Admission::snapshots`].
    pub fn present(&self) -> Moment {
        self.now()
    }
}

impl Credential {
    /// Puts a secret in; the generation rises if it is another one than the last that there was.
    fn put(&mut self, secret: Option<Secret>) -> u64 {
        let last = self.secret.take().or_else(|| self.missed.take());
        let same = match (&last, &secret) {
            (Some(old), Some(new)) => old.expose() == new.expose(),
            (_, None) => true,
            (None, Some(_)) => false,
        };
        if !same {
            self.generation += 1;
        }
        if secret.is_none() {
            self.missed = last;
        }
        self.secret = secret;
        self.generation
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
    account: AccountKey,
    route_index: usize,
    taken: Option<Taken>,
    id: AccountId,
    route: Route,
    secret: Option<Secret>,
    sent: bool,
    preferred: bool,
    spilled: bool,
}

impl SlotLease {
    /// The turn wished to go elsewhere, where it could have gone but for the moment.
    pub fn is_spilled(&self) -> bool {
        self.spilled
    }

    /// It is where the turn wished to go.
    pub fn is_preferred(&self) -> bool {
        self.preferred
    }

    /// The account.
    pub fn account(&self) -> AccountKey {
        self.account
    }

    /// The account's identity.
    pub fn id(&self) -> &AccountId {
        &self.id
    }

    /// The route's place in the turn's list.
    pub fn route_index(&self) -> usize {
        self.route_index
    }

    /// The route.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// The account's epoch when the slot was taken.
    pub fn epoch(&self) -> Option<u64> {
        self.taken.as_ref().map(Taken::epoch)
    }

    /// The account's credential, as it was when the slot was taken.
    pub fn secret(&self) -> Option<Secret> {
        self.secret.clone()
    }

    /// The request is handed to the transport: from here on the account's rate is spent.
    pub fn sent(&mut self) {
        self.sent = true;
    }

    /// The answer has begun: the provider has taken the credential.
    pub fn prove(&self) {
        if let Some(taken) = self.taken.as_ref().filter(|taken| taken.trial()) {
            let mut inner = self.admission.inner.lock();
            if inner.pool.prove(self.admission.now(), taken) {
                self.admission.changed(&mut inner, self.account);
            }
        }
    }

    /// The attempt ended with a fault: what the blame table says happens to the account, and the slot comes back. With
    /// [`Bearing::DeclaredOnly`] only what the provider declared is applied. `tokens` is what it cost, if that is known.
    pub fn judge(mut self, fault: &Fault, bearing: Bearing, tokens: Option<u64>) -> Judged {
        let admission = self.admission.clone();
        let mut inner = admission.inner.lock();
        let Some(taken) = &mut self.taken else { return Judged::default() };
        if fault.phase == turnkeep_base::Phase::Unsent {
            self.sent = false;
        }
        let judged = inner.pool.judge(admission.now(), taken, fault, bearing);
        inner.pool.true_up(admission.now(), taken, tokens);
        if turnkeep_base::seeded::is("a-slot-leaked-on-a-fault") {
            self.taken = None;
        }
        if judged.changed {
            admission.changed(&mut inner, self.account);
        }
        drop(inner);
        let out = judged.applied.iter().find_map(|applied| match applied {
            Applied::Errored { .. } => Some("errored"),
            Applied::Suspended => Some("suspended"),
            Applied::Recorded(_)
            | Applied::Budget { .. }
            | Applied::Cooled { .. }
            | Applied::Sample
            | Applied::Misconfigured => None,
        });
        if let Some(status) = out {
            tracing::warn!(account = %self.id, status, why = %fault, "an account is out");
        }
        if judged.burst {
            let (upstream, model) = (&*self.route.upstream.name, &*self.route.model);
            tracing::warn!(upstream, model, "several accounts were rate limited at once: the gateway's own address is");
        }
        judged
    }

    /// The upstream completed the turn, for so many tokens: the account's success, and the slot comes back.
    pub fn succeed(mut self, tokens: Option<u64>) {
        let admission = self.admission.clone();
        let mut inner = admission.inner.lock();
        let Some(taken) = &mut self.taken else { return };
        if inner.pool.succeed(admission.now(), taken, tokens) {
            admission.changed(&mut inner, self.account);
        }
    }
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        {
            let mut inner = self.admission.inner.lock();
            if let Some(taken) = self.taken.take()
                && inner.pool.release(self.admission.now(), taken, self.sent)
            {
                self.admission.changed(&mut inner, self.account);
            }
        }
        self.admission.serve_waiters();
    }
}

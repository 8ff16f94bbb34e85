//! A run: the plan, carried out from its first event to a system at rest, and looked at.

use crate::client::{Clients, Outcome};
use crate::clock::Clock;
use crate::gateway::{Changes, Ground, Running};
use crate::logs;
use crate::marks::{Mark, Marks};
use crate::net::Net;
use crate::panics;
use crate::plan::{Client, Dialect, Event, Family, Happens, Plan, Talk, Turn};
use crate::store::{Event as Noted, Seen};
use crate::streams::Stream;
use crate::trace::Trace;
use crate::watch::Watch;
use crate::watch::heard::Heard;
use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use turnkeep_base::AccountId;
use turnkeep_policy::accounts::Status;
use turnkeep_store::{MemoryStore, Store as _};

/// Until a system whose clients have gone is at rest, at most: receipts, polls and clocks that still run.
const REST: Duration = Duration::from_secs(2 * 60 * 60);
/// Turns that find an endpoint out of reach until it is set aside, at most.
const FAULTS_THAT_EJECT: usize = 12;
/// Penalties end within a day, and what the clocks add.
const DAY: Duration = Duration::from_secs(26 * 60 * 60);

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What did not hold.
    pub broken: Vec<String>,
    /// What has occurred.
    pub marks: BTreeSet<Mark>,
    /// Requests of clients.
    pub turns: u64,
    /// Lines of the trace, and their hash.
    pub digest: (u64, String),
    /// The trace.
    pub trace: String,
    /// Turns whose lines of the log were read.
    pub logged: usize,
}

/// Carries a plan out.
///
/// # Errors
/// The run could not be set up: its configuration does not work.
pub fn run(plan: &Plan) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let report = runtime.block_on(carry_out(plan.clone()));
    // Tasks of gateways that have crashed have nothing left to do.
    runtime.shutdown_background();
    report
}

struct Scene {
    ground: Ground,
    running: Arc<Mutex<Option<Arc<Running>>>>,
    changes: Changes,
    life: u32,
    watch: Arc<Watch>,
    marks: Arc<Marks>,
    crashed: bool,
}

async fn carry_out(plan: Plan) -> Result<Report> {
    panics::count();
    let panicked = panics::so_far();
    let trace = Trace::begin();
    let clock = Arc::new(Clock::begin());
    let net = Net::of(&plan, trace.clone());
    let mut secret = [0; 32];
    let mut stream = Stream::of(plan.seed, "pepper");
    secret.iter_mut().for_each(|byte| *byte = stream.within(0..=255) as u8);
    let committed = Arc::new(MemoryStore::seeded(clock.clone(), secret));
    let seen = Arc::new(Mutex::new(Seen::default()));
    // Agents are told where they are, and a longer path would take another time to say.
    let folder = tempfile::tempdir_in("/tmp")?;
    let ground = Ground { plan, net, clock, trace, committed, seen, folder };
    let (watch, marks) = (Arc::new(Watch::default()), Arc::new(Marks::default()));
    let (deliveries, _reading) = logs::read(watch.clone());
    let mut scene = Scene {
        ground,
        running: Arc::default(),
        changes: Changes::default(),
        life: 0,
        watch: watch.clone(),
        marks: marks.clone(),
        crashed: false,
    };
    scene.start().await?;
    let looking = tokio::spawn(look(
        scene.running.clone(),
        scene.ground.trace.clone(),
        scene.ground.seen.clone(),
        watch.clone(),
        marks.clone(),
    ));
    let clients = Arc::new(Clients {
        net: scene.ground.net.clone(),
        clock: scene.ground.clock.clone(),
        trace: scene.ground.trace.clone(),
        outcomes: Mutex::default(),
    });
    let mut talks = JoinSet::new();
    for (number, talk) in scene.ground.plan.talks.clone().into_iter().enumerate() {
        talks.spawn(clients.clone().go(number, talk));
    }
    for event in timeline(&scene.ground.plan.events) {
        let wait = event.at_ms.saturating_sub(scene.ground.clock.elapsed_ms());
        sleep(Duration::from_millis(wait)).await;
        scene.happens(event.what).await?;
    }
    while let Some(ended) = talks.join_next().await {
        if ended.is_err() {
            watch.broken(0, "a client of the simulation has panicked");
        }
    }
    scene.end(&clients).await?;
    if looking.is_finished() {
        watch.broken(0, "whoever looks at the invariants has panicked");
    }
    looking.abort();
    let outcomes = std::mem::take(&mut *clients.outcomes.lock());
    for outcome in &outcomes {
        watch.told(outcome, &scene.ground.plan);
        marks.told(outcome);
    }
    watch.delivered(&outcomes, &deliveries.lock());
    let committed = scene.ground.committed.ledger_entries(usize::MAX).await.unwrap_or_default();
    watch.undelivered(&scene.ground.seen.lock(), &committed, &deliveries.lock());
    marks.tries(&watch.tries());
    if panics::so_far() > panicked {
        watch.broken(0, format_args!("something has panicked: {}", panics::last()));
    }
    scene.conversations(&outcomes);
    let (turns, logged) = (outcomes.len() as u64, deliveries.lock().len());
    let trace = &scene.ground.trace;
    Ok(Report { broken: watch.found(), marks: marks.all(), turns, digest: trace.digest(), trace: trace.text(), logged })
}

/// Looks at the invariants after every step.
async fn look(
    running: Arc<Mutex<Option<Arc<Running>>>>,
    trace: Arc<Trace>,
    seen: Arc<Mutex<Seen>>,
    watch: Arc<Watch>,
    marks: Arc<Marks>,
) {
    loop {
        trace.step().await;
        let running = running.lock().clone();
        if let Some(running) = running {
            let accounts = running.gateway.engine().admission.snapshots();
            watch.step(&running, &accounts, &seen);
            marks.step(&running, &accounts);
        }
    }
}

/// Every event, and what takes those back that pass, in the order of their times.
fn timeline(events: &[Event]) -> Vec<Event> {
    let back = |event: &Event| match event.what {
        Happens::Remove(family, account, ms) => {
            Some(Event { at_ms: event.at_ms + ms, what: Happens::Remove(family, account, 0) })
        }
        // An outage of no time is its end.
        Happens::Outage(ms) => Some(Event { at_ms: event.at_ms + ms, what: Happens::Outage(0) }),
        Happens::Crash(_)
        | Happens::Drain
        | Happens::Rotate(..)
        | Happens::Jump(_)
        | Happens::Refuse(..)
        | Happens::Cut(_)
        | Happens::Forget(_) => None,
    };
    let mut all: Vec<Event> = events.iter().copied().chain(events.iter().filter_map(back)).collect();
    all.sort_by_key(|event| event.at_ms);
    all
}

fn id_of(family: Family, account: u8) -> AccountId {
    AccountId { upstream: family.name().into(), account: format!("a{account}").into() }
}

impl Scene {
    async fn start(&mut self) -> Result<()> {
        let running = self.ground.start(self.life, &self.changes).await?;
        self.life += 1;
        self.watch.begins(&running.gateway);
        self.marks.begins(&running);
        *self.running.lock() = Some(Arc::new(running));
        Ok(())
    }

    /// The gateway that runs, taken out of its place: nobody else holds it for longer than a look.
    async fn take(&self) -> Result<Running> {
        let mut running = self.running.lock().take().context("no gateway runs")?;
        loop {
            match Arc::try_unwrap(running) {
                Ok(running) => return Ok(running),
                Err(held) => running = held,
            }
            tokio::task::yield_now().await;
        }
    }

    async fn happens(&mut self, what: Happens) -> Result<()> {
        self.ground.trace.note(format_args!("happens {what:?}"));
        match what {
            Happens::Crash(ms) => {
                let running = self.take().await?;
                self.marks.crash(&running);
                let accounts = running.gateway.engine().admission.snapshots();
                self.watch.step(&running, &accounts, &self.ground.seen);
                self.watch.ends(&running.gateway, false);
                self.ground.seen.lock().note(Noted::Died);
                running.crash(&self.ground.net);
                self.crashed = true;
                sleep(Duration::from_millis(ms)).await;
                self.start().await?;
            }
            Happens::Drain => {
                let running = self.take().await?;
                self.marks.drain(&running);
                let gateway = running.gateway.clone();
                running.drain(&self.ground.net).await?;
                self.watch.ends(&gateway, true);
                self.ground.seen.lock().note(Noted::Ended);
                self.start().await?;
            }
            Happens::Remove(family, account, ms) => {
                let all = self.ground.plan.upstreams.iter().find(|upstream| upstream.family == family);
                let out = self.changes.removed.iter().filter(|(other, _)| *other == family).count() + 1;
                if ms == 0 {
                    self.changes.removed.remove(&(family, account));
                } else if all.is_some_and(|upstream| out < usize::from(upstream.accounts)) {
                    self.changes.removed.insert((family, account));
                    self.ground.seen.lock().note(Noted::Removed(id_of(family, account)));
                }
                self.reload().await?;
            }
            Happens::Rotate(family, account) => {
                self.ground.seen.lock().note(Noted::Rotated(id_of(family, account)));
                *self.changes.rotated.entry((family, account)).or_default() += 1;
                self.reload().await?;
            }
            Happens::Jump(ms) => {
                self.ground.seen.lock().note(Noted::Jumped);
                self.ground.clock.jump(ms);
            }
            Happens::Refuse(family, ms) => self.ground.net.refuse(family, Duration::from_millis(ms)),
            Happens::Cut(family) => self.ground.net.cut(family),
            Happens::Forget(family) => self.ground.net.forget(family),
            Happens::Outage(ms) => self.ground.net.outage((ms == 0).then_some(&self.ground.plan)),
        }
        Ok(())
    }

    async fn reload(&self) -> Result<()> {
        let running = self.running.lock().clone();
        if let Some(running) = running {
            self.marks.reload(&running);
            running.reload(&self.ground, &self.changes).await?;
        }
        Ok(())
    }

    /// Waits until nothing is under way, and looks at a system at rest; then lets time pass, and every account serves again.
    async fn end(&mut self, clients: &Arc<Clients>) -> Result<()> {
        self.ground.net.heal();
        self.changes.removed.clear();
        self.reload().await?;
        let running = self.running.lock().clone().context("no gateway runs")?;
        // Out of it the watch says what is still under way.
        let _ = timeout(REST, self.at_rest(&running)).await;
        sleep(Duration::from_secs(1)).await;
        self.watch.count_gone(&self.ground.seen.lock());
        self.watch.rest(&running);
        for (family, open) in self.answering() {
            self.watch.broken(10, format_args!("{} still answers {open} calls", family.name()));
        }
        self.serves_again(&running, clients).await;
        let committed = self.ground.committed.ledger_entries(usize::MAX).await.unwrap_or_default();
        self.watch.ledger(&self.ground.seen.lock(), &committed, self.crashed);
        for family in [Family::Chat, Family::Messages, Family::Responses, Family::Gemini] {
            let reported = self.ground.net.lab(family, |lab| {
                lab.requests().into_iter().filter_map(|request| request.reported).collect::<Vec<_>>()
            });
            if let Some(reported) = reported {
                self.watch.meter(family, &committed, reported);
            }
        }
        Ok(())
    }

    /// Upstreams that are at work, and on how many calls.
    fn answering(&self) -> Vec<(Family, usize)> {
        let families = self.ground.plan.upstreams.iter().map(|upstream| upstream.family);
        let calls =
            families.filter_map(|family| Some((family, self.ground.net.lab(family, turnkeep_lab::Lab::in_flight)?)));
        calls.filter(|(_, open)| *open > 0).collect()
    }

    /// Waits until nothing is under way, what conversations are let go of by included.
    async fn at_rest(&self, running: &Running) {
        let engine = running.gateway.engine();
        loop {
            let in_flight = engine.admission.snapshots().iter().any(|account| account.in_flight > 0);
            let open = engine.tally.turns_open.load(std::sync::atomic::Ordering::Acquire) > 0;
            if !in_flight && !open && engine.admission.waiting() == 0 && self.answering().is_empty() {
                return;
            }
            sleep(Duration::from_millis(250)).await;
        }
    }

    /// What each upstream has heard in each conversation.
    fn conversations(&self, outcomes: &[Outcome]) {
        let seen = self.ground.seen.lock();
        let heard = Heard::of(outcomes, &seen);
        let transcripts = self.ground.net.lab(Family::Cascade, turnkeep_lab::Lab::transcripts).unwrap_or_default();
        for transcript in transcripts {
            let turns = transcript.turns.iter().map(|turn| turn.said.iter().filter(|text| text.starts_with("user")));
            let turns: Vec<String> = turns.map(|said| said.cloned().collect::<Vec<_>>().join(" ")).collect();
            heard.conversation(&format!("conversation {}", transcript.name), &turns, &self.watch);
        }
        let sessions = self.ground.net.lab(Family::Devin, turnkeep_lab::Lab::devin_sessions).unwrap_or_default();
        for session in sessions {
            let said = session.messages.iter().filter(|message| message.source == "user");
            let turns: Vec<String> = said.map(|message| message.message.clone()).collect();
            heard.conversation(&format!("session {}", session.session_id), &turns, &self.watch);
        }
        for (name, turns) in self.ground.net.agents.sessions() {
            heard.conversation(&name, &turns, &self.watch);
        }
    }

    /// The endpoint that turns go to first is tried again, though others could serve. In some runs it is set aside for that.
    async fn first_is_probed(&self, running: &Arc<Running>, clients: &Arc<Clients>) {
        let admission = &running.gateway.engine().admission;
        let Some(family) = self.ground.plan.upstreams.first().map(|upstream| upstream.family) else { return };
        let first = family.name();
        let ejected = || admission.upstreams().iter().any(|one| *one.name == *first && one.ejected_until.is_some());
        let serves = admission
            .snapshots()
            .iter()
            .any(|account| *account.id.upstream == *first && matches!(account.standing.status(), Status::Active));
        if self.ground.plan.seed.is_multiple_of(4) && self.ground.plan.upstreams.len() > 1 {
            self.ground.net.refuse(family, Duration::from_secs(600));
            for round in 0..FAULTS_THAT_EJECT {
                if ejected() {
                    break;
                }
                clients.clone().go(4_000_000 + round, one_turn("any")).await;
            }
            self.ground.net.refuse(family, Duration::ZERO);
        }
        for round in 0..8 {
            if !ejected() || !serves {
                return;
            }
            clients.clone().go(3_000_000 + round, one_turn("any")).await;
            sleep(Duration::from_secs(60)).await;
        }
        self.watch.broken(12, format_args!("{first} is out, and nobody tries it"));
    }

    /// Endpoints and accounts that were out are tried, and serve.
    async fn comes_back(&self, running: &Arc<Running>, clients: &Arc<Clients>) {
        let admission = &running.gateway.engine().admission;
        let out = || {
            let errored = |status: &Status| matches!(status, Status::Errored { .. });
            let accounts = admission.snapshots();
            let accounts = accounts.iter().filter(|account| errored(account.standing.status()));
            let upstreams = admission.upstreams();
            let upstreams = upstreams.iter().filter(|upstream| upstream.ejected_until.is_some());
            accounts.map(|one| one.id.to_string()).chain(upstreams.map(|one| one.name.to_string())).collect::<Vec<_>>()
        };
        for round in 0..12 {
            if out().is_empty() {
                return;
            }
            for upstream in &self.ground.plan.upstreams {
                for (number, model) in [upstream.family.name(), "any"].into_iter().enumerate() {
                    let number = 2_000_000 + round * 1000 + upstream.family as usize * 10 + number;
                    clients.clone().go(number, one_turn(model)).await;
                }
            }
            sleep(Duration::from_secs(60)).await;
        }
        self.watch.broken(12, format_args!("{:?} do not come back with healthy upstreams", out()));
    }

    async fn serves_again(&self, running: &Arc<Running>, clients: &Arc<Clients>) {
        tokio::time::advance(DAY).await;
        sleep(Duration::from_secs(5)).await;
        let admission = &running.gateway.engine().admission;
        let now = admission.present();
        for account in admission.snapshots() {
            if account.standing.cooldowns().running(now).next().is_some() {
                self.watch.broken(12, format_args!("{} cools down after a day of rest", account.id));
            }
        }
        self.first_is_probed(running, clients).await;
        for upstream in &self.ground.plan.upstreams {
            // A try that ends without saying anything of the account keeps nobody out.
            let mut talk = one_turn(upstream.family.name());
            talk.turns.iter_mut().for_each(|turn| (turn.words, turn.client) = (300, Client::LeavesAfter(30)));
            clients.clone().go(5_000_000 + upstream.family as usize, talk).await;
        }
        for upstream in &self.ground.plan.upstreams {
            let usable = admission.snapshots().into_iter().any(|account| {
                *account.id.upstream == *upstream.family.name()
                    && matches!(account.standing.status(), Status::Active | Status::Errored { .. })
            });
            if !usable {
                continue;
            }
            let talk = one_turn(upstream.family.name());
            let number = 1_000_000 + clients.outcomes.lock().len();
            clients.clone().go(number, talk).await;
            let served = clients
                .outcomes
                .lock()
                .iter()
                .any(|outcome| outcome.talk == number && matches!(outcome.end, crate::reply::End::Finished(_)));
            if !served {
                let last = clients.outcomes.lock().last().map(|outcome| format!("{outcome:?}")).unwrap_or_default();
                self.watch
                    .broken(12, format_args!("{} does not serve after a day of rest: {last}", upstream.family.name()));
            }
        }
        self.comes_back(running, clients).await;
        // Again until all is closed.
        let _ = timeout(REST, self.at_rest(running)).await;
        sleep(Duration::from_secs(1)).await;
    }
}

/// A turn of three words, by this model.
fn one_turn(model: &str) -> Talk {
    let turn = Turn { at_ms: 0, words: 3, idempotency: None, client: Client::Stays };
    Talk { caller: 0, dialect: Dialect::Chat, model: model.to_owned(), stream: true, turns: vec![turn] }
}

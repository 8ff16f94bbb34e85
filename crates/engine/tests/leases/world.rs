//! An engine over an upstream that keeps conversations.

use crate::fake::Fake;
pub use crate::turns::{Ask, ask};
use crate::turns::{Counted, World as Turns, Written, scripted};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::{AccountId, Fingerprint, Secret};
use turnkeep_engine::admission::{Admission, Setup};
use turnkeep_engine::ports::WallClock;
use turnkeep_engine::route::{Clocks, OnClientGone, Reuse, Route, Rules, Speech, Tier, UpstreamEntry};
use turnkeep_engine::tally::Tally;
use turnkeep_engine::{Engine, EngineParts};
use turnkeep_policy::Tuning;
use turnkeep_policy::accounts::{AccountSpec, UpstreamSpec};
use turnkeep_policy::conversations::Handling;
use turnkeep_policy::glob::Globs;

/// The wall time, as the test says.
pub struct Wall(pub AtomicU64);

impl WallClock for Wall {
    fn unix_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a world differs from the usual one.
pub struct With {
    pub handling: Handling,
    pub replay_safe: bool,
    pub reuse: Reuse,
    pub accounts: &'static [&'static str],
    pub max_in_flight: u32,
    pub requests_per_minute: Option<u32>,
    pub rules: Rules,
    pub tuning: Tuning,
    pub on_client_gone: OnClientGone,
    pub instance: Option<u128>,
    /// A second upstream of the same kind, with an account `z`, and how far it is from what the client asks for.
    pub second: Option<Tier>,
    /// Where the accounts' conversations are.
    pub place: u8,
}

impl Default for With {
    fn default() -> Self {
        With {
            handling: Handling::Mutable,
            replay_safe: true,
            reuse: Reuse::Prefer,
            accounts: &["a"],
            max_in_flight: 4,
            requests_per_minute: None,
            rules: Rules { backoff: Duration::from_millis(1), ..Rules::default() },
            tuning: Tuning::default(),
            on_client_gone: OnClientGone::Cancel,
            instance: None,
            second: None,
            place: 0,
        }
    }
}

pub struct World {
    turns: Turns,
    pub fake: Arc<Fake>,
    pub second: Arc<Fake>,
    pub wall: Arc<Wall>,
    entries: Vec<Arc<UpstreamEntry>>,
    with: With,
    /// Where the first upstream's accounts have their conversations.
    place: AtomicU8,
}

impl Deref for World {
    type Target = Turns;

    fn deref(&self) -> &Turns {
        &self.turns
    }
}

pub fn world() -> World {
    with(With::default())
}

pub fn of(handling: Handling) -> World {
    with(With { handling, ..With::default() })
}

pub fn with(with: With) -> World {
    let fake = Fake::new(with.handling, with.instance);
    let second = Fake::new(with.handling, None);
    over(with, fake, second, Arc::default(), Arc::new(Wall(AtomicU64::new(1_700_000_000_000))))
}

fn over(with: With, fake: Arc<Fake>, second: Arc<Fake>, written: Arc<Written>, wall: Arc<Wall>) -> World {
    let entry = |name: &str, port: &Arc<Fake>| {
        Arc::new(UpstreamEntry {
            name: name.into(),
            speech: Speech::Native {
                conversations: Some(with.handling),
                replay_safe: with.replay_safe,
                port: port.clone(),
            },
            reuse: with.reuse,
            clocks: Clocks::default(),
            on_client_gone: with.on_client_gone,
        })
    };
    let entries = vec![entry("up", &fake), entry("second", &second)];
    let admission = Admission::new(with.tuning.clone(), Instant::now());
    let route = |at: usize, tier| {
        let (upstream, model): (Arc<UpstreamEntry>, _) = (entries[at].clone(), "m".into());
        Route { upstream, model, tier, name: "m".into(), price: None }
    };
    let mut routes = vec![route(0, Tier::Own)];
    if let Some(tier) = with.second {
        routes.push(route(1, tier));
    }
    let engine = Engine::new(EngineParts {
        admission,
        ledger: written.clone(),
        faults: written.clone(),
        answer_store: written.clone(),
        conversation_store: written.clone(),
        echo: written.clone(),
        hash_key: [7; 32],
        clock: wall.clone(),
        random: Arc::new(Counted::default()),
        tally: Arc::new(Tally::default()),
        rules: with.rules,
    });
    let turns = Turns { engine, upstream: scripted(), written, routes: routes.into() };
    let place = AtomicU8::new(with.place);
    let world = World { turns, fake, second, wall, entries, with, place };
    world.configure(world.with.accounts);
    world
}

impl World {
    /// Takes up these accounts of the first upstream.
    pub fn configure(&self, names: &[&str]) {
        let account = |upstream: &str, name: &str| {
            let spec = AccountSpec {
                id: AccountId { upstream: upstream.into(), account: name.into() },
                max_in_flight: self.with.max_in_flight,
                models: Globs::default(),
                has_secret: true,
                enabled: true,
                limit_group: None,
                requests_per_minute: self.with.requests_per_minute,
                tokens_per_minute: None,
                generation: 0,
                place: Fingerprint([self.place.load(Ordering::Relaxed); 16]),
            };
            (spec, Some(Secret::new(format!("secret-{name}"))))
        };
        let mut accounts: Vec<_> = names.iter().map(|name| account("up", name)).collect();
        accounts.push(account("second", "z"));
        let spec = |name: &str| UpstreamSpec { name: name.into(), egress: "direct".into() };
        self.engine.admission.reconfigure(Setup {
            tuning: self.with.tuning.clone(),
            upstreams: vec![spec("up"), spec("second")],
            entries: self.entries.clone(),
            accounts,
            routes: vec![("up".into(), "m".into())],
            ..Setup::default()
        });
    }

    /// Takes up the same accounts at another place.
    pub fn move_to(&self, place: u8) {
        self.place.store(place, Ordering::Relaxed);
        self.configure(self.with.accounts);
    }

    /// The gateway dies here and starts anew over the same store and the same upstream, so much later.
    pub fn restarted(self, later: Duration) -> World {
        let place = self.place.load(Ordering::Relaxed);
        self.restarted_at(place, later)
    }

    /// The same, with its accounts at this place.
    pub fn restarted_at(self, place: u8, later: Duration) -> World {
        let World { turns, fake, second, wall, with, .. } = self;
        let with = With { place, ..with };
        wall.0.fetch_add(later.as_millis() as u64, Ordering::Relaxed);
        let world = over(with, fake, second, turns.written.clone(), wall);
        let kept = world.written.conversations.lock().values().cloned().collect();
        world.engine.take_up_conversations(kept);
        world
    }

    /// How many conversations are kept.
    pub fn size(&self) -> usize {
        self.engine.conversations.size(self.engine.admission.present())
    }

    /// Hits, misses, restored, advanced, dropped.
    pub fn counts(&self) -> [u64; 5] {
        let desk = &self.engine.conversations;
        [&desk.hits, &desk.misses, &desk.restored, &desk.advanced, &desk.dropped].map(|counter| counter.get())
    }

    /// Every lease has ended, once, and nothing went wrong upstream.
    #[track_caller]
    pub fn assert_right(&self) {
        let [hits, _, restored, advanced, dropped] = self.counts();
        assert_eq!(self.engine.conversations.taken(), 0, "a lease lives");
        assert_eq!(hits, restored + advanced + dropped, "each lease ends once: {:?}", self.counts());
        assert_eq!(self.engine.admission.in_flight(), 0);
        self.fake.assert_right();
        self.second.assert_right();
    }
}

/// A request of what was said so far: the client's words and the assistant's in turn.
pub fn said(stream: bool, words: &[&str]) -> Ask {
    let message = |(at, text): (usize, &&str)| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        format!(r#"{{"role":"{role}","content":"{text}"}}"#)
    };
    let messages: Vec<String> = words.iter().enumerate().map(message).collect();
    of_messages(stream, messages.join(","))
}

/// A request of these messages.
pub fn of_messages(stream: bool, messages: String) -> Ask {
    Ask { messages, cache: false, ..ask(stream) }
}

/// The first turn of a conversation, delivered: one conversation is kept.
pub async fn begun(world: &World, stream: bool) {
    let told = world.delivered(&said(stream, &["hi"])).await;
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!((world.size(), world.counts()), (1, [0; 5]));
}

/// Its second turn.
pub fn second(stream: bool) -> Ask {
    said(stream, &["hi", "one", "more"])
}

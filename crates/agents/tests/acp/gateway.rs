//! An engine over the driver and its agent: turns as a client of the gateway sends them, with what is counted.

use crate::processes::LONG;
use crate::world::World;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_agents::acp::{Acp, AcpSpec};
use turnkeep_base::receipt::{Level, Mint};
use turnkeep_base::{AccountId, CallerScope, Dialect, Fingerprint, Receipt, Secret, TurnId};
use turnkeep_dialect::request::{self, Operation};
use turnkeep_engine::admission::{Admission, Setup};
use turnkeep_engine::pipe::ReplyReader;
use turnkeep_engine::ports::{
    AnswerStore, AnsweredAgain, AttemptClosed, AttemptOpened, ConversationKey, ConversationStore, Echo, FaultLog,
    FaultRecord, KeptAnswer, KeptConversation, KeptKey, Ledger, Permit, Random, StoreError, WallClock,
};
use turnkeep_engine::route::{Clocks, OnClientGone, Reuse, Route, Rules, Speech, Tier, UpstreamEntry};
use turnkeep_engine::tally::Tally;
use turnkeep_engine::{Engine, EngineParts, Terms, TurnInput};
use turnkeep_policy::Tuning;
use turnkeep_policy::accounts::{AccountSpec, UpstreamSpec};
use turnkeep_policy::glob::Globs;

/// Ports of which nothing is wanted here.
struct Nothing(AtomicU64);

impl Ledger for Nothing {
    fn open(&self, _: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>> {
        // It takes a moment, in which the turn holds its lease and has sent nothing.
        tokio::task::yield_now().map(Ok).boxed()
    }
    fn close(&self, _: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>> {
        std::future::ready(Ok(())).boxed()
    }
    fn again(&self, _: AnsweredAgain) {}
}

impl AnswerStore for Nothing {
    fn keep(&self, _: KeptAnswer) {}
    fn forget(&self, _: KeptKey) {}
}

impl Echo for Nothing {
    fn receipt(&self, turn: TurnId) -> Receipt {
        Mint::for_the_wiring().receipt(turn, Level::Echoed)
    }
}

impl FaultLog for Nothing {
    fn note(&self, _: FaultRecord) {}
}

impl WallClock for Nothing {
    fn unix_ms(&self) -> u64 {
        1_700_000_000_000
    }
}

impl ConversationStore for Nothing {
    fn keep_conversation(&self, _: KeptConversation) {}

    fn forget_conversations(&self, _: Vec<ConversationKey>) {}
}

impl Random for Nothing {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

impl Permit for Nothing {
    fn holds(&self) -> bool {
        true
    }
}

/// A gateway with one model, whose upstream is an agent.
pub struct Gateway {
    pub world: World,
    pub engine: Arc<Engine>,
    routes: Arc<[Route]>,
}

/// What became of the leases, as `connect-metrics` counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leases {
    pub size: usize,
    pub hits: u64,
    pub restored: u64,
    pub advanced: u64,
    pub dropped: u64,
}

/// A client and its reply.
pub struct Asking {
    pub reader: ReplyReader,
    turn: TurnId,
    stream: bool,
}

/// What a client was told.
#[derive(Debug)]
pub struct Told {
    pub status: StatusCode,
    pub text: String,
    pub body: String,
}

/// What was said: who, and what.
pub type Said<'a> = [(&'a str, String)];

impl Gateway {
    pub fn new(arguments: &[&str], change: impl FnOnce(&mut AcpSpec)) -> Gateway {
        let mut names = Vec::new();
        let world = World::with(arguments, |spec| {
            change(spec);
            names = spec.accounts.keys().cloned().collect();
        });
        let account = |name: Arc<str>| AccountSpec {
            id: AccountId { upstream: "agent".into(), account: name },
            max_in_flight: 4,
            models: Globs::default(),
            has_secret: true,
            enabled: true,
            limit_group: None,
            requests_per_minute: None,
            tokens_per_minute: None,
            generation: 0,
            place: Fingerprint([0; 16]),
        };
        let accounts = names.into_iter().map(|name| (account(name), Some(Secret::new(String::new())))).collect();
        let admission = Admission::new(Tuning::default(), Instant::now());
        let port = world.acp.clone();
        let entry = Arc::new(UpstreamEntry {
            name: "agent".into(),
            speech: Speech::Native { conversations: Some(Acp::HANDLING), replay_safe: Acp::REPLAY_SAFE, port },
            reuse: Reuse::Prefer,
            clocks: Clocks::default(),
            on_client_gone: OnClientGone::Cancel,
        });
        admission.reconfigure(Setup {
            tuning: Tuning::default(),
            upstreams: vec![UpstreamSpec { name: "agent".into(), egress: "direct".into() }],
            accounts,
            routes: vec![("agent".into(), "m".into())],
            ..Setup::default()
        });
        let route = Route { upstream: entry, model: "m".into(), tier: Tier::Own, name: "m".into(), price: None };
        let nothing = Arc::new(Nothing(AtomicU64::new(0)));
        let engine = Engine::new(EngineParts {
            admission,
            ledger: nothing.clone(),
            faults: nothing.clone(),
            answer_store: nothing.clone(),
            conversation_store: nothing.clone(),
            echo: nothing.clone(),
            hash_key: [7; 32],
            clock: nothing.clone(),
            random: nothing,
            tally: Arc::new(Tally::default()),
            rules: Rules { backoff: Duration::from_millis(1), ..Rules::default() },
        });
        Gateway { world, engine, routes: [route].into() }
    }

    pub fn start(&self, caller: &str, stream: bool, said: &Said<'_>) -> Asking {
        let input = self.input(caller, stream, said);
        let turn = input.id;
        Asking { reader: self.engine.start(input), turn, stream }
    }

    /// A turn that the test polls itself, so many times: it is dropped then, if it has not ended. True if it has.
    pub async fn polled(&self, stream: bool, said: &Said<'_>, mut polls: usize) -> bool {
        let input = self.input("alice", stream, said);
        let turn = input.id;
        let (mut task, mut reader) = self.engine.prepare(input);
        let polled = poll_fn(|cx| {
            if polls == 0 {
                return Poll::Ready(false);
            }
            polls -= 1;
            if task.poll_unpin(cx).is_ready() {
                return Poll::Ready(true);
            }
            // The client takes what there is, all of which arrives.
            let _head = reader.poll_head(cx);
            while let Poll::Ready(Some(_)) = reader.poll_chunk(cx) {}
            if let Some(ticket) = reader.ticket() {
                ticket.turn_in(Mint::for_the_wiring().receipt(turn, Level::Acked));
            }
            Poll::Pending
        });
        tokio::time::timeout(LONG, polled).await.expect("in time")
    }

    fn input(&self, caller: &str, stream: bool, said: &Said<'_>) -> TurnInput {
        let messages: Vec<_> =
            said.iter().map(|(role, text)| serde_json::json!({"role": role, "content": text})).collect();
        let body = serde_json::json!({"model": "m", "stream": stream, "messages": messages}).to_string();
        TurnInput {
            id: self.engine.turn_id(),
            caller: CallerScope::of_key(caller),
            terms: Terms::default(),
            permit: Arc::new(Nothing(AtomicU64::new(0))),
            request: request::read(Dialect::Chat, Operation::Generate, Bytes::from(body)).expect("a request"),
            model_label: "m".into(),
            routes: self.routes.clone(),
            fetched: Default::default(),
            headers: HeaderMap::new(),
            beta: false,
            timeout: None,
            received: Instant::now(),
            memory: None,
        }
    }

    /// A turn, and its answer, which arrives.
    pub async fn turn(&self, stream: bool, said: &Said<'_>) -> Told {
        let told = self.start("alice", stream, said).told(true).await;
        self.idle().await;
        told
    }

    /// A turn that adds what was said and answered to the history.
    pub async fn goes_on(&self, stream: bool, said: &mut Vec<(&str, String)>, now: &str) -> Told {
        said.push(("user", now.to_owned()));
        let told = self.turn(stream, said).await;
        assert_eq!(told.status, 200, "{told:?}");
        said.push(("assistant", told.text.clone()));
        told
    }

    pub async fn idle(&self) {
        tokio::time::timeout(LONG, self.engine.idle()).await.expect("nothing stays open");
    }

    pub fn leases(&self) -> Leases {
        let desk = &self.engine.conversations;
        Leases {
            size: desk.size(self.engine.admission.present()),
            hits: desk.hits.get(),
            restored: desk.restored.get(),
            advanced: desk.advanced.get(),
            dropped: desk.dropped.get(),
        }
    }

    /// The sessions of the prompts that the agent has heard, in order.
    pub fn sessions(&self) -> Vec<String> {
        self.world.heard("session/prompt").iter().map(|prompt| prompt["sessionId"].to_string()).collect()
    }
}

impl Asking {
    pub async fn more(&mut self) -> Option<Bytes> {
        tokio::time::timeout(LONG, poll_fn(|cx| self.reader.poll_chunk(cx))).await.expect("in time")
    }

    pub async fn status(&mut self) -> StatusCode {
        let head = tokio::time::timeout(LONG, poll_fn(|cx| self.reader.poll_head(cx)));
        head.await.expect("in time").expect("a head").status
    }

    /// Reads the whole reply, which arrives or does not.
    pub async fn told(mut self, arrives: bool) -> Told {
        let status = self.status().await;
        let (mut body, mut ticket) = (Vec::new(), None);
        while let Some(bytes) = self.more().await {
            body.extend_from_slice(&bytes);
            ticket = ticket.or_else(|| self.reader.ticket());
        }
        ticket = ticket.or_else(|| self.reader.ticket());
        if let Some(ticket) = ticket.filter(|_| arrives) {
            ticket.turn_in(Mint::for_the_wiring().receipt(self.turn, Level::Acked));
        }
        let body = String::from_utf8(body).expect("text");
        Told { status, text: text_of(self.stream, &body), body }
    }
}

/// The answer's text.
fn text_of(stream: bool, body: &str) -> String {
    let of = |json: &str, path: &str| {
        let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
        value.pointer(path).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    if stream {
        let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
        events.map(|event| of(event, "/choices/0/delta/content")).collect()
    } else {
        of(body, "/choices/0/message/content")
    }
}

//! An engine over ports of the test's own: what is written down, an upstream that says what it is told to, and a client
//! that takes the reply, or leaves, where the test says.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use turnkeep_base::receipt::{Level, Mint};
use turnkeep_base::{AccountId, CallerScope, Dialect, Fault, Fingerprint, Price, Receipt, Secret, TurnId};
use turnkeep_dialect::request::{self, Operation};
use turnkeep_engine::admission::{Admission, Setup};
use turnkeep_engine::pipe::{ReplyHead, ReplyReader, Ticket};
use turnkeep_engine::ports::{
    Answer, AnswerBody, AnswerStore, AnsweredAgain, AttemptClosed, AttemptOpened, Call, ConversationKey,
    ConversationStore, Echo, FaultLog, FaultRecord, KeepAnswer, KeptAnswer, KeptConversation, KeptKey, Ledger, Permit,
    Random, Reservation, Spent, StoreError, Upstream, WallClock,
};
use turnkeep_engine::route::{Clocks, OnClientGone, Reuse, Route, Rules, Speech, Tier, UpstreamEntry};
use turnkeep_engine::tally::Tally;
use turnkeep_engine::{Engine, EngineParts, Terms, TurnInput};
use turnkeep_policy::accounts::{AccountSpec, Status, UpstreamSpec};
use turnkeep_policy::glob::Globs;
use turnkeep_policy::{Moment, Tuning};

pub const BOUND: Duration = Duration::from_secs(30);
pub const DELTA: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"},\"finish_reason\":null}]}\n\n";
pub const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":\
                          {\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}\n\ndata: [DONE]\n\n";
pub const PLAIN: &str = "{\"id\":\"x\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"m\",\"choices\":[{\"index\":0,\
                         \"message\":{\"role\":\"assistant\",\"content\":\"one\"},\"finish_reason\":\"stop\"}],\"usage\":\
                         {\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}";

pub struct Always;

impl Permit for Always {
    fn holds(&self) -> bool {
        true
    }
}

/// One step of an upstream.
#[derive(Clone, Debug)]
pub enum Step {
    Say(&'static str),
    /// Waits until the test opens the gate.
    Gate(Arc<Semaphore>),
    /// Lets others run first.
    Pause,
    Panic,
}

/// What an upstream does with a call.
#[derive(Clone, Debug)]
pub enum Act {
    PanicInSending,
    Answer(Vec<Step>),
}

impl Act {
    /// Answers in full, in the mode that was asked for; with a gate, waits there after the first content.
    pub fn whole(stream: bool, gate: Option<&Arc<Semaphore>>) -> Act {
        let gate = gate.map(|gate| Step::Gate(gate.clone()));
        let said: &[&'static str] = if stream { &[DELTA, FINISH] } else { &[PLAIN] };
        let mut steps: Vec<Step> = said.iter().map(|text| Step::Say(text)).collect();
        if let Some(gate) = gate {
            steps.insert(usize::from(stream), gate);
        }
        Act::Answer(steps)
    }
}

type Script = Box<dyn Fn(bool) -> Act + Send + Sync>;

/// An upstream that says what it is told to. Its script is given whether a stream is wanted.
pub struct Scripted {
    script: Mutex<Script>,
    pub calls: AtomicU64,
}

impl Scripted {
    pub fn act(&self, script: impl Fn(bool) -> Act + Send + Sync + 'static) {
        *self.script.lock() = Box::new(script);
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// One that answers in full.
pub fn scripted() -> Arc<Scripted> {
    let script: Script = Box::new(|stream| Act::whole(stream, None));
    Arc::new(Scripted { script: Mutex::new(script), calls: AtomicU64::new(0) })
}

struct Body {
    steps: VecDeque<Step>,
    waiting: Option<BoxFuture<'static, ()>>,
}

impl AnswerBody for Body {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Fault>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                std::task::ready!(waiting.poll_unpin(cx));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                Some(Step::Say(text)) => return Poll::Ready(Some(Ok(Bytes::from_static(text.as_bytes())))),
                Some(Step::Gate(gate)) => {
                    self.waiting = Some(async move { gate.acquire().await.unwrap().forget() }.boxed());
                }
                Some(Step::Pause) => self.waiting = Some(tokio::task::yield_now().boxed()),
                Some(Step::Panic) => panic!("a mistake in reading"),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Upstream for Scripted {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Fault>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let stream = call.body.windows(13).any(|part| part == b"\"stream\":true");
        let act = (self.script.lock())(stream);
        async move {
            tokio::task::yield_now().await;
            let Act::Answer(steps) = act else { panic!("a mistake in sending") };
            let kind = if stream { "text/event-stream" } else { "application/json" };
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
            Ok(Answer { status: StatusCode::OK, headers, body: Box::new(Body { steps: steps.into(), waiting: None }) })
        }
        .boxed()
    }
}

/// Everything that was written down.
#[derive(Default)]
pub struct Written {
    pub opened: Mutex<Vec<AttemptOpened>>,
    pub closed: Mutex<Vec<AttemptClosed>>,
    pub again: Mutex<Vec<AnsweredAgain>>,
    pub kept: Mutex<BTreeMap<KeptKey, KeptAnswer>>,
    pub conversations: Mutex<BTreeMap<ConversationKey, KeptConversation>>,
    pub faults: Mutex<Vec<FaultRecord>>,
    pub settled: Mutex<Vec<Spent>>,
    pub given_back: AtomicU64,
    pub refuse_entries: Mutex<bool>,
}

impl Ledger for Written {
    fn open(&self, entry: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>> {
        if *self.refuse_entries.lock() {
            return futures_util::future::ready(Err(StoreError("full".into()))).boxed();
        }
        async move {
            tokio::task::yield_now().await;
            if let Some(taken) = &entry.conversation {
                self.conversations.lock().remove(taken);
            }
            self.opened.lock().push(entry);
            Ok(())
        }
        .boxed()
    }

    fn close(&self, entry: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            // The entry is handed over at once; the answer takes a while.
            self.closed.lock().push(entry);
            tokio::task::yield_now().await;
            Ok(())
        }
        .boxed()
    }

    fn again(&self, entry: AnsweredAgain) {
        self.again.lock().push(entry);
    }
}

impl AnswerStore for Written {
    fn keep(&self, answer: KeptAnswer) {
        self.kept.lock().insert(answer.key.clone(), answer);
    }

    fn forget(&self, key: KeptKey) {
        self.kept.lock().remove(&key);
    }
}

impl ConversationStore for Written {
    fn keep_conversation(&self, kept: KeptConversation) {
        self.conversations.lock().insert(kept.key.clone(), kept);
    }

    fn forget_conversations(&self, keys: Vec<ConversationKey>) {
        self.conversations.lock().retain(|key, _| !keys.contains(key));
    }
}

impl Echo for Written {
    fn receipt(&self, turn: TurnId) -> Receipt {
        Mint::for_the_wiring().receipt(turn, Level::Echoed)
    }
}

impl FaultLog for Written {
    fn note(&self, record: FaultRecord) {
        self.faults.lock().push(record);
    }
}

struct Reserved {
    written: Arc<Written>,
    settled: bool,
}

impl Reservation for Reserved {
    fn settle(mut self: Box<Self>, spent: Spent) {
        self.settled = true;
        self.written.settled.lock().push(spent);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.settled {
            self.written.given_back.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Fixed;

impl WallClock for Fixed {
    fn unix_ms(&self) -> u64 {
        1_700_000_000_000
    }
}

/// Each draw another number, the same in every run.
#[derive(Default)]
pub struct Counted(AtomicU64);

impl Random for Counted {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

pub struct World {
    pub engine: Arc<Engine>,
    pub upstream: Arc<Scripted>,
    pub written: Arc<Written>,
    pub routes: Arc<[Route]>,
}

/// How a world differs from the usual one.
#[derive(Default)]
pub struct Differs {
    pub rules: Rules,
    pub on_client_gone: OnClientGone,
    /// Accounts beside `a`.
    pub more: &'static [&'static str],
}

pub fn world() -> World {
    different(Differs::default())
}

pub fn different(differs: Differs) -> World {
    let admission = Admission::new(Tuning::default(), Instant::now());
    let account = |name: &str| AccountSpec {
        id: AccountId { upstream: "up".into(), account: name.into() },
        max_in_flight: 1,
        models: Globs::default(),
        has_secret: true,
        enabled: true,
        limit_group: None,
        requests_per_minute: None,
        tokens_per_minute: None,
        generation: 0,
        place: Fingerprint([0; 16]),
    };
    let names = ["a"].iter().chain(differs.more);
    let accounts = names.map(|name| (account(name), Some(Secret::new(format!("secret-{name}"))))).collect();
    let written = Arc::new(Written::default());
    let upstream = scripted();
    let entry = Arc::new(UpstreamEntry {
        name: "up".into(),
        speech: Speech::Dialect { dialect: Dialect::Chat, chains: false, port: upstream.clone() },
        reuse: Reuse::Off,
        clocks: Clocks::default(),
        on_client_gone: differs.on_client_gone,
    });
    admission.reconfigure(Setup {
        tuning: Tuning::default(),
        upstreams: vec![UpstreamSpec { name: "up".into(), egress: "direct".into() }],
        accounts,
        routes: vec![("up".into(), "m".into())],
        ..Setup::default()
    });
    let price = Some(Price { input: 3, output: 10, cache_read: 1, cache_write: 4 });
    let route = Route { upstream: entry, model: "m".into(), tier: Tier::Own, name: "m".into(), price };
    let engine = Engine::new(EngineParts {
        admission,
        ledger: written.clone(),
        faults: written.clone(),
        answer_store: written.clone(),
        conversation_store: written.clone(),
        echo: written.clone(),
        hash_key: [7; 32],
        clock: Arc::new(Fixed),
        random: Arc::new(Counted::default()),
        tally: Arc::new(Tally::default()),
        rules: differs.rules,
    });
    World { engine, upstream, written, routes: [route].into() }
}

/// A turn to be asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    pub client: Dialect,
    pub stream: bool,
    pub caller: &'static str,
    pub messages: String,
    pub cache: bool,
    pub bypass: bool,
    pub idempotency: Option<&'static str>,
    pub shared: bool,
    /// What the client sent, where the request was filled in.
    pub shown: Option<&'static str>,
    /// The client's session.
    pub session: Option<&'static str>,
    /// More fields of the request, each with a comma before it.
    pub also: &'static str,
    pub model: &'static str,
    pub timeout: Option<Duration>,
}

pub fn ask(stream: bool) -> Ask {
    let messages = r#"{"role":"user","content":"hi"}"#.into();
    Ask {
        client: Dialect::Chat,
        stream,
        caller: "tester",
        messages,
        cache: true,
        bypass: false,
        idempotency: None,
        shared: false,
        shown: None,
        session: None,
        also: "",
        model: "m",
        timeout: None,
    }
}

pub struct Told {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
    /// The reply was read to its end.
    pub ticket: Option<Ticket>,
    pub turn: TurnId,
}

impl Told {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The reply has arrived.
    pub fn arrives(mut self) -> Told {
        let receipt = Mint::for_the_wiring().receipt(self.turn, Level::Acked);
        self.ticket.take().expect("the reply was read to its end").turn_in(receipt);
        self
    }

    /// It has not.
    pub fn goes_missing(mut self) -> Told {
        drop(self.ticket.take());
        self
    }
}

/// A client and its reply.
pub struct Asking {
    pub reader: ReplyReader,
    turn: TurnId,
}

/// That the reply of this turn has arrived.
#[allow(dead_code, reason = "for tests that read a reply by themselves")]
pub fn receipt(turn: TurnId) -> Receipt {
    Mint::for_the_wiring().receipt(turn, Level::Acked)
}

impl Asking {
    #[allow(dead_code, reason = "for tests that read a reply by themselves")]
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// The head of the reply.
    pub async fn head(&mut self) -> ReplyHead {
        let head = poll_fn(|cx| self.reader.poll_head(cx));
        tokio::time::timeout(BOUND, head).await.expect("in time").expect("the client is told")
    }

    /// The next bytes.
    pub async fn more(&mut self) -> Option<Bytes> {
        tokio::time::timeout(BOUND, poll_fn(|cx| self.reader.poll_chunk(cx))).await.expect("in time")
    }

    /// Reads the whole reply.
    pub async fn told(mut self) -> Told {
        let head = self.head().await;
        let (mut body, mut ticket) = (Vec::new(), None);
        while let Some(bytes) = self.more().await {
            body.extend_from_slice(&bytes);
            ticket = ticket.or_else(|| self.reader.ticket());
        }
        ticket = ticket.or_else(|| self.reader.ticket());
        let body = String::from_utf8(body).unwrap();
        Told { status: head.status, headers: head.headers, body, ticket, turn: self.turn }
    }
}

impl World {
    pub fn input(&self, ask: &Ask) -> TurnInput {
        let Ask { stream, messages, also, model, .. } = ask;
        let body = format!(r#"{{"model":"{model}","max_tokens":9,"stream":{stream},"messages":[{messages}]{also}}}"#);
        let caller = match ask.shared {
            true => CallerScope::Bare { key: ask.caller.into() },
            false => CallerScope::of_key(ask.caller),
        };
        let terms = Terms {
            cache: ask.cache.then_some(Duration::from_secs(300)),
            bypass: ask.bypass,
            idempotency: ask.idempotency.map(str::to_owned),
            shown: ask.shown.map(Bytes::from),
            session: ask.session.map(str::to_owned),
            reservation: Some(Box::new(Reserved { written: self.written.clone(), settled: false })),
            ..Terms::default()
        };
        TurnInput {
            id: self.engine.turn_id(),
            caller,
            terms,
            permit: Arc::new(Always),
            request: request::read(ask.client, Operation::Generate, body.into()).unwrap(),
            model_label: ask.model.into(),
            routes: self.routes.clone(),
            fetched: Default::default(),
            headers: HeaderMap::new(),
            beta: false,
            timeout: ask.timeout,
            received: Instant::now(),
            memory: None,
        }
    }

    pub fn start(&self, ask: &Ask) -> Asking {
        let input = self.input(ask);
        let turn = input.id;
        Asking { reader: self.engine.start(input), turn }
    }

    /// A turn whose answer is stored.
    pub fn start_kept(&self, ask: &Ask, keep: Box<dyn KeepAnswer>) -> Asking {
        let mut input = self.input(ask);
        input.terms.keep = Some(keep);
        let turn = input.id;
        Asking { reader: self.engine.start(input), turn }
    }

    /// A turn whose task the test polls itself.
    pub fn by_hand(&self, ask: &Ask) -> (BoxFuture<'static, ()>, Asking) {
        let input = self.input(ask);
        let turn = input.id;
        let (task, reader) = self.engine.prepare(input);
        (task, Asking { reader, turn })
    }

    /// Waits until no turn is open.
    pub async fn idle(&self) {
        tokio::time::timeout(BOUND, self.engine.idle()).await.expect("nothing stays open");
    }

    /// A turn whose reply arrives.
    pub async fn delivered(&self, ask: &Ask) -> Told {
        let told = self.start(ask).told().await.arrives();
        self.idle().await;
        told
    }

    /// A turn whose reply is taken and does not arrive.
    pub async fn lost(&self, ask: &Ask) -> Told {
        let told = self.start(ask).told().await.goes_missing();
        self.idle().await;
        told
    }

    /// Bindings made, histories committed, answers put into the cache.
    pub fn commits(&self) -> [u64; 3] {
        let (bonds, kept) = (&self.engine.bonds, &self.engine.kept);
        [bonds.binds.get(), bonds.commits.get(), kept.cache_stores.get()]
    }

    #[track_caller]
    pub fn assert_unblamed(&self) {
        let snapshots = self.engine.admission.snapshots();
        let now = self.engine.admission.present();
        for account in &snapshots {
            assert_eq!((account.in_flight, account.standing.status()), (0, &Status::Active));
            assert_eq!(account.standing.budget_used(now), 0);
            assert_eq!(account.standing.recent_samples(Moment(0)), 0, "not even a health sample");
            assert!(account.standing.cooldowns().is_empty());
        }
        assert_eq!(self.engine.admission.upstreams()[0].faults_in_a_row, 0);
    }

    /// Each dispatch has one entry, each entry one end, and no recording, slot or reservation is left.
    #[track_caller]
    pub fn assert_settled(&self, turns: u64) {
        let mut ends = BTreeMap::new();
        for end in self.written.closed.lock().iter() {
            // One whose task was dropped while it was handed over is handed over again.
            assert_eq!(ends.entry(end.attempt).or_insert_with(|| end.clone()), end, "no entry has two different ends");
        }
        // The end of one that nobody waited for any more is handed over, too: the ledger takes such an entry back.
        assert!(
            self.written.opened.lock().iter().all(|entry| ends.contains_key(&entry.attempt)),
            "each entry has its end"
        );
        let settled = self.written.settled.lock().len() as u64 + self.written.given_back.load(Ordering::Relaxed);
        assert_eq!(settled, turns, "each reservation ends once");
        assert_eq!((self.engine.recorded_bytes(), self.engine.admission.in_flight()), (0, 0));
    }
}

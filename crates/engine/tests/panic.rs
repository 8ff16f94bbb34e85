//! A panic anywhere below the drive loop costs one turn and nobody else anything: the attempt is closed once, the slot
//! comes back, the client is told, and the account is not blamed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::receipt::Level;
use turnkeep_base::{AccountId, CallerScope, Dialect, Fault, FaultKind, Mint, Receipt, Secret, TurnId};
use turnkeep_dialect::request::{self, Operation};
use turnkeep_engine::admission::{Admission, Setup};
use turnkeep_engine::ports::{
    Answer, AnswerBody, AnswerStore, AnsweredAgain, AttemptClosed, AttemptOpened, AttemptOutcome, Call, Echo, FaultLog,
    FaultRecord, KeptAnswer, KeptKey, Ledger, Permit, Random, StoreError, Upstream, WallClock,
};
use turnkeep_engine::route::{Clocks, OnClientGone, Route, Rules, Tier, UpstreamEntry};
use turnkeep_engine::tally::Tally;
use turnkeep_engine::{Engine, EngineParts, Terms, TurnInput};
use turnkeep_policy::accounts::{AccountSpec, Status, UpstreamSpec};
use turnkeep_policy::glob::Globs;
use turnkeep_policy::{Moment, Tuning};

struct Always;

impl Permit for Always {
    fn holds(&self) -> bool {
        true
    }
}

/// Where the upstream panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Sending,
    BeforeContent,
    AfterContent,
    Nowhere,
}

const ALL: [Where; 3] = [Where::Sending, Where::BeforeContent, Where::AfterContent];

const DELTA: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"},\"finish_reason\":null}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const PLAIN: &str = "{\"id\":\"x\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"m\",\"choices\":[{\"index\":0,\
                     \"message\":{\"role\":\"assistant\",\"content\":\"one\"},\"finish_reason\":\"stop\"}]}";

/// An upstream whose code has a mistake, for as long as it is told so.
struct Mistaken(Mutex<Where>);

struct Body(VecDeque<Option<&'static str>>);

impl AnswerBody for Body {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Fault>>> {
        match self.0.pop_front() {
            Some(Some(text)) => Poll::Ready(Some(Ok(Bytes::from_static(text.as_bytes())))),
            Some(None) => panic!("a mistake in reading"),
            None => Poll::Ready(None),
        }
    }
}

impl Upstream for Mistaken {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Fault>> {
        let at = *self.0.lock();
        let stream = call.body.windows(13).any(|part| part == b"\"stream\":true");
        async move {
            let pieces = match (at, stream) {
                (Where::Sending, _) => panic!("a mistake in sending"),
                (Where::BeforeContent, _) => vec![None],
                (Where::AfterContent, true) => vec![Some(DELTA), None],
                (Where::AfterContent, false) => vec![Some(&PLAIN[..20]), None],
                (Where::Nowhere, true) => vec![Some(DELTA), Some(FINISH)],
                (Where::Nowhere, false) => vec![Some(PLAIN)],
            };
            let kind = if stream { "text/event-stream" } else { "application/json" };
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
            Ok(Answer { status: StatusCode::OK, headers, body: Box::new(Body(pieces.into())) })
        }
        .boxed()
    }
}

#[derive(Default)]
struct Written {
    opened: Mutex<Vec<AttemptOpened>>,
    closed: Mutex<Vec<AttemptClosed>>,
    faults: Mutex<Vec<FaultRecord>>,
}

impl Ledger for Written {
    fn open(&self, entry: AttemptOpened) -> BoxFuture<'_, Result<(), StoreError>> {
        self.opened.lock().push(entry);
        futures_util::future::ready(Ok(())).boxed()
    }

    fn close(&self, entry: AttemptClosed) -> BoxFuture<'_, Result<(), StoreError>> {
        self.closed.lock().push(entry);
        futures_util::future::ready(Ok(())).boxed()
    }

    fn again(&self, _: AnsweredAgain) {}
}

impl AnswerStore for Written {
    fn keep(&self, _: KeptAnswer) {}
    fn forget(&self, _: KeptKey) {}
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

struct Fixed;

impl WallClock for Fixed {
    fn unix_ms(&self) -> u64 {
        1_700_000_000_000
    }
}

impl Random for Fixed {
    fn bits(&self) -> u128 {
        7
    }
}

struct World {
    engine: Arc<Engine>,
    upstream: Arc<Mistaken>,
    written: Arc<Written>,
    routes: Arc<[Route]>,
}

fn world() -> World {
    let admission = Admission::new(Tuning::default(), Instant::now());
    let account = AccountSpec {
        id: AccountId { upstream: "up".into(), account: "a".into() },
        max_in_flight: 1,
        models: Globs::default(),
        has_secret: true,
        enabled: true,
        limit_group: None,
        requests_per_minute: None,
        tokens_per_minute: None,
        generation: 0,
    };
    let written = Arc::new(Written::default());
    let upstream = Arc::new(Mistaken(Mutex::new(Where::Nowhere)));
    let entry = Arc::new(UpstreamEntry {
        name: "up".into(),
        dialect: Dialect::Chat,
        clocks: Clocks::default(),
        on_client_gone: OnClientGone::Cancel,
        port: upstream.clone(),
    });
    admission.reconfigure(Setup {
        tuning: Tuning::default(),
        upstreams: vec![UpstreamSpec { name: "up".into(), egress: "direct".into() }],
        accounts: vec![(account, Some(Secret::new("secret-a".into())))],
        routes: vec![("up".into(), "m".into())],
        ..Setup::default()
    });
    let route = Route { upstream: entry, model: "m".into(), tier: Tier::Own, name: "m".into(), price: None };
    let engine = Engine::new(EngineParts {
        admission,
        ledger: written.clone(),
        faults: written.clone(),
        answer_store: written.clone(),
        echo: written.clone(),
        hash_key: [7; 32],
        clock: Arc::new(Fixed),
        random: Arc::new(Fixed),
        tally: Arc::new(Tally::default()),
        rules: Rules::default(),
    });
    World { engine, upstream, written, routes: [route].into() }
}

struct Told {
    status: StatusCode,
    body: String,
}

impl World {
    /// A turn, read to its end.
    async fn turn(&self, client: Dialect, stream: bool) -> Told {
        let body = format!(
            r#"{{"model":"m","max_tokens":9,"stream":{stream},"messages":[{{"role":"user","content":"hi"}}]}}"#
        );
        let input = TurnInput {
            id: self.engine.turn_id(),
            caller: CallerScope::of_key("tester"),
            terms: Terms::default(),
            permit: Arc::new(Always),
            request: request::read(client, Operation::Generate, body.into()).unwrap(),
            model_label: "m".into(),
            routes: self.routes.clone(),
            headers: HeaderMap::new(),
            beta: false,
            timeout: None,
            received: Instant::now(),
            memory: None,
        };
        let id = input.id;
        let mut reader = self.engine.start(input);
        let reading = async {
            let head = poll_fn(|cx| reader.poll_head(cx)).await.expect("the client is told");
            let mut body = Vec::new();
            while let Some(bytes) = poll_fn(|cx| reader.poll_chunk(cx)).await {
                body.extend_from_slice(&bytes);
                if let Some(ticket) = reader.ticket() {
                    ticket.turn_in(Mint::for_the_wiring().receipt(id, Level::Flushed));
                }
            }
            Told { status: head.status, body: String::from_utf8(body).unwrap() }
        };
        let told = tokio::time::timeout(Duration::from_secs(30), reading).await.expect("the turn ends");
        drop(reader);
        tokio::time::timeout(Duration::from_secs(30), self.engine.idle()).await.expect("nothing stays open");
        told
    }

    #[track_caller]
    fn assert_unblamed(&self) {
        let snapshots = self.engine.admission.snapshots();
        let [account] = &snapshots[..] else { panic!("one account") };
        let now = self.engine.admission.present();
        assert_eq!((account.in_flight, account.standing.status()), (0, &Status::Active));
        assert_eq!(account.standing.budget_used(now), 0);
        assert_eq!(account.standing.recent_samples(Moment(0)), 0, "not even a health sample");
        assert!(account.standing.cooldowns().is_empty());
        assert_eq!(self.engine.admission.upstreams()[0].faults_in_a_row, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_its_turn_and_blames_nobody() {
    for client in [Dialect::Chat, Dialect::Messages] {
        for stream in [true, false] {
            for at in ALL {
                let case = format!("{client:?} stream {stream} {at:?}");
                let world = world();
                *world.upstream.0.lock() = at;
                // The account has one slot: four turns in a row are only served if it comes back each time.
                for turn in 1..=4u64 {
                    let told = world.turn(client, stream).await;
                    let begun = at == Where::AfterContent && stream;
                    assert_eq!(told.status, if begun { 200 } else { 500 }, "{case}: {}", told.body);
                    assert!(
                        told.body.contains("gateway_bug") || told.body.contains("made a mistake"),
                        "{case}: {}",
                        told.body
                    );
                    assert_eq!(told.body.contains("one"), begun, "{case}: {}", told.body);
                    for success in ["[DONE]", "message_stop", "\"finish_reason\":\"stop\"", "end_turn"] {
                        assert!(!told.body.contains(success), "{case}: {}", told.body);
                    }
                    assert_eq!(world.engine.tally.faults(FaultKind::GatewayBug), turn, "{case}");
                    world.assert_unblamed();
                }
                let closed = world.written.closed.lock().clone();
                let opened: Vec<_> = world.written.opened.lock().iter().map(|entry| entry.attempt).collect();
                assert_eq!(closed.iter().map(|entry| entry.attempt).collect::<Vec<_>>(), opened, "{case}: each once");
                let bug = AttemptOutcome::Failed(FaultKind::GatewayBug);
                assert!(closed.iter().all(|entry| entry.outcome == bug), "{case}: {closed:?}");
                assert!(world.written.faults.lock().iter().all(|record| record.fault == "gateway_bug"), "{case}");
                assert_eq!(world.engine.tally.delivered.get(), 0, "{case}");
                // The mistake is mended: the account serves at once.
                *world.upstream.0.lock() = Where::Nowhere;
                let told = world.turn(client, stream).await;
                assert!(told.status == 200 && told.body.contains("one"), "{case}: {}", told.body);
                world.assert_unblamed();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_one_turn_leaves_another_that_waits_for_its_slot_alone() {
    let world = world();
    *world.upstream.0.lock() = Where::BeforeContent;
    let turns = (0..8).map(|_| world.turn(Dialect::Chat, true));
    let told = futures_util::future::join_all(turns).await;
    assert!(told.iter().all(|told| told.status == 500), "each gets the slot in its turn");
    assert_eq!(world.engine.tally.faults(FaultKind::GatewayBug), 8);
    assert_eq!(world.written.closed.lock().len(), 8);
    world.assert_unblamed();
}

//! The one drive loop: performs the machine's effects and feeds it what happens, streamed or plain. It waits for one
//! thing at a time besides the client and the timers, and every order of importance is the machine's.

use crate::admission::{SlotLease, Wanted};
mod conversation;
mod delivery;
mod end;
mod look_up;
mod write;

use crate::answer::{Answering, Chunk, Read};
use crate::call::{self, Sending, Written};
use crate::closing::OpenAttempt;
use crate::engine::{Engine, TurnInput};
use crate::incident::tape::Tape;
use crate::kept::Leading;
use crate::machine::corroborate::Likeness;
use crate::machine::{Downstream, Effect, Event, Machine, TurnEnd, TurnFacts};
use crate::pipe::{Pace, ReplyWriter};
use crate::ports::{Answer, Ask, AttemptOpened, Call, KeepAnswer, NativeAnswer, Reservation, SendFault, Spent};
use crate::recorder::Recorder;
use crate::route::{OnClientGone, Tier};
use crate::upstream_error::{ErrorHead, UpstreamError, error_read, scrub};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use turnkeep_base::limit::LEDGER_WAIT;
use turnkeep_base::{AccountId, AttemptId, ClientError, Evidence, Fault, FaultKind, Fingerprint, Phase, seeded};
use turnkeep_dialect::recorded::Recorded;
use turnkeep_dialect::reply;
use turnkeep_dialect::tool_names::ToolNames;
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{AccountKey, ChargeRef, Unavailable};
use turnkeep_policy::settle::{self, BYTES_PER_TOKEN};

use conversation::Held;
use delivery::Answerer;
use look_up::{KeptReply, Known, keeps};

/// Bytes that a client takes at least between two looks at its pace, while bytes wait for it: 1 KiB a second.
const LEAST_TAKEN: u64 = 60 << 10;

/// How long the end of an answer waits until the answer is stored.
const STORE_WAIT: Duration = Duration::from_secs(1);

/// What is being waited for.
enum Waiting {
    Nothing,
    /// For the closing of the deliveries that this turn proves.
    Echo(BoxFuture<'static, ()>),
    /// For the end of the turn that is joined.
    Lead(BoxFuture<'static, Option<Arc<Recorded>>>),
    Slot(BoxFuture<'static, Result<SlotLease, Unavailable>>),
    Entry(BoxFuture<'static, bool>),
    Head(BoxFuture<'static, Result<Begun, SendFault>>),
    Body,
    Room,
}

/// What an upstream is asked of a chain of answers.
#[derive(Debug, PartialEq, Eq)]
enum Chained {
    /// Nothing: each turn is its own.
    No,
    /// To keep its answer.
    Kept,
    /// To go on from this one of its answers, too.
    GoesOn(Arc<str>),
}

/// An upstream has begun to answer.
enum Begun {
    /// With the head of a reply.
    Http(Answer),
    /// In a protocol of its own.
    Native(Box<dyn NativeAnswer>),
}

/// A charge that this turn has made on an account, and the answer it was made for.
struct Charged {
    said: Likeness,
    account: AccountKey,
    id: AccountId,
    charge: ChargeRef,
}

/// One turn being driven.
pub(crate) struct Drive {
    engine: Arc<Engine>,
    input: Arc<TurnInput>,
    writer: ReplyWriter,
    stop: watch::Receiver<bool>,
    machine: Machine,
    tape: Arc<Tape>,
    waiting: Waiting,
    lease: Option<SlotLease>,
    written: Option<Written>,
    attempt: Option<OpenAttempt>,
    answering: Option<Answering>,
    upstream_error: Option<UpstreamError>,
    /// The faults that attempts' closings have counted.
    counted: Vec<FaultKind>,
    /// Charges of this turn that a second account's same answer would take back.
    charges: Vec<Charged>,
    /// What the upstream had answered when the client left.
    declared_late: Option<Fault>,
    /// The head of an error reply that is being read.
    error_head: ErrorHead,
    uncarriable: Option<ClientError>,
    dropped: Vec<String>,
    /// How the client knows the tools of the request as it was last written.
    tool_names: Arc<ToolNames>,
    answered_by: Option<String>,
    upstream: Arc<str>,
    head_out: bool,
    dispatched_at: Option<Instant>,
    upstream_time: Duration,
    first_content: Option<Duration>,
    end: Option<TurnEnd>,
    events: Vec<Event>,
    /// The caller's scope as it is written.
    scope: Arc<str>,
    known: Known,
    /// The turn's places among those that may be joined.
    leading: Vec<Leading>,
    reservation: Option<Box<dyn Reservation>>,
    keep: Option<Box<dyn KeepAnswer>>,
    /// The storing of the answer, under way.
    storing: Option<tokio::task::JoinHandle<()>>,
    spent: Spent,
    recorder: Recorder,
    /// What the client of a complete answer is sent.
    recorded: Option<Arc<Recorded>>,
    /// The end of a complete answer, to be written when the turn is closed.
    last: Vec<Bytes>,
    /// The history with our answer.
    answered: Option<Fingerprint>,
    answerer: Option<Answerer>,
    /// The conversation that goes on, and how far.
    conversation: Held,
    /// What the attempt's upstream is asked of a chain of answers.
    chained: Chained,
    kept_reply: Option<KeptReply>,
    /// The turn has waited for another one and got nothing.
    waited_for_another: bool,
    cache_word: &'static str,
    pace: Pace,
    delivery_closed: bool,
}

impl Drive {
    pub(crate) fn new(
        engine: Arc<Engine>,
        mut input: TurnInput,
        writer: ReplyWriter,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let total = input.routes.first().map_or(Duration::from_secs(600), |route| route.upstream.clocks.total);
        let facts = TurnFacts {
            streamed: input.request.stream,
            total: input.timeout.map_or(total, |timeout| timeout.min(total)),
            total_set_by_caller: input.timeout.is_some_and(|timeout| timeout < total),
            routes: input.routes.iter().filter(|route| route.tier != Tier::Larger).count(),
            first_fallback: input.routes.iter().position(|route| route.tier == Tier::Fallback),
            larger: input.routes.iter().any(|route| route.tier == Tier::Larger),
            rules: engine.rules(),
        };
        let jitter = engine.random.bits() as u64;
        let reservation = input.terms.reservation.take();
        let keep = input.terms.keep.take();
        let scope = input.caller.owner();
        let tape = engine.tape(&input, facts, jitter);
        let recorder = Recorder::new(&engine.recording, keeps(&input));
        Drive {
            engine,
            input: Arc::new(input),
            writer,
            stop,
            machine: Machine::new(facts, jitter),
            conversation: Held::new(tape.clone()),
            tape,
            waiting: Waiting::Nothing,
            lease: None,
            written: None,
            attempt: None,
            answering: None,
            upstream_error: None,
            counted: Vec::new(),
            charges: Vec::new(),
            declared_late: None,
            error_head: ErrorHead::default(),
            uncarriable: None,
            dropped: Vec::new(),
            tool_names: Arc::default(),
            answered_by: None,
            upstream: "".into(),
            head_out: false,
            dispatched_at: None,
            upstream_time: Duration::ZERO,
            first_content: None,
            end: None,
            events: Vec::new(),
            scope,
            known: Known::default(),
            leading: Vec::new(),
            reservation,
            keep,
            storing: None,
            spent: Spent::default(),
            recorder,
            recorded: None,
            last: Vec::new(),
            answered: None,
            answerer: None,
            chained: Chained::No,
            kept_reply: None,
            waited_for_another: false,
            cache_word: "off",
            pace: Pace::default(),
            delivery_closed: false,
        }
    }

    fn now(&self) -> Moment {
        self.engine.admission.moment(Instant::now())
    }

    pub(crate) async fn run(&mut self) {
        let mut effects = Vec::new();
        self.feed(Event::Begin, &mut effects);
        let sleep = tokio::time::sleep(Duration::from_secs(3600));
        tokio::pin!(sleep);
        let mut armed: Option<Moment> = None;
        let mut stop = self.stop.clone();
        let stopped = stop.wait_for(|stopped| *stopped);
        tokio::pin!(stopped);
        loop {
            self.perform(&mut effects).await;
            if self.machine.ended() {
                return;
            }
            let now = self.now();
            let timer = self.machine.next_timer();
            if let Some((at, timer)) = timer {
                // A timer that is due comes before an upstream that never pauses.
                if at <= now {
                    self.feed(Event::Timer(timer), &mut effects);
                    continue;
                }
                if armed.is_none_or(|armed| at < armed) {
                    sleep.as_mut().reset(Instant::now() + now.until(at));
                    armed = Some(at);
                }
            }
            let event = tokio::select! {
                biased;
                event = self.next() => event,
                _ = stopped.as_mut() => Event::Shutdown,
                () = sleep.as_mut(), if timer.is_some() => {
                    // Which timer it was is asked again above: it may have been moved since.
                    armed = None;
                    continue;
                }
            };
            self.feed(event, &mut effects);
        }
    }

    /// Gives the machine an event, and has the turn's tape take down both sides.
    fn feed(&mut self, event: Event, effects: &mut Vec<Effect>) {
        self.tape.feed(&mut self.machine, event, effects);
    }

    /// Performs effects and whatever they lead to at once.
    async fn perform(&mut self, effects: &mut Vec<Effect>) {
        loop {
            for effect in std::mem::take(effects) {
                self.effect(effect).await;
            }
            if self.events.is_empty() {
                return;
            }
            for event in std::mem::take(&mut self.events) {
                self.feed(event, effects);
            }
        }
    }

    /// The next thing that happens.
    async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.happened().await {
                return event;
            }
        }
    }

    /// Waits for what is waited for, the client's leaving before anything else. `None`: there is something else to wait
    /// for now.
    async fn happened(&mut self) -> Option<Event> {
        let writer = &mut self.writer;
        let waiting = &mut self.waiting;
        let answering = &mut self.answering;
        let alone = self.machine.is_alone();
        enum Happened {
            Gone,
            Proved,
            Lead(Option<Arc<Recorded>>),
            Slot(Result<SlotLease, Unavailable>),
            Entry(bool),
            Head(Result<Begun, SendFault>),
            Chunk(Option<Result<Chunk, Fault>>),
            Room,
        }
        let happened = poll_fn(|cx| {
            if !alone && writer.poll_gone(cx).is_ready() {
                return Poll::Ready(Happened::Gone);
            }
            match waiting {
                Waiting::Nothing => Poll::Pending,
                Waiting::Echo(echo) => echo.as_mut().poll(cx).map(|()| Happened::Proved),
                Waiting::Lead(lead) => lead.as_mut().poll(cx).map(Happened::Lead),
                Waiting::Slot(slot) => slot.as_mut().poll(cx).map(Happened::Slot),
                Waiting::Entry(entry) => entry.as_mut().poll(cx).map(Happened::Entry),
                Waiting::Head(head) => head.as_mut().poll(cx).map(Happened::Head),
                Waiting::Room => writer.poll_room(cx).map(|room| room.map_or(Happened::Gone, |()| Happened::Room)),
                Waiting::Body => match answering {
                    Some(answering) => answering.poll_chunk(cx).map(Happened::Chunk),
                    None => Poll::Pending,
                },
            }
        })
        .await;
        // A future that has ended must not be asked again, whatever the machine does next.
        match happened {
            Happened::Proved | Happened::Lead(_) | Happened::Slot(_) | Happened::Entry(_) | Happened::Head(_) => {
                self.waiting = Waiting::Nothing;
            }
            Happened::Gone | Happened::Chunk(_) | Happened::Room => {}
        }
        Some(match happened {
            Happened::Gone => {
                let finish = self.may_finish();
                if finish.is_none() {
                    self.hear_out();
                }
                Event::ClientGone { finish }
            }
            Happened::Proved => return self.look_among_kept(),
            Happened::Lead(recorded) => return self.lead_ended(recorded),
            // The key may have been taken away while the turn waited; the slot goes back.
            Happened::Slot(Ok(lease)) => self.key_gone().unwrap_or_else(|| self.slot(lease)),
            Happened::Slot(Err(unavailable)) => Event::NoSlot(unavailable),
            Happened::Entry(true) => Event::Recorded,
            Happened::Entry(false) => {
                if self.machine.serves_unrecorded() {
                    self.engine.tally.unrecorded.add();
                    if let Some(uncarriable) = self.begin_anew() {
                        return Some(uncarriable);
                    }
                }
                Event::NotRecorded
            }
            Happened::Head(Ok(begun)) => self.begun(begun),
            Happened::Head(Err(failed)) => self.not_begun(failed),
            Happened::Chunk(chunk) => self.chunk(chunk),
            Happened::Room => {
                self.waiting = Waiting::Body;
                Event::Unblocked
            }
        })
    }

    /// How long the attempt under way may go on without its client, if its upstream's policy lets it.
    fn may_finish(&self) -> Option<Duration> {
        match self.lease.as_ref()?.route().upstream.on_client_gone {
            OnClientGone::Finish { max_time, .. } if self.keeps() && !self.input.terms.background => Some(max_time),
            OnClientGone::Finish { .. } | OnClientGone::Cancel => None,
        }
    }

    /// An attempt that goes on without a reader has made as many tokens as it may.
    fn has_made_enough(&self) -> bool {
        if !self.machine.is_alone() {
            return false;
        }
        let policy = self.lease.as_ref().map(|lease| lease.route().upstream.on_client_gone);
        let (Some(OnClientGone::Finish { max_tokens, .. }), Some(answering)) = (policy, &self.answering) else {
            return false;
        };
        answering.facts().content_bytes / BYTES_PER_TOKEN > max_tokens
    }

    /// The client has left and the attempt goes on: the same request may join it.
    fn go_on_alone(&mut self) {
        let request = self.request_print();
        self.leading.extend(self.engine.kept.lead_on(&self.scope, request));
    }

    /// Sees whether the client takes what waits for it.
    fn measure_pace(&mut self) {
        let pace = self.writer.pace();
        if pace.is_under(std::mem::replace(&mut self.pace, pace), LEAST_TAKEN) {
            self.events.push(Event::TooSlow);
        }
    }

    fn slot(&mut self, lease: SlotLease) -> Event {
        let upstream = &lease.route().upstream;
        let event = Event::Slot {
            account: lease.account(),
            route: lease.route_index(),
            clocks: upstream.clocks,
            replay_safe: upstream.is_replay_safe(),
        };
        self.tape.name(lease.account(), lease.id());
        self.engine.tally.queue.observe(self.input.received.elapsed());
        self.upstream = lease.route().upstream.name.clone();
        if lease.is_preferred() {
            self.engine.bonds.hits.add();
        }
        self.lease = Some(lease);
        self.waiting = Waiting::Nothing;
        event
    }

    fn begun(&mut self, begun: Begun) -> Event {
        let options = self.reply_options();
        let request = &self.input.request;
        self.answering = Some(match begun {
            Begun::Http(answer) => {
                let goes_on_from = match &self.chained {
                    Chained::No | Chained::Kept => None,
                    Chained::GoesOn(previous) => Some(previous.clone()),
                };
                Answering::new(answer, request, options, goes_on_from, self.engine.clock.unix_ms())
            }
            Begun::Native(answer) => Answering::of_events(answer, request, options),
        });
        self.waiting = Waiting::Body;
        Event::Answering
    }

    /// The send came to nothing, or may have come to something.
    fn not_begun(&mut self, failed: SendFault) -> Event {
        let SendFault { mut fault, refused } = failed;
        self.scrub(&mut fault, None);
        match refused {
            Some(proof) => {
                let certain = !proof.may_have_begun();
                self.conversation.refused(proof, &fault);
                if certain { Event::Refused(fault) } else { Event::Fault(fault) }
            }
            None => Event::Fault(fault),
        }
    }

    fn chunk(&mut self, chunk: Option<Result<Chunk, Fault>>) -> Event {
        let Some(answering) = &mut self.answering else { return Event::ClientGone { finish: None } };
        let ended = chunk.is_none();
        let outcome = match chunk {
            Some(Ok(chunk)) => answering.take_in(chunk),
            None => answering.finish(),
            Some(Err(fault)) => Err(fault),
        };
        match outcome {
            Ok(Read { content, progress, alive }) => {
                if content && self.first_content.is_none() {
                    let since = self.input.received.elapsed();
                    self.first_content = Some(since);
                    self.engine.tally.first_content.observe(since);
                }
                if ended && progress != reply::Progress::Done && seeded::is("an-eof-is-an-end") {
                    return Event::Read { content, progress: reply::Progress::Done, alive };
                }
                if ended && progress != reply::Progress::Done {
                    return Event::Fault(Fault::new(
                        FaultKind::StreamTruncated,
                        Phase::Answered,
                        Evidence::text("the answer ended without its terminal event"),
                    ));
                }
                if progress != reply::Progress::Done && self.has_made_enough() {
                    return Event::Enough;
                }
                Event::Read { content, progress, alive }
            }
            Err(fault) if fault.kind == FaultKind::StreamTruncated && seeded::is("an-eof-is-an-end") => {
                Event::Read { content: false, progress: reply::Progress::Done, alive: false }
            }
            Err(mut fault) => {
                let mut error = answering.take_error();
                self.scrub(&mut fault, error.as_mut());
                self.upstream_error = error;
                Event::Fault(fault)
            }
        }
    }

    /// A provider may quote the credential it was sent; it goes no further than here.
    fn scrub(&self, fault: &mut Fault, error: Option<&mut UpstreamError>) {
        if let Some(secret) = self.lease.as_ref().and_then(SlotLease::secret) {
            scrub(fault, error, secret.expose());
        }
    }

    fn reply_options(&self) -> reply::ReplyOptions {
        let request = &self.input.request;
        let upstream = self.lease.as_ref().and_then(|lease| lease.route().upstream.dialect());
        let upstream = upstream.unwrap_or(request.dialect);
        reply::ReplyOptions {
            client: request.dialect,
            upstream,
            model: request.model.clone(),
            usage_wanted: request.usage_wanted,
            choices: request.choices,
            id: self.input.id.to_string().trim_start_matches("turn_").to_owned(),
            created: self.engine.clock.unix_ms() / 1000,
            max_event: turnkeep_base::limit::MAX_EVENT,
            asked: reply::Asked {
                operation: request.operation,
                form: request.form,
                names: self.tool_names.clone(),
                body: self.input.terms.shown.clone().unwrap_or_else(|| request.body.clone()),
                restated: self.input.terms.shown.is_some() || matches!(self.chained, Chained::GoesOn(_)),
                own_id: self.input.terms.background,
                chained: self.chained != Chained::No,
            },
        }
    }

    async fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::LookUp => {
                let found = self.look_up();
                self.events.extend(found);
            }
            Effect::GoOnAlone => self.go_on_alone(),
            Effect::MeasurePace => self.measure_pace(),
            Effect::Acquire => self.acquire(),
            Effect::Record => self.record(),
            Effect::Dispatch => self.dispatch(),
            Effect::ReadOn => self.read_on(),
            Effect::OpenHeaders => self.open_head(None),
            Effect::Heartbeat => {
                if self.head_out {
                    let request = &self.input.request;
                    let begun = self.machine.downstream() == Downstream::Touched;
                    self.writer.push(reply::heartbeat(request.dialect, request.form, begun));
                }
            }
            Effect::Commit => self.commit(),
            Effect::Settle => {
                if let Some(answering) = &mut self.answering {
                    self.events.push(match answering.settle() {
                        Ok(Read { content, progress, alive }) => Event::Read { content, progress, alive },
                        Err(fault) => Event::Fault(fault),
                    });
                }
            }
            Effect::Cancel => {
                self.waiting = Waiting::Nothing;
                if let Some(answering) = &mut self.answering {
                    answering.cancel();
                }
            }
            Effect::CloseAttempt(end) => self.close_attempt(end).await,
            Effect::TakeBack(said) => self.take_back(&said),
            Effect::CloseTurn(end) => {
                self.close_turn(end);
                // Who has the end of the answer may at once go on from it.
                if let Some(storing) = self.storing.take() {
                    let _late = tokio::time::timeout(STORE_WAIT, storing).await;
                }
            }
            Effect::WriteTerminal => self.write_terminal(),
            Effect::WriteKept => self.write_kept(),
            Effect::WriteError(ending) => self.write_error(&ending),
            Effect::End => {
                self.waiting = Waiting::Nothing;
                self.writer.end();
            }
            Effect::Abort => {
                self.waiting = Waiting::Nothing;
                self.writer.abort();
            }
        }
    }

    fn acquire(&mut self) {
        if let Some(gone) = self.key_gone() {
            self.events.push(gone);
            return;
        }
        self.take_conversation();
        let wanted = self.machine.wanted();
        let wanted = Wanted {
            routes: self.input.routes.clone(),
            from_route: wanted.from_route,
            tried: wanted.tried,
            only: wanted.only,
            larger: wanted.larger,
            retry: wanted.retry,
            tie: self.input.id.bits() as u64,
            tokens: self.input.request.body.len() as u64 / BYTES_PER_TOKEN,
            preferred: self.preferred(),
            owner: self.conversation_owner(),
        };
        let admission = self.engine.admission.clone();
        let caller = self.input.caller.key().clone();
        // The machine's own clock ends a turn that waits; admission's deadline only bounds the queue.
        let deadline = Instant::now() + Duration::from_secs(24 * 3600);
        self.answering = None;
        self.waiting = Waiting::Slot(Box::pin(async move { admission.acquire(wanted, &caller, deadline).await }));
    }

    /// A caller whose key is no longer there gets no new attempt.
    fn key_gone(&self) -> Option<Event> {
        if self.input.permit.holds() {
            return None;
        }
        let evidence = Evidence::text("the caller's key was revoked or removed while its turn waited");
        Some(Event::Fault(Fault::new(FaultKind::Unauthenticated, Phase::Unsent, evidence)))
    }

    fn record(&mut self) {
        let Some(lease) = &self.lease else { return };
        let here = &lease.route().upstream.name;
        let elsewhere = self.known.owners.iter().any(|owner| owner.upstream != *here);
        let resume = self.conversation.on(lease);
        let conversation = resume.and_then(|_| self.conversation.taken_from());
        let written = match call::write(&self.input, lease.route(), elsewhere, resume) {
            Ok(written) => written,
            Err(invalid) => {
                self.uncarriable = Some(invalid.into());
                self.events.push(Event::Uncarriable);
                return;
            }
        };
        self.dropped.clone_from(&written.dropped);
        self.tool_names = written.names.clone();
        let price = lease.route().price;
        let request = &self.input.request;
        let presumed = settle::presumed(request.body.len() as u64, request.max_output, request.choices);
        let attempt = AttemptId { turn: self.input.id, number: self.machine.dispatches() + 1 };
        let entry = AttemptOpened {
            attempt,
            caller: self.input.caller.key().clone(),
            labels: self.input.terms.labels.clone(),
            account: lease.id().clone(),
            model: self.input.request.model.as_str().into(),
            upstream_model: lease.route().model.clone(),
            dialect: self.input.request.dialect,
            opened_ms: self.engine.clock.unix_ms(),
            estimated_input: presumed.input,
            estimated_output: presumed.output,
            estimated_cost: price.map(|price| price.cost(&presumed)),
            conversation: conversation.filter(|_| !seeded::is("taken-survives-a-crash")),
        };
        self.attempt = Some(OpenAttempt::new(&self.engine, &entry, price, self.tape.clone()));
        self.written = Some(written);
        let ledger = self.engine.ledger.clone();
        self.waiting = Waiting::Entry(Box::pin(async move {
            match tokio::time::timeout(LEDGER_WAIT, ledger.open(entry)).await {
                Ok(Ok(())) => true,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a ledger entry could not be written");
                    false
                }
                Err(_) => {
                    tracing::debug!("a ledger entry took longer than 1 s");
                    false
                }
            }
        }));
    }

    fn dispatch(&mut self) {
        if let Some(attempt) = &mut self.attempt {
            attempt.written();
        }
        let (Some(lease), Some(written)) = (&mut self.lease, self.written.take()) else { return };
        let Some(secret) = lease.secret() else {
            let evidence = Evidence::text("the account has no secret");
            self.events.push(Event::Fault(Fault::new(FaultKind::NoCredential, Phase::Unsent, evidence)));
            return;
        };
        let (resume, reread) = if written.goes_on { self.conversation.sent(lease) } else { (None, false) };
        let account = lease.id().clone();
        let model = lease.route().model.clone();
        lease.sent();
        self.dispatched_at = Some(Instant::now());
        self.upstream_error = None;
        let head = ErrorHead::default();
        self.error_head = head.clone();
        self.waiting = Waiting::Head(match written.what {
            Sending::Http { port, chained, path, headers, body } => {
                self.chained = match (chained, resume) {
                    (false, _) => Chained::No,
                    (true, None) => Chained::Kept,
                    (true, Some(conversation)) => Chained::GoesOn(conversation.handle),
                };
                let call = Call { method: http::Method::POST, path, headers, body, account, secret };
                Box::pin(async move {
                    let answer = port.send(call).await.map_err(SendFault::unsure)?;
                    let answer = if answer.status.is_success() { answer } else { error_read(answer, &head).await };
                    Ok(Begun::Http(answer))
                })
            }
            Sending::Native { port, body, trace } => {
                self.chained = Chained::No;
                let (caller, time_left) = (self.scope.clone(), self.machine.time_left(self.now()));
                let ask = Ask { body, model, account, secret, caller, resume, reread, time_left, trace };
                Box::pin(async move { port.send(ask).await.map(Begun::Native) })
            }
        });
    }

    fn read_on(&mut self) {
        if self.machine.downstream() == Downstream::Touched {
            self.flush();
        }
        let full = {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            self.writer.poll_room(&mut cx).is_pending()
        };
        if full {
            // Who waits for this answer does not wait for this client.
            self.leading.retain(Leading::is_of_key);
            self.waiting = Waiting::Room;
            self.engine.tally.paused_for_client.add();
            self.events.push(Event::Blocked);
        } else {
            self.waiting = Waiting::Body;
        }
    }
}

impl Drop for Drive {
    /// The task was dropped in the middle: what is open closes here. The attempt's own guard closes the ledger entry.
    fn drop(&mut self) {
        if self.end.is_none() {
            // The upstream's turn is cancelled before anybody is told that its conversation is of no use any more.
            self.waiting = Waiting::Nothing;
            if let Some(answering) = &mut self.answering {
                answering.cancel();
            }
            self.close_turn(TurnEnd::Interrupted);
        }
        self.close_delivery(None);
        self.engine.incidents.end(&self.tape);
    }
}

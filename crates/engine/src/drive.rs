//! The one drive loop: performs the machine's effects and feeds it what happens, streamed or plain. It waits for one
//! thing at a time besides the client and the timers, and every order of importance is the machine's.

use crate::admission::{SlotLease, Wanted};
use crate::answer::{Answering, Read};
use crate::call::{self, Written};
use crate::closing::OpenAttempt;
use crate::ending::client_error;
use crate::engine::{Engine, TurnInput};
use crate::machine::{AttemptEnd, Downstream, Effect, Ending, Event, Machine, TurnEnd, TurnFacts};
use crate::pipe::{ReplyHead, ReplyWriter};
use crate::ports::{Answer, AnswerBody, AttemptOpened, Call};
use crate::tally::TurnLabels;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use turnkeep_base::limit::{LEDGER_WAIT, MAX_ERROR_BODY};
use turnkeep_base::{AttemptId, ClientError, Dialect, Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::classify::Classified;
use turnkeep_dialect::reply;
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::Unavailable;

/// How long the connection may take to take a whole reply, after which it counts as undelivered.
const DELIVERY_WAIT: Duration = Duration::from_secs(60);

/// How long the body of an error reply may take.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);

/// What is being waited for.
enum Waiting {
    Nothing,
    Slot(BoxFuture<'static, Result<SlotLease, Unavailable>>),
    Entry(BoxFuture<'static, bool>),
    Head(BoxFuture<'static, Result<Answer, Fault>>),
    Body,
    Room,
}

/// An upstream's own error, kept for a client of the same dialect.
#[derive(Debug)]
pub(crate) struct UpstreamError {
    pub status: StatusCode,
    pub body: Bytes,
    pub dialect: Dialect,
    pub classified: Classified,
}

/// One turn being driven.
pub(crate) struct Drive {
    engine: Arc<Engine>,
    input: Arc<TurnInput>,
    writer: ReplyWriter,
    stop: watch::Receiver<bool>,
    machine: Machine,
    waiting: Waiting,
    lease: Option<SlotLease>,
    written: Option<Written>,
    attempt: Option<OpenAttempt>,
    answering: Option<Answering>,
    upstream_error: Option<UpstreamError>,
    /// The fault that the latest attempt's closing has counted.
    counted: Option<FaultKind>,
    uncarriable: Option<ClientError>,
    dropped: Vec<String>,
    answered_by: Option<String>,
    upstream: Arc<str>,
    head_out: bool,
    dispatched_at: Option<Instant>,
    upstream_time: Duration,
    first_content: Option<Duration>,
    end: Option<TurnEnd>,
    events: Vec<Event>,
}

impl Drive {
    pub(crate) fn new(engine: Arc<Engine>, input: TurnInput, writer: ReplyWriter, stop: watch::Receiver<bool>) -> Self {
        let total = input.routes.first().map_or(Duration::from_secs(600), |route| route.upstream.clocks.total);
        let facts = TurnFacts {
            streamed: input.request.stream,
            total: input.timeout.map_or(total, |timeout| timeout.min(total)),
            total_set_by_caller: input.timeout.is_some_and(|timeout| timeout < total),
            routes: input.routes.len(),
        };
        let jitter = engine.random.bits() as u64;
        Drive {
            engine,
            input: Arc::new(input),
            writer,
            stop,
            machine: Machine::new(facts, jitter),
            waiting: Waiting::Nothing,
            lease: None,
            written: None,
            attempt: None,
            answering: None,
            upstream_error: None,
            counted: None,
            uncarriable: None,
            dropped: Vec::new(),
            answered_by: None,
            upstream: "".into(),
            head_out: false,
            dispatched_at: None,
            upstream_time: Duration::ZERO,
            first_content: None,
            end: None,
            events: Vec::new(),
        }
    }

    fn now(&self) -> Moment {
        self.engine.admission.moment(Instant::now())
    }

    pub(crate) async fn run(&mut self) {
        let mut effects = Vec::new();
        self.machine.on(Event::Begin, self.now(), &mut effects);
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
                    self.machine.on(Event::Timer(timer), now, &mut effects);
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
            let now = self.now();
            self.machine.on(event, now, &mut effects);
        }
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
            let now = self.now();
            for event in std::mem::take(&mut self.events) {
                self.machine.on(event, now, effects);
            }
        }
    }

    /// The next thing that happens: the client's leaving before anything else.
    async fn next(&mut self) -> Event {
        let writer = &mut self.writer;
        let waiting = &mut self.waiting;
        let answering = &mut self.answering;
        enum Happened {
            Gone,
            Slot(Result<SlotLease, Unavailable>),
            Entry(bool),
            Head(Result<Answer, Fault>),
            Chunk(Option<Result<Bytes, Fault>>),
            Room,
        }
        let happened = poll_fn(|cx| {
            if writer.poll_gone(cx).is_ready() {
                return Poll::Ready(Happened::Gone);
            }
            match waiting {
                Waiting::Nothing => Poll::Pending,
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
            Happened::Slot(_) | Happened::Entry(_) | Happened::Head(_) => self.waiting = Waiting::Nothing,
            Happened::Gone | Happened::Chunk(_) | Happened::Room => {}
        }
        match happened {
            Happened::Gone => Event::ClientGone,
            Happened::Slot(Ok(lease)) => self.slot(lease),
            Happened::Slot(Err(unavailable)) => Event::NoSlot(unavailable),
            Happened::Entry(true) => Event::Recorded,
            Happened::Entry(false) => Event::NotRecorded,
            Happened::Head(Ok(answer)) => self.head(answer),
            Happened::Head(Err(fault)) => Event::Fault(fault),
            Happened::Chunk(chunk) => self.chunk(chunk),
            Happened::Room => {
                self.waiting = Waiting::Body;
                Event::Unblocked
            }
        }
    }

    fn slot(&mut self, lease: SlotLease) -> Event {
        let event =
            Event::Slot { account: lease.account(), route: lease.route_index(), clocks: lease.route().upstream.clocks };
        self.engine.tally.queue.observe(self.input.received.elapsed());
        self.upstream = lease.route().upstream.name.clone();
        self.lease = Some(lease);
        self.waiting = Waiting::Nothing;
        event
    }

    fn head(&mut self, answer: Answer) -> Event {
        let options = self.reply_options();
        self.answering = Some(Answering::new(answer, &self.input.request, options));
        self.waiting = Waiting::Body;
        Event::Answering
    }

    fn chunk(&mut self, chunk: Option<Result<Bytes, Fault>>) -> Event {
        let Some(answering) = &mut self.answering else { return Event::ClientGone };
        let ended = chunk.is_none();
        let outcome = match chunk {
            Some(Ok(bytes)) => answering.feed(bytes),
            None => answering.finish(),
            Some(Err(fault)) => Err(fault),
        };
        match outcome {
            Ok(Read { content, progress }) => {
                if content && self.first_content.is_none() {
                    let since = self.input.received.elapsed();
                    self.first_content = Some(since);
                    self.engine.tally.first_content.observe(since);
                }
                if ended && progress != reply::Progress::Done {
                    return Event::Fault(Fault::new(
                        FaultKind::StreamTruncated,
                        Phase::Answered,
                        Evidence::text("the answer ended without its terminal event"),
                    ));
                }
                Event::Read { content, progress }
            }
            Err(mut fault) => {
                let mut error = answering.take_error();
                // A provider may quote the credential it was sent; it goes no further than here.
                if let Some(secret) = self.lease.as_ref().and_then(SlotLease::secret) {
                    scrub(&mut fault, error.as_mut(), secret.expose());
                }
                self.upstream_error = error;
                Event::Fault(fault)
            }
        }
    }

    fn reply_options(&self) -> reply::ReplyOptions {
        let request = &self.input.request;
        let upstream = self.lease.as_ref().map_or(request.dialect, |lease| lease.route().upstream.dialect);
        reply::ReplyOptions {
            client: request.dialect,
            upstream,
            model: request.model.clone(),
            usage_wanted: request.usage_wanted,
            choices: request.choices,
            id: self.input.id.to_string().trim_start_matches("turn_").to_owned(),
            created: self.engine.clock.unix_ms() / 1000,
            max_event: turnkeep_base::limit::MAX_EVENT,
        }
    }

    async fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Acquire => self.acquire(),
            Effect::Record => self.record(),
            Effect::Dispatch => self.dispatch(),
            Effect::ReadOn => self.read_on(),
            Effect::OpenHeaders => self.open_head(None),
            Effect::Heartbeat => {
                if self.head_out {
                    self.writer.push(reply::heartbeat(self.input.request.dialect));
                }
            }
            Effect::Commit => self.commit(),
            Effect::Settle => {
                if let Some(answering) = &mut self.answering {
                    self.events.push(match answering.settle() {
                        Ok(Read { content, progress }) => Event::Read { content, progress },
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
            Effect::CloseTurn(end) => self.close_turn(end),
            Effect::WriteTerminal => self.write_terminal(),
            Effect::WriteError(ending) => self.write_error(&ending),
            Effect::End => {
                self.waiting = Waiting::Nothing;
                self.writer.end();
            }
        }
    }

    fn acquire(&mut self) {
        let wanted = self.machine.wanted();
        let wanted = Wanted {
            routes: self.input.routes.clone(),
            from_route: wanted.from_route,
            tried: wanted.tried,
            only: wanted.only,
            tie: self.input.id.bits() as u64,
        };
        let admission = self.engine.admission.clone();
        let caller = self.input.caller.clone();
        // The machine's own clock ends a turn that waits; admission's deadline only bounds the queue.
        let deadline = Instant::now() + Duration::from_secs(24 * 3600);
        self.answering = None;
        self.waiting = Waiting::Slot(Box::pin(async move { admission.acquire(wanted, &caller, deadline).await }));
    }

    fn record(&mut self) {
        let Some(lease) = &self.lease else { return };
        let written = match call::write(&self.input, lease.route()) {
            Ok(written) => written,
            Err(invalid) => {
                self.uncarriable = Some(invalid.into());
                self.events.push(Event::Uncarriable);
                return;
            }
        };
        self.dropped.clone_from(&written.dropped);
        let attempt = AttemptId { turn: self.input.id, number: self.machine.dispatches() + 1 };
        let entry = AttemptOpened {
            attempt,
            caller: self.input.caller.clone(),
            account: lease.id().clone(),
            model: self.input.request.model.as_str().into(),
            upstream_model: lease.route().model.clone(),
            dialect: self.input.request.dialect,
            opened_ms: self.engine.clock.unix_ms(),
            estimated_input: self.input.request.body.len() as u64 / 4,
        };
        self.attempt = Some(OpenAttempt::new(&self.engine, &entry));
        self.written = Some(written);
        let ledger = self.engine.ledger.clone();
        self.waiting = Waiting::Entry(Box::pin(async move {
            match tokio::time::timeout(LEDGER_WAIT, ledger.open(entry)).await {
                Ok(Ok(())) => true,
                Ok(Err(error)) => {
                    tracing::error!(%error, "a ledger entry could not be written; the turn is refused");
                    false
                }
                Err(_) => {
                    tracing::error!("a ledger entry took longer than 1 s; the turn is refused");
                    false
                }
            }
        }));
    }

    fn dispatch(&mut self) {
        let (Some(lease), Some(written)) = (&self.lease, self.written.take()) else { return };
        let Some(secret) = lease.secret() else {
            let evidence = Evidence::text("the account has no secret");
            self.events.push(Event::Fault(Fault::new(FaultKind::NoCredential, Phase::Unsent, evidence)));
            return;
        };
        let call = Call {
            method: http::Method::POST,
            path: written.path,
            headers: written.headers,
            body: written.body,
            account: lease.id().clone(),
            secret,
        };
        let port = lease.route().upstream.port.clone();
        self.dispatched_at = Some(Instant::now());
        self.upstream_error = None;
        self.waiting = Waiting::Head(Box::pin(async move {
            let answer = port.send(call).await?;
            if answer.status.is_success() { Ok(answer) } else { Ok(error_read(answer).await) }
        }));
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
            self.waiting = Waiting::Room;
            self.events.push(Event::Blocked);
        } else {
            self.waiting = Waiting::Body;
        }
    }

    fn commit(&mut self) {
        let opened_early = self.head_out;
        self.open_head(None);
        if opened_early {
            let mut comment = Vec::new();
            let model = self.answering.as_ref().and_then(|answering| answering.facts().model.as_deref()).unwrap_or("");
            let text = format!("x-turnkeep-model={model} x-turnkeep-attempts={}", self.machine.dispatches());
            turnkeep_wire::sse::write_comment(&mut comment, &text);
            self.writer.push(comment.into());
        }
        self.flush();
    }

    fn flush(&mut self) {
        if let Some(answering) = &mut self.answering {
            for bytes in answering.take_held() {
                self.writer.push(bytes);
            }
        }
    }

    fn write_terminal(&mut self) {
        let Some(answering) = &mut self.answering else { return };
        let held = answering.take_held();
        let terminal = answering.take_terminal();
        let length = (!self.input.request.stream).then(|| held.iter().chain(&terminal).map(|b| b.len() as u64).sum());
        self.open_head(length);
        for bytes in held.into_iter().chain(terminal) {
            self.writer.push(bytes);
        }
    }

    /// Sends the head of a successful reply, once.
    fn open_head(&mut self, length: Option<u64>) {
        if self.head_out {
            return;
        }
        self.head_out = true;
        let mut headers = self.our_headers();
        let stream = self.input.request.stream;
        let content_type = if stream { "text/event-stream; charset=utf-8" } else { "application/json" };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        if stream {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        }
        if let Some(answering) = &self.answering {
            let route_model = self.lease.as_ref().map(|lease| lease.route().model.to_string());
            let model = answering.facts().model.clone().or(route_model).or(self.answered_by.clone());
            if let Some(value) = model.and_then(|model| HeaderValue::from_str(&model).ok()) {
                headers.insert("x-turnkeep-model", value);
            }
            headers.insert("x-turnkeep-attempts", HeaderValue::from(u64::from(self.machine.dispatches())));
        }
        if !self.dropped.is_empty()
            && let Ok(value) = HeaderValue::from_str(&self.dropped.join(","))
        {
            headers.insert("x-turnkeep-dropped", value);
        }
        let spent = self.upstream_time + self.dispatched_at.map_or(Duration::ZERO, |at| at.elapsed());
        self.engine.tally.overhead.observe(self.input.received.elapsed().saturating_sub(spent));
        self.writer.head(ReplyHead { status: StatusCode::OK, headers, length });
    }

    fn our_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(10);
        let id = self.input.id.to_string();
        if let Ok(value) = HeaderValue::from_str(&id) {
            headers.insert("x-turnkeep-turn", value.clone());
            match self.input.request.dialect {
                Dialect::Chat => headers.insert("x-request-id", value),
                Dialect::Messages => headers.insert("request-id", value),
            };
        }
        headers.insert("x-turnkeep-cache", HeaderValue::from_static("off"));
        headers
    }

    fn write_error(&mut self, ending: &Ending) {
        let dialect = self.input.request.dialect;
        let id = self.input.id.to_string();
        // The words of another fault than the one that is shown say nothing of it.
        let shown = if let Ending::Fault(fault) = ending { Some(fault.kind) } else { None };
        let theirs = self.upstream_error.as_ref().filter(|theirs| Some(theirs.classified.kind) == shown);
        let error = match (ending, self.uncarriable.take()) {
            (Ending::Uncarriable, Some(error)) => error,
            (other, _) => {
                let words =
                    theirs.map(|theirs| (theirs.classified.message.as_str(), theirs.classified.param.as_deref()));
                client_error(other, dialect, self.now(), words)
            }
        };
        if self.head_out {
            // A plain reply's head goes out with its whole body, so what is open here is a stream. What was read of it
            // before the fault, in the same bytes, comes first.
            if self.machine.downstream() == Downstream::Touched {
                self.flush();
            }
            self.writer.push(reply::error_event(dialect, &error, &id));
            return;
        }
        self.head_out = true;
        let own = theirs.filter(|theirs| {
            let invalid = matches!(ending, Ending::Fault(fault) if fault.kind == FaultKind::RequestInvalid);
            invalid
                && theirs.dialect == dialect
                && theirs.status.as_u16() == error.status
                && reply::is_error_body(dialect, &theirs.body)
        });
        let (status, body) = match own {
            Some(theirs) => (theirs.status.as_u16(), theirs.body.clone()),
            None => reply::error_body(dialect, &error, &id),
        };
        let mut headers = self.our_headers();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("x-turnkeep-attempts", HeaderValue::from(u64::from(self.machine.dispatches())));
        if let Some(seconds) = error.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if error.no_retry {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.writer.head(ReplyHead { status, headers, length: Some(body.len() as u64) });
        self.writer.push(body);
    }

    async fn close_attempt(&mut self, end: AttemptEnd) {
        if let AttemptEnd::Failed(fault) = &end {
            self.counted = Some(fault.kind);
        }
        if let Some(at) = self.dispatched_at.take() {
            self.upstream_time += at.elapsed();
        }
        let facts = self.answering.as_ref().map(|answering| answering.facts().clone()).unwrap_or_default();
        if let Some(lease) = &self.lease {
            self.answered_by = Some(lease.route().model.to_string());
        }
        if let Some(attempt) = self.attempt.take() {
            attempt.close(&self.engine, self.lease.take(), end, &facts).await;
        } else {
            self.lease = None;
        }
    }

    fn close_turn(&mut self, end: TurnEnd) {
        let tally = &self.engine.tally;
        if let TurnEnd::Failed(Ending::Fault(fault)) = &end
            && self.counted != Some(fault.kind)
        {
            tally.fault_kind(fault.kind);
        }
        let (replays, hops) = self.machine.replays_and_hops();
        tally.transient_replays.add_many(u64::from(replays));
        tally.failover_hops.add_many(u64::from(hops));
        tally.quota_failover_hops.add_many(u64::from(self.machine.quota_hops()));
        match &end {
            TurnEnd::Failed(Ending::Unavailable(_)) => tally.pool_exhausted.add(),
            TurnEnd::Failed(Ending::Fault(_)) if self.machine.dispatches() > 1 => tally.failover_exhausted.add(),
            TurnEnd::Failed(_) | TurnEnd::Completed => {}
            TurnEnd::Interrupted => {
                if self.writer.is_gone() {
                    tally.fault_kind(FaultKind::ClientGone);
                    match self.machine.downstream() {
                        Downstream::Touched => tally.client_gone_mid_answer.add(),
                        Downstream::Untouched | Downstream::Opened => tally.client_gone_before_answer.add(),
                    }
                }
            }
        }
        tally.turn.observe(self.input.received.elapsed());
        self.end = Some(end);
    }

    /// After a panic in the loop: the attempt and the turn are closed, and the client is told.
    pub(crate) async fn after_panic(&mut self) {
        self.waiting = Waiting::Nothing;
        if let Some(answering) = &mut self.answering {
            answering.cancel();
        }
        let fault = Fault::new(FaultKind::GatewayBug, Phase::MaybeSent, Evidence::text("a panic in the turn's loop"));
        tracing::error!(turn = %self.input.id, "a turn's loop panicked");
        self.close_attempt(AttemptEnd::Failed(fault.clone())).await;
        if self.end.is_none() {
            self.close_turn(TurnEnd::Failed(Ending::Fault(fault.clone())));
            self.write_error(&Ending::Fault(fault));
        }
        self.writer.end();
    }

    /// The delivery closing. First version: the connection layer's having taken every byte stands for the receipt.
    pub(crate) async fn deliver(&mut self) {
        let completed = matches!(self.end, Some(TurnEnd::Completed));
        let taken = {
            let writer = &mut self.writer;
            let taken = poll_fn(|cx| writer.poll_taken(cx));
            matches!(tokio::time::timeout(DELIVERY_WAIT, taken).await, Ok(Ok(())))
        };
        let delivery = match (completed, taken) {
            (true, true) => {
                self.engine.tally.delivered.add();
                "delivered"
            }
            (true, false) => {
                self.engine.tally.undelivered.add();
                "undelivered"
            }
            (false, _) => "none",
        };
        let (outcome, fault) = match &self.end {
            Some(TurnEnd::Completed) => ("completed", None),
            Some(TurnEnd::Interrupted) => ("interrupted", None),
            Some(TurnEnd::Failed(Ending::Fault(fault))) => ("failed", Some(fault.kind.name())),
            Some(TurnEnd::Failed(Ending::Unavailable(_))) => ("failed", Some("pool_exhausted")),
            Some(TurnEnd::Failed(Ending::Uncarriable)) => ("failed", Some("invalid_request")),
            Some(TurnEnd::Failed(Ending::Shutdown)) | None => ("failed", Some("shutting_down")),
        };
        self.engine.tally.turn_ended(TurnLabels {
            dialect: self.input.request.dialect,
            upstream: self.upstream.to_string(),
            model: self.input.model_label.to_string(),
            outcome,
            delivery,
        });
        tracing::info!(
            turn = %self.input.id,
            caller = %self.input.caller,
            dialect = self.input.request.dialect.name(),
            model = %self.input.request.model,
            upstream = %self.upstream,
            stream = self.input.request.stream,
            outcome,
            fault,
            delivery,
            attempts = self.machine.dispatches(),
            ms = self.input.received.elapsed().as_millis() as u64,
            "turn"
        );
    }
}

/// Reads the body of an error reply, to its bound and for a short time: what has come says what it means.
async fn error_read(mut answer: Answer) -> Answer {
    let mut whole = bytes::BytesMut::new();
    let reading = async {
        while let Some(Ok(chunk)) = poll_fn(|cx| answer.body.poll_chunk(cx)).await {
            let room = MAX_ERROR_BODY.saturating_sub(whole.len());
            whole.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if room <= chunk.len() {
                return;
            }
        }
    };
    // An error body that hangs is judged by what there is of it.
    let _ = tokio::time::timeout(ERROR_BODY_WAIT, reading).await;
    answer.body = Box::new(ReadAlready(Some(whole.freeze()).filter(|whole| !whole.is_empty())));
    answer
}

struct ReadAlready(Option<Bytes>);

impl AnswerBody for ReadAlready {
    fn poll_chunk(&mut self, _: &mut std::task::Context<'_>) -> Poll<Option<Result<Bytes, Fault>>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

/// Takes a secret out of everything that an upstream's error says.
fn scrub(fault: &mut Fault, error: Option<&mut UpstreamError>, secret: &str) {
    if secret.is_empty() {
        return;
    }
    let clean = |text: &mut String| {
        if text.contains(secret) {
            *text = text.replace(secret, "[secret]");
        }
    };
    clean(&mut fault.evidence.detail);
    fault.evidence.code.as_mut().map(clean);
    if let Some(error) = error {
        clean(&mut error.classified.message);
        clean(&mut error.classified.evidence.detail);
        error.classified.evidence.code.as_mut().map(clean);
        error.classified.param.as_mut().map(clean);
        if memchr::memmem::find(&error.body, secret.as_bytes()).is_some() {
            // Not the upstream's own bytes, then, but its words without the secret.
            error.body = Bytes::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_dialect::classify;

    #[test]
    fn a_credential_that_an_upstream_quotes_goes_no_further() {
        let body =
            br#"{"error":{"message":"no key sk-abc123 here","type":"invalid_request_error","code":"sk-abc123"}}"#;
        let classified = classify::reply(Dialect::Chat, 400, body);
        let mut fault = Fault::new(classified.kind, Phase::Answered, classified.evidence.clone());
        fault.evidence.detail.push_str(" sk-abc123");
        let status = StatusCode::BAD_REQUEST;
        let mut error = UpstreamError { status, body: Bytes::from_static(body), dialect: Dialect::Chat, classified };
        scrub(&mut fault, Some(&mut error), "sk-abc123");
        let everything = format!("{fault:?} {error:?}");
        assert!(!everything.contains("abc123"), "{everything}");
        assert!(error.body.is_empty());
    }
}

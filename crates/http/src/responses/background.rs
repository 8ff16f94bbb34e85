//! Responses that are made in the background: the turn runs whoever listens, and what it says can be followed, and
//! followed again from any event on.

use super::items::{raw_field, string_field, text_of};
use super::library::Library;
use super::record::StoredResponse;
use super::state::State;
use crate::receipts::Receipts;
use crate::reply_body::ReplyBody;
use crate::respond;
use crate::service::Gateway;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use turnkeep_base::limit::{HEARTBEAT_EVERY, MAX_EVENT};
use turnkeep_base::receipt::Level;
use turnkeep_base::{ClientError, Dialect, TurnId};
use turnkeep_dialect::json::Object;
use turnkeep_dialect::reply::heartbeat;
use turnkeep_dialect::request::StreamForm;
use turnkeep_engine::TurnInput;
use turnkeep_engine::pipe::{Gone, ReplyReader, ReplyWriter, reply_pipe};
use turnkeep_engine::ports::StoredKind;
use turnkeep_wire::sse;

/// Bytes of one response's events that are kept to be followed.
const EVENT_BYTES: usize = 16 << 20;
/// Events of one response.
const EVENTS: usize = 100_000;
/// How long a follower may leave the room for one more event.
const SLOW: Duration = Duration::from_secs(60);
/// How long a cancelled turn is waited for.
const CANCEL_WAIT: Duration = Duration::from_secs(6);

/// Fields of a request that its response repeats, and what stands there without them.
const REPEATED: [(&str, &str); 17] = [
    ("model", "\"\""),
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("prompt_cache_key", "null"),
    ("reasoning", "null"),
    ("safety_identifier", "null"),
    ("service_tier", "\"auto\""),
    ("temperature", "null"),
    ("text", "{\"format\":{\"type\":\"text\"}}"),
    ("tool_choice", "\"auto\""),
    ("tools", "[]"),
    ("top_p", "null"),
    ("truncation", "\"disabled\""),
    ("user", "null"),
];

/// How a response that has no answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its caller cancelled it.
    Cancelled,
    /// It failed.
    Failed {
        /// A stable word.
        code: &'static str,
        /// For people.
        message: String,
    },
}

/// A response object without an answer: what is known before the turn, and what is left where none came.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    id: String,
    created: u64,
    previous: Option<String>,
    conversation: Option<String>,
    repeated: Vec<(&'static str, String)>,
}

impl Outline {
    pub(super) fn of(state: &State<'_>, id: &str, created: u64) -> Self {
        let repeated = REPEATED.iter().map(|(name, absent)| {
            let value = state.field(name).filter(|value| *value != "null").unwrap_or(absent);
            (*name, value.to_owned())
        });
        Outline {
            id: id.to_owned(),
            created,
            previous: state.previous.clone(),
            conversation: state.conversation.clone(),
            repeated: repeated.collect(),
        }
    }

    /// While it is awaited.
    pub(super) fn awaited(&self, status: &str) -> String {
        self.write(status, None)
    }

    /// Where no answer came.
    pub(super) fn ended(&self, outcome: &Outcome) -> String {
        match outcome {
            Outcome::Cancelled => self.write("cancelled", None),
            Outcome::Failed { code, message } => self.write("failed", Some((code, message))),
        }
    }

    fn write(&self, status: &str, error: Option<(&str, &str)>) -> String {
        let mut out = Vec::new();
        let mut object = Object::open(&mut out);
        object.string("id", &self.id);
        object.string("object", "response");
        object.number("created_at", self.created);
        object.string("status", status);
        object.bool("background", true);
        match error {
            Some((code, message)) => {
                let mut error = object.object("error");
                error.string("code", code);
                error.string("message", message);
            }
            None => object.null("error"),
        }
        object.null("incomplete_details");
        object.raw("output", "[]");
        object.optional_string("previous_response_id", self.previous.as_deref());
        match &self.conversation {
            Some(id) => object.object("conversation").string("id", id),
            None => object.null("conversation"),
        }
        object.bool("store", true);
        self.repeated.iter().for_each(|(name, value)| object.raw(name, value));
        object.null("usage");
        drop(object);
        text_of(out)
    }
}

/// A response that was running when its gateway stopped: it has failed.
pub(super) fn left_behind(response: &StoredResponse) -> String {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    let mut r = turnkeep_dialect::json::Reader::over(&response.response);
    let read = r.object::<turnkeep_dialect::json::Invalid>(|r, key| {
        let key = key.to_owned();
        let value = r.raw()?;
        match key.as_str() {
            "status" => object.string("status", "failed"),
            "error" => {
                let mut error = object.object("error");
                error.string("code", "server_error");
                error.string("message", "the gateway was started anew while this response was made; ask again");
            }
            other => object.raw(other, value),
        }
        Ok(())
    });
    drop(object);
    if read.is_ok() { text_of(out) } else { response.response.clone() }
}

#[derive(Debug, Default)]
struct Live {
    /// With their numbers, in order.
    events: Vec<(u64, Bytes)>,
    bytes: usize,
    /// The events are not all here.
    lost: bool,
    ended: bool,
    cancelled: bool,
}

/// A response that is made in the background.
#[derive(Debug)]
pub(super) struct Running {
    live: Mutex<Live>,
    changed: watch::Sender<u64>,
}

/// What a follower finds.
enum Next {
    Events(Vec<Bytes>),
    Waiting,
    Ended,
    Lost,
}

impl Running {
    fn new() -> Arc<Self> {
        Arc::new(Running { live: Mutex::default(), changed: watch::Sender::new(0) })
    }

    fn change<R>(&self, with: impl FnOnce(&mut Live) -> R) -> R {
        let result = with(&mut self.live.lock());
        self.changed.send_modify(|times| *times = times.wrapping_add(1));
        result
    }

    /// Adds an event; answers the bytes of all.
    fn add(&self, number: u64, frame: Bytes) -> usize {
        self.change(|live| {
            if live.ended {
                return live.bytes;
            }
            if live.lost || live.bytes + frame.len() > EVENT_BYTES || live.events.len() >= EVENTS {
                (live.events, live.bytes, live.lost) = (Vec::new(), 0, true);
                return 0;
            }
            live.bytes += frame.len();
            live.events.push((number, frame));
            live.bytes
        })
    }

    /// Its events find no room any more.
    pub(super) fn lose_events(&self) {
        self.change(|live| (live.events, live.bytes, live.lost) = (Vec::new(), 0, true));
    }

    /// It ends without an answer; this is its response object.
    pub(super) fn fail(&self, response: &str) {
        let number = self.live.lock().events.last().map_or(0, |(number, _)| number + 1);
        let mut data = Vec::new();
        let mut object = Object::open(&mut data);
        object.string("type", "response.failed");
        object.number("sequence_number", number);
        object.raw("response", response);
        drop(object);
        let mut frame = Vec::new();
        sse::write(&mut frame, Some("response.failed"), &data);
        self.add(number, frame.into());
    }

    /// Nothing more comes.
    pub(super) fn end(&self) {
        self.change(|live| live.ended = true);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.live.lock().cancelled
    }

    /// Its caller wants no answer any more.
    pub(super) fn cancel(&self) {
        self.change(|live| live.cancelled = true);
    }

    /// Something of the answer has come.
    fn has_begun(&self) -> bool {
        let live = self.live.lock();
        live.lost || !live.events.is_empty()
    }

    pub(super) fn status(&self) -> &'static str {
        if self.has_begun() { "in_progress" } else { "queued" }
    }

    /// What comes after the events that a follower has, beyond those up to `after`.
    fn next(&self, seen: &mut usize, after: Option<u64>) -> Next {
        let live = self.live.lock();
        if live.lost {
            return Next::Lost;
        }
        let new = live.events.get(*seen..).unwrap_or_default();
        *seen = live.events.len();
        let wanted = new.iter().filter(|(number, _)| after.is_none_or(|after| *number > after));
        let wanted: Vec<Bytes> = wanted.map(|(_, frame)| frame.clone()).collect();
        match (wanted.is_empty(), live.ended) {
            (false, _) => Next::Events(wanted),
            (true, false) => Next::Waiting,
            (true, true) => Next::Ended,
        }
    }

    /// Waits until it has ended, for as long as a cancelled turn may take.
    pub(super) async fn ends(&self) {
        let mut changed = self.changed.subscribe();
        let ended = changed.wait_for(|_| self.live.lock().ended);
        let _late = tokio::time::timeout(CANCEL_WAIT, ended).await;
    }
}

/// A background turn that is about to begin.
#[derive(Debug)]
pub(crate) struct Background {
    pub(super) scope: Arc<str>,
    pub(super) id: String,
    pub(super) outline: Outline,
    pub(super) running: Arc<Running>,
    /// Its client follows it.
    stream: bool,
}

impl Background {
    pub(super) fn new(scope: Arc<str>, id: String, outline: Outline, stream: bool) -> Self {
        Background { scope, id, outline, running: Running::new(), stream }
    }
}

/// Starts a background turn and answers with what there is at once.
pub(crate) async fn start(
    gateway: &Arc<Gateway>,
    input: TurnInput,
    background: Background,
) -> Result<Response<ReplyBody>, ClientError> {
    let Background { scope, id, outline, running, stream } = background;
    let library = &gateway.library;
    let turn = input.id;
    let queued = outline.awaited("queued");
    // Before it runs: after a crash it is known that it was asked for.
    let stored = StoredResponse {
        id: id.clone(),
        previous: string_field(&queued, "previous_response_id"),
        conversation: raw_field(&queued, "conversation").and_then(|object| string_field(object, "id")),
        background: true,
        input: Vec::new(),
        response: queued.clone(),
    };
    let thing = library.thing(StoredKind::Response, &scope, &id, library.now_ms(), stored.to_bytes());
    library.put(vec![thing]).await?;
    library.begin_running(&scope, &id, &running);
    let reader = gateway.engine.start(input);
    let place = Place { library: library.clone(), scope, id };
    tokio::spawn(pump(reader, running.clone(), place, gateway.receipts.clone()));
    if stream {
        return Ok(follow(gateway, running, None, turn));
    }
    let mut response = respond::json(StatusCode::OK, queued);
    name_turn(&mut response, turn);
    Ok(response)
}

fn name_turn(response: &mut Response<ReplyBody>, turn: TurnId) {
    if let Ok(value) = HeaderValue::from_str(&turn.to_string()) {
        response.headers_mut().insert("x-turnkeep-turn", value.clone());
        response.headers_mut().insert(Dialect::Responses.request_id_header(), value);
    }
}

/// Where the events of a response belong.
struct Place {
    library: Arc<Library>,
    scope: Arc<str>,
    id: String,
}

/// Takes what a background turn says. Letting the turn's reader go cancels it.
async fn pump(mut reader: ReplyReader, running: Arc<Running>, place: Place, receipts: Receipts) {
    let Place { library, scope, id } = &place;
    let mut frames = sse::Reader::new(MAX_EVENT.saturating_mul(2));
    let mut changed = running.changed.subscribe();
    let mut cancelled = std::pin::pin!(changed.wait_for(|_| running.is_cancelled()));
    let head = tokio::select! {
        head = poll_fn(|cx| reader.poll_head(cx)) => head,
        _ = cancelled.as_mut() => return,
    };
    let answers = head.is_some_and(|head| head.status.is_success());
    let mut whole = false;
    loop {
        let chunk = tokio::select! {
            chunk = poll_fn(|cx| reader.poll_chunk(cx)) => chunk,
            _ = cancelled.as_mut() => return,
        };
        let ended = chunk.is_none();
        if let Some(chunk) = chunk
            && answers
        {
            frames.push(chunk);
        }
        while let Some(frame) = frames.next_frame().ok().flatten() {
            if let Some(Told { number, frame, last }) = event(&frame) {
                let bytes = running.add(number, frame);
                whole |= last;
                library.followed_bytes(scope, id, bytes, &running);
            }
        }
        // Where the answer goes is the store, which has it.
        if let Some(ticket) = reader.ticket() {
            let receipt = receipts.receipt(ticket.turn(), Level::Flushed);
            ticket.turn_in(receipt);
            break;
        }
        if ended {
            break;
        }
    }
    // A turn that failed is ended by its closing, which knows why.
    if whole {
        running.end();
    }
}

/// An event of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    number: u64,
    frame: Bytes,
    /// Nothing follows it.
    last: bool,
}

/// The event of the answer that a frame is. Signs of life have none, and how a failed turn ends is its closing's to say.
fn event(frame: &sse::Frame) -> Option<Told> {
    let data = std::str::from_utf8(frame.data.as_deref()?).ok()?;
    let kind = string_field(data, "type")?;
    if matches!(kind.as_str(), "response.failed" | "error" | "keepalive") {
        return None;
    }
    let number = raw_field(data, "sequence_number")?.parse().ok()?;
    let last = matches!(kind.as_str(), "response.completed" | "response.incomplete");
    Some(Told { number, frame: frame.raw.clone(), last })
}

/// The events of a background response as a stream: those after this number, then those to come. Whoever leaves it
/// changes nothing.
pub(super) fn follow(
    gateway: &Arc<Gateway>,
    running: Arc<Running>,
    after: Option<u64>,
    turn: TurnId,
) -> Response<ReplyBody> {
    let (writer, reader) = reply_pipe(turn);
    tokio::spawn(tell(writer, running, after));
    let mut response = Response::new(ReplyBody::Turn { reader, left: None, receipts: gateway.receipts.clone() });
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    name_turn(&mut response, turn);
    response
}

async fn tell(mut writer: ReplyWriter, running: Arc<Running>, after: Option<u64>) {
    let mut changed = running.changed.subscribe();
    let (mut seen, mut begun) = (0, false);
    loop {
        match running.next(&mut seen, after) {
            Next::Events(events) => {
                begun = true;
                for event in events {
                    let room = poll_fn(|cx| writer.poll_room(cx));
                    match tokio::time::timeout(SLOW, room).await {
                        Ok(Ok(())) => writer.push(event),
                        Ok(Err(Gone)) => return,
                        Err(_) => return writer.abort(),
                    }
                }
            }
            Next::Waiting => tokio::select! {
                _ = changed.changed() => {}
                () = poll_fn(|cx| writer.poll_gone(cx)) => return,
                () = tokio::time::sleep(HEARTBEAT_EVERY) => {
                    writer.push(heartbeat(Dialect::Responses, StreamForm::Events, begun));
                }
            },
            Next::Ended => return writer.end(),
            // Its end cannot be told from here on, and must not look like one.
            Next::Lost => return writer.abort(),
        }
    }
}

/// All of its events can be followed.
pub(super) fn can_be_followed(running: &Running) -> bool {
    !running.live.lock().lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> sse::Frame {
        let mut reader = sse::Reader::new(1 << 20);
        reader.push(Bytes::copy_from_slice(text.as_bytes()));
        reader.next_frame().unwrap().unwrap()
    }

    fn texts(next: Next) -> Vec<String> {
        match next {
            Next::Events(events) => events.iter().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).collect(),
            Next::Waiting => vec!["waiting".into()],
            Next::Ended => vec!["ended".into()],
            Next::Lost => vec!["lost".into()],
        }
    }

    #[test]
    fn a_follower_gets_what_comes_after_a_number_and_then_what_is_new() {
        let running = Running::new();
        for number in 0..3 {
            running.add(number, Bytes::from(number.to_string()));
        }
        let mut seen = 0;
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["1", "2"]);
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["waiting"]);
        running.add(3, Bytes::from_static(b"3"));
        running.end();
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["3"]);
        assert_eq!(texts(running.next(&mut seen, Some(0))), ["ended"]);
        assert_eq!(texts(running.next(&mut 0, Some(9))), ["ended"]);
    }

    #[test]
    fn events_beyond_the_bound_are_not_kept_and_nobody_takes_the_rest_for_all() {
        let running = Running::new();
        running.add(0, Bytes::from_static(b"x"));
        assert_eq!(running.add(1, Bytes::from(vec![0; EVENT_BYTES])), 0);
        running.add(2, Bytes::from_static(b"y"));
        assert_eq!(texts(running.next(&mut 0, None)), ["lost"]);
        assert!(!can_be_followed(&running) && running.status() == "in_progress");
    }

    #[test]
    fn only_events_of_the_answer_are_kept() {
        let delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":7}\n\n";
        let told = event(&frame(delta)).unwrap();
        assert_eq!((told.number, told.frame.len(), told.last), (7, delta.len(), false));
        let end = "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":8}\n\n";
        assert!(event(&frame(end)).unwrap().last);
        for other in [
            ": keepalive\n\n",
            "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n",
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":8}\n\n",
        ] {
            assert_eq!(event(&frame(other)), None, "{other}");
        }
    }

    fn outline() -> Outline {
        let body = br#"{"model":"m","previous_response_id":"resp_0","temperature":0.5,"tools":null,"input":"x"}"#;
        Outline::of(&State::read(body).unwrap(), "resp_1", 17)
    }

    #[test]
    fn a_response_that_is_awaited_repeats_its_request() {
        let queued = outline().awaited("queued");
        let value: serde_json::Value = serde_json::from_str(&queued).unwrap();
        assert_eq!(value["status"], "queued");
        assert_eq!((&value["id"], &value["previous_response_id"]), (&"resp_1".into(), &"resp_0".into()));
        assert_eq!((&value["model"], &value["temperature"]), (&"m".into(), &0.5.into()));
        assert_eq!((&value["tools"], &value["output"]), (&serde_json::json!([]), &serde_json::json!([])));
        assert!(value["error"].is_null() && value["conversation"].is_null() && value["usage"].is_null());
    }

    #[test]
    fn a_response_that_was_left_behind_has_failed_and_is_otherwise_as_it_was() {
        let stored = StoredResponse {
            id: "resp_1".into(),
            previous: None,
            conversation: None,
            background: true,
            input: Vec::new(),
            response: outline().awaited("queued"),
        };
        let value: serde_json::Value = serde_json::from_str(&left_behind(&stored)).unwrap();
        assert_eq!((&value["status"], &value["error"]["code"]), (&"failed".into(), &"server_error".into()));
        assert_eq!(value["model"], "m");
    }

    #[test]
    fn what_fails_ends_with_the_next_number() {
        let running = Running::new();
        running.add(4, Bytes::from_static(b"x"));
        running.fail(&outline().ended(&Outcome::Failed { code: "c", message: "why".into() }));
        let told = texts(running.next(&mut 1, None)).remove(0);
        assert!(told.starts_with("event: response.failed\n") && told.contains(r#""sequence_number":5"#), "{told}");
        assert!(told.contains(r#""error":{"code":"c","message":"why"}"#), "{told}");
    }
}

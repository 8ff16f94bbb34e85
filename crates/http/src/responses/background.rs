//! Responses that are made in the background: the turn runs whoever listens, and what it says can be followed, and
//! followed again from any event on.

use super::items::{raw_field, string_field};
use super::library::Library;
use super::outline::Outline;
use super::record::StoredResponse;
use super::retry::Retry;
use super::running::{Next, Running};
use crate::receipts::Receipts;
use crate::reply_body::ReplyBody;
use crate::respond;
use crate::service::Gateway;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::limit::{HEARTBEAT_EVERY, MAX_EVENT};
use turnkeep_base::receipt::Level;
use turnkeep_base::{ClientError, Dialect, TurnId};
use turnkeep_dialect::reply::heartbeat;
use turnkeep_dialect::request::StreamForm;
use turnkeep_dialect::responses::terminal;
use turnkeep_engine::TurnInput;
use turnkeep_engine::pipe::{Gone, ReplyReader, ReplyWriter, reply_pipe};
use turnkeep_engine::ports::StoredKind;
use turnkeep_wire::sse;

/// How long a follower may leave the room for one more event.
const SLOW: Duration = Duration::from_secs(60);

/// A background turn that is about to begin.
#[derive(Debug)]
pub(crate) struct Background {
    pub(super) scope: Arc<str>,
    pub(super) id: String,
    pub(super) outline: Outline,
    pub(super) running: Arc<Running>,
    /// What the request brought, each item with its id.
    pub(super) input: Vec<String>,
    /// The idempotency key that stands for it.
    pub(super) retry: Option<Retry>,
    /// Its client follows it.
    pub(super) stream: bool,
}

impl Background {
    pub(super) fn new(scope: Arc<str>, id: String, outline: Outline, stream: bool) -> Self {
        Background { scope, id, outline, running: Running::new(), input: Vec::new(), retry: None, stream }
    }
}

/// Starts a background turn and answers with what there is at once.
pub(crate) async fn start(
    gateway: &Arc<Gateway>,
    input: TurnInput,
    background: Background,
) -> Result<Response<ReplyBody>, ClientError> {
    let gateway = gateway.clone();
    // A task of its own: a client that leaves meanwhile leaves no response behind that nobody makes.
    let begun = tokio::spawn(async move { begin(&gateway, input, background).await });
    begun.await.unwrap_or_else(|_| {
        Err(ClientError::new(500, "gateway_bug", "the gateway made a mistake; its log has the turn's id"))
    })
}

async fn begin(
    gateway: &Arc<Gateway>,
    turn_input: TurnInput,
    background: Background,
) -> Result<Response<ReplyBody>, ClientError> {
    let Background { scope, id, outline, running, input, retry, stream } = background;
    let library = &gateway.library;
    let turn = turn_input.id;
    let queued = outline.awaited("queued");
    // Before it runs: after a crash it is known that it was asked for.
    let stored = StoredResponse {
        id: id.clone(),
        previous: string_field(&queued, "previous_response_id"),
        conversation: raw_field(&queued, "conversation").and_then(|object| string_field(object, "id")),
        background: true,
        input,
        response: queued.clone(),
    };
    let thing = library.thing(StoredKind::Response, &scope, &id, library.now_ms(), stored.to_bytes());
    let retried = retry.as_ref().map(|retry| retry.thing(library, &scope, &id));
    let begins = library.begin_running(&scope, &id, &running)?;
    library.put([thing].into_iter().chain(retried).collect()).await?;
    drop(retry);
    let reader = gateway.engine.start(turn_input);
    begins.begun();
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

/// However the taking of events ends, it has ended.
struct Taking(Arc<Running>);

impl Drop for Taking {
    fn drop(&mut self) {
        self.0.drained();
    }
}

/// Takes what a background turn says. Letting the turn's reader go cancels it.
async fn pump(mut reader: ReplyReader, running: Arc<Running>, place: Place, receipts: Receipts) {
    let Place { library, scope, id } = &place;
    let mut frames = sse::Reader::new(MAX_EVENT.saturating_mul(2));
    let mut changed = running.changes();
    let mut cancelled = std::pin::pin!(changed.wait_for(|_| running.is_cancelled()));
    let _taking = Taking(running.clone());
    let head = tokio::select! {
        biased;
        _ = cancelled.as_mut() => return,
        head = poll_fn(|cx| reader.poll_head(cx)) => head,
    };
    let mut answers = head.is_some_and(|head| head.status.is_success());
    loop {
        let chunk = tokio::select! {
            biased;
            _ = cancelled.as_mut() => return,
            chunk = poll_fn(|cx| reader.poll_chunk(cx)) => chunk,
        };
        let ended = chunk.is_none();
        if let Some(chunk) = chunk
            && answers
        {
            frames.push(chunk);
        }
        while answers {
            match frames.next_frame() {
                Ok(Some(frame)) => {
                    if let Some(Told { number, frame, last }) = event(&frame) {
                        let bytes = running.add(number, frame, last);
                        library.followed_bytes(scope, id, bytes, &running);
                    }
                }
                Ok(None) => break,
                // Nobody can follow what lacks a part; the turn itself runs on.
                Err(error) => {
                    tracing::warn!(%error, "the events of a background response cannot be followed");
                    running.lose_events();
                    library.followed_bytes(scope, id, 0, &running);
                    frames = sse::Reader::new(0);
                    answers = false;
                }
            }
        }
        // Nobody else takes this reply. Its end is written once the answer is stored, or cannot be in time.
        if let Some(ticket) = reader.ticket() {
            let receipt = receipts.receipt(ticket.turn(), Level::Flushed);
            ticket.turn_in(receipt);
            break;
        }
        if ended {
            break;
        }
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
    let status = terminal(&kind);
    if status == Some("failed") || matches!(kind.as_str(), "error" | "keepalive") {
        return None;
    }
    let number = raw_field(data, "sequence_number")?.parse().ok()?;
    let last = status.is_some();
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
    let mut changed = running.changes();
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
                biased;
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

#[cfg(test)]
mod tests {
    use super::super::test_library::library;
    use super::*;
    use http::HeaderMap;
    use turnkeep_base::receipt::Mint;
    use turnkeep_engine::pipe::ReplyHead;

    fn frame(text: &str) -> sse::Frame {
        let mut reader = sse::Reader::new(1 << 20);
        reader.push(Bytes::copy_from_slice(text.as_bytes()));
        reader.next_frame().unwrap().unwrap()
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

    /// A response whose turn the test writes itself.
    fn pumped() -> (ReplyWriter, Arc<Running>, tokio::task::JoinHandle<()>) {
        let (library, _) = library();
        let (writer, reader) = reply_pipe(TurnId::from_bits(7));
        let running = Running::new();
        let place = Place { library, scope: "ann".into(), id: "resp_1".into() };
        let receipts = Receipts::new(Mint::for_the_wiring());
        let task = tokio::spawn(pump(reader, running.clone(), place, receipts));
        (writer, running, task)
    }

    fn success(writer: &mut ReplyWriter) {
        writer.head(ReplyHead { status: StatusCode::OK, headers: HeaderMap::new(), length: None });
    }

    fn next(running: &Running) -> &'static str {
        match running.next(&mut 0, None) {
            Next::Events(_) => "events",
            Next::Waiting => "waiting",
            Next::Ended => "ended",
            Next::Lost => "lost",
        }
    }

    #[tokio::test]
    async fn a_stream_without_an_end_that_is_known_ends_with_its_turn() {
        for closed_first in [true, false] {
            let (mut writer, running, task) = pumped();
            success(&mut writer);
            writer.push(Bytes::from_static(b": nothing that is an event of an answer\n\n"));
            if closed_first {
                running.closed();
            }
            assert_eq!(next(&running), "waiting", "{closed_first}");
            writer.end();
            task.await.unwrap();
            if !closed_first {
                assert_eq!(next(&running), "waiting");
                running.closed();
            }
            assert_eq!(next(&running), "ended", "{closed_first}");
        }
    }

    #[tokio::test]
    async fn an_event_too_long_to_be_followed_loses_the_events_and_not_the_turn() {
        let (mut writer, running, task) = pumped();
        success(&mut writer);
        writer.push(Bytes::from(vec![b'x'; 2 * MAX_EVENT + 1]));
        let mut changed = running.changes();
        changed.wait_for(|_| next(&running) == "lost").await.unwrap();
        for _ in 0..4 {
            writer.push(Bytes::from(vec![b'x'; MAX_EVENT]));
        }
        writer.end();
        task.await.unwrap();
        assert!(poll_fn(|cx| writer.poll_receipt(cx)).await.is_ok(), "it was read to its end");
        assert_eq!(next(&running), "lost");
    }

    #[tokio::test]
    async fn a_turn_that_panics_leaves_nobody_waiting_for_its_events() {
        let (writer, running, task) = pumped();
        running.closed();
        drop(writer);
        task.await.unwrap();
        assert_eq!(next(&running), "ended");
    }
}

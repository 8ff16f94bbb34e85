//! HTTP/2, with the `h2` crate: one task per stream, which sends only what the windows let it send, so that a slow client
//! holds its turn back, and which ends with its stream.

use super::body::{Piece, Tracked};
use super::deliveries::Deliveries;
use super::metered::Metered;
use super::{Answers, Connection, LOOK_AGAIN, left};
use crate::client_body::ClientBody;
use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Ping, PingPong, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Body;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// A silent client is asked for a sign of life after this long, and has as long to give it.
const PING: Duration = Duration::from_secs(15);
/// Streams of one connection at once.
const STREAMS: u32 = 256;
/// Bytes of a request's header list.
const HEADER_LIST: u32 = 64 << 10;
/// Bytes of request bodies that a client may send ahead, per stream and per connection.
const WINDOW: u32 = 1 << 20;
/// Bytes that one stream may have in `h2`'s hands.
const SEND_BUFFER: usize = 400 << 10;

/// Serves the connection to its end, or until the client has left.
pub async fn serve<A, I>(connection: Connection<A>, io: Metered<I>) -> Result<(), h2::Error>
where
    A: Answers,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Connection { answers, mut terms, deliveries, seen } = connection;
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_LIST)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buffer_size(SEND_BUFFER);
    let mut served = builder.handshake::<_, Bytes>(io).await?;
    let pings = served.ping_pong();
    let mut silent = pin!(silent(pings, &deliveries));
    let mut left = pin!(async {
        left(&deliveries).await;
        // h2 sees the end itself, after what the client sent before; unless it cannot read.
        tokio::time::sleep(LOOK_AGAIN).await;
    });
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            accepted = poll_fn(|cx| served.poll_accept(cx)) => match accepted {
                None => return Ok(()),
                Some(accepted) => {
                    let (request, respond) = accepted?;
                    seen.store(true, Ordering::Relaxed);
                    tokio::spawn(stream(request, respond, answers.clone(), deliveries.clone()));
                }
            },
            () = left.as_mut() => return Ok(()),
            () = silent.as_mut() => return Ok(()),
            _ = terms.stop.wait_for(|stopped| *stopped), if !stopping => {
                stopping = true;
                served.graceful_shutdown();
            }
        }
    }
}

/// Until the client has not answered a ping.
async fn silent(pings: Option<PingPong>, deliveries: &Deliveries) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    let began = Instant::now();
    let mut asked_at = began;
    loop {
        let due = deliveries.last_heard().unwrap_or(began).max(asked_at) + PING;
        if Instant::now() < due {
            tokio::time::sleep_until(due).await;
            continue;
        }
        asked_at = Instant::now();
        if pings.send_ping(Ping::opaque()).is_err() {
            // The connection is ending by itself.
            return std::future::pending().await;
        }
        match tokio::time::timeout(PING, poll_fn(|cx| pings.poll_pong(cx))).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => return std::future::pending().await,
            Err(_) => return tracing::debug!("a client answered no ping"),
        }
    }
}

/// One request and its reply. What it drops when the stream ends early is how the turn learns of it.
async fn stream<A: Answers>(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    answers: A,
    deliveries: Arc<Deliveries>,
) {
    let under_way = deliveries.begin();
    let head_only = *request.method() == Method::HEAD;
    let answered = {
        let mut answer = pin!(answers.answer(ClientBody::of_stream(request)));
        poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Some(response)),
            Poll::Pending => respond.poll_reset(cx).map(|_| None),
        })
        .await
    };
    let Some(response) = answered else { return };
    let (mut head, body) = response.into_parts();
    let mut body = Tracked::http2(body, respond.stream_id().as_u32(), under_way, deliveries);
    let bodiless = head_only || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if let Some(length) = body.size_hint().exact()
        && head.status != StatusCode::NO_CONTENT
    {
        head.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
    complete(&mut head.headers);
    let empty = bodiless || body.is_end_stream();
    match respond.send_response(Response::from_parts(head, ()), empty) {
        Ok(out) if !empty => {
            if let Err(error) = send(&mut body, out).await {
                tracing::debug!(%error, "a stream ended early");
            }
        }
        Ok(_) => {}
        Err(error) => {
            tracing::debug!(%error, "a response could not be sent");
            respond.send_reset(h2::Reason::INTERNAL_ERROR);
        }
    }
}

/// Leaves out what belongs to connections of HTTP/1.1, and adds the date.
fn complete(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(HeaderName::from_static(name));
    }
    headers.entry(header::DATE).or_insert_with(|| {
        HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now())).unwrap_or(HeaderValue::from_static(""))
    });
}

async fn send(body: &mut Tracked, mut out: SendStream<Bytes>) -> Result<(), h2::Error> {
    loop {
        let piece = poll_fn(|cx| match poll_over(&mut out, cx) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending => body.poll_piece(cx).map(Ok),
        })
        .await?;
        let Some(piece) = piece.unwrap_or(Ok(Piece { bytes: Bytes::new(), last: true })).ok() else {
            out.send_reset(h2::Reason::CANCEL);
            return Ok(());
        };
        let Piece { mut bytes, last } = piece;
        while !bytes.is_empty() {
            // Only now: what is reserved for a reply that has nothing to say is missing to the other streams.
            out.reserve_capacity(bytes.len());
            let room = poll_fn(|cx| match poll_room(&mut out, cx) {
                Poll::Ready(room) => Poll::Ready(Some(room)),
                Poll::Pending if body.poll_aborted(cx) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            let Some(room) = room.await else {
                out.send_reset(h2::Reason::CANCEL);
                return Ok(());
            };
            let room = room?;
            let part = bytes.split_to(room.min(bytes.len()));
            out.send_data(part, last && bytes.is_empty())?;
            if last && bytes.is_empty() {
                return Ok(());
            }
        }
        if last {
            return out.send_data(Bytes::new(), true);
        }
    }
}

/// Ready when the client has reset the stream or the connection is over.
fn poll_over(out: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<h2::Error> {
    out.poll_reset(cx).map(|reset| match reset {
        Ok(reason) => reason.into(),
        Err(error) => error,
    })
}

/// How many bytes the windows let through; never 0.
fn poll_room(out: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<Result<usize, h2::Error>> {
    if let Poll::Ready(error) = poll_over(out, cx) {
        return Poll::Ready(Err(error));
    }
    loop {
        let room = out.capacity();
        if room > 0 {
            return Poll::Ready(Ok(room));
        }
        match out.poll_capacity(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => return Poll::Ready(Err(h2::Reason::CANCEL.into())),
        }
    }
}

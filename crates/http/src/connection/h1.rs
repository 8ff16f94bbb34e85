//! HTTP/1.1, by hyper.

use super::body::Tracked;
use super::metered::Metered;
use super::{Answers, Connection, left};
use crate::client_body::ClientBody;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes of a request's head, and of a reply that hyper holds.
const BUFFER: usize = 64 << 10;

/// Serves the connection to its end, or until the client has left.
pub async fn serve<A, I>(connection: Connection<A>, io: Metered<I>) -> Result<(), hyper::Error>
where
    A: Answers,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Connection { answers, mut terms, deliveries, seen } = connection;
    let replies = deliveries.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        seen.store(true, Ordering::Relaxed);
        let under_way = replies.begin();
        let answer = answers.clone().answer(ClientBody::of(request));
        let deliveries = replies.clone();
        async move {
            let response = answer.await;
            Ok::<_, Infallible>(response.map(|body| Tracked::http1(body, under_way, deliveries)))
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(terms.header_wait).max_buf_size(BUFFER);
    let mut served = pin!(builder.serve_connection(TokioIo::new(io), service));
    let mut left = pin!(left(&deliveries));
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            ended = served.as_mut() => return ended,
            // With the connection go its requests and replies.
            () = left.as_mut() => return Ok(()),
            _ = terms.stop.wait_for(|stopped| *stopped), if !stopping => {
                stopping = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}

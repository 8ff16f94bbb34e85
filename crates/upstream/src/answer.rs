//! From an HTTP response to the port's answer: the body chunk by chunk, decompressed, and the end of the lease.

use crate::classify;
use crate::inflate::{self, Inflate};
use crate::pool::{Lease, Speaks};
use bytes::{Bytes, BytesMut};
use futures_util::task::noop_waker_ref;
use http::header::{self, HeaderMap};
use http::{HeaderName, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::timeout;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_engine::ports::{Answer, AnswerBody};

/// Headers that speak of the connection or of the body's coding, which end here.
static STRIPPED: [HeaderName; 5] =
    [header::CONTENT_ENCODING, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION, header::TRAILER];

/// How long the body of an error reply may take.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);

/// What there is of an error reply's body, up to `most` bytes and for up to 5 s, and whether that is all of it. One that
/// hangs, breaks off or fills the bound is judged by what there is of it, and proves nothing.
pub(crate) async fn read<B: AnswerBody + ?Sized>(body: &mut B, most: usize) -> (Bytes, bool) {
    let mut document = BytesMut::new();
    let reading = async {
        loop {
            match poll_fn(|cx| body.poll_chunk(cx)).await {
                Some(Ok(chunk)) => {
                    let room = most.saturating_sub(document.len());
                    document.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                    if room <= chunk.len() {
                        return false;
                    }
                }
                Some(Err(_)) => return false,
                None => return true,
            }
        }
    };
    let whole = timeout(ERROR_BODY_WAIT, reading).await.unwrap_or(false);
    (document.freeze(), whole)
}

/// Takes a response over. The lease goes with the body.
pub(crate) fn answer(response: Response<Incoming>, lease: Lease) -> Result<Answer, Fault> {
    let (status, headers, body) = parts(response, lease)?;
    Ok(Answer { status, headers, body: Box::new(body) })
}

/// The same, for whoever wants the trailers too.
pub(crate) fn parts(response: Response<Incoming>, lease: Lease) -> Result<(StatusCode, HeaderMap, Body), Fault> {
    let (parts, incoming) = response.into_parts();
    let mut headers = parts.headers;
    let inflate = coding(&headers)?;
    for name in &STRIPPED {
        headers.remove(name);
    }
    Ok((parts.status, headers, Body { incoming, lease: Some(lease), inflate, trailers: None }))
}

fn coding(headers: &HeaderMap) -> Result<Option<Inflate>, Fault> {
    let mut found = None;
    for value in headers.get_all(header::CONTENT_ENCODING) {
        let name = String::from_utf8_lossy(value.as_bytes());
        match (Inflate::named(name.trim()), &found) {
            (Ok(None), _) => {}
            (Ok(inflate), None) => found = inflate,
            (Ok(_), Some(_)) | (Err(inflate::Unknown), _) => {
                let text = format!("a content-encoding that was not offered: {name:?}");
                return Err(Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(text)));
            }
        }
    }
    Ok(found)
}

/// The body of an answer, decompressed.
pub(crate) struct Body {
    incoming: Incoming,
    /// Present until the body ended.
    lease: Option<Lease>,
    inflate: Option<Inflate>,
    trailers: Option<HeaderMap>,
}

impl Body {
    /// The trailers, if any have come; before the end they have not.
    pub(crate) fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    fn fail(&mut self, kind: FaultKind, text: String) -> Poll<Option<Result<Bytes, Fault>>> {
        self.lease = None;
        Poll::Ready(Some(Err(Fault::new(kind, Phase::Answered, Evidence::text(text)))))
    }
}

impl AnswerBody for Body {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Fault>>> {
        while self.lease.is_some() {
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let data = match frame.into_data() {
                        Ok(data) => data,
                        Err(other) => {
                            self.trailers = other.into_trailers().ok();
                            continue;
                        }
                    };
                    let data = match &mut self.inflate {
                        None => data,
                        Some(inflate) => match inflate.feed(&data) {
                            Ok(data) => data,
                            Err(error) => return self.fail(FaultKind::MalformedResponse, error),
                        },
                    };
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => {
                    let lease = self.lease.take();
                    let blank = Default::default();
                    let line = lease.as_ref().and_then(Lease::line).unwrap_or(&blank);
                    return Poll::Ready(Some(Err(classify::reading(&error, line))));
                }
                None => {
                    // HTTP/2: a stream reset by "no error" looks like an end, and is one only if the end was marked.
                    let shared = self.lease.as_ref().is_some_and(|lease| lease.speaks() == Speaks::Http2);
                    if shared && !self.incoming.is_end_stream() {
                        let text = "the peer reset the stream before its end, with no error";
                        return self.fail(FaultKind::StreamTruncated, text.into());
                    }
                    if let Some(lease) = self.lease.take() {
                        lease.finish();
                    }
                    if let Some(Err(error)) = self.inflate.as_mut().map(Inflate::finish) {
                        return self.fail(FaultKind::StreamTruncated, error);
                    }
                }
            }
        }
        Poll::Ready(None)
    }
}

impl Drop for Body {
    /// A reader that stopped at the protocol's own end has left the transport's end unread. If that is all there was,
    /// the connection is as good as read to the end.
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            let mut cx = Context::from_waker(noop_waker_ref());
            if let Poll::Ready(None) = Pin::new(&mut self.incoming).poll_frame(&mut cx) {
                lease.finish();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A body of these chunks, which then ends, breaks off or hangs.
    struct Chunks(VecDeque<Bytes>, Poll<Option<Result<Bytes, Fault>>>);

    impl AnswerBody for Chunks {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Fault>>> {
            match self.0.pop_front() {
                Some(chunk) => Poll::Ready(Some(Ok(chunk))),
                None => self.1.clone(),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_body_is_whole_only_if_its_end_came_within_the_bound_and_the_time() {
        let broken = Fault::new(FaultKind::ConnectionReset, Phase::Answered, Evidence::default());
        let ends = [
            (8, Poll::Ready(None), "oh no", true),
            (8, Poll::Ready(Some(Err(broken))), "oh no", false),
            (8, Poll::Pending, "oh no", false),
            (5, Poll::Ready(None), "oh no", false),
            (4, Poll::Ready(None), "oh n", false),
        ];
        for (most, end, text, whole) in ends {
            let mut body = Chunks([Bytes::from("oh "), Bytes::from("no")].into(), end);
            assert_eq!(read(&mut body, most).await, (Bytes::from(text), whole), "{most} bytes");
        }
    }
}

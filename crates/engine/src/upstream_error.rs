//! An upstream's error reply: read within bounds, kept for a client of the same dialect, and free of the credential that
//! the upstream may have quoted. What it means is `dialect::classify`'s.

use crate::ports::{Answer, AnswerBody};
use bytes::Bytes;
use http::StatusCode;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use turnkeep_base::limit::MAX_ERROR_BODY;
use turnkeep_base::{Dialect, Fault};
use turnkeep_dialect::classify::Classified;

/// How long the body of an error reply may take.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);

/// An upstream's own error, kept for a client of the same dialect.
#[derive(Debug)]
pub(crate) struct UpstreamError {
    pub status: StatusCode,
    pub body: Bytes,
    pub dialect: Dialect,
    pub classified: Classified,
}

/// Reads the body of an error reply, to its bound and for a short time: what has come says what it means.
pub(crate) async fn error_read(mut answer: Answer) -> Answer {
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
pub(crate) fn scrub(fault: &mut Fault, error: Option<&mut UpstreamError>, secret: &str) {
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
        if error.body.windows(secret.len()).any(|part| part == secret.as_bytes()) {
            // Not the upstream's own bytes, then, but its words without the secret.
            error.body = Bytes::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::Phase;
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

//! An upstream's error reply: read within bounds, kept for a client of the same dialect, and free of the credential that
//! the upstream may have quoted. What it means is `dialect::classify`'s.

use crate::ports::{Answer, AnswerBody};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
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

/// The head of an error reply whose body is still being read: what it declares holds even if nobody waits for the rest.
pub(crate) type ErrorHead = Arc<Mutex<Option<(StatusCode, HeaderMap)>>>;

/// Reads the body of an error reply, to its bound and for a short time: what has come says what it means.
pub(crate) async fn error_read(mut answer: Answer, head: &ErrorHead) -> Answer {
    *head.lock() = Some((answer.status, answer.headers.clone()));
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

/// Takes a secret out of everything that an upstream's error says, in whatever case it is quoted, and also where a text was
/// cut in the middle of it.
pub(crate) fn scrub(fault: &mut Fault, error: Option<&mut UpstreamError>, secret: &str) {
    if secret.is_empty() {
        return;
    }
    let mut found = clean(&mut fault.evidence.detail, secret);
    found |= fault.evidence.code.as_mut().is_some_and(|code| clean(code, secret));
    if let Some(error) = error {
        found |= clean(&mut error.classified.message, secret);
        found |= clean(&mut error.classified.evidence.detail, secret);
        found |= error.classified.evidence.code.as_mut().is_some_and(|code| clean(code, secret));
        found |= error.classified.param.as_mut().is_some_and(|param| clean(param, secret));
        found |= error.body.windows(secret.len()).any(|part| part.eq_ignore_ascii_case(secret.as_bytes()));
        if found {
            // Not the upstream's own bytes, then, in which it may be escaped, but its words without the secret.
            error.body = Bytes::new();
        }
    }
}

/// What stands in a secret's place.
const REPLACED: &str = "[secret]";
/// So many of a secret's first bytes at the end of a text that was cut are taken for it.
const TELLING: usize = 6;

/// Takes a secret out of a text; true when it was there.
fn clean(text: &mut String, secret: &str) -> bool {
    let mut found = false;
    let same = |part: &[u8]| part.eq_ignore_ascii_case(secret.as_bytes());
    while let Some(at) = text.as_bytes().windows(secret.len()).position(same) {
        if !text.is_char_boundary(at) || !text.is_char_boundary(at + secret.len()) {
            // Case aside the bytes are the secret's; a text that splits its characters is no text to keep.
            text.clear();
            return true;
        }
        text.replace_range(at..at + secret.len(), REPLACED);
        found = true;
    }
    let longest = (secret.len() - 1).min(text.len());
    let cut = (TELLING..=longest).rev().find(|&length| {
        let end = &text.as_bytes()[text.len() - length..];
        end.eq_ignore_ascii_case(&secret.as_bytes()[..length])
    });
    if let Some(length) = cut
        && text.is_char_boundary(text.len() - length)
    {
        text.truncate(text.len() - length);
        text.push_str(REPLACED);
        found = true;
    }
    found
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

    #[test]
    fn a_credential_is_found_in_another_case_escaped_in_the_body_and_cut_at_a_texts_end() {
        let secret = "Ab3/XyZ99secretsecret";
        let mut text = "the key ab3/xyz99SECRETSECRET is wrong".to_owned();
        assert!(clean(&mut text, secret));
        assert_eq!(text, "the key [secret] is wrong");
        let mut cut = "a long text that ends in Ab3/XyZ99se".to_owned();
        assert!(clean(&mut cut, secret));
        assert_eq!(cut, "a long text that ends in [secret]");
        let mut innocent = "nothing of the kind, Ab3".to_owned();
        assert!(!clean(&mut innocent, secret) && innocent.ends_with("Ab3"));
        let body = br#"{"error":{"message":"no key Ab3\/XyZ99secretsecret here","type":"invalid_request_error"}}"#;
        let classified = classify::reply(Dialect::Chat, 400, body);
        let mut fault = Fault::new(classified.kind, Phase::Answered, classified.evidence.clone());
        let body = Bytes::from_static(body);
        let mut error = UpstreamError { status: StatusCode::BAD_REQUEST, body, dialect: Dialect::Chat, classified };
        scrub(&mut fault, Some(&mut error), secret);
        assert!(error.body.is_empty() && !error.classified.message.contains("XyZ99"), "{error:?}");
    }
}

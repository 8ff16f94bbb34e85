//! The four calls that are made, each as a function: its path, its reply read within bounds, and its fault if it has one.

use super::session::{Page, Session};
use crate::answer;
use crate::endpoint::Endpoint;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};
use std::fmt::Write as _;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;
use turnkeep_base::limit::{MAX_ERROR_BODY, MAX_EVENT};
use turnkeep_base::{AccountId, Declared, Evidence, Fault, FaultKind, Phase, Secret};
use turnkeep_dialect::devin::classify;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::windows;
use turnkeep_engine::ports::{Answer, AnswerBody, Ask, Call, SendFault, Upstream as _};
use turnkeep_policy::conversations::RefusalProof;

/// Messages of one page.
const PAGE: u32 = 200;

/// The API as one turn uses it.
#[derive(Clone)]
pub(super) struct Api {
    endpoint: Arc<Endpoint>,
    /// Up to the sessions of the account's organisation.
    sessions: Arc<str>,
    account: AccountId,
    secret: Secret,
    trace: HeaderMap,
    /// How long a call may take.
    wait: Duration,
}

/// A call that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) fault: Fault,
    /// The status of a reply that came whole.
    reply: Option<StatusCode>,
}

impl Failed {
    /// Of a call that says something to Devin. `readable`: there is a position that can be read again, so that a failure
    /// of the server is a refusal too.
    pub(super) fn into_send_fault(self, readable: bool) -> SendFault {
        let Failed { fault, reply } = self;
        let refused = match reply {
            _ if fault.phase == Phase::Unsent => Some(RefusalProof::never_left()),
            // A server that gave up waiting for the request says nothing of what it has done with it.
            Some(StatusCode::REQUEST_TIMEOUT) => None,
            Some(status) if status.is_client_error() => Some(RefusalProof::by_reply()),
            Some(status) if status.is_server_error() && readable => Some(RefusalProof::by_failure()),
            // A redirect, or what is no error by its number.
            Some(_) | None => None,
        };
        SendFault { fault, refused }
    }

    /// Of a call that only asked for a session or its messages, before anything was said.
    pub(super) fn into_unsent(self) -> SendFault {
        let mut fault = self.fault;
        if matches!(fault.evidence.status, Some(404 | 410)) {
            // The call names nothing but the session, in whatever words its absence is told.
            fault.kind = FaultKind::ConversationGone;
        } else if fault.kind == FaultKind::DeadlineExceeded {
            // Of this call, not of the turn, which has not left.
            fault.kind = FaultKind::UpstreamUnavailable;
        }
        super::never_left(fault)
    }

    /// Without a reply that came whole.
    pub(super) fn of(fault: Fault) -> Failed {
        Failed { fault, reply: None }
    }
}

impl Api {
    pub(super) fn new(endpoint: Arc<Endpoint>, organization: &str, ask: &Ask, wait: Duration) -> Api {
        Api {
            endpoint,
            sessions: format!("/v3/organizations/{}/sessions", segment(organization)).into(),
            account: ask.account.clone(),
            secret: ask.secret.clone(),
            trace: ask.trace.clone(),
            wait,
        }
    }

    /// Begins a session. Sent once.
    pub(super) async fn create(&self, body: Bytes) -> Result<Session, Failed> {
        let call = self.call(Method::POST, self.sessions.to_string(), body);
        let asking = async {
            let answer = self.endpoint.send_once(call).await.map_err(Failed::of)?;
            whole(answer, MAX_EVENT, false).await
        };
        let body = self.in_time(asking).await?.ok_or_else(too_long)?;
        Session::read(&body).map_err(malformed)
    }

    /// Says something in a session. Sent once; what the reply to it says beside its status is nothing of use.
    pub(super) async fn say(&self, id: &str, body: Bytes) -> Result<(), Failed> {
        let path = format!("{}/{}/messages", self.sessions, segment(id));
        let call = self.call(Method::POST, path, body);
        self.in_time(async {
            let answer = self.endpoint.send_once(call).await.map_err(Failed::of)?;
            match answer.status.is_success() {
                true => Ok(()),
                false => whole(answer, MAX_EVENT, true).await.map(drop),
            }
        })
        .await
    }

    /// The session as it stands.
    pub(super) async fn session(&self, id: &str) -> Result<Session, Failed> {
        let body = self.get(format!("{}/{}", self.sessions, segment(id)), MAX_EVENT).await?.ok_or_else(too_long)?;
        let session = Session::read(&body).map_err(malformed)?;
        match session.id == id {
            true => Ok(session),
            false => Err(malformed(Invalid { path: "session_id".into(), message: "another session".into(), at: 0 })),
        }
    }

    /// The messages after a place, and how many bytes they came in; `None` if those are more than `most`.
    pub(super) async fn messages(
        &self,
        id: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Option<(Page, usize)>, Failed> {
        let mut path = format!("{}/{}/messages?first={PAGE}", self.sessions, segment(id));
        if let Some(after) = after {
            // Writing to a string cannot fail.
            let _infallible = write!(path, "&after={}", segment(after));
        }
        let Some(body) = self.get(path, most).await? else { return Ok(None) };
        Page::read(&body).map(|page| Some((page, body.len()))).map_err(malformed)
    }

    async fn get(&self, path: String, most: usize) -> Result<Option<Bytes>, Failed> {
        let call = self.call(Method::GET, path, Bytes::new());
        self.in_time(async {
            let answer = self.endpoint.send(call).await.map_err(Failed::of)?;
            whole(answer, most, true).await
        })
        .await
    }

    /// A call within its time. One that took longer may have been sent, and nothing proves that it was refused.
    async fn in_time<T>(&self, asking: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
        timeout(self.wait, asking).await.unwrap_or_else(|_| {
            let text = format!("a call to Devin had no whole answer within {:?}", self.wait);
            Err(Failed::of(Fault::new(FaultKind::UpstreamUnavailable, Phase::MaybeSent, Evidence::text(text))))
        })
    }

    fn call(&self, method: Method, path: String, body: Bytes) -> Call {
        Call {
            method,
            path: path.into(),
            headers: self.trace.clone(),
            body,
            account: self.account.clone(),
            secret: self.secret.clone(),
        }
    }
}

/// The body of a success, `None` if it is longer than `most` bytes; or the fault that an error reply means.
/// `names_session`: the call named one.
async fn whole(mut answer: Answer, most: usize, names_session: bool) -> Result<Option<Bytes>, Failed> {
    if answer.status.is_success() {
        return document(&mut *answer.body, most).await.map_err(Failed::of);
    }
    let (said, came_whole) = answer::read(&mut *answer.body, MAX_ERROR_BODY).await;
    let status = answer.status;
    let get = |name: &str| answer.headers.get(name)?.to_str().ok();
    let wall_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let classified = classify::reply_at(status.as_u16(), &said, windows::made_at(&get, wall_ms), names_session);
    let declared: Declared = windows::from_headers(&get, wall_ms).and(classified.declared);
    let fault = Fault::new(classified.kind, Phase::Answered, classified.evidence).declaring(declared);
    Err(Failed { fault, reply: came_whole.then_some(status) })
}

/// Reads a body to its end; `None` if that is beyond the bound.
async fn document(body: &mut dyn AnswerBody, most: usize) -> Result<Option<Bytes>, Fault> {
    let mut all = BytesMut::new();
    while let Some(chunk) = poll_fn(|cx| body.poll_chunk(cx)).await {
        let chunk = chunk?;
        if chunk.len() > most.saturating_sub(all.len()) {
            return Ok(None);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(Some(all.freeze()))
}

/// A success whose document is longer than any that is read.
pub(super) fn too_long() -> Failed {
    let text = format!("an answer of more than {MAX_EVENT} bytes");
    Failed::of(Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(text)))
}

/// A success whose document is not the API's.
fn malformed(error: Invalid) -> Failed {
    let text = format!("Devin's answer is not what its API documents: {error}");
    Failed::of(Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(text)))
}

/// A text as one segment of a path, or one value of a query.
fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_in_its_place_in_a_path() {
        assert_eq!(segment("devin-1_a.b~c"), "devin-1_a.b~c");
        assert_eq!(segment("a/../b?c&d=e\n\u{e4}"), "a%2F..%2Fb%3Fc%26d%3De%0A%C3%A4");
    }
}

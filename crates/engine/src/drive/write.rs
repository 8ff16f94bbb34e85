//! What the drive loop writes to the client: heads, pieces of the answer, its end, and errors in the client's dialect.

use super::Drive;
use crate::ending::client_error;
use crate::machine::{Downstream, Ending};
use crate::pipe::ReplyHead;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::time::Duration;
use turnkeep_base::{Dialect, FaultKind, seeded};
use turnkeep_dialect::reply;
use turnkeep_dialect::request::StreamForm;

/// The end of an answer, for a bug that is put in on purpose.
const STOP: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Bytes of a whole answer that the connection takes at once.
const PART: usize = 64 << 10;

impl Drive {
    pub(super) fn commit(&mut self) {
        if let Some(lease) = &self.lease {
            lease.prove();
        }
        let opened_early = self.head_out;
        self.open_head(None);
        if opened_early {
            let model = self.answering.as_ref().and_then(|answering| answering.facts().model.as_deref()).unwrap_or("");
            let text = format!("x-turnkeep-model={model} x-turnkeep-attempts={}", self.machine.dispatches());
            self.push_comment(&text);
        }
        self.flush();
    }

    /// Writes what the headers, which are out, could not say yet. Gemini's clients take no comments: some read every line
    /// that is not empty as JSON.
    fn push_comment(&mut self, text: &str) {
        let request = &self.input.request;
        if request.form != StreamForm::Events || request.dialect == Dialect::Gemini {
            return;
        }
        let mut comment = Vec::new();
        turnkeep_wire::sse::write_comment(&mut comment, text);
        self.writer.push(comment.into());
    }

    pub(super) fn flush(&mut self) {
        if let Some(answering) = &mut self.answering {
            for bytes in answering.take_held() {
                self.recorder.add(&bytes);
                self.writer.push(bytes);
            }
        }
    }

    /// Takes what is left of a complete answer, its end too, and records it; it is written when the turn is closed.
    pub(super) fn take_last(&mut self) {
        let Some(answering) = &mut self.answering else { return };
        self.last = answering.take_held();
        self.last.append(&mut answering.take_terminal());
        self.last.iter().for_each(|bytes| self.recorder.add(bytes));
    }

    pub(super) fn write_terminal(&mut self) {
        let last = std::mem::take(&mut self.last);
        self.write_whole(last);
    }

    /// Writes the answer that was made before.
    pub(super) fn write_kept(&mut self) {
        let pieces = self.kept_reply.as_mut().map(|kept| std::mem::take(&mut kept.pieces)).unwrap_or_default();
        self.write_whole(pieces);
    }

    /// Writes the end of an answer, or all of it.
    fn write_whole(&mut self, pieces: Vec<Bytes>) {
        let length = (!self.input.request.stream).then(|| pieces.iter().map(|bytes| bytes.len() as u64).sum());
        if self.head_out && self.kept_reply.is_some() {
            self.push_comment(&format!("x-turnkeep-cache={}", self.cache_word));
        }
        self.open_head(length);
        for mut bytes in pieces {
            // In parts, so that the connection takes them as the client does, and its pace is seen.
            while bytes.len() > PART {
                self.writer.push(bytes.split_to(PART));
            }
            self.writer.push(bytes);
        }
    }

    /// Sends the head of a successful reply, once.
    pub(super) fn open_head(&mut self, length: Option<u64>) {
        if self.head_out {
            return;
        }
        self.head_out = true;
        let mut headers = self.our_headers();
        let stream = self.input.request.stream;
        let events = stream && self.input.request.form == StreamForm::Events;
        let content_type = if events { "text/event-stream; charset=utf-8" } else { "application/json" };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        if stream {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        }
        if let Some(kept) = &self.kept_reply {
            if let Some(value) =
                kept.recorded.facts.model.as_deref().and_then(|model| HeaderValue::from_str(model).ok())
            {
                headers.insert("x-turnkeep-model", value);
            }
            headers.insert("x-turnkeep-attempts", HeaderValue::from(0));
        } else if let Some(answering) = &self.answering {
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

    pub(super) fn our_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(10);
        let id = self.input.id.to_string();
        if let Ok(value) = HeaderValue::from_str(&id) {
            headers.insert("x-turnkeep-turn", value.clone());
            headers.insert(self.input.request.dialect.request_id_header(), value);
        }
        headers.insert("x-turnkeep-cache", HeaderValue::from_static(self.cache_word));
        headers
    }

    pub(super) fn write_error(&mut self, ending: &Ending) {
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
            let begun = self.machine.downstream() == Downstream::Touched;
            if begun {
                self.flush();
            }
            if seeded::is("a-broken-stream-just-ends") {
                return;
            }
            if seeded::is("an-error-ends-as-a-stop") && dialect == Dialect::Chat {
                self.writer.push(Bytes::from_static(STOP));
                return;
            }
            self.writer.push(reply::error_event(dialect, self.input.request.form, begun, &error, &id));
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
}

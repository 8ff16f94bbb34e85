//! The forms that a call's reply has: one message, a stream of them, an error; as Connect and gRPC frame and end them.

use bytes::Bytes;
use http::{HeaderValue, header};

use crate::answer::Usage;
use crate::fault::Fault;
use crate::frame::{Mark, Piece};
use crate::handler::Reply;
use crate::plan::{self, FaultBytes, Step};
use crate::rpc::{Both, Failed, Manner, Spoken, envelope, trailers};
use crate::script::{ContentEncoding, Rule};

/// Stands for gRPC's error in a stream of steps, until it becomes trailers.
const GRPC_ERROR: &[u8] = b"the error goes here";

/// A reply of many messages.
pub(crate) fn stream(
    spoken: Spoken,
    rule: &Rule,
    mut pieces: Vec<Piece>,
    error: &Failed,
    usage: Option<Usage>,
) -> Reply {
    pieces.push(Piece::new(Mark::Terminal, spoken.end(None)));
    let grpc = spoken.manner == Manner::Grpc;
    let bytes = FaultBytes {
        bad_json: spoken.nonsense(),
        bad_utf8: envelope(0x80, b"x"),
        error: if grpc { Bytes::from_static(GRPC_ERROR) } else { spoken.end(Some(error)) },
    };
    let mut steps = plan::body(rule, pieces, &bytes);
    if grpc {
        steps = with_trailers(steps, error);
    }
    let mut reply = Reply { status: 200, headers: Vec::new(), steps, sized: false, usage };
    head(&mut reply, spoken);
    reply
}

/// The last bytes of a gRPC reply are followed by its trailers.
fn with_trailers(steps: Vec<Step>, error: &Failed) -> Vec<Step> {
    let mut out = Vec::with_capacity(steps.len() + 1);
    for step in steps {
        match step {
            Step::Last(bytes) if bytes == GRPC_ERROR => out.push(Step::Trailers(error.trailers())),
            Step::Last(bytes) => {
                out.push(Step::Send(bytes));
                out.push(Step::Trailers(trailers(0, "")));
            }
            other @ (Step::Send(_)
            | Step::Uncoded(_)
            | Step::Wait(_)
            | Step::Gate(_)
            | Step::Order(_)
            | Step::Silence
            | Step::Break
            | Step::Goaway
            | Step::Rst(_)
            | Step::Refuse(_)
            | Step::Trailers(_)
            | Step::Shown { .. }
            | Step::End) => out.push(other),
        }
    }
    out
}

/// A reply of one message.
pub(crate) fn one<T: Both>(spoken: Spoken, rule: &Rule, message: &T) -> Reply {
    let nonsense = matches!(rule.fault, Some(Fault::BadJson));
    let bytes = if nonsense { spoken.nonsense() } else { spoken.write(message) };
    let quiet = Rule { fault: rule.fault.filter(|_| !nonsense), ..rule.clone() };
    let mut steps = plan::body(&quiet, plan::halves(Some(&quiet), bytes.to_vec()), &FaultBytes::default());
    let sized = match spoken.manner {
        Manner::ConnectUnary | Manner::ConnectStream => rule.fault != Some(Fault::NoTerminal),
        Manner::Grpc => {
            steps = with_trailers(steps, &Failed::new("internal", "the lab fails in the middle"));
            false
        }
    };
    let mut reply = Reply { status: 200, headers: Vec::new(), steps, sized, usage: None };
    head(&mut reply, spoken);
    reply
}

/// An error reply.
pub(crate) fn failed(spoken: Spoken, error: &Failed) -> Reply {
    let ends = |steps| Reply { status: 200, headers: Vec::new(), steps, sized: false, usage: None };
    let mut reply = match spoken.manner {
        Manner::ConnectUnary => {
            return plain(error.status(), "application/json", error.json().to_string().into_bytes().into());
        }
        Manner::ConnectStream => ends(vec![Step::Last(spoken.end(Some(error)))]),
        Manner::Grpc => ends(vec![Step::Trailers(error.trailers())]),
    };
    head(&mut reply, spoken);
    reply
}

/// A reply of plain HTTP.
pub(crate) fn plain(status: u16, kind: &'static str, body: Bytes) -> Reply {
    let headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    Reply { status, headers, steps: vec![Step::Last(body)], sized: true, usage: None }
}

/// The headers that a call's reply has.
pub(crate) fn head(reply: &mut Reply, spoken: Spoken) {
    reply.headers.push((header::CONTENT_TYPE, HeaderValue::from_static(spoken.kind())));
    let coding = spoken.coding.map(ContentEncoding::name);
    if let Some(coding) = coding {
        reply.headers.push((spoken.coding_header(), HeaderValue::from_static(coding)));
    }
}

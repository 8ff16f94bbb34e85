//! The steps of a watched turn by themselves; see [`crate::fuzzed`].

use super::answer::seen;
use super::steps::{Next, Steps};
use crate::rpc::Codec;
use turnkeep_base::Fault;
use turnkeep_proto::cascade::v1::WatchResponse;
use turnkeep_proto::connect::v1::ChatEvent;

/// What a message of a watch led to.
#[derive(Debug)]
pub enum Step {
    /// A new piece of the answer.
    Event(ChatEvent),
    /// Nothing of the answer.
    Nothing,
    /// The watch is to be opened anew from this offset.
    Open(u64),
    /// The answer is complete, and this is the conversation's position.
    Final(u64),
    /// The answer has failed.
    Fault(Fault),
}

/// What the messages of a watch lead to, in their order, from this offset on; one that cannot be read ends it.
pub fn watched(codec: Codec, messages: &[&[u8]], from: u64) -> Vec<Step> {
    let mut steps = Steps::new(from);
    let mut out = Vec::new();
    for message in messages {
        let response: WatchResponse = match codec.read(message) {
            Ok(response) => response,
            Err(fault) => {
                out.push(Step::Fault(fault));
                break;
            }
        };
        out.push(match steps.seen(seen(response)) {
            Next::Event(event) => Step::Event(event),
            Next::Alive | Next::Read => Step::Nothing,
            Next::Open { from, after: _ } => Step::Open(from),
            Next::Final => Step::Final(steps.due()),
            Next::Fault(fault) => Step::Fault(fault),
        });
    }
    out
}

//! Why a Gemini candidate ends. There is no reason for tool calls: an answer that calls tools stops.

use crate::classify::redact;
use crate::event::Finish;
use crate::reply::ReplyFault;
use turnkeep_base::{Evidence, FaultKind};

/// Every reason of the protocol.
pub(super) const REASONS: &[&str] = &[
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_OTHER",
    "NO_IMAGE",
    "IMAGE_RECITATION",
    "ESCALATION",
    "CONTINUATION",
    "MODEL_ARMOR",
    "PUP_LIMITED_DISABLED",
];

/// What a `finishReason` means, `message` being the `finishMessage` beside it; `None` where it says nothing. `content`:
/// the model has said something. Reasons that tell of a broken answer are faults, so that another attempt is made of
/// them; an unknown one is never an end by itself: whatever cut the answer, it is not whole.
pub(super) fn meaning(reason: &str, message: Option<&str>, content: bool) -> Result<Option<Finish>, ReplyFault> {
    let upper = reason.to_ascii_uppercase();
    Ok(Some(match upper.as_str() {
        "" | "FINISH_REASON_UNSPECIFIED" => return Ok(None),
        // The second and third are of servers that know Gemini by hearsay.
        "STOP" | "FUNCTION_CALL" | "TOOL_CALLS" => Finish::Stop,
        "MAX_TOKENS" | "LENGTH" => Finish::Length,
        "CONTINUATION" => Finish::Pause,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "OTHER"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_OTHER"
        | "IMAGE_RECITATION"
        | "ESCALATION"
        | "MODEL_ARMOR"
        | "PUP_LIMITED_DISABLED" => Finish::Refusal,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
            return Err(fault(FaultKind::MalformedResponse, &upper, message));
        }
        "NO_IMAGE" => Finish::Refusal,
        "MISSING_THOUGHT_SIGNATURE" => return Err(fault(FaultKind::RequestInvalid, &upper, message)),
        _ if content => Finish::Length,
        _ => Finish::Refusal,
    }))
}

fn fault(kind: FaultKind, reason: &str, message: Option<&str>) -> ReplyFault {
    let said = message.map_or_else(|| format!("the upstream ended the answer with {reason}"), redact);
    let fault = ReplyFault::new(kind, said);
    ReplyFault { evidence: Evidence { ..fault.evidence }.with_code(reason.to_lowercase()), ..fault }
}

/// The reason of our own answers.
pub(super) fn written(reason: Finish, refused: bool) -> &'static str {
    match reason {
        Finish::Stop | Finish::StopSequence if refused => "SAFETY",
        Finish::Stop | Finish::StopSequence | Finish::ToolCalls | Finish::Pause => "STOP",
        Finish::Length | Finish::ContextFull => "MAX_TOKENS",
        Finish::Refusal => "SAFETY",
    }
}

//! What an error of Gemini means: `google.rpc.Status` bodies, alone or in a list of one, by the rows of `classify_table`.

use super::classify_table::ROWS;
use crate::classify::{self, Classified};
use crate::json::{Invalid, Kind, Reader};
use crate::reply::ReplyFault;
use turnkeep_base::{Evidence, FaultKind};

/// Classifies a reply with an error status that was made at `made_ms`, in milliseconds since 1970 (0 is unknown).
pub fn reply_at(status: u16, body: &[u8], made_ms: u64) -> Classified {
    classify::by_rows(ROWS, status, body, made_ms, false)
}

/// Classifies an error inside a stream: the raw `error` value, or what holds it.
pub fn in_stream(error: &[u8]) -> ReplyFault {
    classify::in_stream(ROWS, error).into()
}

/// The refusal of a prompt for its content, which Google gives as an answer with status 200: `promptFeedback` with a
/// `blockReason`. None for any other answer.
pub fn blocked(body: &[u8]) -> Option<ReplyFault> {
    let mut reason = None;
    let read = Reader::new(body).and_then(|mut r| {
        r.object::<Invalid>(|r, key| {
            if !matches!(key, "promptFeedback" | "prompt_feedback") || r.kind()? != Kind::Object {
                return r.skip().map(drop);
            }
            r.object(|r, key| {
                if matches!(key, "blockReason" | "block_reason") && r.kind()? == Kind::String {
                    reason = Some(r.string()?.into_owned());
                    return Ok(());
                }
                r.skip().map(drop)
            })
        })
    });
    let reason = reason.filter(|reason| read.is_ok() && !reason.is_empty() && reason != "BLOCK_REASON_UNSPECIFIED")?;
    let fault = ReplyFault::new(FaultKind::PolicyBlocked, "the provider blocked the prompt");
    Some(ReplyFault { evidence: Evidence { ..fault.evidence }.with_code(reason.to_lowercase()), ..fault })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_told_as_a_400_is_the_accounts_and_a_quote_of_it_the_requests() {
        let told = |message: &str| {
            let body = format!(r#"{{"error":{{"code":400,"message":"{message}","status":"INVALID_ARGUMENT"}}}}"#);
            reply_at(400, body.as_bytes(), 0).kind
        };
        assert_eq!(told("Your prepayment credits are depleted."), FaultKind::QuotaExhausted);
        assert_eq!(told("contents[0]: 'Your prepayment credits are depleted' is no text"), FaultKind::RequestInvalid);
    }

    #[test]
    fn a_blocked_prompt_is_a_policy_block_of_the_request() {
        for reason in ["SAFETY", "PROHIBITED_CONTENT", "OTHER", "SOMETHING_NEW"] {
            let body =
                format!(r#"{{"promptFeedback":{{"blockReason":"{reason}","safetyRatings":[]}},"usageMetadata":{{}}}}"#);
            let fault = blocked(body.as_bytes()).unwrap();
            assert_eq!((fault.kind, fault.evidence.code), (FaultKind::PolicyBlocked, Some(reason.to_lowercase())));
        }
        for body in [
            r#"{"candidates":[]}"#,
            r#"{"promptFeedback":{"safetyRatings":[]}}"#,
            r#"{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"}}"#,
            r#"{"promptFeedback":{"blockReason":""}}"#,
            r#"{"promptFeedback":{"blockReason":"SAFETY"}"#,
            r#"{"candidates":[{"promptFeedback":{"blockReason":"SAFETY"}}]}"#,
            "[]",
            "\u{0}",
        ] {
            assert_eq!(blocked(body.as_bytes()), None, "{body}");
        }
        assert_eq!(blocked(b"\xff"), None);
    }
}

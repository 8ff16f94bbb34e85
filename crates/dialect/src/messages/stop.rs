//! Why an answer ended, in Messages' words and in ours. That tools are called is derived from the calls themselves,
//! because compatible servers say one thing and do the other.

use crate::event::Finish;

/// Ours for a `stop_reason`. An unknown one is a natural end.
pub(super) fn finish(reason: &str) -> Finish {
    match reason {
        "max_tokens" => Finish::Length,
        "stop_sequence" => Finish::StopSequence,
        "tool_use" => Finish::ToolCalls,
        "pause_turn" => Finish::Pause,
        "refusal" => Finish::Refusal,
        "model_context_window_exceeded" => Finish::ContextFull,
        _ => Finish::Stop,
    }
}

/// The reason, corrected by whether a tool was called.
pub(super) fn derived(reason: Finish, called: bool) -> Finish {
    match (reason, called) {
        (Finish::Stop, true) => Finish::ToolCalls,
        (Finish::ToolCalls, false) => Finish::Stop,
        (other, _) => other,
    }
}

/// The `stop_reason` for ours.
pub(super) fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::StopSequence => "stop_sequence",
        Finish::Length => "max_tokens",
        Finish::ContextFull => "model_context_window_exceeded",
        Finish::ToolCalls => "tool_use",
        Finish::Refusal => "refusal",
        Finish::Pause => "pause_turn",
    }
}

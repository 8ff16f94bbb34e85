//! OpenAI Responses, on both sides.

pub mod chain;
pub mod error;
pub mod order;
pub(crate) mod outline;
pub mod reply_decode;
pub mod reply_encode;
pub mod request;
pub mod request_encode;
mod restate;
pub mod tap;

pub use reply_encode::echo::Echo;

/// The status with which an event of this type says that its answer has ended, and after which nothing comes: empty where
/// only its response says how. `None` for one that ends nothing. An `error` event is no end of an answer.
pub fn terminal(kind: &str) -> Option<&'static str> {
    match kind.strip_prefix("response.").unwrap_or(kind) {
        "completed" => Some("completed"),
        "incomplete" => Some("incomplete"),
        "failed" => Some("failed"),
        "cancelled" => Some("cancelled"),
        "done" => Some(""),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_one_of_five_events_and_no_part_of_it_is_one() {
        for (kind, status) in [("response.completed", "completed"), ("failed", "failed"), ("response.done", "")] {
            assert_eq!(terminal(kind), Some(status), "{kind}");
        }
        for kind in ["response.output_item.done", "response.in_progress", "error", "keepalive", ""] {
            assert_eq!(terminal(kind), None, "{kind}");
        }
    }
}

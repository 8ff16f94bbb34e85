//! A response object without an answer: what is shown before one has come, and where none came.

use super::items::text_of;
use super::record::StoredResponse;
use super::state::State;
use turnkeep_dialect::json::{Invalid, Object, Reader};

/// Fields of a request that its response repeats, and what stands there without them.
const REPEATED: [(&str, &str); 17] = [
    ("model", "\"\""),
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("prompt_cache_key", "null"),
    ("reasoning", "null"),
    ("safety_identifier", "null"),
    ("service_tier", "\"auto\""),
    ("temperature", "null"),
    ("text", "{\"format\":{\"type\":\"text\"}}"),
    ("tool_choice", "\"auto\""),
    ("tools", "[]"),
    ("top_p", "null"),
    ("truncation", "\"disabled\""),
    ("user", "null"),
];

/// How a response that has no answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its caller cancelled it.
    Cancelled,
    /// It failed.
    Failed {
        /// A stable word.
        code: &'static str,
        /// For people.
        message: String,
    },
}

/// A response object without an answer: what is known before the turn, and what is left where none came.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    id: String,
    created: u64,
    previous: Option<String>,
    conversation: Option<String>,
    repeated: Vec<(&'static str, String)>,
}

impl Outline {
    pub(super) fn of(state: &State<'_>, id: &str, created: u64) -> Self {
        let repeated = REPEATED.iter().map(|(name, absent)| {
            let value = state.field(name).filter(|value| *value != "null").unwrap_or(absent);
            (*name, value.to_owned())
        });
        Outline {
            id: id.to_owned(),
            created,
            previous: state.previous.clone(),
            conversation: state.conversation.clone(),
            repeated: repeated.collect(),
        }
    }

    /// While it is awaited.
    pub(super) fn awaited(&self, status: &str) -> String {
        self.write(status, None)
    }

    /// Where no answer came.
    pub(super) fn ended(&self, outcome: &Outcome) -> String {
        match outcome {
            Outcome::Cancelled => self.write("cancelled", None),
            Outcome::Failed { code, message } => self.write("failed", Some((code, message))),
        }
    }

    fn write(&self, status: &str, error: Option<(&str, &str)>) -> String {
        let mut out = Vec::new();
        let mut object = Object::open(&mut out);
        object.string("id", &self.id);
        object.string("object", "response");
        object.number("created_at", self.created);
        object.string("status", status);
        object.bool("background", true);
        match error {
            Some((code, message)) => {
                let mut error = object.object("error");
                error.string("code", code);
                error.string("message", message);
            }
            None => object.null("error"),
        }
        object.null("incomplete_details");
        object.raw("output", "[]");
        object.optional_string("previous_response_id", self.previous.as_deref());
        match &self.conversation {
            Some(id) => object.object("conversation").string("id", id),
            None => object.null("conversation"),
        }
        object.bool("store", true);
        self.repeated.iter().for_each(|(name, value)| object.raw(name, value));
        object.null("usage");
        drop(object);
        text_of(out)
    }
}

/// A response that was running when its gateway stopped: it has failed.
pub(super) fn left_behind(response: &StoredResponse) -> String {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    let mut r = Reader::over(&response.response);
    let read = r.object::<Invalid>(|r, key| {
        let key = key.to_owned();
        let value = r.raw()?;
        match key.as_str() {
            "status" => object.string("status", "failed"),
            "error" => {
                let mut error = object.object("error");
                error.string("code", "server_error");
                error.string("message", "the gateway was started anew while this response was made; ask again");
            }
            other => object.raw(other, value),
        }
        Ok(())
    });
    drop(object);
    if read.is_ok() { text_of(out) } else { response.response.clone() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::responses) fn outline() -> Outline {
        let body = br#"{"model":"m","previous_response_id":"resp_0","temperature":0.5,"tools":null,"input":"x"}"#;
        Outline::of(&State::read(body).unwrap(), "resp_1", 17)
    }

    #[test]
    fn a_response_that_is_awaited_repeats_its_request() {
        let queued = outline().awaited("queued");
        let value: serde_json::Value = serde_json::from_str(&queued).unwrap();
        assert_eq!(value["status"], "queued");
        assert_eq!((&value["id"], &value["previous_response_id"]), (&"resp_1".into(), &"resp_0".into()));
        assert_eq!((&value["model"], &value["temperature"]), (&"m".into(), &0.5.into()));
        assert_eq!((&value["tools"], &value["output"]), (&serde_json::json!([]), &serde_json::json!([])));
        assert!(value["error"].is_null() && value["conversation"].is_null() && value["usage"].is_null());
    }

    #[test]
    fn a_response_that_was_left_behind_has_failed_and_is_otherwise_as_it_was() {
        let stored = StoredResponse {
            id: "resp_1".into(),
            previous: None,
            conversation: None,
            background: true,
            input: Vec::new(),
            response: outline().awaited("queued"),
        };
        let value: serde_json::Value = serde_json::from_str(&left_behind(&stored)).unwrap();
        assert_eq!((&value["status"], &value["error"]["code"]), (&"failed".into(), &"server_error".into()));
        assert_eq!(value["model"], "m");
    }
}

//! A response object without an answer: what is shown before one has come, and where none came.

use super::items::{string_field, text_of};
use super::record::StoredResponse;
use std::sync::Arc;
use turnkeep_dialect::json::{Invalid, Object, Reader};
use turnkeep_dialect::responses::Echo;

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
    model: String,
    echo: Arc<Echo>,
}

impl Outline {
    /// Of a client's body.
    pub(super) fn of(body: &[u8], id: &str, created: u64) -> Self {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let model = string_field(text, "model").unwrap_or_default();
        Outline { id: id.to_owned(), created, model, echo: Arc::new(Echo::of(body)) }
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
        match error {
            Some((code, message)) => {
                let mut error = object.object("error");
                error.string("code", code);
                error.string("message", message);
            }
            None => object.null("error"),
        }
        object.null("incomplete_details");
        object.string("model", &self.model);
        object.raw("output", "[]");
        self.echo.write(&mut object);
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
        let body = b"{\"model\":\"m\",\n\"previous_response_id\":\"resp_0\",\"background\":true,\"temperature\":0.5,\
            \"tools\":null,\"reasoning\":{\r\n\"effort\":\"low\"},\"input\":\"x\"}";
        Outline::of(body, "resp_1", 17)
    }

    #[test]
    fn a_response_that_is_awaited_repeats_its_request() {
        let queued = outline().awaited("queued");
        let value: serde_json::Value = serde_json::from_str(&queued).unwrap();
        assert_eq!(value["status"], "queued");
        assert_eq!((&value["id"], &value["previous_response_id"]), (&"resp_1".into(), &"resp_0".into()));
        assert_eq!((&value["model"], &value["temperature"]), (&"m".into(), &0.5.into()));
        assert_eq!((&value["tools"], &value["output"]), (&serde_json::json!([]), &serde_json::json!([])));
        assert_eq!((&value["background"], &value["store"]), (&true.into(), &true.into()));
        assert_eq!(value["reasoning"], serde_json::json!({"effort": "low"}));
        assert!(!queued.contains(['\r', '\n']), "{queued}");
        assert!(value["error"].is_null() && value["conversation"].is_null() && value["usage"].is_null());
    }

    #[test]
    fn what_a_request_does_not_say_is_the_same_before_its_answer_as_in_it() {
        let awaited: serde_json::Value = serde_json::from_str(&outline().awaited("queued")).unwrap();
        let mut told = Vec::new();
        Echo::of(
            br#"{"background":true,"previous_response_id":"resp_0","temperature":0.5,"reasoning":{"effort":"low"}}"#,
        )
        .write(&mut Object::open(&mut told));
        let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
        for (name, value) in told.as_object().unwrap() {
            assert_eq!(awaited[name], *value, "{name}");
        }
        assert_eq!((&told["top_p"], &told["service_tier"]), (&1.0.into(), &"default".into()));
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

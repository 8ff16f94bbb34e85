//! The form in which responses and conversations are stored: JSON of our own, in which items and the response stay the
//! text that they were.

use super::items::{elements, outputs, raw_field, string_field, text_of};
use bytes::Bytes;
use turnkeep_dialect::json::{Object, Reader};

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredResponse {
    pub(super) id: String,
    /// The response that it goes on from.
    pub(super) previous: Option<String>,
    /// The conversation that it is a part of.
    pub(super) conversation: Option<String>,
    /// It was made in the background.
    pub(super) background: bool,
    /// What the request brought itself, each item with its id.
    pub(super) input: Vec<String>,
    /// The response object.
    pub(super) response: String,
}

impl StoredResponse {
    /// The `status` of the response object; one that says none is complete.
    pub(super) fn status(&self) -> String {
        string_field(&self.response, "status").unwrap_or_else(|| "completed".into())
    }

    /// An item of its input or output.
    pub(super) fn item(&self, id: &str) -> Option<&str> {
        let own = self.input.iter().map(String::as_str);
        own.chain(outputs(&self.response)).find(|item| string_field(item, "id").as_deref() == Some(id))
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.response.len() + 256);
        let mut object = Object::open(&mut out);
        object.number("form", 1);
        object.string("id", &self.id);
        object.optional_string("previous", self.previous.as_deref());
        object.optional_string("conversation", self.conversation.as_deref());
        object.bool("background", self.background);
        let mut input = object.array("input");
        self.input.iter().for_each(|item| input.raw(item));
        drop(input);
        object.raw("response", &self.response);
        drop(object);
        out.into()
    }

    /// `None` for what this version has not written.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = form_one(bytes)?;
        Some(StoredResponse {
            id: string_field(text, "id")?,
            previous: string_field(text, "previous"),
            conversation: string_field(text, "conversation"),
            background: raw_field(text, "background") == Some("true"),
            input: elements(raw_field(text, "input")?).into_iter().map(str::to_owned).collect(),
            response: raw_field(text, "response")?.to_owned(),
        })
    }
}

/// A stored conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredConversation {
    pub(super) id: String,
    /// Unix seconds.
    pub(super) created: u64,
    /// A JSON object.
    pub(super) metadata: String,
    /// A turn of it was answered and could not be stored: what is here is not all that was said.
    pub(super) gone: bool,
    /// In order, each with its id.
    pub(super) items: Vec<String>,
}

impl StoredConversation {
    pub(super) fn to_bytes(&self) -> Bytes {
        let mut out = Vec::new();
        let mut object = Object::open(&mut out);
        object.number("form", 1);
        object.string("id", &self.id);
        object.number("created", self.created);
        object.raw("metadata", &self.metadata);
        object.bool("gone", self.gone);
        let mut items = object.array("items");
        self.items.iter().for_each(|item| items.raw(item));
        drop(items);
        drop(object);
        out.into()
    }

    /// `None` for what this version has not written.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = form_one(bytes)?;
        Some(StoredConversation {
            id: string_field(text, "id")?,
            created: raw_field(text, "created")?.parse().ok()?,
            metadata: raw_field(text, "metadata")?.to_owned(),
            gone: raw_field(text, "gone") == Some("true"),
            items: elements(raw_field(text, "items")?).into_iter().map(str::to_owned).collect(),
        })
    }

    /// The conversation object.
    pub(super) fn shown(&self) -> String {
        let mut out = Vec::new();
        let mut object = Object::open(&mut out);
        object.string("id", &self.id);
        object.string("object", "conversation");
        object.number("created_at", self.created);
        object.raw("metadata", &self.metadata);
        drop(object);
        text_of(out)
    }
}

fn form_one(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    Reader::over(text).skip().ok()?;
    (raw_field(text, "form") == Some("1")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_response_reads_back_as_it_was() {
        let stored = StoredResponse {
            id: "resp_1".into(),
            previous: Some("resp_0".into()),
            conversation: None,
            background: true,
            input: vec![r#"{"id":"msg_t_0","type":"message"}"#.into()],
            response: r#"{"id":"resp_1","status":"incomplete","output":[{"id":"msg_2","text":"\u00e9 \" é"}]}"#.into(),
        };
        let read = StoredResponse::from_bytes(&stored.to_bytes()).unwrap();
        assert_eq!(read, stored);
        assert_eq!((read.status().as_str(), read.item("msg_x")), ("incomplete", None));
        assert!(read.item("msg_t_0").is_some() && read.item("msg_2").is_some());
    }

    #[test]
    fn a_stored_conversation_reads_back_as_it_was_and_shows_no_items() {
        let stored = StoredConversation {
            id: "conv_1".into(),
            created: 17,
            metadata: r#"{"a":"b"}"#.into(),
            gone: true,
            items: vec![r#"{"id":"msg_1"}"#.into(), r#"{"id":"msg_2"}"#.into()],
        };
        assert_eq!(StoredConversation::from_bytes(&stored.to_bytes()).unwrap(), stored);
        let shown = r#"{"id":"conv_1","object":"conversation","created_at":17,"metadata":{"a":"b"}}"#;
        assert_eq!(stored.shown(), shown);
        let earlier = r#"{"form":1,"id":"conv_1","created":17,"metadata":{},"items":[]}"#;
        assert!(
            !StoredConversation::from_bytes(earlier.as_bytes()).unwrap().gone,
            "earlier versions wrote no such word"
        );
    }

    #[test]
    fn what_another_version_has_written_is_not_read() {
        for text in ["", "{}", r#"{"form":2,"id":"x","input":[],"response":{}}"#, "{\"form\":1,\"id\":\"x\""] {
            assert_eq!(StoredResponse::from_bytes(text.as_bytes()), None, "{text}");
        }
    }
}

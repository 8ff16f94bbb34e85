//! What a client was told, read by its dialect's own rules and by none of the gateway's code: the text, how it ended, and
//! whether it was legal from the first byte to the last.

use crate::plan::Dialect;
use serde_json::Value;

/// How a reply ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As the model ended it, for this reason.
    Finished(String),
    /// By an error in the client's dialect.
    Error(String),
    /// Not at all: the connection ended first.
    Open,
}

/// A reply, read as far as it came.
#[derive(Debug)]
pub struct Told {
    dialect: Dialect,
    /// A piece of a line that is not whole.
    rest: Vec<u8>,
    event: String,
    data: String,
    /// The answer's text.
    pub text: String,
    /// The stop that was told before the end.
    reason: Option<String>,
    ended: Option<End>,
    number: Option<u64>,
    open_blocks: Vec<u64>,
    began: bool,
    /// The first thing that was not legal.
    pub illegal: Option<String>,
}

impl Told {
    /// Of a stream in this dialect.
    pub fn of(dialect: Dialect) -> Told {
        Told {
            dialect,
            rest: Vec::new(),
            event: String::new(),
            data: String::new(),
            text: String::new(),
            reason: None,
            ended: None,
            number: None,
            open_blocks: Vec::new(),
            began: false,
            illegal: None,
        }
    }

    /// How it has ended.
    pub fn end(&self) -> End {
        self.ended.clone().unwrap_or(End::Open)
    }

    fn wrong(&mut self, what: impl Into<String>) {
        self.illegal.get_or_insert(what.into());
    }

    /// Bytes of a stream have come.
    pub fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=at).collect();
            match String::from_utf8(line) {
                Ok(line) => self.line(line.trim_end_matches(['\r', '\n'])),
                Err(_) => self.wrong("a line that is not UTF-8"),
            }
        }
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
            if !data.is_empty() {
                self.frame(&event, data.trim_end_matches('\n'));
            }
        } else if let Some(data) = line.strip_prefix("data:") {
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            self.data.push('\n');
        } else if let Some(event) = line.strip_prefix("event:") {
            self.event = event.trim().to_owned();
        } else if !line.starts_with(':') && !line.starts_with("id:") && !line.starts_with("retry:") {
            self.wrong(format!("a line that is none of a stream: {line:?}"));
        }
    }

    fn frame(&mut self, event: &str, data: &str) {
        if self.ended.is_some() {
            return self.wrong(format!("after the end: {data}"));
        }
        if data == "[DONE]" {
            return match (self.dialect, self.reason.take()) {
                (Dialect::Chat, Some(reason)) => self.ended = Some(End::Finished(reason)),
                (_, _) => self.wrong("[DONE] where it has no place"),
            };
        }
        let Ok(value) = serde_json::from_str::<Value>(data) else {
            return self.wrong(format!("an event that is no JSON: {data}"));
        };
        match self.dialect {
            Dialect::Chat => self.chat(&value),
            Dialect::Messages => self.messages(event, &value),
            Dialect::Responses => self.responses(event, &value),
            Dialect::Gemini => self.gemini(&value),
        }
    }

    fn chat(&mut self, value: &Value) {
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            self.ended = Some(End::Error(error["message"].to_string()));
            return;
        }
        let Some(choices) = value["choices"].as_array() else { return self.wrong("a chunk without choices") };
        for choice in choices {
            if let Some(text) = choice["delta"]["content"].as_str() {
                if self.reason.is_some() && !text.is_empty() {
                    self.wrong("text after finish_reason");
                }
                self.text.push_str(text);
            }
            if let Some(reason) = choice["finish_reason"].as_str()
                && self.reason.replace(reason.to_owned()).is_some()
            {
                self.wrong("a second finish_reason");
            }
        }
    }

    fn messages(&mut self, event: &str, value: &Value) {
        let kind = value["type"].as_str().unwrap_or_default();
        if event != kind {
            self.wrong(format!("the event {event:?} says that it is {kind:?}"));
        }
        let index = value["index"].as_u64().unwrap_or(u64::MAX);
        match kind {
            "ping" => {}
            "error" => self.ended = Some(End::Error(value["error"]["message"].to_string())),
            "message_start" if !self.began => self.began = true,
            _ if !self.began => self.wrong(format!("{kind} before message_start")),
            "content_block_start" if self.open_blocks.is_empty() => self.open_blocks.push(index),
            "content_block_delta" if self.open_blocks.contains(&index) => {
                self.text.push_str(value["delta"]["text"].as_str().unwrap_or_default());
            }
            "content_block_stop" if self.open_blocks.contains(&index) => self.open_blocks.clear(),
            "message_delta" if self.open_blocks.is_empty() && self.reason.is_none() => {
                self.reason = value["delta"]["stop_reason"].as_str().map(str::to_owned);
            }
            "message_stop" => match self.reason.take() {
                Some(reason) => self.ended = Some(End::Finished(reason)),
                None => self.wrong("message_stop without a stop_reason"),
            },
            _ => self.wrong(format!("{kind} has no place here")),
        }
    }

    fn responses(&mut self, event: &str, value: &Value) {
        let kind = value["type"].as_str().unwrap_or_default();
        if event != kind {
            self.wrong(format!("the event {event:?} says that it is {kind:?}"));
        }
        let number = value["sequence_number"].as_u64();
        // A sign of life has no number, and an error has one because clients read one: it counts nothing.
        let unnumbered = matches!(kind, "error" | "keepalive");
        if !unnumbered && number != Some(self.number.map_or(0, |before| before + 1)) {
            self.wrong(format!("{kind} is numbered {number:?} after {:?}", self.number));
        }
        if !unnumbered {
            self.number = number;
        }
        if !self.began && !matches!(kind, "response.created" | "error") {
            self.wrong(format!("{kind} before response.created"));
        }
        match kind {
            "response.created" if !self.began => self.began = true,
            "response.created" => self.wrong("a second response.created"),
            "response.output_text.delta" => self.text.push_str(value["delta"].as_str().unwrap_or_default()),
            "response.completed" | "response.incomplete" => self.ended = Some(End::Finished(kind.to_owned())),
            "response.failed" => {
                self.ended = Some(End::Error(value["response"]["error"]["message"].to_string()));
            }
            "error" => self.ended = Some(End::Error(value["message"].to_string())),
            _ => {}
        }
    }

    fn gemini(&mut self, value: &Value) {
        if !value["error"].is_null() {
            self.ended = Some(End::Error(value["error"]["message"].to_string()));
            return;
        }
        if self.reason.is_some() {
            self.wrong("a chunk after finishReason");
        }
        let candidate = &value["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.text.push_str(part["text"].as_str().unwrap_or_default());
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.reason = Some(reason.to_owned());
        }
    }

    /// The body has ended as HTTP wants it. A dialect without an end of its own has ended then.
    pub fn close(&mut self) {
        if self.ended.is_none()
            && self.dialect == Dialect::Gemini
            && let Some(reason) = self.reason.take()
        {
            self.ended = Some(End::Finished(reason));
        }
        if self.ended.is_none() {
            self.wrong("the body ended without an end of the reply");
        }
    }

    /// A reply that was not streamed.
    pub fn whole(&mut self, status: u16, body: &[u8]) {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return self.wrong(format!("a body that is no JSON, with {status}"));
        };
        if status != 200 {
            let message = value["error"]["message"].as_str();
            match message {
                Some(message) => self.ended = Some(End::Error(message.to_owned())),
                None => self.wrong(format!("an error without a message, with {status}: {value}")),
            }
            return;
        }
        let (text, reason) = match self.dialect {
            Dialect::Chat => {
                let choice = &value["choices"][0];
                (choice["message"]["content"].as_str().map(str::to_owned), &choice["finish_reason"])
            }
            Dialect::Messages => (texts(&value["content"]), &value["stop_reason"]),
            Dialect::Responses => {
                let message = value["output"].as_array().into_iter().flatten().find(|item| item["type"] == "message");
                (message.and_then(|message| texts(&message["content"])), &value["status"])
            }
            Dialect::Gemini => {
                let candidate = &value["candidates"][0];
                (texts(&candidate["content"]["parts"]), &candidate["finishReason"])
            }
        };
        self.text = text.unwrap_or_default();
        match reason.as_str() {
            Some(reason) => self.ended = Some(End::Finished(reason.to_owned())),
            None => self.wrong("a reply that does not say why it ended"),
        }
    }
}

fn texts(parts: &Value) -> Option<String> {
    let parts = parts.as_array()?;
    Some(parts.iter().filter_map(|part| part["text"].as_str()).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends by panicking")]
mod tests {
    use super::*;

    fn told(dialect: Dialect, frames: &str) -> Told {
        let mut told = Told::of(dialect);
        // Byte by byte: how it is cut changes nothing.
        frames.as_bytes().chunks(1).for_each(|byte| told.take(byte));
        told.close();
        told
    }

    #[test]
    fn a_legal_stream_is_read_to_its_end_in_every_dialect() {
        let streams = [
            (
                Dialect::Chat,
                "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            ),
            (
                Dialect::Messages,
                "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"text\":\"hi\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            ),
            (
                Dialect::Responses,
                "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0}\n\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":\"hi\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2}\n\n",
            ),
            (
                Dialect::Gemini,
                "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]},\"finishReason\":\"STOP\"}]}\n\n",
            ),
        ];
        for (dialect, stream) in streams {
            let told = told(dialect, stream);
            assert_eq!((told.text.as_str(), &told.illegal), ("hi", &None), "{dialect:?}");
            assert!(matches!(told.end(), End::Finished(_)), "{dialect:?}");
        }
    }

    #[test]
    fn what_is_no_legal_stream_is_told_from_one() {
        let chat = |frames: &str| told(Dialect::Chat, frames);
        let word = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
        let stop = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let done = "data: [DONE]\n\n";
        for frames in [
            word.to_owned(),
            format!("{word}{done}"),
            format!("{word}{stop}{word}{done}"),
            format!("{word}{stop}{done}{word}"),
            format!("{word}{stop}{stop}{done}"),
            format!("nonsense\n{word}{stop}{done}"),
            format!("data: {{\n\n{stop}{done}"),
        ] {
            assert!(chat(&frames).illegal.is_some(), "{frames}");
        }
        let failed = chat(&format!("{word}data: {{\"error\":{{\"message\":\"no\"}}}}\n\n"));
        assert_eq!((failed.illegal.clone(), failed.end()), (None, End::Error("\"no\"".into())));
        let skipped = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2}\n\n";
        assert!(told(Dialect::Responses, skipped).illegal.is_some());
    }
}

//! One conversation, whoever holds it: a question, two calls at once, another call, a last word, and a next question.

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::recorded::Recorded;
use turnkeep_dialect::reply::{self, Asked, Facts, ReplyOptions, StreamCodec};

pub const FIRST: &str = "Make the tests pass.";
pub const NEXT: &str = "Thanks. And now?";

/// What the model says to each request but the last.
pub struct Answer {
    pub thought: &'static str,
    pub text: &'static str,
    /// Names, arguments as the model spells them, and what the tool answers.
    pub calls: &'static [(&'static str, &'static str, &'static str)],
}

pub const ANSWERS: [Answer; 3] = [
    Answer {
        thought: "Both at once.",
        text: "I will look.\n",
        calls: &[
            ("read", r#"{"path": "a b.rs", "lines": 20.0}"#, "fn main() {}\n"),
            ("exec", r#"{ "argv":["make","test"] }"#, "1 failed"),
        ],
    },
    Answer {
        thought: "",
        text: "  Let me \u{201c}fix\u{201d} it. \n",
        calls: &[("exec", r#"{"argv":["sed","-i","s/a/\u00e9/"]}"#, "")],
    },
    Answer { thought: "It works.", text: "Done.\n\nAll pass. \n", calls: &[] },
];

/// Turns of which each goes on with the one before.
pub const TURNS: usize = ANSWERS.len();

/// The answer to a request as a client of a dialect gets it, as a stream and as one body.
pub fn answer(client: Dialect, turn: usize) -> [Recorded; 2] {
    let answer = &ANSWERS[turn];
    let call = |(number, (name, arguments, _)): (usize, &(&str, &str, &str))| json!({"index":number,"id":format!("call_{turn}_{number}"),"type":"function","function":{"name":name,"arguments":arguments}});
    let calls: Vec<Value> = answer.calls.iter().enumerate().map(call).collect();
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    let mut message = json!({"role":"assistant","content":answer.text});
    if !answer.thought.is_empty() {
        message["reasoning_content"] = json!(answer.thought);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let whole = json!({"id":"c","object":"chat.completion","created":1,"model":"up",
        "choices":[{"index":0,"message":message,"finish_reason":finish}],
        "usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}});
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id":"c","object":"chat.completion.chunk","created":1,"model":"up",
            "choices":[{"index":0,"delta":delta,"finish_reason":finish}]});
        format!("data: {chunk}\n\n")
    };
    let mut stream = chunk(json!({"role":"assistant","content":""}), Value::Null);
    if !answer.thought.is_empty() {
        stream += &chunk(json!({"reasoning_content":answer.thought}), Value::Null);
    }
    for letter in answer.text.chars() {
        stream += &chunk(json!({"content":letter.to_string()}), Value::Null);
    }
    for call in &calls {
        stream += &chunk(json!({"tool_calls":[call]}), Value::Null);
    }
    stream += &chunk(json!({}), json!(finish));
    stream += "data: [DONE]\n\n";
    if client == Dialect::Chat {
        return [recorded(client, true, stream.into()), recorded(client, false, whole.to_string().into())];
    }
    let options = ReplyOptions {
        client,
        upstream: Dialect::Chat,
        model: "m".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Asked::default(),
    };
    let (mut codec, mut pieces) = (StreamCodec::new(&options), Vec::new());
    codec.feed(stream.into(), &mut pieces).unwrap();
    codec.finish(&mut pieces).unwrap();
    let streamed: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
    let (plain, _) = reply::plain(&options, whole.to_string().into()).unwrap();
    [recorded(client, true, streamed.into()), recorded(client, false, plain)]
}

fn recorded(dialect: Dialect, stream: bool, bytes: Bytes) -> Recorded {
    Recorded { dialect, stream, bytes, facts: Facts::default() }
}

/// The arguments as another program spells them.
pub fn respelled(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap()
}

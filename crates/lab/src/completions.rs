//! OpenAI's older completions as an upstream speaks them.

use serde_json::{Value, json};

use crate::answer::{Answer, Finish};
use crate::ask::Ask;
use crate::frame::{Mark, Piece};

fn body(answer: &Answer, text: &str, reason: Value) -> Value {
    json!({
        "id": format!("cmpl-lab{:06}", answer.id), "object": "text_completion", "created": 1_793_000_000,
        "model": answer.model, "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": reason}],
    })
}

fn reason(answer: &Answer) -> Value {
    match &answer.finish {
        Finish::Length => json!("length"),
        Finish::Other(word) => json!(word),
        Finish::Stop | Finish::StopSequence(_) | Finish::ToolCalls | Finish::Refusal => json!("stop"),
    }
}

fn usage(answer: &Answer) -> Value {
    let usage = &answer.usage;
    json!({"prompt_tokens": usage.prompt, "completion_tokens": usage.completion, "total_tokens": usage.prompt + usage.completion})
}

/// The reply in one body.
pub(crate) fn whole(answer: &Answer) -> Vec<u8> {
    let mut body = body(answer, &answer.words.concat(), reason(answer));
    body["usage"] = usage(answer);
    body.to_string().into_bytes()
}

/// The reply as a stream.
pub(crate) fn stream(ask: &Ask, answer: &Answer) -> Vec<Piece> {
    let frame = |chunk: &Value| format!("data: {chunk}\n\n");
    let mut pieces: Vec<Piece> =
        answer.words.iter().map(|word| Piece::new(Mark::Word, frame(&body(answer, word, Value::Null)))).collect();
    pieces.push(Piece::new(Mark::Finish, frame(&body(answer, "", reason(answer)))));
    if ask.include_usage {
        let mut last = body(answer, "", Value::Null);
        last["choices"] = json!([]);
        last["usage"] = usage(answer);
        pieces.push(Piece::new(Mark::Finish, frame(&last)));
    }
    pieces.push(Piece::new(Mark::Terminal, "data: [DONE]\n\n"));
    pieces
}

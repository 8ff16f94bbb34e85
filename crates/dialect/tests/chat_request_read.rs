//! A Chat request as it is read on every turn: what is refused, by which path, and which bytes change on the way.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use bytes::Bytes;
use proptest::prelude::*;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, Operation, read};

fn chat(body: &str) -> Result<ClientRequest, Invalid> {
    read(Dialect::Chat, Operation::Generate, Bytes::copy_from_slice(body.as_bytes()))
}

/// A request with these extra fields and one user message.
fn with(fields: &str) -> Result<ClientRequest, Invalid> {
    chat(&format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}]{fields}}}"#))
}

/// A request of this one message.
fn saying(message: &str) -> Result<ClientRequest, Invalid> {
    chat(&format!(r#"{{"model":"m","messages":[{message}]}}"#))
}

#[test]
fn what_the_gateway_must_know_is_found() {
    let request =
        with(r#","stream":true,"stream_options":{"include_usage":true},"max_tokens":5,"n":2,"x":[{"y":1}]"#).unwrap();
    assert_eq!((request.model.as_str(), request.stream, request.usage_wanted), ("m", true, true));
    assert_eq!((request.max_output, request.choices), (Some(5), 2));
    let both = with(r#","max_completion_tokens":9,"max_tokens":5,"n":null,"stream":null"#).unwrap();
    assert_eq!((both.max_output, both.choices, both.stream), (Some(9), 1, false));
}

#[test]
fn errors_name_the_path() {
    for (body, path, message) in [
        (r#"[]"#, "", "expected an object, found an array"),
        (r#"{"messages":[{"role":"user","content":""}]}"#, "model", "missing"),
        (r#"{"model":"m"}"#, "messages", "missing"),
        (r#"{"model":"","messages":[]}"#, "model", "empty string"),
        (r#"{"model":7,"messages":[]}"#, "model", "expected a string, found a number"),
        (r#"{"model":"m","messages":[]}"#, "messages", "at least one message"),
        (r#"{"model":"m","messages":"hi"}"#, "messages", "expected an array, found a string"),
        (r#"{"model":"m","messages":["hi"]}"#, "messages[0]", "expected an object, found a string"),
        (r#"{"model":"m","messages":[{"content":"x"}]}"#, "messages[0].role", "missing"),
        (r#"{"model":"m","messages":[{"role":"robot","content":"x"}]}"#, "messages[0].role", "unknown role `robot`"),
        (r#"{"model":"m","messages":[{"role":"user"}]}"#, "messages[0].content", "missing"),
        (r#"{"model":"m","messages":[{"role":"user","content":null}]}"#, "messages[0].content", "found null"),
        (r#"{"model":"m","messages":[{"role":"user","content":5}]}"#, "messages[0].content", "a string or an array"),
        (
            r#"{"model":"m","messages":[{"role":"user","content":["x"]}]}"#,
            "messages[0].content[0]",
            "expected an object",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"text":"x"}]}]}"#,
            "messages[0].content[0].type",
            "missing",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"text":5,"type":"text"}]}]}"#,
            "messages[0].content[0].text",
            "expected a string",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}"#,
            "messages[0].content[0].text",
            "missing",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":5}}]}]}"#,
            "messages[0].content[0].image_url.url",
            "expected a string",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":[]}]}]}"#,
            "messages[0].content[0].image_url",
            "an object",
        ),
        (r#"{"model":"m","messages":[{"role":"tool","content":"x"}]}"#, "messages[0].tool_call_id", "missing"),
        (r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[]}]}"#, "messages[0].content", "missing"),
        (
            r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]}]}"#,
            "messages[0].tool_calls[0].function.arguments",
            "expected a string, found an object",
        ),
        (
            r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":""}}]}]}"#,
            "messages[0].tool_calls[0].id",
            "missing",
        ),
    ] {
        let error = chat(body).unwrap_err();
        assert_eq!(error.path, path, "{body}");
        assert!(error.message.contains(message), "{body}: {}", error.message);
    }
    for (fields, path) in [
        (r#","stream":"yes""#, "stream"),
        (r#","stream_options":[]"#, "stream_options"),
        (r#","stream_options":{"include_usage":1}"#, "stream_options.include_usage"),
        (r#","max_tokens":-1"#, "max_tokens"),
        (r#","max_completion_tokens":1.5"#, "max_completion_tokens"),
        (r#","n":0"#, "n"),
        (r#","tools":{}"#, "tools"),
        (r#","tools":["x"]"#, "tools[0]"),
        (r#","tools":[{"type":"function"}]"#, "tools[0].function"),
        (r#","tools":[{"type":"function","function":{}}]"#, "tools[0].function.name"),
        (r#","tools":[{"type":"function","function":{"name":7}}]"#, "tools[0].function.name"),
        (r#","tools":[{"type":"function","function":{"name":"f","parameters":"x"}}]"#, "tools[0].function.parameters"),
        (r#","tool_choice":5"#, "tool_choice"),
        (r#","tool_choice":{"function":{"name":"f"}}"#, "tool_choice.type"),
        (r#","tool_choice":{"type":5}"#, "tool_choice.type"),
        (r#","response_format":{}"#, "response_format.type"),
        (r#","response_format":{"type":[]}"#, "response_format.type"),
        (r#","tools":[{"type":"function","function":{"name":"f","description":5}}]"#, "tools[0].function.description"),
        (r#","parallel_tool_calls":"yes""#, "parallel_tool_calls"),
        (r#","seed":"x""#, "seed"),
        (r#","reasoning_effort":3"#, "reasoning_effort"),
        (r#","user":{}"#, "user"),
        (r#","metadata":"x""#, "metadata"),
        (r#","temperature":"hot""#, "temperature"),
        (r#","stop":5"#, "stop"),
        (r#","stop":["a",null]"#, "stop[1]"),
        (r#","response_format":"json""#, "response_format"),
    ] {
        assert_eq!(with(fields).unwrap_err().path, path, "{fields}");
    }
}

#[test]
fn every_form_of_message_that_chat_knows_passes() {
    for message in [
        r#"{"role":"system","content":"x"}"#,
        r#"{"role":"developer","content":[{"type":"text","text":"x"}]}"#,
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x"}},{"type":"of_tomorrow"}],"name":"n"}"#,
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"assistant","refusal":"no"}"#,
        r#"{"role":"assistant","audio":{"id":"a"}}"#,
        r#"{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}"#,
        r#"{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]}"#,
        r#"{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}"#,
        r#"{"role":"function","name":"f","content":null}"#,
        r#"{"content":"the role comes last \ud83d","role":"user"}"#,
    ] {
        assert!(saying(message).is_ok(), "{message}: {:?}", saying(message));
    }
}

#[test]
fn a_field_that_the_gateway_reads_may_stand_there_once() {
    for (fields, name) in [
        (r#","model":"other""#, "model"),
        (r#","messages":[{"role":"user","content":"x"}]"#, "messages"),
        (r#","stream":true,"stream":false"#, "stream"),
        (r#","stream_options":null,"stream_options":{}"#, "stream_options"),
        (r#","stream_options":{"include_usage":true,"include_usage":false}"#, "include_usage"),
        (r#","max_tokens":1,"max_tokens":1"#, "max_tokens"),
        (r#","max_completion_tokens":1,"max_completion_tokens":2"#, "max_completion_tokens"),
        (r#","n":1,"n":2"#, "n"),
        (r#","mod\u0065l":"other""#, "model"),
    ] {
        let message = with(fields).unwrap_err().message;
        assert!(message.starts_with(&format!("duplicate `{name}`")), "{fields}: {message}");
    }
    assert!(with(r#","seed":1,"seed":2"#).is_ok());
}

#[test]
fn only_a_stream_without_usage_is_made_to_ask_for_it_and_every_other_byte_stays() {
    for (fields, changed) in [
        (
            r#","stream":true"#,
            Some(
                r#"{"model":"m","stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}],"stream":true}"#,
            ),
        ),
        (
            r#", "stream" :true,"stream_options" : { "include_usage" : false , "x":1}"#,
            Some(
                r#"{"model":"m","messages":[{"role":"user","content":"hi"}], "stream" :true,"stream_options" : { "include_usage" : true , "x":1}}"#,
            ),
        ),
        (
            r#","stream":true,"stream_options":{"include_usage":null}"#,
            Some(
                r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
        ),
        (
            r#","stream":true,"stream_options":{ }"#,
            Some(
                r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true }}"#,
            ),
        ),
        (
            r#","stream":true,"stream_options":{"x":1}"#,
            Some(
                r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true,"x":1}}"#,
            ),
        ),
        (
            r#","stream":true,"stream_options":null"#,
            Some(
                r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
        ),
        (r#","stream":true,"stream_options":{"include_usage":true}"#, None),
        (r#","stream":false"#, None),
        (r#","stream_options":null"#, None),
    ] {
        let request = with(fields).unwrap();
        let sent = request.pass_through("m");
        let sent = std::str::from_utf8(&sent).unwrap();
        assert_eq!(sent, changed.unwrap_or(std::str::from_utf8(&request.body).unwrap()), "{fields}");
        if changed.is_some() {
            let again = chat(sent).unwrap();
            assert!(again.usage_wanted, "{fields}");
            assert_eq!(again.edits("m"), []);
        }
    }
}

#[test]
fn the_model_is_renamed_in_its_place() {
    let request =
        chat("{ \"messages\":[{\"role\":\"user\",\"content\":\"m\"}],\n\"model\" : \"m\", \"stream\":true}").unwrap();
    let sent = request.pass_through("up/\"m\"");
    assert_eq!(
        std::str::from_utf8(&sent).unwrap(),
        "{ \"messages\":[{\"role\":\"user\",\"content\":\"m\"}],\n\"model\" : \"up/\\\"m\\\"\",\"stream_options\":{\"include_usage\":true}, \"stream\":true}"
    );
}

/// Pieces that make near-requests.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"model\"",
        "\"messages\"",
        "\"role\"",
        "\"content\"",
        "\"user\"",
        "\"tool_calls\"",
        "\"stream\"",
        "\"stream_options\"",
        "\"include_usage\"",
        "null",
        "true",
        "1",
        "\"type\"",
        "\"text\"",
        "\"function\"",
        "{\"role\":\"user\",\"content\":\"x\"}",
        "\\",
        "\u{7f}",
        " ",
    ])
}

proptest! {
    #[test]
    fn no_body_makes_it_panic_and_what_it_takes_can_be_passed_on(pieces in prop::collection::vec(piece(), 0..24)) {
        if let Ok(request) = chat(&pieces.concat()) {
            let sent = request.pass_through("other");
            let again = chat(std::str::from_utf8(&sent).unwrap()).unwrap();
            prop_assert_eq!(again.model.as_str(), "other");
            let _turn = request.turn();
        }
    }

    #[test]
    fn whatever_fields_stand_around_the_edits_leave_valid_json_that_asks_for_usage(
        options in prop::sample::select(vec!["", "\"stream_options\":null,", "\"stream_options\":{},", "\"stream_options\":{\"a\":{\"include_usage\":7}},",
            "\"stream_options\":{\"include_usage\":false,\"b\":[]},", "\"stream_options\" : {\n \"b\":1 ,\"include_usage\"\t:\nnull},"]),
        model in "[^\"\\\\\u{0}-\u{1f}\u{7f}-\u{9f}]{1,8}", upstream in "\\PC{1,8}", swap in any::<bool>(),
    ) {
        let model = format!("\"model\":\"{model}\",");
        let (a, b) = if swap { (options, model.as_str()) } else { (model.as_str(), options) };
        let body = format!("{{{a}{b}\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}}],\"stream\":true}}");
        let sent = chat(&body).unwrap().pass_through(&upstream);
        let value: serde_json::Value = serde_json::from_slice(&sent).unwrap();
        prop_assert_eq!(&value["model"], &upstream);
        prop_assert_eq!(&value["stream_options"]["include_usage"], &true);
    }
}

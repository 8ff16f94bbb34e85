//! A Gemini upstream's answer as canonical events, streamed and plain.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

mod gemini_said;

use gemini_said::{answer, decode, decode_by, last, lawful, options, parts, short, stream};
use turnkeep_base::{FaultKind, Usage};
use turnkeep_dialect::event::{Event, Finish};
use turnkeep_dialect::gemini::reply_decode::{StreamDecoder, plain, plain_strict};

#[track_caller]
fn golden(candidates: &[&str], expected: &[&str]) {
    let stream = stream(candidates);
    let whole = decode(&[stream.as_bytes()]).unwrap();
    assert_eq!(short(&whole), [&["start r1 up"], expected, &["end"]].concat());
    lawful(&whole);
    for at in 0..stream.len() {
        let (first, second) = stream.as_bytes().split_at(at);
        assert_eq!(decode(&[first, second]).as_ref(), Ok(&whole), "split at {at}");
    }
}

#[test]
fn a_plain_stream_of_text() {
    golden(
        &[&parts(r#"{"text":"a"}"#), &parts(r#"{"text":"\u00e9"},{"text":"c"}"#), &last(r#"{"text":""}"#, "STOP")],
        &["+0 text", "0 a", "0 é", "0 c", "-0", "usage 9+5", "finish Stop"],
    );
}

#[test]
fn a_signature_on_a_call_stands_at_the_thinking_right_before_it() {
    golden(
        &[
            &parts(r#"{"text":"hm","thought":true}"#),
            &last(
                r#"{"functionCall":{"id":"a","name":"f","args":{"x":1.50}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"b","name":"g","args":{}}}"#,
                "STOP",
            ),
        ],
        &[
            "+0 thinking",
            "0 hm",
            "0 signed turnkeep.gemini.c2ln",
            "-0",
            "+1 call a f",
            r#"1 {"x":1.50}"#,
            "-1",
            "+2 call b g",
            "2 {}",
            "-2",
            "usage 9+5",
            "finish ToolCalls",
        ],
    );
}

#[test]
fn a_signed_call_without_thinking_gets_an_empty_one_and_a_signed_thinking_is_not_signed_twice() {
    golden(
        &[
            &parts(r#"{"text":"hm","thought":true,"thoughtSignature":"b25l"}"#),
            &parts(r#"{"text":"let me"}"#),
            &last(
                r#"{"functionCall":{"name":"f"},"thoughtSignature":"dHdv"},{"functionCall":{"name":"f","id":""},"thoughtSignature":"dHJl"}"#,
                "STOP",
            ),
        ],
        &[
            "+0 thinking",
            "0 hm",
            "0 signed turnkeep.gemini.b25l",
            "-0",
            "+1 text",
            "1 let me",
            "-1",
            "+2 thinking",
            "2 signed turnkeep.gemini.dHdv",
            "-2",
            "+3 call call_own_0 f",
            "-3",
            "+4 thinking",
            "4 signed turnkeep.gemini.dHJl",
            "-4",
            "+5 call call_own_1 f",
            "-5",
            "usage 9+5",
            "finish ToolCalls",
        ],
    );
}

#[test]
fn a_state_of_another_dialect_comes_back_as_what_it_was() {
    // `turnkeep.responses.gA`, `turnkeep.messages.ErUB` and `turnkeep.redacted.turnkeep.messages.Em`, in base 64.
    golden(
        &[
            &parts(r#"{"text":"","thought":true,"thoughtSignature":"dHVybmtlZXAucmVzcG9uc2VzLmdB"}"#),
            &parts(r#"{"text":"","thought":true,"thoughtSignature":"dHVybmtlZXAubWVzc2FnZXMuRXJVQg=="}"#),
            &last(
                r#"{"functionCall":{"id":"a","name":"f"},"thoughtSignature":"dHVybmtlZXAucmVkYWN0ZWQudHVybmtlZXAubWVzc2FnZXMuRW0="}"#,
                "STOP",
            ),
        ],
        &[
            "+0 thinking",
            "0 signed turnkeep.responses.gA",
            "-0",
            "+1 thinking",
            "1 signed ErUB",
            "-1",
            "+2 redacted Em",
            "-2",
            "+3 call a f",
            "-3",
            "usage 9+5",
            "finish ToolCalls",
        ],
    );
}

#[test]
fn a_texts_signature_means_nothing_elsewhere_and_is_kept_in_our_own_record() {
    let stream = stream(&[&parts(r#"{"text":"a"}"#), &last(r#"{"text":"","thoughtSignature":"c2ln"}"#, "STOP")]);
    let elsewhere = decode(&[stream.as_bytes()]).unwrap();
    assert_eq!(short(&elsewhere), ["start r1 up", "+0 text", "0 a", "-0", "usage 9+5", "finish Stop", "end"]);
    let own = decode_by(StreamDecoder::strict(&options()), &[stream.as_bytes()]).unwrap();
    assert_eq!(
        short(&own),
        [
            "start r1 up",
            "+0 text",
            "0 a",
            "-0",
            "+1 thinking",
            "1 signed turnkeep.gemini.c2ln",
            "-1",
            "usage 9+5",
            "finish Stop",
            "end"
        ]
    );
}

#[test]
fn calls_without_ids_or_with_one_id_for_all_get_ids_that_are_the_same_every_time() {
    golden(
        &[
            &parts(r#"{"functionCall":{"name":"f","id":"x"}},{"functionCall":{"name":"f","id":"x"}}"#),
            &last(
                r#"{"functionCall":{"name":"f"}},{"functionCall":{"name":"g","id":"call_own_4"}},{"functionCall":{"name":"g"}}"#,
                "STOP",
            ),
        ],
        &[
            "+0 call x f",
            "-0",
            "+1 call call_own_1 f",
            "-1",
            "+2 call call_own_2 f",
            "-2",
            "+3 call call_own_4 g",
            "-3",
            "+4 call call_own_5 g",
            "-4",
            "usage 9+5",
            "finish ToolCalls",
        ],
    );
}

#[test]
fn fields_are_read_in_both_spellings() {
    let stream = concat!(
        r#"data: {"candidates":[{"content":{"parts":[{"thought_signature":"c2ln","function_call":{"name":"f","args":{}}},"#,
        r#"{"inline_data":{"mime_type":"image/png","data":"AAAA"}},{"executable_code":{"language":"PYTHON","code":"1"}},"#,
        r#"{"code_execution_result":{"outcome":"OUTCOME_OK","output":"2\n"}}]},"finish_reason":"MAX_TOKENS"}],"#,
        r#""usage_metadata":{"prompt_token_count":10,"cached_content_token_count":4,"tool_use_prompt_token_count":3,"#,
        r#""candidates_token_count":5,"thoughts_token_count":6},"model_version":"m","response_id":"r"}"#,
        "\n\n"
    );
    let events = decode(&[stream.as_bytes()]).unwrap();
    assert_eq!(
        short(&events),
        [
            "start r m",
            "+0 thinking",
            "0 signed turnkeep.gemini.c2ln",
            "-0",
            "+1 call call_own_0 f",
            "1 {}",
            "-1",
            "+2 text",
            "2 [image omitted: image/png, 3 bytes]",
            "2 \n```python\n1\n```\n",
            "2 \n```\n2\n```\n",
            "-2",
            "usage 13+11",
            "finish Length",
            "end"
        ]
    );
    let usage = Usage { input: 9, cache_read: 4, cache_write: 0, output: 11, reasoning: 6 };
    assert!(events.contains(&Event::Usage(usage)), "{events:?}");
}

#[test]
fn the_last_usage_wins_also_when_it_follows_the_finish_reason() {
    let usage =
        |prompt: u64, more: &str| format!("data: {{\"usageMetadata\":{{\"promptTokenCount\":{prompt}{more}}}}}\n\n");
    let first = usage(9, "");
    let late = usage(9, ",\"candidatesTokenCount\":70,\"thoughtsTokenCount\":2,\"cachedContentTokenCount\":4");
    let latest = usage(10, "");
    let stream = [first, stream(&[&last(r#"{"text":"a"}"#, "STOP")]), late, latest].concat();
    let events = decode(&[stream.as_bytes()]).unwrap();
    let last = events.iter().rev().find_map(|event| if let Event::Usage(usage) = event { Some(*usage) } else { None });
    assert_eq!(last, Some(Usage::from_inclusive(10, 4, 0, 72, 2)));
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Usage(_))).count(), 1);
    assert!(matches!(events.first(), Some(Event::Start { usage: Some(usage), .. }) if usage.total_input() == 9));
}

#[test]
fn finish_reasons_mean_what_was_done_rather_than_what_was_said() {
    let (text, call, none) = (r#"{"text":"x"}"#, r#"{"functionCall":{"name":"f"}}"#, "");
    for (parts, reason, finish) in [
        (text, "STOP", Finish::Stop),
        (none, "STOP", Finish::Stop),
        (call, "STOP", Finish::ToolCalls),
        (call, "FUNCTION_CALL", Finish::ToolCalls),
        (call, "TOOL_CALLS", Finish::ToolCalls),
        (text, "TOOL_CALLS", Finish::Stop),
        (call, "MAX_TOKENS", Finish::Length),
        (text, "MAX_TOKENS", Finish::Length),
        (call, "SAFETY", Finish::Refusal),
        (text, "RECITATION", Finish::Refusal),
        (text, "LANGUAGE", Finish::Refusal),
        (text, "OTHER", Finish::Refusal),
        (text, "BLOCKLIST", Finish::Refusal),
        (none, "PROHIBITED_CONTENT", Finish::Refusal),
        (text, "SPII", Finish::Refusal),
        (text, "IMAGE_SAFETY", Finish::Refusal),
        (text, "MODEL_ARMOR", Finish::Refusal),
        (text, "CONTINUATION", Finish::Pause),
        (text, "SOMETHING_NEW", Finish::Length),
        (none, "SOMETHING_NEW", Finish::Refusal),
        (call, "SOMETHING_NEW", Finish::Length),
        (none, "NO_IMAGE", Finish::Refusal),
    ] {
        let candidate = last(parts, reason);
        let expected = Event::Finish { reason: finish, stop_sequence: None };
        let events = decode(&[stream(&[&candidate]).as_bytes()]).unwrap();
        assert!(events.contains(&expected), "{parts} {reason}: {events:?}");
        let events = plain(answer(&candidate).as_bytes(), &options()).unwrap();
        assert!(events.contains(&expected), "{parts} {reason}: {events:?}");
        lawful(&events);
    }
}

#[test]
fn a_reason_that_tells_of_a_broken_answer_is_a_fault_with_its_words() {
    for (reason, kind) in [
        ("MALFORMED_FUNCTION_CALL", FaultKind::MalformedResponse),
        ("UNEXPECTED_TOOL_CALL", FaultKind::MalformedResponse),
        ("TOO_MANY_TOOL_CALLS", FaultKind::MalformedResponse),
        ("MALFORMED_RESPONSE", FaultKind::MalformedResponse),
        ("MISSING_THOUGHT_SIGNATURE", FaultKind::RequestInvalid),
    ] {
        let candidate = format!(r#""finishReason":"{reason}","finishMessage":"why","index":0"#);
        let fault = decode(&[stream(&[&candidate]).as_bytes()]).unwrap_err();
        assert_eq!(
            (fault.kind, fault.evidence.code.as_deref(), fault.evidence.detail.as_str()),
            (kind, Some(reason.to_lowercase().as_str()), "why")
        );
        assert_eq!(plain(answer(&candidate).as_bytes(), &options()).unwrap_err(), fault);
    }
}

#[test]
fn an_answer_that_stops_without_a_finish_reason_is_truncated() {
    for candidates in [
        vec![parts(r#"{"text":"a"}"#)],
        vec![parts(r#"{"functionCall":{"name":"f"}}"#)],
        vec![last(r#"{"text":"a"}"#, "FINISH_REASON_UNSPECIFIED")],
        vec![],
    ] {
        let candidates: Vec<&str> = candidates.iter().map(String::as_str).collect();
        let bytes = stream(&candidates);
        assert_eq!(decode(&[bytes.as_bytes()]).unwrap_err().kind, FaultKind::StreamTruncated, "{bytes}");
        let done = bytes + "data: [DONE]\n\n";
        assert_eq!(decode(&[done.as_bytes()]).unwrap_err().kind, FaultKind::StreamTruncated, "{done}");
    }
    let body = answer(&parts(r#"{"text":"a"}"#));
    assert_eq!(plain(body.as_bytes(), &options()).unwrap_err().kind, FaultKind::StreamTruncated);
}

#[test]
fn an_error_is_a_fault_in_every_place_where_servers_write_it() {
    let error = r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}"#;
    let list = format!("[{error}]");
    let pretty = "{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"slow down\",\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}\n";
    let before = stream(&[&parts(r#"{"text":"a"}"#)]);
    for after in [
        format!("data: {error}\n\n"),
        format!("data: {list}\n\n"),
        error.to_owned(),
        format!("{list}\n"),
        pretty.to_owned(),
        format!("{pretty}\n"),
    ] {
        let stream = format!("{before}{after}");
        let fault = decode(&[stream.as_bytes()]).unwrap_err();
        assert_eq!((fault.kind, fault.evidence.detail.as_str()), (FaultKind::RateLimited, "slow down"), "{after}");
    }
    for body in [error, &list, pretty] {
        assert_eq!(plain(body.as_bytes(), &options()).unwrap_err().kind, FaultKind::RateLimited, "{body}");
    }
}

#[test]
fn a_blocked_prompt_is_a_fault_streamed_and_plain() {
    let body =
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3},"modelVersion":"m"}"#;
    let stream = format!("data: {body}\n\n");
    for fault in [decode(&[stream.as_bytes()]).unwrap_err(), plain(body.as_bytes(), &options()).unwrap_err()] {
        assert_eq!((fault.kind, fault.evidence.code.as_deref()), (FaultKind::PolicyBlocked, Some("safety")));
    }
    let harmless = r#"data: {"promptFeedback":{"safetyRatings":[]},"candidates":[{"finishReason":"STOP"}]}"#;
    let events = decode(&[harmless.as_bytes(), b"\n\n"]).unwrap();
    assert_eq!(short(&events), ["start - -", "finish Stop", "end"]);
}

#[test]
fn what_no_event_can_hold_is_passed_over_in_translation_and_a_fault_in_our_own_record() {
    let more = [
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","groundingMetadata":{"x":1}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP","index":1}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"toolCall":{"id":"t"}}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"fileData":{"fileUri":"u"}}]},"finishReason":"STOP"}]}"#,
    ];
    for body in more {
        let events = plain(body.as_bytes(), &options()).unwrap();
        assert_eq!(short(&events), ["start - -", "+0 text", "0 a", "-0", "finish Stop", "end"], "{body}");
        assert_eq!(plain_strict(body.as_bytes(), &options()).unwrap_err().kind, FaultKind::MalformedResponse, "{body}");
        let stream = format!("data: {body}\n\n");
        let strict = decode_by(StreamDecoder::strict(&options()), &[stream.as_bytes()]);
        assert_eq!(strict.unwrap_err().kind, FaultKind::MalformedResponse, "{body}");
    }
    let image = r#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]},"finishReason":"STOP"}]}"#;
    assert!(
        short(&plain(image.as_bytes(), &options()).unwrap()).contains(&"0 [image omitted: image/png, 1 bytes]".into())
    );
    assert!(plain_strict(image.as_bytes(), &options()).is_err());
    // What tells a client nothing of the answer does not count.
    let harmless = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","safetyRatings":[{}],"avgLogprobs":-1.5,"citationMetadata":null}]}"#;
    assert!(plain_strict(harmless.as_bytes(), &options()).is_ok());
}

#[test]
fn calls_that_are_no_calls_are_malformed_and_arguments_are_taken_as_they_come() {
    for call in [
        r#"{"args":{}}"#,
        r#"{"name":"","args":{}}"#,
        r#"{"name":"f","partialArgs":[{"jsonPath":"$.a","stringValue":"x"}]}"#,
        r#"{"name":"f","willContinue":true}"#,
    ] {
        let stream = stream(&[&last(&format!(r#"{{"functionCall":{call}}}"#), "STOP")]);
        assert_eq!(decode(&[stream.as_bytes()]).unwrap_err().kind, FaultKind::MalformedResponse, "{call}");
    }
    for (args, delta) in [
        (r#""args":{"a":[1, 2]}"#, Some(r#"1 {"a":[1, 2]}"#)),
        (r#""args":"{\"a\":1}""#, Some(r#"1 {"a":1}"#)),
        (r#""args":null"#, None),
        (r#""partialArgs":[],"willContinue":false"#, None),
    ] {
        let call = format!(r#"{{"text":"x"}},{{"functionCall":{{"id":"i","name":"f",{args}}}}}"#);
        let events = short(&decode(&[stream(&[&last(&call, "STOP")]).as_bytes()]).unwrap());
        let expected: Vec<&str> = ["+1 call i f"].into_iter().chain(delta).chain(["-1"]).collect();
        assert_eq!(events[4..events.len() - 3], expected, "{args}");
    }
}

#[test]
fn no_more_calls_are_taken_than_memory_is_meant_for() {
    let calls = |number: usize| vec![r#"{"functionCall":{"name":"f"}}"#; number].join(",");
    assert!(plain(answer(&last(&calls(1024), "STOP")).as_bytes(), &options()).is_ok());
    let fault = plain(answer(&last(&calls(1025), "STOP")).as_bytes(), &options()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::MalformedResponse);
}

#[test]
fn bytes_that_are_not_the_protocol_are_malformed_and_fields_of_another_type_are_passed_over() {
    for body in ["7", "[]", "[{}]", "{", "{\"candidates\":[]}", "{\"candidates\":7}", "{}", "null", "\u{0}", ""] {
        assert_eq!(plain(body.as_bytes(), &options()).unwrap_err().kind, FaultKind::MalformedResponse, "{body}");
    }
    assert_eq!(decode(&[b"data: \xff\n\n"]).unwrap_err().kind, FaultKind::MalformedResponse);
    let odd = r#"{"candidates":[{"content":{"parts":[7,{"text":5,"thought":"x","thoughtSignature":9},{"functionCall":3},{"text":"a"}],"role":1},"finishReason":"STOP","index":"0","finishMessage":4}],"usageMetadata":[],"modelVersion":3,"responseId":{},"promptFeedback":""}"#;
    let events = plain(odd.as_bytes(), &options()).unwrap();
    assert_eq!(short(&events), ["start - -", "+0 text", "0 a", "-0", "finish Stop", "end"]);
}

#[test]
fn comments_blank_lines_and_a_done_after_the_end_say_nothing() {
    let end = stream(&[&last(r#"{"text":"a"}"#, "STOP")]);
    let noisy = format!(": hi\n\n\n\ndata:\n\n{end}: bye\n\ndata: [DONE]\n\n");
    assert_eq!(decode(&[noisy.as_bytes()]), decode(&[end.as_bytes()]));
}

#[test]
fn a_server_that_repeats_its_finish_reason_in_every_chunk_is_read_to_its_end() {
    golden(
        &[
            &last(r#"{"text":"a"}"#, "STOP"),
            &last(r#"{"text":"b"}"#, "STOP"),
            &last(r#"{"functionCall":{"id":"i","name":"f"}}"#, "STOP"),
        ],
        &["+0 text", "0 a", "0 b", "-0", "+1 call i f", "-1", "usage 9+5", "finish ToolCalls"],
    );
}

#[test]
fn thinking_keeps_its_place_before_the_text_and_the_call_that_it_led_to() {
    golden(
        &[
            &parts(r#"{"text":"one","thought":true},{"text":"a"},{"text":"two","thought":true}"#),
            &last(r#"{"functionCall":{"id":"i","name":"f"},"thoughtSignature":"c2ln"},{"text":"b"}"#, "STOP"),
        ],
        &[
            "+0 thinking",
            "0 one",
            "-0",
            "+1 text",
            "1 a",
            "-1",
            "+2 thinking",
            "2 two",
            "2 signed turnkeep.gemini.c2ln",
            "-2",
            "+3 call i f",
            "-3",
            "+4 text",
            "4 b",
            "-4",
            "usage 9+5",
            "finish ToolCalls",
        ],
    );
}

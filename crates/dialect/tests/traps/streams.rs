//! How answers begin, end and are numbered.

use crate::answers::{Say, call, chat_stream, messages_stream, streamed, text, think, whole};
use crate::heard;
use crate::pairs::{answered, every_pair, feed, joined, lawful, options, streamed as heard_by};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnkeep_base::{Dialect, FaultKind};
use turnkeep_dialect::event::Class;

/// What ends a stream in success.
fn terminal(client: Dialect) -> &'static str {
    match client {
        Dialect::Chat => "[DONE]",
        Dialect::Responses => "response.completed",
        Dialect::Messages => "message_stop",
        Dialect::Gemini => "\"finishReason\"",
    }
}

/// A whole stream without its end: neither a reason nor a terminal event.
fn cut(upstream: Dialect) -> String {
    let stream = streamed(upstream, &[text("so far")], "stop");
    let at = match upstream {
        Dialect::Chat => stream.find("\"finish_reason\":\"stop\""),
        Dialect::Responses => stream.find("event: response.completed"),
        Dialect::Messages => stream.find("event: message_delta"),
        Dialect::Gemini => stream.find("\"finishReason\""),
    };
    let before = &stream[..at.unwrap()];
    before[..before.rfind("\n\n").or_else(|| before.rfind("\r\n\r\n")).unwrap() + 2].to_owned()
}

#[test]
fn an_answer_begins_before_its_first_block_also_when_that_is_a_call() {
    let first =
        json!({"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]});
    for (client, upstream) in every_pair() {
        let mut streams = vec![streamed(upstream, &[call("c1", "f", "{}")], "tools")];
        if upstream == Dialect::Chat && client != Dialect::Chat {
            // Without the chunk that only names the role.
            streams.push(chat_stream(std::slice::from_ref(&first), "tool_calls"));
        }
        for stream in streams {
            let datas = heard_by(&options(client, upstream), &stream);
            let kind = datas[0]["type"].as_str().unwrap_or_default();
            match client {
                Dialect::Chat => assert_eq!(datas[0]["object"], "chat.completion.chunk", "{upstream}"),
                Dialect::Responses => assert_eq!(kind, "response.created", "{upstream}"),
                Dialect::Messages => assert_eq!(kind, "message_start", "{upstream}"),
                Dialect::Gemini => assert!(datas[0]["candidates"].is_array(), "{upstream}"),
            }
            assert_eq!(heard::stream(client, &datas).calls.len(), 1, "{upstream} to {client}");
        }
    }
}

#[test]
fn a_stream_without_its_end_is_a_fault_and_never_ends_in_success() {
    for (client, upstream) in every_pair() {
        for length in [1, 1 << 16] {
            let (pieces, end) = feed(&options(client, upstream), cut(upstream).as_bytes(), length);
            assert_eq!(end.unwrap_err().kind, FaultKind::StreamTruncated, "{upstream} to {client}");
            assert!(pieces.iter().all(|piece| piece.class != Class::Terminal), "{upstream} to {client}");
            let written = String::from_utf8(joined(&pieces)).unwrap();
            assert!(!written.contains(terminal(client)), "{upstream} to {client}: {written}");
        }
    }
}

#[test]
fn an_answer_that_is_complete_but_for_its_last_word_is_complete() {
    for client in Dialect::ALL {
        // A Chat server that sends no `[DONE]`, and no usage either.
        let stream = streamed(Dialect::Chat, &[text("all")], "stop").replace("data: [DONE]\n\n", "");
        let cut = stream.rfind("data: ").unwrap();
        for stream in [&stream[..], &stream[..cut]] {
            let (pieces, end) = feed(&options(client, Dialect::Chat), stream.as_bytes(), 7);
            assert!(end.is_ok(), "{client}: {end:?}");
            let text = String::from_utf8(joined(&pieces)).unwrap();
            if client != Dialect::Chat {
                assert!(text.contains(terminal(client)), "{client}: {text}");
                assert_eq!(heard::stream(client, &lawful(client, text.as_bytes())).text, "all", "{client}");
            }
        }
    }
}

#[test]
fn nothing_that_comes_after_the_end_is_passed_on() {
    for (client, upstream) in every_pair() {
        let stream = streamed(upstream, &[text("all")], "stop");
        let late = streamed(upstream, &[text("late")], "stop");
        if upstream == Dialect::Gemini {
            // Its end is a reason, and after that only counts may come.
            continue;
        }
        let (alone, _) = feed(&options(client, upstream), stream.as_bytes(), 1 << 16);
        for length in [1, 1 << 16] {
            let (pieces, end) = feed(&options(client, upstream), format!("{stream}{late}").as_bytes(), length);
            assert!(end.is_ok(), "{upstream} to {client}: {end:?}");
            assert_eq!(joined(&pieces), joined(&alone), "{upstream} to {client}");
        }
    }
}

#[test]
fn an_answer_that_was_cut_or_filtered_says_so_and_its_half_call_is_not_complete() {
    for (client, upstream) in every_pair() {
        for (end, told) in [
            ("length", ["length", "max_output_tokens", "max_tokens", "MAX_TOKENS"]),
            ("filter", ["content_filter", "content_filter", "refusal", "SAFETY"]),
        ] {
            let told = told[Dialect::ALL.iter().position(|dialect| *dialect == client).unwrap()];
            let datas = heard_by(&options(client, upstream), &streamed(upstream, &[text("so far")], end));
            let said = heard::stream(client, &datas);
            assert_eq!((&*said.text, &*said.finish), ("so far", told), "{upstream} to {client}");
            let plain = answered(&options(client, upstream), &whole(upstream, &[text("so far")], end));
            assert_eq!(heard::whole(client, &plain).finish, told, "{upstream} to {client}, plain");
        }
    }
    // A call that the limit cut in the middle.
    let half = Say::Call("c1".into(), "f".into(), vec!["{\"a\":".into()]);
    for upstream in [Dialect::Chat, Dialect::Responses] {
        let datas = heard_by(
            &options(Dialect::Responses, upstream),
            &streamed(upstream, std::slice::from_ref(&half), "length"),
        );
        let last = &datas.last().unwrap()["response"];
        assert_eq!(last["status"], "incomplete", "{upstream}");
        if upstream == Dialect::Chat {
            assert_eq!(last["output"][0]["status"], "incomplete", "{upstream}: {last}");
        }
    }
    let datas = heard_by(&options(Dialect::Chat, Dialect::Messages), &messages_stream(&half_use(), "max_tokens"));
    assert_eq!(heard::stream(Dialect::Chat, &datas).finish, "length");
}

fn half_use() -> Vec<Value> {
    vec![
        json!({"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}),
        json!({"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}),
        json!({"type":"content_block_stop","index":0}),
    ]
}

fn everything() -> Vec<Say> {
    vec![think("hm", ""), text("words"), call("c1", "f", "{}"), call("c2", "g", "{\"a\":1}")]
}

#[test]
fn a_responses_stream_has_every_field_that_strict_clients_read() {
    for upstream in Dialect::ALL {
        let datas = heard_by(&options(Dialect::Responses, upstream), &streamed(upstream, &everything(), "tools"));
        for (number, data) in datas.iter().enumerate() {
            assert_eq!(data["sequence_number"], number, "{upstream}: {data}");
        }
        if upstream == Dialect::Responses {
            continue;
        }
        for response in [&datas[0]["response"], &datas.last().unwrap()["response"]] {
            assert_eq!(response["text"]["format"]["type"], "text", "{upstream}: {response}");
            for field in ["id", "object", "created_at", "status", "model", "output", "tools", "tool_choice"] {
                assert!(!response[field].is_null(), "{upstream}: {field} in {response}");
            }
        }
        let usage = &datas.last().unwrap()["response"]["usage"];
        assert!(usage["input_tokens_details"]["cached_tokens"].is_u64(), "{upstream}: {usage}");
        assert!(usage["output_tokens_details"]["reasoning_tokens"].is_u64(), "{upstream}: {usage}");
    }
}

#[test]
fn every_item_of_a_responses_stream_is_added_before_it_grows_and_done_once() {
    for upstream in Dialect::ALL {
        for says in [everything(), vec![call("c1", "f", "{}")], vec![text("only")]] {
            let datas = heard_by(&options(Dialect::Responses, upstream), &streamed(upstream, &says, "tools"));
            let (mut added, mut done) = (BTreeSet::new(), BTreeSet::new());
            for data in &datas {
                let item = data["item"]["id"].as_str().or(data["item_id"].as_str()).unwrap_or_default().to_owned();
                match data["type"].as_str().unwrap() {
                    "response.output_item.added" => assert!(added.insert(item), "{upstream}: twice: {data}"),
                    "response.output_item.done" => {
                        assert!(added.contains(&item) && done.insert(item), "{upstream}: {data}");
                    }
                    _ if data.get("item_id").is_some() => {
                        assert!(added.contains(&item) && !done.contains(&item), "{upstream}: {data}");
                    }
                    _ => {}
                }
            }
            assert_eq!(added, done, "{upstream}");
            assert_eq!(added.len(), says.len(), "{upstream}");
        }
    }
}

#[test]
fn a_call_in_a_responses_stream_ends_with_its_whole_arguments_also_without_any() {
    for upstream in Dialect::ALL {
        for (arguments, wanted) in [("{}", "{}"), ("", "{}"), ("{\"a\":1}", "{\"a\":1}")] {
            if arguments.is_empty() && upstream == Dialect::Responses {
                // Its own stream is passed on as it is.
                continue;
            }
            let stream = streamed(upstream, &[call("c1", "f", arguments)], "tools");
            let datas = heard_by(&options(Dialect::Responses, upstream), &stream);
            let ends: Vec<_> =
                datas.iter().filter(|data| data["type"] == "response.function_call_arguments.done").collect();
            assert_eq!(ends.len(), 1, "{upstream}");
            assert_eq!(ends[0]["arguments"], wanted, "{upstream}");
        }
    }
}

#[test]
fn the_last_event_of_a_responses_stream_holds_all_items_that_were_done() {
    for upstream in Dialect::ALL {
        let datas = heard_by(&options(Dialect::Responses, upstream), &streamed(upstream, &everything(), "tools"));
        let done: Vec<_> = datas
            .iter()
            .filter(|data| data["type"] == "response.output_item.done")
            .map(|data| data["item"].clone())
            .collect();
        assert_eq!(done.len(), 4, "{upstream}");
        assert_eq!(datas.last().unwrap()["response"]["output"], json!(done), "{upstream}");
    }
}

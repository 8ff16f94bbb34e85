//! A conversation is known again by what was said in it, and our answer when it comes back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "matrix_replies/cases.rs"]
#[allow(dead_code, reason = "shared with the matrix of replies")]
mod cases;
#[path = "matrix_replies/said.rs"]
#[allow(dead_code, reason = "shared with the matrix of replies")]
mod said;

use bytes::Bytes;
use cases::{cases, write_chat, write_messages};
use serde_json::{Value, json};
use turnkeep_base::{Dialect, Fingerprint};
use turnkeep_dialect::identity::{self, History, has_opaque_state};
use turnkeep_dialect::recorded::Recorded;
use turnkeep_dialect::reply::{self, Asked, Facts, ReplyOptions, StreamCodec};
use turnkeep_dialect::request::{InPath, Operation, StreamForm, read, read_in_path};

const KEY: [u8; 32] = [7; 32];

fn history(dialect: Dialect, body: &Value) -> History {
    let bytes: Bytes = body.to_string().into();
    let read = match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => read(dialect, Operation::Generate, bytes),
        Dialect::Gemini => {
            let path = InPath { model: "m".into(), stream: false, form: StreamForm::Events };
            read_in_path(Operation::Generate, path, bytes)
        }
    };
    let request = read.unwrap_or_else(|e| panic!("{e}: {body}"));
    identity::history(&KEY, &request.turn().unwrap())
}

fn chat(messages: Value) -> History {
    history(Dialect::Chat, &json!({"model":"m","messages":messages}))
}

fn messages(messages: Value) -> History {
    history(Dialect::Messages, &json!({"model":"m","max_tokens":5,"messages":messages}))
}

fn recorded(dialect: Dialect, stream: bool, bytes: impl Into<Bytes>) -> Recorded {
    Recorded { dialect, stream, bytes: bytes.into(), facts: Facts::default() }
}

fn answered(history: &History, answer: &Recorded) -> Option<Fingerprint> {
    identity::answered(&KEY, history, answer)
}

fn user(text: &str) -> Value {
    json!({"role":"user","content":text})
}

/// A Chat upstream's answer as a client of a dialect gets it, streamed and plain.
fn of_chat(client: Dialect, stream: &str, whole: &Value) -> (Bytes, Value) {
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
    codec.feed(Bytes::copy_from_slice(stream.as_bytes()), &mut pieces).unwrap();
    codec.finish(&mut pieces).unwrap();
    let streamed = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
    let (plain, _) = reply::plain(&options, whole.to_string().into()).unwrap();
    (streamed, serde_json::from_slice(&plain).unwrap())
}

#[test]
fn an_answer_that_comes_back_is_known_streamed_and_plain_in_every_dialect() {
    for case in cases() {
        for dialect in Dialect::ALL {
            let what = format!("{}: {dialect}", case.name);
            let (stream, whole): (Bytes, Value) = match dialect {
                Dialect::Chat => (write_chat(case.chat.0).into(), case.chat.1.clone()),
                Dialect::Messages => (write_messages(case.messages.0).into(), case.messages.1.clone()),
                Dialect::Responses | Dialect::Gemini => of_chat(dialect, &write_chat(case.chat.0), &case.chat.1),
            };
            // The answer among the user's words, as its client sends it.
            let conversation = |back: Option<&Value>| match dialect {
                Dialect::Chat => {
                    let mut list = vec![user("hi")];
                    list.extend(back.map(|whole| whole["choices"][0]["message"].clone()));
                    list.extend(back.map(|_| user("and now?")));
                    chat(json!(list))
                }
                Dialect::Messages => {
                    let mut list = vec![user("hi")];
                    list.extend(back.map(|whole| json!({"role":"assistant","content":whole["content"]})));
                    list.extend(back.map(|_| user("and now?")));
                    messages(json!(list))
                }
                Dialect::Responses => {
                    let mut list = vec![user("hi")];
                    list.extend(back.iter().flat_map(|whole| whole["output"].as_array().unwrap().clone()));
                    list.extend(back.map(|_| user("and now?")));
                    history(dialect, &json!({"model":"m","input":list}))
                }
                Dialect::Gemini => {
                    let mut list = vec![json!({"role":"user","parts":[{"text":"hi"}]})];
                    list.extend(back.map(|whole| whole["candidates"][0]["content"].clone()));
                    list.extend(back.map(|_| json!({"role":"user","parts":[{"text":"and now?"}]})));
                    history(dialect, &json!({"contents":list}))
                }
            };
            let before = conversation(None);
            let streamed = answered(&before, &recorded(dialect, true, stream)).unwrap_or_else(|| panic!("{what}"));
            let plain =
                answered(&before, &recorded(dialect, false, whole.to_string())).unwrap_or_else(|| panic!("{what}"));
            assert_eq!(streamed, plain, "{what}");
            if whole["output"].as_array().is_some_and(Vec::is_empty) {
                // An answer without a word is no item, so nothing of it comes back.
                continue;
            }
            let next = conversation(Some(&whole));
            assert_eq!(next.answers, [streamed], "{what}");
            assert_ne!(next.all, streamed, "{what}");
        }
    }
}

#[test]
fn a_file_is_known_by_its_kind_and_its_bytes() {
    let of = |source: Value| {
        messages(
            json!([{"role":"user","content":[{"type":"document","source":source}]}, {"role":"assistant","content":"a"}, user("b")]),
        )
    };
    let text = |data: &str| json!({"type":"text","media_type":"text/plain","data":data});
    let pdf = |data: &str| json!({"type":"base64","media_type":"application/pdf","data":data});
    let all = [of(text("x")), of(text("y")), of(pdf("AAAA")), of(pdf("AAAB")), of(json!({"type":"url","url":"x"}))];
    for (at, one) in all.iter().enumerate() {
        assert_eq!(one.answers.len(), 1, "{at}");
        assert!(all[at + 1..].iter().all(|other| other.answers != one.answers), "{at}");
    }
    assert_eq!(of(pdf("AAAA")), all[2]);
}

#[test]
fn what_clients_do_to_an_answer_makes_no_difference() {
    let body = json!({"id":"msg_1","type":"message","role":"assistant","model":"up","stop_reason":"tool_use","usage":{"output_tokens":1},
        "content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"One. "},{"type":"text","text":"Two.\n"},
            {"type":"tool_use","id":"a","name":"f","input":{"x":1.0,"y":[{"k":"é"}]}},{"type":"tool_use","id":"b","name":"g","input":{}}]});
    let before = messages(json!([user("hi")]));
    let ours = answered(&before, &recorded(Dialect::Messages, false, body.to_string())).unwrap();
    let calls = |x: Value| {
        [
            json!({"type":"tool_use","id":"other_1","name":"f","input":x}),
            json!({"type":"tool_use","id":"other_2","name":"g","input":{}}),
        ]
    };
    let text = |text: &str| json!({"type":"text","text":text});
    let respelled = json!({"y":[{"k":"\u{e9}"}],"x":1});
    let mut marked = text("One. Two.");
    marked["cache_control"] = json!({"type":"ephemeral"});
    for before in [
        json!("hi"),
        json!([text("hi")]),
        json!([{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]),
        json!([text("<system-reminder>\nThe date is ….\n</system-reminder>"), text("hi"), text("")]),
    ] {
        for said in [vec![text("One. "), text("Two.\n")], vec![text("One. Two.")], vec![marked.clone()]] {
            let [f, g] = calls(respelled.clone());
            let content: Vec<Value> = said.into_iter().chain([f, g]).collect();
            let next = messages(json!([{"role":"user","content":before},{"role":"assistant","content":content},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"other_1","content":"ok"}]}]));
            assert_eq!(next.answers, [ours], "{before}");
        }
    }
    // And what is another answer is none of ours.
    let [f, g] = calls(json!({"x":1,"y":[{"k":"e"}]}));
    let other_arguments = json!([text("One. Two."), f, g]);
    let [f, _] = calls(respelled.clone());
    for content in [other_arguments, json!([text("One. Two!"), f]), json!("One. Two.")] {
        let next = messages(json!([user("hi"), {"role":"assistant","content":content}, user("x")]));
        assert_ne!(next.answers, [ours]);
    }
    let next = messages(json!([user("ho"), {"role":"assistant","content":body["content"]}, user("x")]));
    assert_ne!(next.answers, [ours], "another question");
}

#[test]
fn calls_made_at_once_have_no_order_and_each_result_is_its_calls() {
    let of = |calls: [&str; 2], results: [(&str, &str); 2]| {
        let call = |name: &str| json!({"type":"tool_use","id":format!("id_{name}"),"name":name,"input":{}});
        let result = |(name, said): (&str, &str)| json!({"type":"tool_result","tool_use_id":format!("id_{name}"),"content":said});
        messages(
            json!([user("hi"), {"role":"assistant","content":calls.map(call)}, {"role":"user","content":results.map(result)},
            {"role":"assistant","content":"ok"}, user("x")]),
        )
    };
    let here = of(["f", "g"], [("f", "1"), ("g", "2")]);
    assert_eq!(here, of(["g", "f"], [("f", "1"), ("g", "2")]));
    // What one said the other did not.
    assert_ne!(here.answers[1], of(["f", "g"], [("g", "1"), ("f", "2")]).answers[1]);
    assert_eq!(here.answers[0], of(["f", "g"], [("g", "1"), ("f", "2")]).answers[0]);
    assert_ne!(here.answers[0], of(["f", "f"], [("f", "1"), ("f", "2")]).answers[0]);
}

#[test]
fn a_result_that_is_given_again_makes_no_difference_and_another_one_does() {
    let of = |results: &[&str]| {
        let call = json!({"type":"tool_use","id":"a","name":"f","input":{}});
        let result = |said: &&str| json!({"type":"tool_result","tool_use_id":"a","content":said});
        let results: Vec<Value> = results.iter().map(result).collect();
        messages(json!([user("hi"), {"role":"assistant","content":[call]}, {"role":"user","content":results}])).all
    };
    assert_eq!(of(&["1"]), of(&["1", "1"]));
    assert_ne!(of(&["1"]), of(&["1", "2"]));
    assert_ne!(of(&["1"]), of(&["2"]));
}

#[test]
fn a_directory_that_changes_within_a_conversation_tells_its_branches_apart() {
    let of = |first: &str, second: &str| {
        let place = |path: &str| user(&format!("<environment_context><cwd>{path}</cwd></environment_context>"));
        chat(
            json!([place(first), user("hi"), {"role":"assistant","content":"a"}, place(second), user("go"), {"role":"assistant","content":"b"}, user("c")]),
        )
    };
    let here = of("/p", "/p");
    assert_ne!(here.answers, of("/q", "/q").answers);
    assert_eq!(here.answers[0], of("/p", "/q").answers[0]);
    assert_ne!(here.answers[1], of("/p", "/q").answers[1]);
    // Told again or not is the same.
    let silent = chat(json!([user("<environment_context><cwd>/p</cwd></environment_context>"), user("hi"),
        {"role":"assistant","content":"a"}, user("go"), {"role":"assistant","content":"b"}, user("c")]));
    assert_eq!(here.answers, silent.answers);
}

#[test]
fn in_chat_arguments_respelled_and_thinking_left_out_make_no_difference() {
    let answer = json!({"id":"c","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"finish_reason":"tool_calls","message":
        {"role":"assistant","content":"Let me","reasoning_content":"hm","tool_calls":[
            {"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\": 1, \"b\": [true]}"}},
            {"id":"b","type":"function","function":{"name":"g","arguments":""}}]}}]});
    let before = chat(json!([{"role":"system","content":"s"}, user("hi")]));
    let ours = answered(&before, &recorded(Dialect::Chat, false, answer.to_string())).unwrap();
    for (content, first, second) in [
        (json!("Let me"), r#"{"a":1,"b":[true]}"#, "{}"),
        (json!([{"type":"text","text":"Let me"}]), r#"{"b":[true],"a":1}"#, " {} "),
    ] {
        let next = chat(json!([{"role":"system","content":[{"type":"text","text":"s"}]}, user("hi"),
            {"role":"assistant","content":content,"tool_calls":[
                {"id":"x","type":"function","function":{"name":"f","arguments":first}},
                {"id":"y","type":"function","function":{"name":"g","arguments":second}}]},
            {"role":"tool","tool_call_id":"x","content":"1"},{"role":"tool","tool_call_id":"y","content":"2"}]));
        assert_eq!(next.answers, [ours]);
    }
}

#[test]
fn answers_that_cannot_be_told_are_none() {
    let before = chat(json!([user("hi")]));
    let choice =
        |index: u64| json!({"index":index,"finish_reason":"stop","message":{"role":"assistant","content":"a"}});
    let several = json!({"choices":[choice(0), choice(1)]}).to_string();
    assert_eq!(answered(&before, &recorded(Dialect::Chat, false, several)), None);
    assert_eq!(answered(&before, &recorded(Dialect::Chat, false, "{")), None);
    assert_eq!(answered(&before, &recorded(Dialect::Chat, true, "data: {}\n\n")), None);
    let hosted = json!({"type":"message","stop_reason":"end_turn","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]});
    let before = messages(json!([user("hi")]));
    assert_eq!(answered(&before, &recorded(Dialect::Messages, false, hosted.to_string())), None);
    // A history that ends with the assistant's own words, or that holds what has no identity, takes no answer.
    let fine = json!({"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":"b"}]}).to_string();
    let fine = recorded(Dialect::Messages, false, fine);
    assert!(answered(&before, &fine).is_some());
    let begun = messages(json!([user("hi"), {"role":"assistant","content":"a"}]));
    assert_eq!((begun.answers.len(), answered(&begun, &fine)), (1, None));
    let document = json!({"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]});
    let unknown = messages(
        json!([user("hi"), {"role":"assistant","content":"a"}, document, {"role":"assistant","content":"b"}, user("c")]),
    );
    assert_eq!((unknown.answers, answered(&messages(json!([document])), &fine)), (begun.answers, None));
}

#[test]
fn only_the_last_eight_answers_are_kept_and_a_run_of_messages_is_one() {
    let mut list = vec![user("0")];
    for number in 0..12 {
        list.push(json!({"role":"assistant","content":format!("a{number}")}));
        list.push(json!({"role":"assistant","content":"more"}));
        list.push(user("next"));
    }
    let whole = chat(json!(list));
    assert_eq!(whole.answers.len(), 8);
    let distinct: std::collections::BTreeSet<_> = whole.answers.iter().collect();
    assert_eq!(distinct.len(), 8);
    list.pop();
    assert_eq!(chat(json!(list)).all, whole.answers[7]);
}

#[test]
fn images_and_errors_of_tools_count() {
    let of = |content: Value| messages(json!([{"role":"user","content":content}])).all;
    let image = |data: &str| json!([{"type":"image","source":{"type":"base64","media_type":"image/png","data":data}}]);
    let url = json!([{"type":"image","source":{"type":"url","url":"https://a/b"}}]);
    assert_eq!(of(image("AAAA")), of(image("AAAA")));
    assert_ne!(of(image("AAAA")), of(image("AAAB")));
    assert_ne!(of(image("AAAA")), of(url));
    let result = |is_error: bool| {
        let call = json!({"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]});
        let result = json!([{"type":"tool_result","tool_use_id":"a","content":"x","is_error":is_error}]);
        messages(json!([user("hi"), call, {"role":"user","content":result}])).all
    };
    assert_ne!(result(true), result(false));
}

#[test]
fn the_prefix_is_the_system_prompt_and_the_tools_without_what_is_volatile() {
    let of = |system: Value, tools: Value, said: &str| {
        let body = json!({"model":"m","max_tokens":5,"system":system,"tools":tools,"messages":[user(said)]});
        history(Dialect::Messages, &body)
    };
    let tools = json!([{"name":"f","description":"d","input_schema":{"type":"object"}}]);
    let system = |billing: &str, date: &str, mark: bool| {
        let mut last = json!({"type":"text","text":format!("You are an agent.\nToday's date: {date}\nBe brief.")});
        if mark {
            last["cache_control"] = json!({"type":"ephemeral"});
        }
        json!([{"type":"text","text":format!("x-anthropic-billing-header: cc_version=2.1.{billing}; cc_entrypoint=cli;")}, last])
    };
    let here = of(system("1", "2026-11-30", true), tools.clone(), "a");
    let there = of(system("2", "2026-12-01", false), tools.clone(), "b");
    assert_eq!(here.prefix, there.prefix);
    assert_ne!(here.all, there.all);
    let mut marked = tools.clone();
    marked[0]["cache_control"] = json!({"type":"ephemeral"});
    assert_eq!(here.prefix, of(system("1", "2026-11-30", true), marked, "a").prefix);
    let mut other = tools.clone();
    other[0]["description"] = json!("e");
    assert_ne!(here.prefix, of(system("1", "2026-11-30", true), other.clone(), "a").prefix);
    assert_ne!(here.prefix, of(json!("You are another agent."), tools, "a").prefix);
    // Tools may come and go within a conversation.
    assert_eq!(here.all, of(system("1", "2026-11-30", true), other, "a").all);
}

#[test]
fn opaque_state_is_a_providers_own_and_never_our_envelope() {
    let of = |block: Value| {
        let body = json!({"model":"m","max_tokens":5,"messages":[user("hi"), {"role":"assistant","content":[block, {"type":"text","text":"a"}]}, user("b")]});
        let request = read(Dialect::Messages, Operation::Generate, body.to_string().into()).unwrap();
        has_opaque_state(&request.turn().unwrap())
    };
    assert!(of(json!({"type":"thinking","thinking":"t","signature":"EqQBCg"})));
    assert!(of(json!({"type":"redacted_thinking","data":"EqQBCg"})));
    for ours in ["", "turnkeep.unsigned", turnkeep_dialect::chat::SIGNATURE] {
        assert!(!of(json!({"type":"thinking","thinking":"t","signature":ours})), "{ours}");
    }
    assert!(!of(json!({"type":"text","text":"t"})));
}

/// The recorded requests of one case of one client, in order.
fn captured(case: &str) -> Vec<(Dialect, Value)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
    let mut found = Vec::new();
    for number in 1.. {
        let Ok(file) = std::fs::read(root.join(format!("{case}-{number}.json"))) else { break };
        let mut capture: Value = serde_json::from_slice(&file).unwrap();
        let target = capture["target"].as_str().unwrap();
        let known = [("chat", Dialect::Chat), ("responses", Dialect::Responses), ("enerateContent", Dialect::Gemini)];
        let dialect =
            known.iter().find(|(part, _)| target.contains(part)).map_or(Dialect::Messages, |(_, dialect)| *dialect);
        if capture["body"][list_of(dialect)].is_array() {
            found.push((dialect, capture["body"].take()));
        }
    }
    found
}

/// Where a request has its messages.
fn list_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    }
}

/// An item of that list is the assistant's.
fn is_answer(item: &Value) -> bool {
    ["assistant", "model"].iter().any(|role| item["role"] == *role)
        || ["reasoning", "function_call", "custom_tool_call"].iter().any(|kind| item["type"] == *kind)
}

/// The answer that the client got and put into its next request, as an upstream would have written it.
fn answer_of(dialect: Dialect, items: &[Value]) -> Recorded {
    let body = match dialect {
        Dialect::Chat => {
            json!({"object":"chat.completion","choices":[{"index":0,"message":items[0],"finish_reason":"stop"}]})
        }
        Dialect::Responses => {
            json!({"id":"resp_1","object":"response","status":"completed","model":"m","output":items})
        }
        Dialect::Gemini => json!({"candidates":[{"content":items[0],"finishReason":"STOP","index":0}]}),
        Dialect::Messages => {
            let mut content = items[0]["content"].clone();
            if let Some(text) = items[0]["content"].as_str() {
                content = json!([{"type":"text","text":text}]);
            }
            for block in content.as_array_mut().unwrap() {
                block.as_object_mut().unwrap().shift_remove("cache_control");
            }
            json!({"type":"message","role":"assistant","content":content,"stop_reason":"end_turn"})
        }
    };
    recorded(dialect, false, body.to_string())
}

#[test]
fn in_the_recorded_conversations_each_request_holds_the_answer_to_the_one_before() {
    let mut pairs = 0;
    for case in [
        "claude-code/agent",
        "claude-code/multiturn",
        "claude-code/parallel3",
        "claude-code/resume",
        "claude-code/interactive",
        "claude-code/subagent",
        "codex/agent",
        "codex/agent_known",
        "codex/subagent",
        "gemini-cli/agent",
        "opencode/agent_anthropic",
        "opencode/agent_chat",
        "opencode/agent_google",
        "opencode/agent_responses",
        "qwen-code/agent_anthropic",
        "qwen-code/agent_chat",
        "qwen-code/agent_gemini",
        "qwen-code/agent_responses",
        "cline/agent_chat",
        "cline/agent_openainative",
    ] {
        let requests = captured(case);
        let mut here = 0;
        for (at, (dialect, earlier)) in requests.iter().enumerate() {
            let list = |request: &Value| request[list_of(*dialect)].as_array().unwrap().clone();
            let count = list(earlier).len();
            // The next one of the same conversation: longer, and with the same tools (a title has none).
            let next = requests[at + 1..].iter().find(|(_, later)| {
                later["tools"].as_array().map(Vec::len) == earlier["tools"].as_array().map(Vec::len)
                    && list(later).get(count).is_some_and(is_answer)
            });
            let Some((_, later)) = next else { continue };
            let before = history(*dialect, earlier);
            let said: Vec<Value> = list(later).into_iter().skip(count).take_while(is_answer).collect();
            let ours = answered(&before, &answer_of(*dialect, &said));
            let ours = ours.unwrap_or_else(|| panic!("{case} {}: {said:?}", at + 1));
            assert!(history(*dialect, later).answers.contains(&ours), "{case} {}", at + 1);
            assert_eq!(before.prefix, history(*dialect, later).prefix, "{case} {}", at + 1);
            here += 1;
        }
        assert!(here > 0, "{case}: no two requests of one conversation");
        pairs += here;
    }
    assert!(pairs >= 24, "{pairs}");
}

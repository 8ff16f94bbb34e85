//! Calls of tools, their ids and names, and what came of them.

use crate::answers::{Say, begun, call, chat_stream, gemini_stream, numbered, response, streamed, text, whole};
use crate::heard::{self, Heard};
use crate::pairs::{answered, ask, conversation, every_pair, options, options_of, request, streamed as heard_by};
use crate::sent::{calls, results, sent};
use serde_json::{Value, json};
use turnkeep_base::Dialect;

const ARGUMENTS: [&str; 2] = [r#"{"a":[1,{"b":"}"}]}"#, r#"{"c":"\u00e9"}"#];

fn delta(index: u64, more: Value) -> Value {
    let mut call = json!({"index":index});
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"tool_calls":[call]})
}

/// Two calls whose pieces come by turns.
fn interleaved(upstream: Dialect) -> String {
    let [a, b] = ARGUMENTS.map(|text| text.split_at(6));
    match upstream {
        Dialect::Chat => {
            let begin = |index: u64, id: &str, name: &str| {
                delta(index, json!({"id":id,"type":"function","function":{"name":name,"arguments":""}}))
            };
            let more = |index: u64, piece: &str| delta(index, json!({"function":{"arguments":piece}}));
            let mut first = begin(0, "c1", "f");
            first["role"] = json!("assistant");
            let deltas = [first, begin(1, "c2", "g"), more(0, a.0), more(1, b.0), more(0, a.1), more(1, b.1)];
            chat_stream(&deltas, "tool_calls")
        }
        Dialect::Responses => {
            let item = |at: usize, id: &str, name: &str, arguments: &str, status: &str| json!({"type":"function_call","id":format!("fc_{at}"),"call_id":id,"name":name,"arguments":arguments,"status":status});
            let added = |at, item| json!({"type":"response.output_item.added","output_index":at,"item":item});
            let more = |at: usize, piece: &str| json!({"type":"response.function_call_arguments.delta","item_id":format!("fc_{at}"),"output_index":at,"delta":piece});
            let done = |at: usize, text: &str| json!({"type":"response.function_call_arguments.done","item_id":format!("fc_{at}"),"output_index":at,"arguments":text});
            let whole = [item(0, "c1", "f", ARGUMENTS[0], "completed"), item(1, "c2", "g", ARGUMENTS[1], "completed")];
            let mut events = vec![
                json!({"type":"response.created","response":begun()}),
                json!({"type":"response.in_progress","response":begun()}),
                added(0, item(0, "c1", "f", "", "in_progress")),
                added(1, item(1, "c2", "g", "", "in_progress")),
                more(0, a.0),
                more(1, b.0),
                more(0, a.1),
                more(1, b.1),
                done(0, ARGUMENTS[0]),
                done(1, ARGUMENTS[1]),
            ];
            for (at, item) in whole.iter().enumerate() {
                events.push(json!({"type":"response.output_item.done","output_index":at,"item":item}));
            }
            events.push(json!({"type":"response.completed","response":response(&whole, "completed")}));
            numbered(events)
        }
        Dialect::Messages | Dialect::Gemini => streamed(upstream, &two(), "tools"),
    }
}

fn two() -> [Say; 2] {
    [call("c1", "f", ARGUMENTS[0]), call("c2", "g", ARGUMENTS[1])]
}

/// The arguments as what they mean.
fn meant(heard: &Heard) -> Vec<(String, String, Value)> {
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    heard.calls.iter().map(|(id, name, text)| (id.clone(), name.clone(), parsed(text))).collect()
}

fn wanted() -> Vec<(String, String, Value)> {
    let [a, b] = ARGUMENTS.map(|text| serde_json::from_str(text).unwrap());
    vec![("c1".into(), "f".into(), a), ("c2".into(), "g".into(), b)]
}

#[test]
fn parallel_calls_each_have_their_own_place_and_arguments() {
    for (client, upstream) in every_pair() {
        let options = options(client, upstream);
        let datas = heard_by(&options, &streamed(upstream, &two(), "tools"));
        assert_eq!(meant(&heard::stream(client, &datas)), wanted(), "{upstream} to {client}");
        let body = answered(&options, &whole(upstream, &two(), "tools"));
        assert_eq!(meant(&heard::whole(client, &body)), wanted(), "{upstream} to {client}, plain");
    }
}

#[test]
fn pieces_of_two_calls_that_come_by_turns_lose_nothing_where_only_one_block_may_be_open() {
    for (client, upstream) in every_pair() {
        let datas = heard_by(&options(client, upstream), &interleaved(upstream));
        assert_eq!(meant(&heard::stream(client, &datas)), wanted(), "{upstream} to {client}");
        if client == Dialect::Messages {
            let mut open = 0;
            for data in &datas {
                open += i32::from(data["type"] == "content_block_start");
                open -= i32::from(data["type"] == "content_block_stop");
                assert!((0..=1).contains(&open), "{upstream}: {data}");
            }
        }
    }
}

#[test]
fn a_name_that_is_repeated_or_empty_in_later_pieces_begins_no_second_call() {
    for name in ["f", ""] {
        let deltas = [
            delta(0, json!({"id":"c1","type":"function","function":{"name":"f","arguments":""}})),
            delta(0, json!({"id":"c1","type":"function","function":{"name":name,"arguments":"{\"a\""}})),
            delta(0, json!({"id":"","function":{"name":name,"arguments":":1}"}})),
        ];
        for client in [Dialect::Responses, Dialect::Messages, Dialect::Gemini] {
            let datas = heard_by(&options(client, Dialect::Chat), &chat_stream(&deltas, "tool_calls"));
            let heard = meant(&heard::stream(client, &datas));
            assert_eq!(heard, [("c1".into(), "f".into(), json!({"a":1}))], "{client}");
        }
    }
}

#[test]
fn a_call_without_an_id_gets_one_and_its_result_finds_it() {
    let unnamed = delta(0, json!({"type":"function","function":{"name":"f","arguments":"{}"}}));
    let call = json!({"functionCall":{"name":"f","args":{}}});
    for (client, upstream) in every_pair() {
        let stream = match upstream {
            _ if client == upstream => continue,
            Dialect::Chat => chat_stream(std::slice::from_ref(&unnamed), "tool_calls"),
            Dialect::Gemini => gemini_stream(std::slice::from_ref(&call), "STOP"),
            Dialect::Responses | Dialect::Messages => continue,
        };
        let heard = heard::stream(client, &heard_by(&options(client, upstream), &stream));
        assert_eq!(heard.calls.len(), 1, "{upstream} to {client}");
        assert!(!heard.calls[0].0.is_empty(), "{upstream} to {client}");
        for target in Dialect::ALL {
            let (body, _) = sent(client, &continued(client, &["f"], &heard), target);
            let (calls, results) = (calls(target, &body), results(target, &body));
            assert_eq!((calls.len(), results.len()), (1, 1), "{client} to {target}: {body}");
            assert_eq!((&calls[0].0, &*results[0].1), (&results[0].0, "done"), "{client} to {target}");
        }
    }
}

/// The conversation goes on: what was heard, then the tools' results.
fn continued(client: Dialect, tools: &[&str], heard: &Heard) -> Value {
    let mut body = ask(client, tools);
    let results = heard::results(client, heard);
    conversation(client, &mut body).extend(heard.echo.iter().cloned().chain(results));
    body
}

fn safe(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
}

#[test]
fn ids_and_names_with_other_letters_never_reach_messages_and_come_back_as_they_were() {
    for (client, upstream) in every_pair() {
        if (client, upstream) == (Dialect::Messages, Dialect::Messages) {
            continue;
        }
        let request = request(client, &ask(client, &["Bash.run"]));
        let encoded = turnkeep_dialect::request::write_for(&request, upstream, "up", false).unwrap();
        let name = encoded.names.clone();
        let made = turnkeep_dialect::tool_names::sent("Bash.run", upstream).into_owned();
        let made = if client == upstream { "Bash.run".to_owned() } else { made };
        let stream = streamed(upstream, &[call("functions.Bash:0", &made, "{}")], "tools");
        let heard = heard::stream(client, &heard_by(&options_of(&request, upstream, name), &stream));
        assert_eq!(heard.calls[0].1, "Bash.run", "{upstream} to {client}");
        if client == Dialect::Messages && upstream != Dialect::Messages {
            assert!(safe(&heard.calls[0].0), "{upstream}: {:?}", heard.calls);
        }
        let next = continued(client, &["Bash.run"], &heard);
        let (body, _) = sent(client, &next, Dialect::Messages);
        for (id, name, _) in calls(Dialect::Messages, &body) {
            assert!(safe(&id) && safe(&name), "{client}: {id} {name}");
        }
        // And the one that made the id has it back.
        if upstream != Dialect::Messages {
            let (body, _) = sent(client, &next, upstream);
            assert_eq!(calls(upstream, &body)[0].0, "functions.Bash:0", "{upstream} by way of {client}");
            assert_eq!(results(upstream, &body)[0].0, "functions.Bash:0", "{upstream} by way of {client}");
        }
    }
}

#[test]
fn ids_that_differ_in_a_forbidden_letter_do_not_meet() {
    for client in [Dialect::Chat, Dialect::Responses, Dialect::Gemini] {
        let says = [call("a:b", "f", "{}"), call("a.b", "f", "{}"), call("a_b", "f", "{}")];
        let heard = heard::whole(client, &whole(client, &says, "tools"));
        let (body, _) = sent(client, &continued(client, &["f"], &heard), Dialect::Messages);
        let ids: std::collections::BTreeSet<_> =
            calls(Dialect::Messages, &body).into_iter().map(|(id, _, _)| id).collect();
        assert_eq!(ids.len(), 3, "{client}: {body}");
        assert_eq!(results(Dialect::Messages, &body).len(), 3, "{client}: {body}");
    }
}

#[test]
fn an_answer_with_a_call_ends_for_the_call_whatever_the_upstream_says() {
    for (client, upstream) in every_pair() {
        if client == upstream {
            continue;
        }
        // Compatible servers say `stop` behind a call; Messages' like say `end_turn`.
        for end in ["tools", "stop"] {
            let says = [text("Let me look."), call("c1", "f", "{}")];
            let told = match client {
                Dialect::Chat => "tool_calls",
                Dialect::Responses => "completed",
                Dialect::Messages => "tool_use",
                Dialect::Gemini => "STOP",
            };
            let options = options(client, upstream);
            let heard = heard::stream(client, &heard_by(&options, &streamed(upstream, &says, end)));
            assert_eq!((&*heard.finish, heard.calls.len()), (told, 1), "{upstream} to {client}");
            let heard = heard::whole(client, &answered(&options, &whole(upstream, &says, end)));
            assert_eq!((&*heard.finish, heard.calls.len()), (told, 1), "{upstream} to {client}, plain");
        }
    }
    // And without a call it does not, though the server says so.
    let datas = heard_by(&options(Dialect::Messages, Dialect::Chat), &streamed(Dialect::Chat, &[text("no")], "tools"));
    assert_eq!(heard::stream(Dialect::Messages, &datas).finish, "end_turn");
}

#[test]
fn of_two_results_of_one_call_the_last_is_sent() {
    for (client, target) in every_pair() {
        let heard = heard::whole(client, &whole(client, &[call("c1", "f", "{}")], "tools"));
        let mut body = continued(client, &["f"], &heard);
        let again = heard::results(client, &heard);
        let text = json!(again).to_string().replace("done", "newer");
        conversation(client, &mut body).extend(serde_json::from_str::<Vec<Value>>(&text).unwrap());
        let (body, _) = sent(client, &body, target);
        let results = results(target, &body);
        assert_eq!(results.len(), 1, "{client} to {target}: {body}");
        assert_eq!(results[0].1, "newer", "{client} to {target}: {body}");
    }
}

#[test]
fn results_stand_before_any_other_text_of_the_user() {
    for client in Dialect::ALL {
        let heard = heard::whole(client, &whole(client, &[call("c1", "f", "{}")], "tools"));
        let mut body = continued(client, &["f"], &heard);
        let word = match client {
            Dialect::Chat | Dialect::Messages => json!({"role":"user","content":"a word"}),
            Dialect::Responses => json!({"role":"developer","content":"a word"}),
            Dialect::Gemini => json!({"role":"user","parts":[{"text":"a word"}]}),
        };
        // Between the call and its result.
        let said = conversation(client, &mut body);
        let at = said.len() - 1;
        said.insert(at, word);
        let (sent, _) = sent(client, &body, Dialect::Messages);
        let blocks = sent["messages"][2]["content"].as_array().unwrap();
        assert_eq!(blocks[0]["type"], "tool_result", "{client}: {sent}");
        assert_eq!(blocks[0]["content"], "done", "{client}: {sent}");
        assert!(blocks[1]["text"].as_str().unwrap().contains("a word"), "{client}: {sent}");
    }
}

#[test]
fn a_tools_name_that_the_target_refuses_is_another_there_and_its_own_to_the_client() {
    let long = "x".repeat(100);
    for name in ["files.read all", "größe", long.as_str()] {
        for (client, upstream) in every_pair() {
            if client == upstream {
                continue;
            }
            let asked = ask(client, &[name]);
            let (body, encoded) = sent(client, &asked, upstream);
            let made = crate::sent::tools(upstream, &body).remove(0);
            assert!(made.len() <= 64, "{client} to {upstream}: {made}");
            let request = request(client, &asked);
            let stream = streamed(upstream, &[call("c1", &made, "{}")], "tools");
            let heard = heard::stream(client, &heard_by(&options_of(&request, upstream, encoded.names), &stream));
            assert_eq!(heard.calls[0].1, name, "{upstream} to {client}");
        }
    }
}

//! Stored state over upstreams of every kind: they all get the whole history, and their clients see no difference.

use crate::scene::{KEY, Scene, events, text_of};
use crate::support::{Rule, lab};
use serde_json::{Value, json};
use turnkeep_lab::Lab;

const KINDS: [&str; 4] = ["openai", "openai-responses", "anthropic", "gemini"];

/// A scene over a lab of each kind.
async fn labs() -> (Vec<Lab>, Scene) {
    let mut labs = Vec::new();
    for _ in KINDS {
        labs.push(lab([]).await);
    }
    let pairs: Vec<_> = KINDS.into_iter().zip(&labs).collect();
    let scene = Scene::over_labs(&pairs).await;
    (labs, scene)
}

fn cases() -> impl Iterator<Item = (usize, &'static str, bool)> {
    KINDS.into_iter().enumerate().flat_map(|(at, kind)| [(at, kind, true), (at, kind, false)])
}

fn last_body(lab: &Lab) -> Value {
    serde_json::from_slice(&lab.requests().last().unwrap().body).unwrap()
}

fn item<'a>(response: &'a Value, kind: &str) -> &'a Value {
    let output = response["output"].as_array().unwrap();
    output.iter().find(|item| item["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {response}"))
}

async fn get(scene: &Scene, response: &Value) -> Value {
    scene.json("GET", &format!("/v1/responses/{}", response["id"].as_str().unwrap()), None).await
}

#[tokio::test]
async fn a_chain_goes_on_over_every_kind_and_says_what_it_goes_on_from() {
    let (labs, scene) = labs().await;
    for (at, kind, stream) in cases() {
        let case = format!("{kind} {stream}");
        let first = scene.turn(kind, stream, json!({"input": "the first word", "metadata": {"k": "v"}})).await;
        let body = json!({"input": "the second word", "previous_response_id": first["id"], "metadata": {"n": "2"}});
        let second = scene.turn(kind, stream, body).await;
        assert!(text_of(&second).contains("the second word"), "{case}: {second}");
        let sent = last_body(&labs[at]).to_string();
        if kind == "openai-responses" {
            // It keeps its answers itself, and is told no more than what is new.
            let goes_on = sent.contains("\"previous_response_id\":\"resp_lab");
            assert!(goes_on && !sent.contains("the first word"), "{case}: {sent}");
        } else {
            assert!(sent.contains("the first word") && sent.contains("You said"), "{case}: {sent}");
        }
        assert_ne!(first["id"], second["id"], "{case}");
        assert_eq!(second["previous_response_id"], first["id"], "{case}");
        let said = ["background", "store"].map(|name| second[name].as_bool());
        assert_eq!((said, &second["metadata"]), ([Some(false), Some(true)], &json!({"n": "2"})), "{case}");
        assert_eq!((get(&scene, &first).await, get(&scene, &second).await), (first, second), "{case}");
    }
}

#[tokio::test]
async fn calls_of_every_kind_of_tool_and_what_they_gave_are_a_part_of_the_chain() {
    let (_labs, scene) = labs().await;
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let function = |name: &str| json!({"type": "function", "name": name, "parameters": parameters, "strict": false});
    let tools = json!([
        function("look"),
        {"type": "namespace", "name": "fs", "description": "files", "tools": [function("read")]},
        {"type": "custom", "name": "patch", "description": "a patch"},
    ]);
    for (_, kind, stream) in cases() {
        for (name, item_kind, namespace) in [
            ("look", "function_call", Value::Null),
            ("read", "function_call", json!("fs")),
            ("patch", "custom_tool_call", Value::Null),
        ] {
            let case = format!("{kind} {stream} {name}");
            // A model knows a tool of a namespace by whichever name its protocol has for it.
            let input = format!("please call {name} or call fs__{name}");
            let first = scene.turn(kind, stream, json!({"input": input, "tools": tools})).await;
            let call = item(&first, item_kind);
            assert_eq!((&call["name"], &call["namespace"]), (&json!(name), &namespace), "{case}: {call}");
            let output =
                json!([{"type": format!("{item_kind}_output"), "call_id": call["call_id"], "output": "it is 42"}]);
            let body = json!({"input": output, "tools": tools, "previous_response_id": first["id"]});
            let second = scene.turn(kind, stream, body).await;
            assert!(text_of(&second).contains("it is 42"), "{case}: {second}");
            let body = json!({"input": "and now?", "tools": tools, "previous_response_id": second["id"]});
            let third = scene.turn(kind, stream, body).await;
            assert!(text_of(&third).contains("and now?"), "{case}: {third}");
        }
    }
}

#[tokio::test]
async fn proven_reasoning_stays_in_the_chain_and_a_responses_upstream_takes_its_own_proofs() {
    let (labs, scene) = labs().await;
    let tools = json!([{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]);
    let with = json!({
        "tools": tools, "reasoning": {"effort": "medium", "summary": "auto"}, "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 30_000,
    });
    let body = |more: Value| {
        let mut body = with.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (at, kind, stream) in cases() {
        let case = format!("{kind} {stream}");
        let first = scene.turn(kind, stream, body(json!({"input": "think, then call look"}))).await;
        let call = item(&first, "function_call");
        let output = json!([{"type": "function_call_output", "call_id": call["call_id"], "output": "it is 42"}]);
        let second =
            scene.turn(kind, stream, body(json!({"input": output, "previous_response_id": first["id"]}))).await;
        assert!(text_of(&second).contains("it is 42"), "{case}: {second}");
        if kind != "openai-responses" {
            continue;
        }
        assert!(item(&first, "reasoning")["encrypted_content"].is_string(), "{case}: {first}");
        // One that has forgotten its answer is sent all of it, proofs too.
        labs[at].forget_kept_answers();
        let third =
            scene.turn(kind, stream, body(json!({"input": "and now?", "previous_response_id": second["id"]}))).await;
        assert!(text_of(&third).contains("and now?"), "{case}: {third}");
        let sent = last_body(&labs[at]).to_string();
        assert!(sent.contains("\"encrypted_content\":\""), "{case}: {sent}");
        // The upstream checks them: one that was changed is refused.
        let mut forged = item(&first, "reasoning").clone();
        let mut proof = forged["encrypted_content"].as_str().unwrap().to_owned();
        let at = proof.len() - 10;
        proof.replace_range(at..=at, if &proof[at..=at] == "A" { "B" } else { "A" });
        forged["encrypted_content"] = proof.into();
        let input = json!([{"role": "user", "content": "x"}, forged, {"role": "user", "content": "y"}]);
        let mut asked = body(json!({"input": input}));
        asked["model"] = kind.into();
        let (status, text) = scene.send("POST", "/v1/responses", KEY, Some(asked)).await;
        assert_eq!(status, 400, "{case}: {text}");
    }
}

#[tokio::test]
async fn a_background_response_of_every_kind_completes_under_the_id_that_it_began_with() {
    let (_labs, scene) = labs().await;
    for (_, kind, stream) in cases() {
        let case = format!("{kind} {stream}");
        let body = json!({"model": kind, "input": "the first word", "background": true, "stream": stream, "metadata": {"k": "v"}});
        let (status, text) = scene.send("POST", "/v1/responses", KEY, Some(body)).await;
        assert_eq!(status, 200, "{case}: {text}");
        let begun = if stream { events(&text)[0]["response"].clone() } else { serde_json::from_str(&text).unwrap() };
        let id = begun["id"].as_str().unwrap();
        let done = scene.until_status(id, "completed").await;
        assert!(text_of(&done).contains("the first word"), "{case}: {done}");
        assert_eq!(
            (&done["id"], &done["background"], &done["store"]),
            (&begun["id"], &json!(true), &json!(true)),
            "{case}"
        );
        assert_eq!((&done["metadata"], &done["previous_response_id"]), (&json!({"k": "v"}), &Value::Null), "{case}");
        let path = format!("/v1/responses/{id}?stream=true");
        let all = events(&scene.send("GET", &path, KEY, None).await.1);
        let later = events(&scene.send("GET", &(path + "&starting_after=3"), KEY, None).await.1);
        assert_eq!((&later[..], &all.last().unwrap()["response"]), (&all[4..], &done), "{case}");
        let body = json!({"input": "the second word", "previous_response_id": id});
        assert!(text_of(&scene.turn(kind, stream, body).await).contains("the second word"), "{case}");
    }
}

#[tokio::test]
async fn a_conversation_may_change_its_upstream_with_every_turn() {
    let (labs, scene) = labs().await;
    let made = scene.json("POST", "/v1/conversations", Some(json!({}))).await;
    for (number, (at, kind, stream)) in cases().enumerate() {
        let case = format!("{kind} {stream}");
        let body = json!({"input": format!("word number {number}"), "conversation": made["id"]});
        let response = scene.turn(kind, stream, body).await;
        assert_eq!(response["conversation"], json!({"id": made["id"]}), "{case}");
        assert_eq!(get(&scene, &response).await, response, "{case}");
        let sent = last_body(&labs[at]).to_string();
        for before in 0..=number {
            assert!(sent.contains(&format!("word number {before}")), "{case}: {sent}");
        }
    }
}

#[tokio::test]
async fn compaction_goes_to_an_upstream_that_has_it_and_what_it_gives_is_gone_on_from() {
    let (labs, scene) = labs().await;
    for stream in [true, false] {
        let asked = labs.iter().map(|lab| lab.requests().len()).collect::<Vec<_>>();
        let input = json!([{"role": "user", "content": "a long story"}, {"type": "compaction_trigger"}]);
        // The model goes to the Chat upstream first, and only the Responses upstream compacts.
        let compacted = scene.turn("m", stream, json!({"input": input})).await;
        item(&compacted, "compaction");
        let now: Vec<_> = labs.iter().map(|lab| lab.requests().len()).collect();
        assert_eq!((now[0], now[1]), (asked[0], asked[1] + 1), "{stream}");
        let body = json!({"input": "and then?", "previous_response_id": compacted["id"]});
        let next = scene.turn("openai-responses", stream, body).await;
        assert!(text_of(&next).contains("and then?"));
        let sent = last_body(&labs[1]);
        let kinds: Vec<_> = sent["input"].as_array().unwrap().iter().map(|item| item["type"].clone()).collect();
        assert!(kinds.contains(&json!("compaction")) && !kinds.contains(&json!("compaction_trigger")), "{kinds:?}");
    }
}

#[tokio::test]
async fn tools_that_the_provider_runs_stay_in_what_is_stored() {
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "found", "annotations": [], "logprobs": []}]});
    let raw = json!({"id": "resp_up", "object": "response", "created_at": 1, "status": "completed", "model": "upstream-m",
        "output": [search, message], "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "error": null,
        "incomplete_details": null, "previous_response_id": null, "usage": {"input_tokens": 1, "output_tokens": 1,
        "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}});
    let lab = lab([Rule { raw: Some(raw.to_string()), ..Rule::default() }]).await;
    let scene = Scene::over_labs(&[("openai-responses", &lab)]).await;
    let made = scene.json("POST", "/v1/conversations", Some(json!({}))).await;
    let first =
        scene.ask(json!({"input": "search", "conversation": made["id"], "tools": [{"type": "web_search"}]})).await;
    assert_eq!(first["output"], raw["output"]);
    assert_eq!((&first["conversation"]["id"], &get(&scene, &first).await), (&made["id"], &first));
}

//! The ids by which real clients name their sessions, and what is no such id.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::identity::{session, session_within};
use turnkeep_dialect::request::{Operation, read};

fn of(dialect: Dialect, body: &Value, headers: &[(&str, &str)]) -> Option<String> {
    let request = read(dialect, Operation::Generate, body.to_string().into()).unwrap();
    let find = |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    session(&request, &find)
}

fn chat(extra: Value, headers: &[(&str, &str)]) -> Option<String> {
    let mut body = json!({"model":"m","messages":[{"role":"user","content":"hi"}]});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    of(Dialect::Chat, &body, headers)
}

fn messages(user_id: &str, headers: &[(&str, &str)]) -> Option<String> {
    let body =
        json!({"metadata":{"user_id":user_id},"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]});
    of(Dialect::Messages, &body, headers)
}

fn captured(name: &str) -> Option<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
    let capture: Value = serde_json::from_slice(&std::fs::read(root.join(name)).unwrap()).unwrap();
    let dialect = if capture["target"].as_str().unwrap().contains("chat") { Dialect::Chat } else { Dialect::Messages };
    let pairs = capture["headers"].as_array().unwrap().iter();
    let headers: Vec<(&str, &str)> = pairs.map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap())).collect();
    of(dialect, &capture["body"], &headers)
}

#[test]
fn every_client_that_names_its_session_is_understood() {
    let uuid = "00000000-0000-4000-8000-000000000001";
    assert_eq!(captured("claude-code/agent-1.json").as_deref(), Some(uuid));
    assert_eq!(captured("claude-code/agent-1.json"), captured("claude-code/agent-2.json"));
    let opencode = captured("opencode/agent_chat-1.json").unwrap();
    assert!(opencode.starts_with("ses_"), "{opencode}");
    assert_eq!(captured("opencode/agent_anthropic-2.json").map(|id| id.starts_with("ses_")), Some(true));
    for none in
        ["qwen-code/agent_chat-1.json", "cline/agent_chat-1.json", "aider/agent-1.json", "js-sdks/openai_chat-1.json"]
    {
        assert_eq!(captured(none), None, "{none}");
    }
    // Codex, where a translator in front of it keeps its headers; and what names a session in the body.
    let codex = [("session-id", "s-1"), ("thread-id", "s-1")];
    assert_eq!(chat(json!({"prompt_cache_key":"s-1"}), &codex).as_deref(), Some("s-1"));
    assert_eq!(chat(json!({"prompt_cache_key":"qwen-code:u"}), &[]).as_deref(), Some("qwen-code:u"));
    assert_eq!(messages(r#"{"device_id":"d","account_uuid":"","session_id":"s-2"}"#, &[]).as_deref(), Some("s-2"));
    assert_eq!(messages("user_abc_account_def_session_s-3", &[]).as_deref(), Some("s-3"));
    assert_eq!(messages("user-17", &[]), None);
}

#[test]
fn a_header_is_heard_before_the_body_and_ours_before_all() {
    let body = r#"{"session_id":"body"}"#;
    assert_eq!(messages(body, &[("X-Claude-Code-Session-Id", "header")]).as_deref(), Some("header"));
    let all = [("x-turnkeep-conversation", "ours"), ("x-claude-code-session-id", "a"), ("x-session-id", "b")];
    assert_eq!(messages(body, &all).as_deref(), Some("ours"));
    // The client's own stays known beside ours, and only there.
    let within = |headers: &[(&str, &str)]| {
        let body = json!({"model":"m","messages":[{"role":"user","content":"hi"}]}).to_string();
        let request = read(Dialect::Chat, Operation::Generate, body.into()).unwrap();
        let find = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        session_within(&request, &find)
    };
    assert_eq!(within(&all).as_deref(), Some("a"));
    assert_eq!((within(&all[1..]), within(&all[..1])), (None, None));
}

#[test]
fn agents_of_one_session_are_told_apart() {
    let subagents: std::collections::BTreeSet<_> =
        (1..=4).map(|number| captured(&format!("claude-code/subagent-{number}.json")).unwrap()).collect();
    assert!(subagents.len() >= 2, "{subagents:?}");
    let main = messages("u", &[("x-claude-code-session-id", "s")]);
    let agent = messages("u", &[("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", "a1")]);
    assert_eq!((main.as_deref(), agent.as_deref()), (Some("s"), Some("s/a1")));
    // The agent's header counts where the session stands in the body.
    assert_eq!(messages(r#"{"session_id":"s"}"#, &[("x-claude-code-agent-id", "a1")]).as_deref(), Some("s/a1"));
    let codex = chat(json!({"prompt_cache_key":"s"}), &[("session-id", "s"), ("thread-id", "t")]);
    assert_eq!(codex.as_deref(), Some("s/t"));
}

#[test]
fn what_is_no_id_is_passed_over() {
    let long = "x".repeat(257);
    for bad in ["", "   ", "a\nb", "a\u{7f}", long.as_str(), "NOT_GIVEN", "undefined"] {
        assert_eq!(chat(json!({"prompt_cache_key":bad}), &[]), None, "{bad:?}");
        let next = [("x-claude-code-session-id", bad), ("x-session-id", "next")];
        assert_eq!(chat(json!({}), &next).as_deref(), Some("next"), "{bad:?}");
        let agent = [("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", bad)];
        assert_eq!(chat(json!({}), &agent).as_deref(), Some("s"), "{bad:?}");
    }
    assert_eq!(chat(json!({"prompt_cache_key":{"a":1},"metadata":{"user_id":7}}), &[]), None);
    for user in ["{", "{\"session_id\":7}", "[1]", "{\"session_id\":\"a\\nb\"}", "user_a_session_"] {
        assert_eq!(messages(user, &[]), None, "{user}");
    }
    let fits = "x".repeat(255);
    let together = [("session-id", fits.as_str()), ("thread-id", "tt")];
    assert_eq!(chat(json!({}), &together), None);
}

fn responses(extra: Value, headers: &[(&str, &str)]) -> Option<String> {
    let mut body = json!({"model":"m","input":"hi"});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    of(Dialect::Responses, &body, headers)
}

#[test]
fn codex_and_others_that_speak_responses_name_their_sessions() {
    let own = [("session-id", "s-1"), ("thread-id", "s-1"), ("x-client-request-id", "s-1")];
    assert_eq!(responses(json!({"prompt_cache_key":"s-1"}), &own).as_deref(), Some("s-1"));
    // A sub-agent: its own thread of the same session, with the same cache key.
    let agent = [("session-id", "s-1"), ("thread-id", "t-2"), ("x-codex-parent-thread-id", "s-1")];
    assert_eq!(responses(json!({"prompt_cache_key":"s-1"}), &agent).as_deref(), Some("s-1/t-2"));
    assert_eq!(responses(json!({"prompt_cache_key":"qwen-code:u"}), &[]).as_deref(), Some("qwen-code:u"));
    let opencode = [("x-session-affinity", "ses_1"), ("x-session-id", "ses_1")];
    assert_eq!(responses(json!({"prompt_cache_key":"ses_1"}), &opencode).as_deref(), Some("ses_1"));
    assert_eq!(responses(json!({"client_metadata":{"session_id":"s"}}), &[]), None);
}

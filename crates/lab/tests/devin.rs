//! The lab's Devin, over real sockets: what the public reference says of its API, and what a script makes of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod client;

use bytes::Bytes;
use client::{Client, Got, h1, lab, lab_toml};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use turnkeep_lab::{AccountState, Lab};

const SESSIONS: &str = "/v3/organizations/org-1/sessions";

fn call(method: &str, path: &str, key: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {key}"));
    request.body(Full::new(body)).unwrap()
}

async fn get(peer: &mut Client, path: &str) -> Got {
    peer.get(call("GET", path, "cog_1", &Value::Null)).await
}

async fn say(peer: &mut Client, path: &str, field: &str, text: &str) -> Got {
    peer.get(call("POST", path, "cog_1", &json!({ field: text }))).await
}

/// Begins a session and gives its path.
async fn begun(peer: &mut Client) -> String {
    let made = say(peer, SESSIONS, "prompt", "Fix it").await;
    assert_eq!((made.status.as_u16(), made.json()["status"].as_str()), (200, Some("new")));
    format!("{SESSIONS}/{}", made.json()["session_id"].as_str().unwrap())
}

async fn statuses(peer: &mut Client, session: &str, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..count {
        let body = get(peer, session).await.json();
        told.push(format!("{}/{}", body["status"].as_str().unwrap(), body["status_detail"].as_str().unwrap_or("-")));
    }
    told
}

fn said(lab: &Lab) -> Vec<String> {
    let messages = lab.devin_sessions().into_iter().flat_map(|session| session.messages);
    messages.map(|said| format!("{}: {}", said.source, said.message)).collect()
}

#[tokio::test]
async fn a_session_works_answers_and_waits_and_keeps_its_transcript() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let session = begun(&mut peer).await;
    let seen = statuses(&mut peer, &session, 3).await;
    assert_eq!(seen, ["running/working", "running/waiting_for_user", "running/waiting_for_user"]);
    assert_eq!(get(&mut peer, &session).await.json()["acus_consumed"], 0.25);
    assert_eq!(say(&mut peer, &format!("{session}/messages"), "message", "More").await.status, 200);
    assert_eq!(statuses(&mut peer, &session, 2).await, ["running/working", "running/waiting_for_user"]);
    let answer = |text: &str| format!("devin: You said: \"{text}\". This is the lab's Devin answering.");
    assert_eq!(said(&lab), ["user: Fix it".to_owned(), answer("Fix it"), "user: More".to_owned(), answer("More")]);
    let transcript = get(&mut peer, "/lab/devin").await.json();
    assert_eq!((transcript[0]["messages"].as_array().unwrap().len(), &transcript[0]["account"]), (4, &json!("cog_1")));
}

#[tokio::test]
async fn messages_come_in_pages_and_the_last_page_has_no_cursor() {
    let lab = lab_toml(
        "devin_page = 2\n[[devin]]\nsteps = [{ say = \"a\" }, { polls = 0, say = \"b\" }, { polls = 0, say = \"c\" }]",
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let session = begun(&mut peer).await;
    statuses(&mut peer, &session, 1).await;
    let first = get(&mut peer, &format!("{session}/messages?first=200")).await.json();
    assert_eq!((first["items"].as_array().unwrap().len(), &first["has_next_page"]), (2, &json!(true)));
    let cursor = first["end_cursor"].as_str().unwrap().replace(' ', "%20");
    let second = get(&mut peer, &format!("{session}/messages?first=200&after={cursor}")).await.json();
    let texts: Vec<&str> =
        second["items"].as_array().unwrap().iter().filter_map(|item| item["message"].as_str()).collect();
    assert_eq!((texts, &second["end_cursor"], &second["total"]), (vec!["b", "c"], &Value::Null, &json!(4)));
}

#[tokio::test]
async fn what_the_api_does_not_take_is_refused_with_a_detail() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let session = begun(&mut peer).await;
    let refused = |got: Got| (got.status.as_u16(), got.json()["detail"].clone());
    assert_eq!(refused(get(&mut peer, &format!("{SESSIONS}/devin-other")).await), (404, json!("Session not found")));
    // Another's, by the credential or by the organisation.
    let other = peer.get(call("GET", &session, "cog_2", &Value::Null)).await;
    assert_eq!(other.status, 404);
    assert_eq!(get(&mut peer, &session.replace("org-1", "org-2")).await.status, 404);
    assert_eq!(say(&mut peer, SESSIONS, "prompt", " ").await.status, 422);
    assert_eq!(say(&mut peer, SESSIONS, "message", "x").await.status, 422);
    assert_eq!(get(&mut peer, &format!("{session}/messages?first=201")).await.status, 422);
    assert_eq!(peer.get(call("PUT", &session, "cog_1", &Value::Null)).await.status, 405);
    let nobody = Request::builder().uri(&session).header("host", "localhost").body(Full::new(Bytes::new())).unwrap();
    assert_eq!(refused(peer.get(nobody).await), (401, json!("Unauthorized")));
    let states = [
        (AccountState::Revoked, 401),
        (AccountState::Quota, 402),
        (AccountState::Suspended, 403),
        (AccountState::NotEntitled, 403),
        (AccountState::RateLimited, 429),
    ];
    for (state, status) in states {
        lab.set_account("cog_1", state);
        assert_eq!(get(&mut peer, &session).await.status, status, "{state:?}");
    }
    assert_eq!(said(&lab).len(), 1);
}

#[tokio::test]
async fn a_script_says_what_happens_in_a_session_and_a_gate_holds_it() {
    let lab = lab_toml(
        r#"
        [[devin]]
        contains = "Fix"
        times = 1
        steps = [
          { status = "running", detail = "working" },
          { polls = 2, say = "Looking." },
          { gate = "go", say = "Done.", acus = 1.5 },
          { polls = 0, status = "suspended" },
        ]
        [[devin]]
        steps = [{ delay_ms = 5, status = "exit" }]
        "#,
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let session = begun(&mut peer).await;
    statuses(&mut peer, &session, 2).await;
    assert_eq!(said(&lab), ["user: Fix it"]);
    statuses(&mut peer, &session, 5).await;
    assert_eq!(said(&lab), ["user: Fix it", "devin: Looking."]);
    lab.wait_at_gate("go", 1).await;
    lab.release("go");
    assert_eq!(statuses(&mut peer, &session, 1).await, ["suspended/-"]);
    assert_eq!(lab.devin_sessions()[0].acus, 1.5);

    // A suspended session resumes by a message; the next script ends it.
    say(&mut peer, &format!("{session}/messages"), "message", "More").await;
    assert_eq!(lab.devin_sessions()[0].status, "resuming");
    while statuses(&mut peer, &session, 1).await != ["exit/-"] {}
    assert_eq!(say(&mut peer, &format!("{session}/messages"), "message", "More").await.status, 400);
}

#[tokio::test]
async fn a_rule_takes_a_call_by_its_method_and_may_let_it_be_done_all_the_same() {
    let lab = lab_toml(
        r#"
        [[rule]]
        path = "/v3/organizations/org-1/sessions"
        method = "POST"
        times = 1
        done = true
        error = { status = 503, code = "busy", message = "Later.", retry_after = 7 }
        [[rule]]
        path = "/v3/organizations/org-1/sessions"
        method = "POST"
        times = 1
        error = { status = 500 }
        "#,
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    assert_eq!(get(&mut peer, SESSIONS).await.json()["items"], json!([]));
    let first = say(&mut peer, SESSIONS, "prompt", "one").await;
    assert_eq!((first.status.as_u16(), first.headers["retry-after"].to_str().unwrap()), (503, "7"));
    assert_eq!(first.json()["detail"], json!({"code": "busy", "message": "Later."}));
    assert_eq!(say(&mut peer, SESSIONS, "prompt", "two").await.status, 500);
    assert_eq!(said(&lab), ["user: one"]);
    assert_eq!(get(&mut peer, SESSIONS).await.json()["items"].as_array().unwrap().len(), 1);
}

//! What tells a provider from a server: accounts with states, limits declared in headers, connections that it ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod client;

use client::{Client, chat, h1, h2, hello, hello_messages, lab, lab_toml, messages, post, tls, tls_lab, with};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use turnkeep_lab::{AccountState, Lab, Rule};

fn streamed(body: &Value) -> Value {
    with(body, &json!({"stream": true}))
}

fn of(account: &str, mut request: Request<Full<bytes::Bytes>>) -> Request<Full<bytes::Bytes>> {
    request.headers_mut().insert("authorization", format!("Bearer {account}").parse().unwrap());
    request
}

/// Status, `error.type` and `error.code` of each dialect for an account in a state.
async fn refusal(lab: &Lab, account: &str) -> [(u16, Value, Value, HeaderMap); 2] {
    let mut peer = h1(lab.addr()).await;
    let mut one = async |request| {
        let got = peer.get(of(account, request)).await;
        let error = if got.status == 200 { Value::Null } else { got.json()["error"].clone() };
        (got.status.as_u16(), error["type"].clone(), error["code"].clone(), got.headers)
    };
    [one(chat(&hello())).await, one(messages(&hello_messages())).await]
}

#[tokio::test]
async fn an_accounts_state_can_be_switched_while_requests_come() {
    let lab = lab_toml("[[account]]\nsecret = \"key-b\"\nstate = \"suspended\"\n").await;
    let [chat, messages] = refusal(&lab, "key-b").await;
    assert_eq!((chat.0, chat.2), (401, json!("account_deactivated")));
    assert_eq!((messages.0, messages.1), (403, json!("permission_error")));
    for (state, first, second) in [
        (AccountState::Valid, 200, 200),
        (AccountState::Revoked, 401, 401),
        (AccountState::Quota, 429, 400),
        (AccountState::NotEntitled, 403, 403),
    ] {
        lab.set_account("key-a", state);
        let [chat, messages] = refusal(&lab, "key-a").await;
        assert_eq!((chat.0, messages.0), (first, second), "{state:?}");
        assert!(!chat.3.contains_key("retry-after"));
    }
    lab.set_account_waiting("key-a", AccountState::RateLimited, 7);
    for (status, _, _, headers) in refusal(&lab, "key-a").await {
        assert_eq!((status, headers["retry-after"].to_str().unwrap()), (429, "7"));
    }
    assert_eq!(refusal(&lab, "key-c").await[0].0, 200, "an account that was never spoken of is valid");
}

#[tokio::test]
async fn an_account_that_the_provider_refuses_takes_no_rule_unless_the_rule_wants_it() {
    let lab = lab_toml(
        "[[rule]]\npath = \"/v1/messages\"\nskip_checks = true\ntext = \"anyway\"\n[[rule]]\ntext = \"ruled\"\n\
         [[account]]\nsecret = \"key-a\"\nstate = \"revoked\"\n",
    )
    .await;
    let [chat, messages] = refusal(&lab, "key-a").await;
    assert_eq!((chat.0, messages.0), (401, 200));
    lab.set_script(turnkeep_lab::Script::default());
    assert_eq!(refusal(&lab, "key-a").await[0].0, 200, "a new script begins anew");
}

#[tokio::test]
async fn what_each_account_sent_and_got_is_counted() {
    let lab = lab_toml(
        "[[rule]]\naccount = \"key-a\"\nstream = true\ntimes = 1\nfault = \"close_mid_stream\"\n\
         [[rule]]\naccount = \"key-a\"\ntext = \"a b c\"\nusage = { prompt = 10, completion = 4 }\n\
         [[rule]]\naccount = \"key-b\"\nerror = { status = 429 }\n\
         [[rule]]\naccount = \"key-c\"\ngate = \"held\"\n",
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let broken = peer.send(of("key-a", chat(&streamed(&hello())))).await.unwrap().into_body();
    assert!(broken.collect().await.is_err());
    for request in [chat(&hello()), messages(&streamed(&hello_messages()))] {
        h1(lab.addr()).await.get(of("key-a", request)).await;
    }
    let mut peer = h1(lab.addr()).await;
    assert_eq!(peer.get(of("key-b", chat(&hello()))).await.status, 429);
    lab.wait_idle().await;
    let counts = lab.account("key-a");
    assert_eq!((counts.requests, counts.refused, counts.completed, counts.in_flight), (3, 0, 2, 0));
    assert_eq!((counts.input_tokens, counts.output_tokens, counts.most_in_flight), (20, 8, 1));
    assert_eq!((lab.account("key-b").requests, lab.account("key-b").refused), (1, 1));
    let held = (h1(lab.addr()).await, h1(lab.addr()).await);
    let both = [held.0, held.1]
        .map(|mut peer| tokio::spawn(async move { peer.get(of("key-c", chat(&hello()))).await.status }));
    lab.wait_at_gate("held", 2).await;
    assert_eq!((lab.account("key-c").in_flight, lab.account("key-c").most_in_flight), (2, 2));
    lab.release("held");
    for status in both {
        assert_eq!(status.await.unwrap(), 200);
    }
    let everyone: Vec<String> = lab.accounts().into_keys().collect();
    assert_eq!(everyone, ["key-a", "key-b", "key-c"]);
}

#[tokio::test]
async fn a_rule_can_count_for_each_account_and_take_every_nth_request() {
    let lab = lab_toml(
        "[[rule]]\nper_account = true\nnth = 1\nerror = { status = 429 }\n\
         [[rule]]\nevery = 3\nerror = { status = 500 }\n",
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let mut statuses = Vec::new();
    for account in ["key-a", "key-b", "key-a", "key-a", "key-a", "key-b", "key-b"] {
        statuses.push(peer.get(of(account, chat(&hello()))).await.status.as_u16());
    }
    assert_eq!(statuses, [429, 429, 200, 200, 500, 200, 200]);
}

#[tokio::test]
async fn a_headers_moment_is_the_time_of_the_reply() {
    let rule = Rule {
        status: Some(429),
        raw: Some("{}".into()),
        headers: [
            ("retry-after", "{date+30}"),
            ("date", "{date-3600}"),
            ("x-ratelimit-reset", "{unix_ms+30}"),
            ("anthropic-ratelimit-requests-reset", "{rfc3339+30}"),
            ("x-plain", "6m0s {braces}"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        ..Rule::default()
    };
    let lab = lab([rule]).await;
    let before = SystemTime::now();
    let headers = h1(lab.addr()).await.get(chat(&hello())).await.headers;
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let reset = UNIX_EPOCH + Duration::from_millis(text("x-ratelimit-reset").parse().unwrap());
    let wait = reset.duration_since(before).unwrap();
    assert!(wait > Duration::from_secs(29) && wait < Duration::from_secs(90), "{wait:?}");
    assert!(text("retry-after").ends_with(" GMT") && text("date").ends_with(" GMT"));
    assert!(text("anthropic-ratelimit-requests-reset").ends_with('Z'));
    assert_eq!(text("x-plain"), "6m0s {braces}");
    assert_eq!(headers.get_all("date").iter().count(), 1);
}

#[tokio::test]
async fn an_error_can_stand_in_the_shell_of_another_status_and_a_body_be_any_bytes() {
    let lab = lab_toml(
        "[[rule]]\ntimes = 2\nstatus = 200\nerror = { status = 529, message = \"Overloaded\" }\n\
         [[rule]]\nstatus = 400\nraw_base64 = \"//5oAGkA\"\nheaders = { content-type = \"text/plain; charset=utf-16\" }\n",
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let got = peer.get(messages(&hello_messages())).await;
    assert_eq!((got.status.as_u16(), &got.json()["error"]["type"]), (200, &json!("overloaded_error")));
    assert_eq!(peer.get(chat(&streamed(&hello()))).await.json()["error"]["message"], "Overloaded");
    let got = peer.get(chat(&hello())).await;
    assert_eq!((got.status.as_u16(), &got.body[..]), (400, &b"\xff\xfeh\0i\0"[..]));
    assert_eq!(got.headers["content-type"], "text/plain; charset=utf-16");
}

#[tokio::test]
async fn idle_connections_can_be_closed_or_reset_and_busy_ones_live() {
    let lab = tls_lab("[[rule]]\nbody_contains = \"hold\"\ngate = \"held\"\n").await;
    let connect = async |protocol: &'static [u8]| tls(&lab, protocol).await.unwrap();
    for end in [Lab::close_idle, Lab::reset_idle] {
        let (mut idle, mut shared, mut busy) = (connect(b"http/1.1").await, connect(b"h2").await, connect(b"h2").await);
        idle.get(chat(&hello())).await;
        shared.get(chat(&hello())).await;
        lab.wait_idle().await;
        let held = with(&hello(), &json!({"messages": [{"role": "user", "content": "hold"}]}));
        let busy = tokio::spawn(async move { busy.get(chat(&held)).await.status });
        lab.wait_for_requests(lab.requests().len() + 1).await;
        assert_eq!(end(&lab), 2);
        lab.wait_connections(1).await;
        assert!(idle.send(chat(&hello())).await.is_err() && shared.send(chat(&hello())).await.is_err());
        lab.release("held");
        assert_eq!(busy.await.unwrap(), 200);
        lab.wait_no_connections().await;
    }
}

#[tokio::test]
async fn a_goodbye_lets_what_runs_end_and_takes_no_more() {
    let lab = lab_toml("[[rule]]\ngate = \"held\"\n").await;
    let (mut one, mut two) = (h1(lab.addr()).await, h2(lab.addr()).await);
    let first = tokio::spawn(async move { one.get(chat(&hello())).await.status });
    let second = tokio::spawn(async move { (two.get(chat(&hello())).await.status, two) });
    lab.wait_at_gate("held", 2).await;
    assert_eq!(lab.goaway(), 2);
    lab.release("held");
    assert_eq!(first.await.unwrap(), 200);
    let (status, mut two) = second.await.unwrap();
    assert_eq!(status, 200);
    lab.wait_no_connections().await;
    assert!(two.send(chat(&hello())).await.is_err());
}

/// The whole text of the error that a call ends with.
async fn error_of(peer: &mut Client) -> String {
    let error = match peer.send(chat(&streamed(&hello()))).await {
        Err(error) => error,
        Ok(response) => response.into_body().collect().await.unwrap_err(),
    };
    std::error::Error::source(&error).unwrap().to_string()
}

#[tokio::test]
async fn a_stream_is_reset_by_the_code_that_the_script_names_and_others_live() {
    for at in ["before_headers", "after_words 1"] {
        for (code, words) in [("refused_stream", "refused stream"), ("11", "detected excessive load")] {
            let script = format!(
                "[[rule]]\nbody_contains = \"Hello\"\nfault = \"rst_stream\"\nfault_code = \"{code}\"\nfault_at = \"{at}\"\n"
            );
            let lab = lab_toml(&script).await;
            let mut peer = h2(lab.addr()).await;
            for _ in 0..2 {
                let error = error_of(&mut peer).await;
                assert!(error.starts_with("stream error received") && error.contains(words), "{at} {code}: {error}");
            }
            let other = with(&hello(), &json!({"messages": [{"role": "user", "content": "else"}]}));
            assert_eq!(peer.get(chat(&other)).await.status, 200);
            assert_eq!(lab.open_connections(), 1);
        }
    }
}

#[tokio::test]
async fn a_refusing_goodbye_says_that_the_stream_was_not_processed() {
    let lab = lab_toml("[[rule]]\nnth = 2\nfault = \"http2_goaway_refusing\"\n").await;
    let mut peer = h2(lab.addr()).await;
    assert_eq!(peer.get(chat(&hello())).await.status, 200);
    let error = error_of(&mut peer).await;
    assert!(error.contains("connection error received: not a result"), "{error}");
    lab.wait_no_connections().await;
    let mut peer = h1(lab.addr()).await;
    lab.set_script(turnkeep_lab::Script::parse("[[rule]]\nfault = \"http2_goaway_refusing\"\n").unwrap());
    assert!(peer.send(post("/v1/chat/completions", &hello())).await.is_err(), "over HTTP/1 the connection ends");
}

#[tokio::test]
async fn a_compressed_body_can_hold_garbage_or_lack_its_end() {
    let lab = lab_toml(
        "[[rule]]\nmodel = \"garbage\"\ncontent_encoding = \"gzip\"\nfault = \"bad_encoding\"\n\
         [[rule]]\nmodel = \"short\"\ncontent_encoding = \"gzip\"\nfault = \"truncated_encoding\"\n",
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let mut inflated = async |model: &str| {
        let got = peer.get(chat(&streamed(&with(&hello(), &json!({"model": model}))))).await;
        let (mut text, mut from) = (Vec::new(), flate2::read::GzDecoder::new(&got.body[..]));
        let ended = std::io::Read::read_to_end(&mut from, &mut text);
        (String::from_utf8(text).unwrap(), ended.map_err(|error| error.kind()))
    };
    let (text, ended) = inflated("garbage").await;
    assert!(!text.contains("[DONE]") && ended.is_err(), "{ended:?}");
    let (text, ended) = inflated("short").await;
    assert!(text.ends_with("[DONE]\n\n"));
    assert_eq!(ended, Err(std::io::ErrorKind::UnexpectedEof));
}

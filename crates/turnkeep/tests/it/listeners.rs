//! Ways in: a Unix socket, and TLS with HTTP/2 chosen by ALPN.

use crate::support::client::{Client, request_bytes};
use crate::support::dialects::{CHAT, assert_said, body_of};
use crate::support::listen::{Certificate, h2_client, h2_over};
use crate::support::world::Plan;
use crate::support::*;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use turnkeep_http::Bound;

const WORDS: &str = "one two three";

fn words() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_answers_every_pair_and_its_file_goes_when_the_gateway_stops() {
    for pair in pairs() {
        let lab = lab([words()]).await;
        let mut plan = Plan::over([Up::at(pair.upstream, &lab)]);
        plan.unix_too = true;
        let world = World::of(&plan).await;
        let Some(Bound::Unix(path)) = world.bound.last().cloned() else { panic!("no Unix socket") };
        assert_said(pair, &Client::unix(&path).await.turn(pair).await, WORDS);
        let folder = world.stopped().await;
        assert!(!path.exists(), "{} is left", path.display());
        drop(folder);
    }
}

async fn over_h2(client: &mut SendRequest<Full<Bytes>>, pair: Pair) -> Reply {
    let request = http::Request::post(format!("https://localhost{}", pair.path()))
        .header("x-api-key", KEY)
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .body(Full::from(body_of(pair, request(pair))))
        .unwrap();
    let (head, body) = client.send_request(request).await.unwrap().into_parts();
    let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    Reply { status: head.status.as_u16(), headers, body: body.collect().await.unwrap().to_bytes().to_vec() }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_answers_over_http2_and_over_http1_as_the_client_chooses() {
    let certificate = Certificate::new();
    let lab = lab([words()]).await;
    for upstream in Dialect::ALL {
        let mut plan = Plan::over([Up::at(upstream, &lab)]);
        plan.server = certificate.server_line();
        let world = World::of(&plan).await;
        let stream = certificate.connect(world.addr(), &[b"h2", b"http/1.1"]).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let mut h2 = h2_over(stream).await;
        for pair in pairs().into_iter().filter(|pair| pair.upstream == upstream) {
            assert_said(pair, &over_h2(&mut h2, pair).await, WORDS);
            let stream = certificate.connect(world.addr(), &[b"http/1.1"]).await;
            assert_said(pair, &Client::tls(stream).turn(pair).await, WORDS);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_by_prior_knowledge_carries_many_turns_at_once() {
    let lab = lab([words()]).await;
    let world = World::simple(CHAT, &lab).await;
    let client = h2_client(world.addr()).await;
    let turns = (0..24).map(|at| {
        let mut client = client.clone();
        async move {
            let pair = pairs().into_iter().filter(|pair| pair.upstream == CHAT.upstream).nth(at % 8).unwrap();
            assert_said(pair, &over_h2(&mut client, pair).await, WORDS);
        }
    });
    futures_util::future::join_all(turns).await;
    assert_eq!(world.until("delivery", |counters| counters["delivered"] == 24).await["client_gone"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_speaks_tls_serves_every_pair() {
    for pair in pairs() {
        let lab = tls_lab(Script::of([words()])).await;
        let world = World::simple(pair, &lab).await;
        assert_said(pair, &world.client().await.turn(pair).await, WORDS);
        assert_eq!(lab.requests()[0].version, http::Version::HTTP_2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_greetings_need_no_key() {
    let lab = lab([]).await;
    let world = World::simple(CHAT, &lab).await;
    for path in ["/healthz", "/readyz"] {
        let mut client = world.client().await;
        client.write(&request_bytes("GET", path, &[("x-api-key", "")], b"")).await;
        assert_eq!(client.reply().await.status, 200, "{path}");
    }
}

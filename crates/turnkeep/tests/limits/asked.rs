//! What clients and proxies ask of the gateway in headers: refused by name where it cannot be meant, and believed only of
//! a peer that is trusted.

use crate::scene::*;
use crate::support::client::{Client, turn_bytes};
use crate::support::dialects::assert_refused;
use crate::support::*;
use futures_util::future::join_all;

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_cannot_be_meant_is_a_400_that_names_it() {
    join_all(ways().map(|pair| async move {
        let lab = lab([]).await;
        let world = World::of(&plan(pair, &lab, "", "")).await;
        let long = "k".repeat(256);
        for (name, value) in [
            ("idempotency-key", "two words"),
            ("idempotency-key", long.as_str()),
            ("x-turnkeep-cache", "off"),
            ("x-turnkeep-conversation", "a b"),
        ] {
            let reply = send(&world, pair, &[(name, value)], &request(pair)).await.reply().await;
            assert!(assert_refused(pair, &reply, 400).contains(name));
        }
        let fine = [("idempotency-key", "once"), ("x-turnkeep-cache", "bypass"), ("x-turnkeep-conversation", "c1")];
        assert_eq!(send(&world, pair, &fine, &request(pair)).await.reply().await.status, 200);
        for request in lab.requests() {
            let crossed = |(name, _): &(String, _)| name.starts_with("x-turnkeep") || name == "idempotency-key";
            assert!(!request.headers.iter().any(crossed), "{:?}", request.headers);
        }
    }))
    .await;
}

/// A second turn with the same idempotency key is answered without the upstream only for one and the same user.
#[tokio::test(flavor = "multi_thread")]
async fn a_shared_key_is_as_many_callers_as_a_trusted_proxy_names_and_nobody_otherwise() {
    let pair = Pair { client: Dialect::Chat, upstream: Dialect::Chat, stream: false };
    for (trusted, calls) in [("\"127.0.0.0/8\", \"unix\"", [1, 1, 2, 3, 4, 5]), ("\"10.0.0.0/8\"", [1, 2, 3, 4, 5, 6])]
    {
        let lab = lab([]).await;
        let mut plan = plan(pair, &lab, "shared = true", "");
        plan.server = format!("trusted_proxies = [{trusted}]\nuser_header = \"x-user\"");
        plan.unix_too = true;
        let world = World::of(&plan).await;
        let asks: [&[(&str, &str)]; 6] = [
            &[("x-user", "ann")],
            &[("x-user", "ann")],
            &[("x-user", "bob")],
            &[],
            &[("x-user", "")],
            &[("x-user", "ann"), ("x-user", "ann")],
        ];
        for (headers, calls) in asks.into_iter().zip(calls) {
            let mut all = vec![("idempotency-key", "once")];
            all.extend_from_slice(headers);
            let reply = send(&world, pair, &all, &request(pair)).await.reply().await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            at_rest(&world).await;
            assert_eq!(lab.requests().len(), calls, "{trusted} {headers:?}");
        }
        // A peer on the socket file is trusted only where "unix" is listed.
        let mut client = Client::unix(&world.folder().join("gateway.sock")).await;
        let bearer = format!("Bearer {LIMITED}");
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", "once"), ("x-user", "ann")];
        client.write(&turn_bytes(pair, &headers, request(pair).to_string().as_bytes())).await;
        assert_eq!(client.reply().await.status, 200);
        at_rest(&world).await;
        assert_eq!(lab.requests().len(), calls[5] + usize::from(!trusted.contains("unix")), "{trusted}");
    }
}

//! Hostile replies: waits that are none or last for ever, bodies without an end or in another encoding, heads like bombs.
//! Each is bounded, classified, and leaves a standing that is right.
//!
//! Each client dialect meets each kind of upstream once, streamed and plain by turns.

use crate::support::dialects::{CHAT, assert_refused, assert_said, covering};
use crate::support::world::{account, assert_unblamed};
use crate::support::*;
use futures_util::future::join_all;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

fn limited(headers: &[(&str, &str)]) -> Rule {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Rule { error: Some(ErrorSpec { status: Some(429), ..ErrorSpec::default() }), headers, ..Rule::default() }
}

/// One turn that is limited so: how long the account cools from now, and the wait that the client is told.
async fn cools_for(pair: Pair, rule: Rule) -> (Duration, u64) {
    let lab = lab([rule]).await;
    let world = World::simple(pair, &lab).await;
    let reply = world.client().await.turn(pair).await;
    assert_refused(pair, &reply, 429);
    let counters = world.until_at_rest().await;
    assert_eq!(counters["rate_limited"], 1, "{pair:?} {counters:#}");
    let a = account(&counters, "a");
    assert_eq!((&a["status"], &a["budget_used"]), (&"active".into(), &0.into()), "{pair:?}");
    assert_eq!(a["cooldowns"].as_array().unwrap().len(), 1, "{pair:?} {a}");
    let until = OffsetDateTime::parse(a["cooldowns"][0]["until"].as_str().unwrap(), &Rfc3339).unwrap();
    let left = until - OffsetDateTime::now_utc();
    (left.try_into().unwrap_or_default(), reply.header("retry-after").unwrap().parse().unwrap())
}

fn is_about(left: Duration, seconds: u64) -> bool {
    // Shown in whole seconds, and some have passed.
    left <= Duration::from_secs(seconds) && left + Duration::from_secs(10) >= Duration::from_secs(seconds)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_none_becomes_the_default_of_15_seconds() {
    let nines = "9".repeat(10_000);
    let values = [
        "-1",
        "-99999999999999999999",
        "99999999999999999999",
        "1e9",
        "0",
        "soon",
        "NaN",
        "0x10",
        "10, 20",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "86400000000",
        &nines,
    ];
    let values = &values;
    join_all(covering().into_iter().map(|pair| async move {
        for value in values {
            let (left, told) = cools_for(pair, limited(&[("retry-after", value)])).await;
            let value = &value[..value.len().min(40)];
            assert!(is_about(left, 15), "{pair:?} {value:?}: {left:?}");
            assert_eq!(told, 15, "{pair:?} {value:?}");
        }
        let (left, _) = cools_for(pair, limited(&[("retry-after-ms", "-5"), ("retry-after", "20")])).await;
        assert!(is_about(left, 20), "{pair:?}: {left:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_days_is_capped_at_six_hours_and_the_client_is_told_at_most_ten_minutes() {
    join_all(covering().into_iter().map(|pair| async move {
        for value in ["100000", "604800", "{date+864000}", "21601"] {
            let (left, told) = cools_for(pair, limited(&[("retry-after", value)])).await;
            assert!(is_about(left, 6 * 3600), "{pair:?} {value}: {left:?}");
            assert_eq!(told, 600, "{pair:?} {value}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_is_measured_from_the_replys_own_clock() {
    join_all(covering().into_iter().map(|pair| async move {
        // The upstream's clock is a day behind.
        let rule = limited(&[("date", "{date-86400}"), ("retry-after", "{date-86370}")]);
        let (left, told) = cools_for(pair, rule).await;
        assert!(is_about(left, 30), "{pair:?}: {left:?}");
        assert_eq!(told, 30, "{pair:?}");
    }))
    .await;
}

const MANY: usize = 10 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn an_error_body_of_ten_megabytes_is_read_to_its_bound_and_means_what_its_beginning_says() {
    for pair in covering() {
        let filler = "x".repeat(MANY);
        let message =
            format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"odd {filler}"}}}}"#);
        let cases =
            [(500, &filler, 502), (418, &filler, 502), (403, &filler, 502), (400, &filler, 400), (422, &message, 422)];
        for (status, body, told) in cases {
            let rule = Rule { status: Some(status), raw: Some(body.clone()), ..Rule::default() };
            let lab = lab([rule]).await;
            let world = World::simple(pair, &lab).await;
            let reply = world.client().await.turn(pair).await;
            assert_refused(pair, &reply, told);
            assert!(reply.body.len() <= 64 << 10, "{pair:?} {status}: {}", reply.body.len());
            assert_unblamed(&world.until_at_rest().await, "a");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn error_bodies_in_other_encodings_are_classified_by_what_can_be_read() {
    let json = r#"{"error":{"message":"Odd: é","type":"odd","code":"flux"}}"#;
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(json.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let utf16_big: Vec<u8> = [0xfe, 0xff].into_iter().chain(json.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    let latin: Vec<u8> = json.chars().map(|char| u8::try_from(u32::from(char)).unwrap()).collect();
    let nonsense: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let bodies = &[utf16, utf16_big, latin, nonsense];
    join_all(covering().into_iter().map(|pair| async move {
        for body in bodies {
            for (status, counter, told) in [
                (500, "upstream_internal", 502),
                (503, "upstream_unavailable", 503),
                (418, "unclassified_fault", 502),
                (403, "unclassified_fault", 502),
                (400, "request_invalid", 400),
            ] {
                let headers = [("content-type".to_owned(), "application/json; charset=utf-16".to_owned())].into();
                let rule = Rule { status: Some(status), raw_bytes: Some(body.clone()), headers, ..Rule::default() };
                let lab = lab([rule]).await;
                let world = World::simple(pair, &lab).await;
                assert_refused(pair, &world.client().await.turn(pair).await, told);
                let counters = world.until_at_rest().await;
                assert_unblamed(&counters, "a");
                assert_eq!(counters[counter], 1, "{pair:?} {status} {:?} {counters:#}", &body[..8]);
            }
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_whose_body_is_garbage_is_still_a_429() {
    join_all(covering().into_iter().map(|pair| async move {
        let gzip = ("content-encoding".to_owned(), "gzip".to_owned());
        for (body, headers) in [(vec![0xff, 0xfe, 0x00, 0x7b], vec![]), (b"no gzip".to_vec(), vec![gzip])] {
            let rule = Rule {
                status: Some(429),
                raw_bytes: Some(body),
                headers: headers.into_iter().collect(),
                ..Rule::default()
            };
            let (left, _) = cools_for(pair, rule).await;
            assert!(is_about(left, 15), "{pair:?}: {left:?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_of_a_megabyte_or_of_five_hundred_headers_are_no_http_and_nobodys_fault() {
    let many: std::collections::BTreeMap<String, String> =
        (0..500).map(|number| (format!("x-bomb-{number}"), "tick".to_owned())).collect();
    let many = &many;
    join_all(covering().into_iter().map(|pair| async move {
        for tls in [false, true] {
            let bombs = [
                Rule { fault: Some(Fault::HeaderOverflow), ..Rule::default() },
                Rule { headers: many.iter().map(|(n, v)| (n.clone(), v.repeat(60))).collect(), ..Rule::default() },
            ];
            for bomb in bombs {
                let script = Script::of([bomb]);
                let lab = if tls { tls_lab(script).await } else { plain_lab(script).await };
                let world = World::simple(pair, &lab).await;
                assert_refused(pair, &world.client().await.turn(pair).await, 502);
                let counters = world.until_at_rest().await;
                assert_unblamed(&counters, "a");
                assert_eq!(counters["http_protocol_error"], 2, "{pair:?} tls {tls} {counters:#}");
                lab.set_script(Script::of([Rule { text: Some("well".into()), ..Rule::default() }]));
                assert_said(pair, &world.client().await.turn(pair).await, "well");
            }
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_body_that_never_ends_does_not_hold_the_turn() {
    // The head and a part of the body, then silence: what has come says what it means.
    let rule =
        Rule { fault: Some(Fault::Hang), fault_at: Some(Point::AfterWords(1)), ..limited(&[("retry-after", "40")]) };
    let lab = lab([rule]).await;
    let world = World::simple(CHAT, &lab).await;
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 429);
    let counters = world.until_at_rest().await;
    assert_eq!(counters["rate_limited"], 1, "{counters:#}");
    assert_eq!(account(&counters, "a")["cooldowns"][0]["scope"], "account");
}

//! What a failed attempt costs in judgement: the reply's headers and body read for what they declare, the error
//! classified, and the account judged by it, slot and index included.
//! `cargo run --release -p turnkeep-engine --example failure_speed`.
//!
//! Each line is one reply: its median and its 99th percentile in nanoseconds. The goal is under 20 000. 1 000 accounts of
//! one upstream, of which each fails once before all are made anew. Writing the proof and the log line is not in it.

#![allow(clippy::print_stdout)] // its output is what it is for

mod pool;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use std::hint::black_box;
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::{Dialect, Fault, Phase};
use turnkeep_dialect::{classify, windows};
use turnkeep_engine::admission::SlotLease;
use turnkeep_policy::Tuning;
use turnkeep_policy::accounts::Bearing;

/// Fresh sets of accounts, and how many of each set fail: some must be left to choose from.
const SETS: u64 = 30;
const OF_SET: u64 = 800;
/// The first of each set are not counted: its memory has just been made.
const WARM: u64 = 100;
const WALL_MS: u64 = 1_796_073_800_000;

struct Reply {
    name: &'static str,
    dialect: Dialect,
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

const REPLIES: &[Reply] = &[
    Reply {
        name: "OpenAI 429, rate limit with used-up windows",
        dialect: Dialect::Chat,
        status: 429,
        headers: &[
            ("content-type", "application/json"),
            ("date", "Mon, 30 Nov 2026 21:23:20 GMT"),
            ("retry-after", "20"),
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("x-ratelimit-reset-tokens", "6m0s"),
            ("x-request-id", "req_0123456789abcdef0123456789abcdef"),
        ],
        body: r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-bench on tokens per min (TPM): Limit 30000, Used 29937, Requested 385. Please try again in 644ms. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    },
    Reply {
        name: "429 without a word of explanation",
        dialect: Dialect::Chat,
        status: 429,
        headers: &[],
        body: r#"{"error":{"message":"Too many requests","type":"rate_limit_error"}}"#,
    },
    Reply {
        name: "Anthropic 529, overloaded",
        dialect: Dialect::Messages,
        status: 529,
        headers: &[
            ("content-type", "application/json"),
            ("date", "Mon, 30 Nov 2026 21:23:20 GMT"),
            ("x-should-retry", "true"),
        ],
        body: r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_011CQ"}"#,
    },
    Reply {
        name: "401, the key revoked",
        dialect: Dialect::Chat,
        status: 401,
        headers: &[("content-type", "application/json"), ("date", "Mon, 30 Nov 2026 21:23:20 GMT")],
        body: r#"{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
    },
    Reply {
        name: "400, the request's own fault, last row",
        dialect: Dialect::Chat,
        status: 400,
        headers: &[("content-type", "application/json"), ("date", "Mon, 30 Nov 2026 21:23:20 GMT")],
        body: r#"{"error":{"message":"Invalid value: 'x'. Supported values are: 'user', 'assistant', 'system'.","type":"invalid_request_error","param":"messages[0].role","code":null}}"#,
    },
    Reply {
        name: "Gemini 429, quota with details",
        dialect: Dialect::Chat,
        status: 429,
        headers: &[("content-type", "application/json"), ("date", "Mon, 30 Nov 2026 21:23:20 GMT")],
        body: r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaDimensions":{"model":"gemini-2.5-flash","location":"global"},"quotaValue":"20"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"58s"}]}}]"#,
    },
    Reply {
        name: "502, a proxy's page",
        dialect: Dialect::Chat,
        status: 502,
        headers: &[("content-type", "text/html"), ("date", "Mon, 30 Nov 2026 21:23:20 GMT"), ("server", "nginx")],
        body: "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
    },
];

/// What the engine does with an error reply that it has read.
fn judge(lease: SlotLease, reply: &Reply, headers: &HeaderMap) {
    let get = |name: &str| headers.get(name)?.to_str().ok();
    let declared = windows::from_headers(&get, WALL_MS);
    let made_ms = windows::made_at(&get, WALL_MS);
    let classified = classify::reply_at(reply.dialect, reply.status, black_box(reply.body.as_bytes()), made_ms);
    let declared = declared.and(classified.declared.clone());
    let mut fault = Fault::new(classified.kind, Phase::Answered, classified.evidence.clone()).declaring(declared);
    fault.context_too_long = classified.context_too_long;
    black_box(lease.judge(&fault, Bearing::Full, None));
    black_box(classified);
}

async fn case(reply: &Reply) -> Result<(), Box<dyn std::error::Error>> {
    let mut headers = HeaderMap::new();
    for (name, value) in reply.headers {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let deadline = Instant::now() + Duration::from_secs(600);
    let routes = pool::routes();
    let mut samples = Vec::new();
    for set in 0..SETS {
        // One group of limits, and no ejection: three unexplained 429s would close the address, five pages the endpoint.
        let tuning = Tuning { breaker_faults: u32::MAX, ..Tuning::default() };
        let admission = pool::admission(tuning, |_, account| account.limit_group = Some("group".into()));
        for n in 0..OF_SET {
            let wanted = pool::wanted(&routes, (set * OF_SET + n) << 20, None);
            let lease = admission.acquire(wanted, "caller", deadline).await;
            let mut lease = lease.map_err(|why| format!("{}: no slot, {why:?}", reply.name))?;
            lease.sent();
            let began = std::time::Instant::now();
            judge(lease, reply, &headers);
            let took = began.elapsed();
            if n >= WARM {
                samples.push(took.as_nanos() as u64);
            }
            admission.take_changes();
        }
    }
    pool::print(reply.name, samples);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    REPLIES.iter().try_for_each(|reply| runtime.block_on(case(reply)))
}

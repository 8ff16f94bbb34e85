//! How long it takes to classify a typical error and to read its headers: `cargo run --release --example classify_speed -p
//! turnkeep-dialect`.

#![allow(clippy::print_stdout)] // its output is what it is for

use std::hint::black_box;
use std::time::Instant;
use turnkeep_base::Dialect;
use turnkeep_dialect::{classify, windows};

const BODIES: &[(&str, Dialect, u16, &str)] = &[
    (
        "OpenAI rate limit",
        Dialect::Chat,
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-uOtiSEwvUnroadaOnJJquBEC on tokens per min (TPM): Limit 30000, Used 29937, Requested 385. Please try again in 644ms. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        "Anthropic overload",
        Dialect::Messages,
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_011CQ"}"#,
    ),
    (
        "invalid request, last row",
        Dialect::Chat,
        400,
        r#"{"error":{"message":"Invalid value: 'x'. Supported values are: 'user', 'assistant', 'system'.","type":"invalid_request_error","param":"messages[0].role","code":null}}"#,
    ),
    (
        "Gemini quota",
        Dialect::Chat,
        429,
        r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaDimensions":{"model":"gemini-2.5-flash","location":"global"},"quotaValue":"20"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"58s"}]}}]"#,
    ),
];
const ROUNDS: u32 = 200_000;

fn main() {
    for (name, dialect, status, body) in BODIES {
        let started = Instant::now();
        for _ in 0..ROUNDS {
            black_box(classify::reply_at(*dialect, *status, black_box(body.as_bytes()), 1_796_073_800_000));
        }
        println!("{name}: {:?}", started.elapsed() / ROUNDS);
    }
    let get = |name: &str| match name {
        "date" => Some("Mon, 30 Nov 2026 21:23:20 GMT"),
        "retry-after" => Some("20"),
        "x-ratelimit-remaining-tokens" => Some("0"),
        "x-ratelimit-reset-tokens" => Some("6m0s"),
        _ => None,
    };
    let started = Instant::now();
    for _ in 0..ROUNDS {
        black_box(windows::from_headers(black_box(&get), 0));
    }
    println!("headers: {:?}", started.elapsed() / ROUNDS);
    let page = "x".repeat(64 << 10);
    let started = Instant::now();
    for _ in 0..1_000 {
        black_box(classify::reply(Dialect::Chat, 500, black_box(page.as_bytes())));
    }
    println!("64 KiB of text: {:?}", started.elapsed() / 1_000);
}

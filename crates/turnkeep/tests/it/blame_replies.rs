//! What an upstream's error reply does to the account that got it, form by form: money, rate, the request, somebody
//! else's trouble in the shell of a refusal, and what nobody thought of.
//!
//! Each client dialect meets each kind of upstream once, streamed and plain by turns.

use crate::support::dialects::{assert_refused, assert_said, covering, saying};
use crate::support::world::{Plan, account, assert_unblamed};
use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};

const WORDS: &str = "one two three four";

fn good() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

fn says(status: u16, kind: Option<&str>, code: Option<&str>, message: &str) -> Rule {
    let error = ErrorSpec {
        status: Some(status),
        kind: kind.map(str::to_owned),
        code: code.map(str::to_owned),
        message: Some(message.into()),
        ..ErrorSpec::default()
    };
    Rule { error: Some(error), ..Rule::default() }
}

fn raw(status: u16, content_type: &str, body: &str) -> Rule {
    let headers = [("content-type".to_owned(), content_type.to_owned())].into();
    Rule { status: Some(status), raw: Some(body.into()), headers, ..Rule::default() }
}

/// The scopes and faults of an account's cooldowns.
fn cooldowns(counters: &Value, name: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = account(counters, name)["cooldowns"].as_array().unwrap();
    list.iter().map(|entry| (text(&entry["scope"]), text(&entry["fault"]))).collect()
}

fn cools(scope: &str, fault: &str) -> Vec<(String, String)> {
    vec![(scope.into(), fault.into())]
}

/// The first account that is asked answers so; the other serves, and the first one's cooldowns come back.
async fn cooled_and_passed_over(pair: Pair, rule: Rule, counter: &str) -> Vec<(String, String)> {
    let lab = lab([Rule { times: Some(1), ..rule }, good()]).await;
    let world = World::two(pair, &lab).await;
    let reply = world.client().await.turn(pair).await;
    assert_said(pair, &reply, WORDS);
    assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"), "{pair:?} {counter}");
    let counters = world.until_at_rest().await;
    assert_eq!((&counters[counter], &counters["failover_hops"]), (&1.into(), &1.into()), "{pair:?} {counters:#}");
    let requests = lab.requests();
    assert_eq!(requests.len(), 2, "{pair:?} {counter}");
    let name = |at: usize| requests[at].account.as_deref().unwrap().trim_start_matches("secret-").to_owned();
    assert_unblamed(&counters, &name(1));
    let first = account(&counters, &name(0));
    assert_eq!((&first["status"], &first["budget_used"]), (&"active".into(), &0.into()), "{pair:?} {counter}");
    cooldowns(&counters, &name(0))
}

const NO_CREDIT: &str = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.";

#[tokio::test(flavor = "multi_thread")]
async fn too_little_credit_told_as_a_400_cools_the_accounts_quota_and_the_turn_goes_on() {
    join_all(covering().into_iter().map(|pair| async move {
        let rule = says(400, Some("invalid_request_error"), None, NO_CREDIT);
        assert_eq!(cooled_and_passed_over(pair, rule, "quota_exhausted").await, cools("quota", "quota_exhausted"));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_400_of_the_request_asks_nobody_else_and_quotes_of_credit_in_it_charge_nobody() {
    join_all(covering().into_iter().map(|pair| async move {
        for message in ["messages.0: odd", "messages.0: the text 'Your credit balance is too low' is not allowed"] {
            let lab = lab([says(400, Some("invalid_request_error"), None, message)]).await;
            let world = World::over([Up::at(pair.upstream, &lab).accounts(&["a", "b", "c"])]).await;
            for turn in 1..=4 {
                let reply = world.client().await.turn(pair).await;
                assert!(assert_refused(pair, &reply, 400).contains("messages.0"), "{}", reply.text());
                assert_eq!(lab.requests().len(), turn, "{pair:?}: the pool is not gone through");
            }
            let counters = world.until_at_rest().await;
            for name in ["a", "b", "c"] {
                assert_unblamed(&counters, name);
            }
            assert_eq!((&counters["request_invalid"], &counters["failover_hops"]), (&4.into(), &0.into()));
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_of_money_cools_the_quota_and_a_429_of_rate_the_account() {
    join_all(covering().into_iter().map(|pair| async move {
        let money = match pair.upstream {
            Dialect::Gemini => says(429, None, None, "Your prepayment credits are depleted."),
            Dialect::Chat | Dialect::Responses => {
                says(429, Some("insufficient_quota"), Some("insufficient_quota"), "You exceeded your quota.")
            }
            Dialect::Messages => says(429, Some("rate_limit_error"), None, "This would exceed your spend limit."),
        };
        assert_eq!(
            cooled_and_passed_over(pair, money.clone(), "quota_exhausted").await,
            cools("quota", "quota_exhausted")
        );
        let rate = says(429, None, None, "Slow down.");
        assert_eq!(cooled_and_passed_over(pair, rate.clone(), "rate_limited").await, cools("account", "rate_limited"));
        // Alone, each is told as what it is.
        for (rule, status) in [(money, pair.of(429, 402)), (rate, 429)] {
            let lab = lab([rule]).await;
            let world = World::simple(pair, &lab).await;
            assert_refused(pair, &world.client().await.turn(pair).await, status);
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_in_lists_and_with_numbers_for_codes_are_understood() {
    let list = json!([{"error": {"code": 429, "message": "Resource exhausted.", "status": "RESOURCE_EXHAUSTED"}}]);
    let number = json!({"error": {"code": 429, "message": "Slow down."}});
    let detail = json!({"detail": [{"type": "int_parsing", "msg": "odd"}]});
    let [list, number, detail] = &[list, number, detail].map(|body| body.to_string());
    join_all(covering().into_iter().map(|pair| async move {
        for body in [list, number] {
            let cooled = cooled_and_passed_over(pair, raw(429, "application/json", body), "rate_limited").await;
            assert_eq!(cooled, cools("account", "rate_limited"), "{body}");
        }
        let lab = lab([raw(422, "application/json", detail)]).await;
        let world = World::two(pair, &lab).await;
        assert!(assert_refused(pair, &world.client().await.turn(pair).await, 422).contains("odd"));
        assert_unblamed(&world.until_at_rest().await, "a");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_for_a_code_inside_of_a_stream_is_understood() {
    join_all(crate::support::dialects::streamed().into_iter().map(|pair| async move {
        let error = json!({"error": {"code": 429, "message": "Slow down."}, "type": "error"});
        let frame = match pair.upstream {
            Dialect::Chat | Dialect::Gemini => format!("data: {error}\n\n"),
            Dialect::Responses | Dialect::Messages => format!("event: error\ndata: {error}\n\n"),
        };
        let rule = Rule { raw_frames: vec![frame], ..Rule::default() };
        assert_eq!(cooled_and_passed_over(pair, rule, "rate_limited").await, cools("account", "rate_limited"));
    }))
    .await;
}

const PAGE: &str = "<!DOCTYPE html><html><head><title>Attention Required!</title></head><body>blocked</body></html>";

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_proxies_in_any_status_leave_the_account_alone() {
    join_all(covering().into_iter().map(|pair| async move {
        for status in [200, 401, 403, 500, 502, 503, 520] {
            let lab = lab([raw(status, "text/html; charset=utf-8", PAGE)]).await;
            let world = World::simple(pair, &lab).await;
            let counter = if status == 200 { "malformed_response" } else { "upstream_unavailable" };
            for _ in 0..4 {
                let reply = world.client().await.turn(pair).await;
                assert_refused(pair, &reply, if status == 200 { 502 } else { 503 });
                assert!(!reply.text().contains("<html"), "{pair:?} {status}");
            }
            let counters = world.until_at_rest().await;
            assert_unblamed(&counters, "a");
            assert_eq!(counters[counter], 4, "{pair:?} {status} {counters:#}");
        }
    }))
    .await;
}

/// Somebody's trouble in the shell of a refused credential.
fn shell(turn: u16) -> Rule {
    let message = if turn.is_multiple_of(2) { "An internal error occurred, request 17." } else { "internal error" };
    says(if turn.is_multiple_of(2) { 401 } else { 403 }, Some("permission_error"), None, message)
}

#[tokio::test(flavor = "multi_thread")]
async fn four_errors_in_the_shell_of_a_refusal_leave_the_account_alone_and_the_fifth_charges_one() {
    join_all(covering().into_iter().map(|pair| async move {
        let mut rules: Vec<Rule> = (1..=4).map(|turn| Rule { times: Some(1), ..shell(turn) }).collect();
        rules.push(good());
        let lab = lab(rules.clone()).await;
        let world = World::simple(pair, &lab).await;
        for _ in 0..4 {
            assert_refused(pair, &world.client().await.turn(pair).await, 502);
        }
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "a");
        assert_eq!(counters["upstream_internal"], 4, "{pair:?} {counters:#}");
        assert_eq!((&counters["credential_rejected"], &counters["unclassified_fault"]), (&0.into(), &0.into()));
        // A success ends the run: the next four say nothing again, and the fifth in a row does.
        assert_said(pair, &world.client().await.turn(pair).await, WORDS);
        for turn in 1..=5 {
            lab.set_script(Script::of([shell(turn)]));
            assert_unblamed(&world.until_at_rest().await, "a");
            assert_refused(pair, &world.client().await.turn(pair).await, 502);
        }
        let counters = world.until_at_rest().await;
        let a = account(&counters, "a");
        assert_eq!((&a["status"], &a["budget_used"]), (&"active".into(), &1.into()), "{pair:?} {counters:#}");
        lab.set_script(Script::of([good()]));
        assert_said(pair, &world.client().await.turn(pair).await, WORDS);
        assert_unblamed(&world.until_at_rest().await, "a");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifteen_shells_without_a_success_evict_a_key_that_hides_behind_them() {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = lab([shell(1)]).await;
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning("backoff = \"1ms\"")).await;
        for turn in 1..=15u64 {
            assert_refused(pair, &world.client().await.turn(pair).await, 502);
            let counters = world.until_at_rest().await;
            let a = account(&counters, "a");
            let (status, used) = if turn < 15 { ("active", turn / 5) } else { ("errored", 0) };
            assert_eq!((&a["status"], &a["budget_used"]), (&status.into(), &used.into()), "{pair:?}, turn {turn}");
        }
        assert_eq!(world.counters().await["dead_credentials"], 1);
    }))
    .await;
}

/// What this process has logged, for as long as it lives.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Logged {
    /// The lines that warn of an unclassified fault with a code that begins so.
    fn warnings(&self, code: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let of_code = |line: &&str| line.contains("an unclassified fault") && line.contains(&format!("code={code}"));
        text.lines().filter(of_code).map(str::to_owned).collect()
    }
}

/// In one test, since a process has one log.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_codes_are_warned_about_once_each_and_64_of_them_at_most() {
    let logged = Logged::default();
    let writer = logged.clone();
    let builder = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_ansi(false);
    builder.with_writer(move || writer.clone()).try_init().expect("nothing else in this process logs");
    let by_code = |number: usize| Rule {
        body_contains: Some(format!("number {number} please")),
        ..says(418, Some("flux_drift"), Some(&format!("flux_{number}")), "The flux has drifted.")
    };
    let rules: Vec<Rule> = (100..180).map(by_code).collect();
    for (number, pair) in covering().into_iter().enumerate() {
        let lab = lab(rules.clone()).await;
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning("backoff = \"1ms\"")).await;
        let before = logged.warnings("").len();
        // Four of one code, then four of another.
        for code in [100 + number, 110 + number].into_iter().flat_map(|code| [code; 4]) {
            let mut client = world.client().await;
            let words = format!("number {code} please");
            client.ask_with(pair, &[], saying(pair, &words).to_string().as_bytes()).await;
            assert_refused(pair, &client.reply().await, 502);
        }
        assert_eq!(logged.warnings("").len(), before + 2, "{pair:?}: {:?}", logged.warnings(""));
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "a");
        assert_eq!(counters["unclassified_fault"], 8, "{pair:?}");
        if number > 0 {
            continue;
        }
        for code in 100..180 {
            let mut client = world.client().await;
            let words = format!("number {code} please");
            client.ask_with(pair, &[], saying(pair, &words).to_string().as_bytes()).await;
            assert_refused(pair, &client.reply().await, 502);
        }
        assert_eq!(logged.warnings("").len(), before + 64, "{pair:?}");
        assert_eq!(world.counters().await["unclassified_fault"], 88, "what is not warned about is counted");
        assert_unblamed(&world.until_at_rest().await, "a");
    }
}

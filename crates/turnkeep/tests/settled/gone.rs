//! What becomes of an upstream's call whose client leaves is that upstream's policy, the same on every route: every
//! client dialect over every kind of upstream, streamed and not, before the answer and in the middle of it.

use crate::support::dialects::saying;
use crate::support::world::{Plan, account};
use crate::support::*;
use futures_util::future::join_all;

const FINISH: &str = "on_client_gone = { finish = { max_tokens = 2000, max_seconds = 30 } }";
const USAGE: UsageSpec =
    UsageSpec { prompt: Some(31), completion: Some(7), cached: None, cache_write: None, reasoning: None };

/// An upstream that cancels and one that finishes, each with a model of its name.
async fn both_policies(pair: Pair, lab: &turnkeep_lab::Lab) -> World {
    let model = |name, up| format!("[[models]]\nname = \"{name}\"\nroutes = [{{ upstream = \"{up}\" }}]\n");
    let cancels = Up::at(pair.upstream, lab).accounts(&["cancelling"]);
    let finishes = Up::at(pair.upstream, lab).accounts(&["finishing"]).lines(FINISH);
    let plan = Plan::over([cancels, finishes]);
    World::of(&plan.models(&(model("cancels", "up0") + &model("finishes", "up1")))).await
}

async fn leaving(pair: Pair, how: Leave, gate_at: Option<Point>) {
    let text = Some("one two three four".into());
    let rule = Rule { text, usage: USAGE, gate: Some("held".into()), gate_at, ..Rule::default() };
    let lab = lab([rule]).await;
    let world = both_policies(pair, &lab).await;
    let mut clients = Vec::new();
    for model in ["cancels", "finishes"] {
        let mut body = saying(pair, &format!("This call {model}"));
        body["model"] = model.into();
        let mut client = world.client().await;
        client.ask_with(pair, &[], body.to_string().as_bytes()).await;
        clients.push(client);
    }
    soon(lab.wait_at_gate("held", 2)).await;
    if pair.stream && gate_at.is_some() {
        for client in &mut clients {
            client.until("two ").await;
        }
    }
    for client in clients {
        client.leave(how).await;
    }
    soon(lab.wait_aborted(1)).await;
    let counters =
        world.until("the cancelled call's end", |counters| account(counters, "cancelling")["in_flight"] == 0).await;
    assert_eq!(account(&counters, "finishing")["in_flight"], 1, "{pair:?} {how:?}: it goes on");
    assert_eq!(counters["now"]["turns_open"], 1, "{pair:?} {how:?}");
    lab.release("held");
    let counters = world.until("both ends", |counters| counters["now"]["turns_open"] == 0).await;
    let left =
        counters["client_gone_before_answer"].as_u64().unwrap() + counters["client_gone_mid_answer"].as_u64().unwrap();
    assert_eq!((left, &counters["undelivered"], &counters["delivered"]), (1, &1.into(), &0.into()), "{pair:?} {how:?}");
    assert_eq!(lab.aborted(), 1, "{pair:?} {how:?}");
    for request in lab.requests() {
        let cancels = String::from_utf8_lossy(&request.body).contains("This call cancels");
        let saw = (request.client_closed_after, request.reported);
        assert_eq!(saw, if cancels { (true, None) } else { (false, Some((31, 7))) }, "{pair:?} {how:?}");
    }
    let entries = world.into_ledger().await;
    assert_eq!(entries.len(), 2, "{entries:?}");
    for entry in entries {
        let closed = entry.closed.as_ref().unwrap();
        let tokens = (closed.outcome.as_str(), closed.exact, closed.usage.input, closed.usage.output);
        match &*entry.model {
            "cancels" => assert_eq!((tokens.0, tokens.1), ("interrupted", false), "{pair:?} {how:?}"),
            _ => assert_eq!(tokens, ("completed", true, 31, 7), "{pair:?} {how:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_answer_ends_the_call_or_not_as_the_upstream_says() {
    for how in Leave::BOTH {
        join_all(pairs().into_iter().map(|pair| leaving(pair, how, None))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_of_the_answer_ends_the_call_or_not_as_the_upstream_says() {
    for how in Leave::BOTH {
        // A plain answer comes in two halves here: the first is one word.
        let at = |pair: Pair| Some(Point::AfterWords(if pair.stream { 2 } else { 1 }));
        join_all(pairs().into_iter().map(|pair| leaving(pair, how, at(pair)))).await;
    }
}

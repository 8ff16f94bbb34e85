//! Where a provider's prompt cache is: a conversation stays with the key that has served it, and others spread.

use crate::kit::*;
use crate::support::dialects::{assert_said, say, saying};
use crate::support::world::Plan;
use crate::support::{Dialect, Pair, Rule, Up, World, lab};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A conversation's request, with what has been said so far.
fn request(pair: Pair, opening: &str, answers: usize) -> Value {
    let mut body = saying(pair, opening);
    let system = "You are a careful helper. ".repeat(40);
    match pair.client {
        Dialect::Chat => {
            body["messages"] = json!([{"role": "system", "content": system}, {"role": "user", "content": opening}])
        }
        Dialect::Responses => {
            body["instructions"] = json!(system);
            body["input"] = json!([{"role": "user", "content": opening}]);
        }
        Dialect::Messages => body["system"] = json!(system),
        Dialect::Gemini => body["systemInstruction"] = json!({"parts": [{"text": system}]}),
    }
    for turn in 0..answers {
        say(pair, &mut body, "assistant", WORDS);
        // An upstream that keeps its answers is sent no more than this.
        say(pair, &mut body, "user", &format!("go on, {turn}: {opening}"));
    }
    body
}

async fn ask(world: &World, pair: Pair, body: &Value) {
    let mut client = world.client().await;
    client.ask_with(pair, &[], body.to_string().as_bytes()).await;
    assert_said(pair, &client.reply().await, WORDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_stays_with_the_key_that_has_its_cache_while_others_are_spread() {
    each(async |pair| {
        let lab = lab([good()]).await;
        let names = ["a", "b", "c", "d"];
        let world = World::over([Up::at(pair.upstream, &lab).accounts(&names)]).await;
        let openings: Vec<String> = (0..8).map(|number| format!("tell me of number {number}")).collect();
        for answers in 0..5 {
            for opening in &openings {
                ask(&world, pair, &request(pair, opening, answers)).await;
            }
        }
        let mut keys = BTreeSet::new();
        for opening in &openings {
            let asked =
                lab.requests().into_iter().filter(|request| String::from_utf8_lossy(&request.body).contains(opening));
            let asked: Vec<String> = asked.map(|request| request.account.unwrap()).collect();
            assert_eq!(asked.len(), 5, "{pair:?}");
            assert!(asked.iter().all(|key| *key == asked[0]), "{pair:?} {opening}: {asked:?}");
            keys.insert(asked[0].clone());
        }
        assert_eq!(keys.len(), names.len(), "{pair:?}: the conversations are spread");
    })
    .await;
}

/// The thinking of one provider, signed by it, must not reach another, which would refuse it.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_with_a_providers_own_thinking_goes_back_to_it_and_elsewhere_without_it() {
    for stream in [true, false] {
        let pair = Pair { client: Dialect::Messages, upstream: Dialect::Messages, stream };
        let own = Rule { thinking: Some("let me see".into()), signature: Some("signed-by-the-first".into()), ..good() };
        let [first, second] = [lab([own]).await, lab([good()]).await];
        let ups = [&first, &second].map(|lab| Up::at(pair.upstream, lab));
        let world = World::of(&Plan::over(ups).tuning(QUICK)).await;
        let mut body = saying(pair, "think of it");
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        body["max_tokens"] = json!(4096);
        let mut client = world.client().await;
        client.ask_with(pair, &[], body.to_string().as_bytes()).await;
        let reply = client.reply().await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let thought = json!({"type": "thinking", "thinking": "let me see", "signature": "signed-by-the-first"});
        let said = json!({"type": "text", "text": WORDS});
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": [thought, said]}));
        messages.push(json!({"role": "user", "content": "and now?"}));
        world.until("the receipt", |counters| counters["delivered"] == 1).await;

        client.ask_with(pair, &[], body.to_string().as_bytes()).await;
        assert_eq!(client.reply().await.status, 200);
        let back = first.requests().remove(1);
        assert!(String::from_utf8_lossy(&back.body).contains("signed-by-the-first"), "its own provider gets it back");
        assert_eq!(second.requests().len(), 0);

        first.set_script(turnkeep_lab::Script::of([error(503)]));
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": WORDS}));
        messages.push(json!({"role": "user", "content": "and then?"}));
        client.ask_with(pair, &[], body.to_string().as_bytes()).await;
        let reply = client.reply().await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let elsewhere = second.requests().remove(0);
        let elsewhere = String::from_utf8_lossy(&elsewhere.body);
        assert!(!elsewhere.contains("signed-by-the-first") && elsewhere.contains("and then?"), "{elsewhere}");
    }
}

//! What only its provider can read, on a whole way: made at one upstream, shown to a client of any dialect, sent back as
//! such clients do, and written for the next upstream. Its maker gets it byte for byte; nobody else gets any of it, and
//! the client is told.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/answers.rs"]
mod answers;
#[path = "support/heard.rs"]
mod heard;
#[path = "support/pairs.rs"]
mod pairs;
#[path = "support/sent.rs"]
mod sent;

use answers::{Say, call, streamed, think, whole};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heard::Heard;
use pairs::{answered, ask, conversation, every_pair, options, streamed as heard_by};
use proptest::prelude::*;
use sent::{calls, gone};
use serde_json::{Value, json};
use turnkeep_base::Dialect;

/// The thought and its proof, as the upstream has them in a request; Chat has no proof but the thought itself.
fn found(target: Dialect, body: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match target {
        Dialect::Chat => (text(&body["messages"][1]["reasoning_content"]), String::new()),
        Dialect::Responses => {
            let items = body["input"].as_array().unwrap();
            let item = items.iter().find(|item| item["type"] == "reasoning").cloned().unwrap_or_default();
            (text(&item["summary"][0]["text"]), text(&item["encrypted_content"]))
        }
        Dialect::Messages => {
            let blocks = body["messages"][1]["content"].as_array().cloned().unwrap_or_default();
            let block = blocks.iter().find(|block| block["type"] == "thinking").cloned().unwrap_or_default();
            (text(&block["thinking"]), text(&block["signature"]))
        }
        Dialect::Gemini => {
            let parts = body["contents"][1]["parts"].as_array().unwrap();
            let thought: String =
                parts.iter().filter(|part| part["thought"] == true).map(|part| text(&part["text"])).collect();
            let call = parts.iter().find(|part| part["functionCall"].is_object()).unwrap();
            (thought, text(&call["thoughtSignature"]))
        }
    }
}

fn next(client: Dialect, heard: &Heard) -> Value {
    let mut body = ask(client, &["f"]);
    let results = heard::results(client, heard);
    conversation(client, &mut body).extend(heard.echo.iter().cloned().chain(results));
    body
}

/// One way; the proof is told apart from all else in a body.
fn way(client: Dialect, upstream: Dialect, heard: &Heard, thought: &str, proof: &str) -> Result<(), TestCaseError> {
    for target in Dialect::ALL {
        let what = format!("made at {upstream}, by way of {client}, to {target}");
        let (body, dropped) = gone(client, &next(client, heard), target);
        prop_assert_eq!(calls(target, &body).len(), 1, "{}: {}", what, body);
        let (thinks, proves) = found(target, &body);
        let text = body.to_string();
        if target == upstream {
            if target == Dialect::Chat {
                prop_assert_eq!(thinks, thought, "{}", what);
            } else {
                prop_assert_eq!(&proves, proof, "{}: {}", what, body);
                // A Chat client says the thought in another field than its proof, and Gemini needs no thought.
                let whole = thinks == thought || target == Dialect::Gemini;
                prop_assert!(whole, "{}: {:?} and not {:?}", what, thinks, thought);
            }
            prop_assert!(!text.contains("turnkeep."), "{}: {}", what, body);
            continue;
        }
        let marked = STANDARD.encode("turnkeep.");
        prop_assert!(!text.contains("turnkeep.") && !text.contains(&marked), "{}: {}", what, body);
        // Chat has Anthropic's and Gemini's as they are, so that it cannot be told from a Chat upstream's own; whoever
        // remembers who made it sends the turn elsewhere without it.
        let unmarked = client == Dialect::Chat && target == client && upstream != Dialect::Responses;
        if unmarked {
            let (bytes, any) = pairs::request(client, &next(client, heard)).pass_through_elsewhere("m");
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            prop_assert!(any && !text.contains(proof), "{}: {}", what, text);
            continue;
        }
        prop_assert!(!text.contains(proof), "{}: {}", what, body);
        if client != target {
            prop_assert!(!text.contains(&format!("\"{thought}\"")), "{}: {}", what, body);
            prop_assert!(dropped.contains(&"thinking".to_owned()), "{}: {:?}: {}", what, dropped, body);
        } else if !heard.proofs.is_empty() && upstream != client {
            prop_assert!(dropped.contains(&"thinking".to_owned()), "{}: {:?}: {}", what, dropped, body);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_proof_comes_back_to_its_maker_byte_for_byte_and_reaches_nobody_else(
        bytes in prop::collection::vec(any::<u8>(), 12..60), thought in "[a-zé\"\\\\\n<]{1,6} thought [a-z]{4,12}",
        arguments in "[a-z]{1,6}",
    ) {
        let proof = STANDARD.encode(&bytes);
        let says: Vec<Say> = vec![think(&thought, &proof), call("c1", "f", &json!({"a":arguments}).to_string())];
        for (client, upstream) in every_pair() {
            let options = options(client, upstream);
            let heard = heard::stream(client, &heard_by(&options, &streamed(upstream, &says, "tools")));
            way(client, upstream, &heard, &thought, &proof)?;
            let heard = heard::whole(client, &answered(&options, &whole(upstream, &says, "tools")));
            way(client, upstream, &heard, &thought, &proof)?;
        }
    }
}

#[test]
fn a_thought_that_was_sent_back_in_its_pieces_is_one_with_its_proof() {
    let proof = STANDARD.encode("a proof of something");
    let says = [think("hm, so that is it", &proof), answers::text("Yes.")];
    for upstream in [Dialect::Responses, Dialect::Messages] {
        let datas = heard_by(&options(Dialect::Gemini, upstream), &streamed(upstream, &says, "stop"));
        // Each chunk a content of its own, as Google's client for Python keeps a conversation; or all parts in one.
        let contents: Vec<Value> = datas.iter().map(|data| data["candidates"][0]["content"].clone()).collect();
        let parts: Vec<Value> =
            contents.iter().flat_map(|content| content["parts"].as_array().unwrap().clone()).collect();
        for echo in [contents, vec![json!({"role":"model","parts":parts})]] {
            let mut body = ask(Dialect::Gemini, &[]);
            let said = conversation(Dialect::Gemini, &mut body);
            let again = said[0].clone();
            said.extend(echo.into_iter().chain([again]));
            let (sent, dropped) = gone(Dialect::Gemini, &body, upstream);
            assert_eq!(found(upstream, &sent), ("hm, so that is it".to_owned(), proof.clone()), "{upstream}: {sent}");
            assert!(dropped.is_empty(), "{upstream}: {dropped:?}");
        }
    }
}

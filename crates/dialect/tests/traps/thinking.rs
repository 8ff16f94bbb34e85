//! Thinking and its proofs.

use crate::answers::{Say, call, chat_stream, streamed, text, think, whole};
use crate::heard::{self, Heard};
use crate::pairs::{answered, ask, conversation, every_pair, options, streamed as heard_by};
use crate::sent::{gone, sent};
use serde_json::{Value, json};
use turnkeep_base::Dialect;

const PROOF: &str = "RXFRQi8rPT0=";

fn thoughtful() -> Vec<Say> {
    vec![think("hm, so", PROOF), text("Let me look."), call("c1", "f", "{}")]
}

fn next(client: Dialect, heard: &Heard) -> Value {
    let mut body = ask(client, &["f"]);
    let results = heard::results(client, heard);
    conversation(client, &mut body).extend(heard.echo.iter().cloned().chain(results));
    body
}

#[test]
fn thinking_keeps_its_proof_and_its_place_before_what_it_led_to() {
    for (client, upstream) in every_pair() {
        let options = options(client, upstream);
        let datas = heard_by(&options, &streamed(upstream, &thoughtful(), "tools"));
        let body = answered(&options, &whole(upstream, &thoughtful(), "tools"));
        for heard in [heard::stream(client, &datas), heard::whole(client, &body)] {
            assert_eq!((&*heard.thinking, &*heard.text), ("hm, so", "Let me look."), "{upstream} to {client}");
            // A plain Chat message says it with fields, which have no order.
            let plain_chat = client == Dialect::Chat && heard.order.is_empty();
            // What comes behind the text from Gemini is the proof of the call, which other dialects have in a thought.
            let mut order = heard.order.clone();
            if upstream == Dialect::Gemini && order.len() == 4 {
                assert_eq!(order.remove(2), "thinking", "{client}: {heard:?}");
            }
            assert!(plain_chat || order == ["thinking", "text", "call"], "{upstream} to {client}: {heard:?}");
            let proven = upstream != Dialect::Chat;
            let proofs = heard.proofs.iter().filter(|proof| *proof != turnkeep_dialect::envelope::UNSIGNED).count();
            assert!(!proven || proofs == 1, "{upstream} to {client}: {heard:?}");
        }
    }
}

#[test]
fn a_thinking_block_is_signed_and_closed_before_the_next_block_begins() {
    for upstream in Dialect::ALL {
        let datas = heard_by(&options(Dialect::Messages, upstream), &streamed(upstream, &thoughtful(), "tools"));
        let at = |wanted: &dyn Fn(&Value) -> bool| datas.iter().position(wanted).unwrap();
        let signed = at(&|data| data["delta"]["type"] == "signature_delta");
        let closed = at(&|data| data["type"] == "content_block_stop");
        let second = at(&|data| data["type"] == "content_block_start" && data["index"] == 1);
        assert!(signed < closed && closed < second, "{upstream}: {datas:?}");
        assert_eq!(datas[closed]["index"], 0, "{upstream}");
    }
}

#[test]
fn thinking_that_an_upstream_says_again_is_not_doubled() {
    // Servers that write one thought in two fields, and a last block that has the whole of it with its proof.
    let deltas = [
        json!({"role":"assistant","reasoning_content":"hm, ","reasoning":"hm, "}),
        json!({"reasoning_content":"so","reasoning":"so","reasoning_details":[{"type":"reasoning.text","text":"so"}]}),
        json!({"thinking_blocks":[{"type":"thinking","thinking":"hm, so","signature":"EqQB"}]}),
        json!({"content":"Yes."}),
    ];
    for client in [Dialect::Responses, Dialect::Messages, Dialect::Gemini] {
        let datas = heard_by(&options(client, Dialect::Chat), &chat_stream(&deltas, "stop"));
        let heard = heard::stream(client, &datas);
        assert_eq!((&*heard.thinking, &*heard.text), ("hm, so", "Yes."), "{client}");
    }
    // Responses says every text three times: in pieces, at the item's end, at the answer's end.
    for client in Dialect::ALL {
        let stream = streamed(Dialect::Responses, &thoughtful(), "tools");
        let heard = heard::stream(client, &heard_by(&options(client, Dialect::Responses), &stream));
        assert_eq!((&*heard.thinking, &*heard.text), ("hm, so", "Let me look."), "{client}");
    }
}

#[test]
fn geminis_signature_comes_back_to_its_call_through_every_dialect() {
    for client in Dialect::ALL {
        for says in [thoughtful(), vec![think("hm", PROOF), call("c1", "f", "{}"), call("c2", "g", "{}")]] {
            let stream = streamed(Dialect::Gemini, &says, "stop");
            let heard = heard::stream(client, &heard_by(&options(client, Dialect::Gemini), &stream));
            let (body, encoded) = sent(client, &next(client, &heard), Dialect::Gemini);
            assert_eq!(body.to_string().matches(PROOF).count(), 1, "{client}: {body}");
            // A thought whose proof is elsewhere has none itself, and stays behind.
            let behind = encoded.dropped.contains(&"thinking".to_owned());
            let apart = client == Dialect::Chat || matches!(says[1], Say::Text(_));
            assert!(!behind || apart, "{client}: {:?}", encoded.dropped);
            let parts = body["contents"][1]["parts"].as_array().unwrap();
            let said: Vec<_> = parts.iter().filter(|part| part["thought"] != true).collect();
            let called = said.iter().find(|part| part["functionCall"].is_object()).unwrap();
            assert_eq!(called["thoughtSignature"], PROOF, "{client}: {body}");
        }
    }
}

#[test]
fn a_chat_server_gets_its_reasoning_back_from_clients_of_every_dialect() {
    for client in Dialect::ALL {
        let stream = streamed(Dialect::Chat, &thoughtful(), "tools");
        let heard = heard::stream(client, &heard_by(&options(client, Dialect::Chat), &stream));
        let (body, dropped) = gone(client, &next(client, &heard), Dialect::Chat);
        assert_eq!(body["messages"][1]["reasoning_content"], "hm, so", "{client}: {body}");
        assert!(!dropped.contains(&"thinking".to_owned()), "{client}: {dropped:?}");
    }
}

#[test]
fn reasoning_goes_to_responses_unstored_without_ids_and_with_what_it_led_to() {
    for client in Dialect::ALL {
        let stream = streamed(Dialect::Responses, &thoughtful(), "tools");
        let heard = heard::stream(client, &heard_by(&options(client, Dialect::Responses), &stream));
        let (body, _) = sent(client, &next(client, &heard), Dialect::Responses);
        assert_eq!(body["store"], false, "{client}");
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]), "{client}");
        let items = body["input"].as_array().unwrap();
        assert!(items.iter().all(|item| item.get("id").is_none()), "{client}: {body}");
        let at = items.iter().position(|item| item["type"] == "reasoning").unwrap();
        assert_eq!(items[at]["encrypted_content"], PROOF, "{client}: {body}");
        assert_eq!(items[at + 1]["role"], "assistant", "{client}: {body}");

        // Reasoning that nothing followed would be refused.
        let stream = streamed(Dialect::Responses, &[think("hm", PROOF)], "stop");
        let heard = heard::stream(client, &heard_by(&options(client, Dialect::Responses), &stream));
        let mut body = next(client, &heard);
        conversation(client, &mut body).push(ask(client, &[])[field(client)][0].clone());
        let (body, _) = sent(client, &body, Dialect::Responses);
        assert!(!body.to_string().contains(PROOF), "{client}: {body}");
    }
}

fn field(client: Dialect) -> &'static str {
    match client {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    }
}

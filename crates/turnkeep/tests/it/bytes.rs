//! On a route of one dialect the bytes are the client's and the upstream's own; only the named spans change.

use crate::support::client::request_bytes;
use crate::support::dialects::{CHAT, assert_said};
use crate::support::*;
use futures_util::future::join_all;
use turnkeep_lab::ContentEncoding;

fn same() -> impl Iterator<Item = Pair> {
    pairs().into_iter().filter(|pair| pair.client == pair.upstream)
}

/// An odd but legal request: blanks, escapes, big numbers, unknown fields, a model whose name stands in the middle.
fn odd(pair: Pair, model: &str) -> String {
    let stream = pair.stream;
    let text = r#""h\u00e9llo \ud83d\ude00 \/ \"model\":\"m\"  ""#;
    let message = format!("{{\"content\":{text}, \"role\":\"user\"}}");
    let asked = match pair.client {
        Dialect::Chat => format!("\"messages\" : [ {message} ],\r\n\t"),
        Dialect::Responses => format!("\"input\" : [ {message} ],\r\n\t\"store\":false ,"),
        Dialect::Messages => format!("\"messages\" : [ {message} ],\r\n\t\"max_tokens\":1e2 ,"),
        // The model and whether it streams stand in its path.
        Dialect::Gemini => {
            return format!(
                "{{ \"contents\" : [ {{\"parts\":[ {{\"text\":{text}}} ], \"role\":\"user\"}} ],\r\n\t\"x_unknown\": \
                 {{\"b\":1.0000000000000000000001e+5,\"a\":-0, \"model\":\"m\"}},\"generationConfig\":{{ }}\n}} \n"
            );
        }
    };
    format!(
        "{{ {asked}\"model\"\n: {model}  , \"x_unknown\": {{\"b\":1.0000000000000000000001e+5,\
         \"a\":-0, \"model\":\"m\"}},\"stream\":{stream} ,\"metadata\":{{ }}\n}} \n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upstream_gets_the_clients_bytes_but_for_the_model_and_the_request_for_usage() {
    join_all(same().map(|pair| async move {
        let lab = lab([Rule { skip_checks: true, text: Some("fine".into()), ..Rule::default() }]).await;
        let world = World::simple(pair, &lab).await;
        let mut client = world.client().await;
        let body = odd(pair, "\"\\u006d\"");
        match pair.client {
            // As it stands: `ask_with` would write it anew.
            Dialect::Gemini => client.write(&request_bytes("POST", &pair.path(), &[], body.as_bytes())).await,
            Dialect::Chat | Dialect::Responses | Dialect::Messages => client.ask_with(pair, &[], body.as_bytes()).await,
        }
        let reply = client.reply().await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let sent = String::from_utf8(lab.requests()[0].body.to_vec()).unwrap();
        let usage = r#","stream_options":{"include_usage":true}"#;
        let sent = if pair == CHAT {
            assert_eq!(sent.matches(usage).count(), 1, "{sent}");
            sent.replacen(usage, "", 1)
        } else {
            sent
        };
        assert_eq!(sent, odd(pair, "\"upstream-m\""), "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_for_usage_gets_its_chunk_and_the_upstream_its_bytes_unchanged() {
    let lab = lab([Rule { text: Some("fine".into()), ..Rule::default() }]).await;
    let world = World::simple(CHAT, &lab).await;
    let body = r#"{"model":"m","stream":true,"stream_options":{ "include_usage" : true },"messages":[{"role":"user","content":"x"}]}"#;
    let mut client = world.client().await;
    client.ask_with(CHAT, &[], body.as_bytes()).await;
    let reply = client.reply().await;
    assert!(reply.text().contains("\"prompt_tokens\""), "{}", reply.text());
    assert_eq!(lab.requests()[0].body, body.replace("\"m\"", "\"upstream-m\""));
}

/// The upstream's stream, odd but legal, and which of its frames the client must not see.
fn frames(pair: Pair) -> (Vec<String>, Option<usize>) {
    let chat = [
        ": a comment\n\n",
        "data: {\"id\":\"c\", \"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"upstream-m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
        "data:{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"upstream-m\",\"x\":1.50,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\u{e9}l \\u00e9\"},\"logprobs\":null,\"finish_reason\":null}]}\r\n\r\n",
        "event: x\nid: 7\ndata: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"upstream-m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" \u{1f600}\"}}]}\n\n",
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"upstream-m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"upstream-m\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}\n\n",
        "data: [DONE]\n\n",
    ];
    let messages = [
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"upstream-m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "event: content_block_start\r\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\r\n\r\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"h\u{e9}l \\u00e9\"}, \"x\":1.50}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" \u{1f600}\"}}\n\n",
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":3}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ];
    let responses = [
        "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1.50,\"status\":\"in_progress\",\"model\":\"m\",\"output\":[],\"parallel_tool_calls\":true,\"tool_choice\":\"auto\",\"tools\":[],\"error\":null,\"incomplete_details\":null,\"instructions\":null,\"metadata\":{},\"temperature\":1,\"top_p\":1,\"usage\":null}}\n\n",
        ": a comment\n\n",
        "event: response.output_item.added\r\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"in_progress\",\"content\":[]}}\r\n\r\n",
        "event: response.content_part.added\ndata: {\"type\":\"response.content_part.added\",\"sequence_number\":2,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"part\":{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[]}}\n\n",
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":3,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"h\u{e9}l \\u00e9\",\"logprobs\":[], \"x\":1.50}\n\n",
        "event: response.something.new\ndata: {\"type\":\"response.something.new\",\"sequence_number\":4}\n\n",
        "event: response.output_text.done\ndata: {\"type\":\"response.output_text.done\",\"sequence_number\":5,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"text\":\"h\u{e9}l \\u00e9\",\"logprobs\":[]}\n\n",
        "event: response.content_part.done\ndata: {\"type\":\"response.content_part.done\",\"sequence_number\":6,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"part\":{\"type\":\"output_text\",\"text\":\"h\u{e9}l \\u00e9\",\"annotations\":[]}}\n\n",
        "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"sequence_number\":7,\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"h\u{e9}l \\u00e9\",\"annotations\":[]}]}}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":8,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1.50,\"status\":\"completed\",\"model\":\"m\",\"output\":[{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"h\u{e9}l \\u00e9\",\"annotations\":[]}]}],\"parallel_tool_calls\":true,\"tool_choice\":\"auto\",\"tools\":[],\"error\":null,\"incomplete_details\":null,\"instructions\":null,\"metadata\":{},\"temperature\":1,\"top_p\":1,\"usage\":{\"input_tokens\":7,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":3,\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":10}}}\n\n",
    ];
    let gemini = [
        "data: {\"candidates\": [{\"content\": {\"role\": \"model\",\"parts\": [{\"text\": \"h\u{e9}l \\u00e9\"}]},\"index\": 0}],\"x\":1.50}\r\n\r\n",
        ": a comment\n\n",
        "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\" \u{1f600}\",\"thoughtSignature\":\"YWJj\"}]},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":3,\"totalTokenCount\":10},\"modelVersion\":\"m\",\"responseId\":\"r\"}\n\n",
    ];
    let owned = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect();
    match pair.client {
        Dialect::Chat => (owned(&chat), Some(5)),
        Dialect::Responses => (owned(&responses), None),
        Dialect::Gemini => (owned(&gemini), None),
        Dialect::Messages => (owned(&messages), None),
    }
}

/// The upstream's frames as the client must get them.
fn wanted(pair: Pair) -> String {
    let (frames, withheld) = frames(pair);
    let seen = frames.iter().enumerate().filter(|(at, _)| Some(*at) != withheld);
    seen.map(|(_, frame)| frame.as_str()).collect()
}

async fn arrives_as_sent(pair: Pair, chunk_bytes: Option<usize>, content_encoding: Option<ContentEncoding>) {
    let rule = Rule { raw_frames: frames(pair).0, chunk_bytes, content_encoding, ..Rule::default() };
    let lab = lab([rule]).await;
    let world = World::simple(pair, &lab).await;
    let reply = world.client().await.turn(pair).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.text(), wanted(pair), "{pair:?} in pieces of {chunk_bytes:?}, {content_encoding:?}");
    assert_eq!(reply.header("content-encoding"), None);
    let entries = world.into_ledger().await;
    let closed = entries[0].closed.as_ref().unwrap();
    assert_eq!((closed.usage.input, closed.usage.output, closed.exact), (7, 3, true), "{pair:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_arrives_as_it_was_sent_however_it_is_cut_but_for_the_withheld_usage() {
    for chunk in 1..=40 {
        join_all(same().filter(|pair| pair.stream).map(|pair| arrives_as_sent(pair, Some(chunk), None))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_stream_arrives_as_it_was_before_compression() {
    use ContentEncoding::{Br, Deflate, Gzip, Zstd};
    for encoding in [Gzip, Br, Zstd, Deflate] {
        for chunk in [None, Some(1), Some(7)] {
            join_all(same().filter(|pair| pair.stream).map(|pair| arrives_as_sent(pair, chunk, Some(encoding)))).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_answer_arrives_as_it_was_sent_however_it_is_cut_and_compressed() {
    use ContentEncoding::{Br, Gzip, Zstd};
    join_all(same().filter(|pair| !pair.stream).map(|pair| async move {
        let chat = "{ \"id\":\"c\",\n\"object\":\"chat.completion\",\"created\":1,\"model\":\"upstream-m\",\"x\":1.50,\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"h\\u00e9\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}\n";
        let messages = "{ \"id\":\"msg_1\",\n\"type\":\"message\",\"role\":\"assistant\",\"model\":\"upstream-m\",\"x\":1.50,\"content\":[{\"type\":\"text\",\"text\":\"h\\u00e9\"}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}\n";
        let responses = "{ \"id\":\"resp_1\",\n\"object\":\"response\",\"created_at\":1,\"status\":\"completed\",\"model\":\"upstream-m\",\"x\":1.50,\"output\":[{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"h\\u00e9\",\"annotations\":[]}]}],\"parallel_tool_calls\":true,\"tool_choice\":\"auto\",\"tools\":[],\"error\":null,\"incomplete_details\":null,\"usage\":{\"input_tokens\":7,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":3,\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":10}}\n";
        let gemini = "{ \"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"h\\u00e9\"}]},\n\"finishReason\":\"STOP\",\"index\":0}],\"x\":1.50,\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":3,\"totalTokenCount\":10},\"modelVersion\":\"upstream-m\",\"responseId\":\"r\"}\n";
        let raw = pair.each(chat, responses, messages, gemini);
        for chunk_bytes in [None, Some(1), Some(3), Some(17)] {
            for content_encoding in [None, Some(Gzip), Some(Br), Some(Zstd)] {
                let lab = lab([Rule { raw: Some(raw.into()), chunk_bytes, content_encoding, ..Rule::default() }]).await;
                let world = World::simple(pair, &lab).await;
                let reply = world.client().await.turn(pair).await;
                assert_eq!((reply.status, reply.text()), (200, raw), "{pair:?} {chunk_bytes:?} {content_encoding:?}");
            }
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_translated_stream_means_the_same_however_it_is_cut_and_compressed() {
    let words = "h\u{e9}l \u{1f600} one two";
    for chunk_bytes in 1..=40 {
        let encodings = [None, Some(ContentEncoding::Gzip), Some(ContentEncoding::Br), Some(ContentEncoding::Zstd)];
        let content_encoding = encodings[chunk_bytes % 4];
        join_all(pairs().into_iter().filter(|pair| pair.client != pair.upstream).map(|pair| async move {
            let rule =
                Rule { text: Some(words.into()), chunk_bytes: Some(chunk_bytes), content_encoding, ..Rule::default() };
            let lab = lab([rule]).await;
            let world = World::simple(pair, &lab).await;
            assert_said(pair, &world.client().await.turn(pair).await, words);
        }))
        .await;
    }
}

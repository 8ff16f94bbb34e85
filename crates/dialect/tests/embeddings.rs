//! Embeddings: checked as they come, passed as they are to a Chat upstream, translated for a Gemini one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::{Dialect, FaultKind, Usage};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::reply::{Asked, ReplyOptions, plain};
use turnkeep_dialect::request::{ClientRequest, Operation, read, write_for};

fn request(body: &str) -> Result<ClientRequest, Invalid> {
    read(Dialect::Chat, Operation::Embed, Bytes::copy_from_slice(body.as_bytes()))
}

fn options(upstream: Dialect, asked: &str) -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Chat,
        upstream,
        model: "asked".into(),
        usage_wanted: false,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Asked {
            operation: Operation::Embed,
            body: Bytes::copy_from_slice(asked.as_bytes()),
            ..Asked::default()
        },
    }
}

#[test]
fn every_form_of_an_input_is_taken_and_passes_as_it_is() {
    for input in [r#""a""#, r#"["a","b"]"#, "[1,2]", "[[1],[2,3]]"] {
        let body =
            format!(r#"{{"input":{input},"model":"m","encoding_format":"base64","dimensions":3,"user":null,"x":1}}"#);
        let read = request(&body).unwrap();
        assert_eq!((read.model.as_str(), read.stream, read.operation), ("m", false, Operation::Embed));
        assert_eq!(read.pass_through("m"), body);
        assert_eq!(read.pass_through("up"), body.replacen("\"m\"", "\"up\"", 1));
    }
}

#[test]
fn what_is_no_embeddings_request_is_refused_with_its_path() {
    for (body, path) in [
        (r#"{"input":"a"}"#, "model"),
        (r#"{"model":"m"}"#, "input"),
        (r#"{"model":"m","input":[]}"#, "input"),
        (r#"{"model":"m","input":{}}"#, "input"),
        (r#"{"model":"m","input":["a",null]}"#, "input[1]"),
        (r#"{"model":"m","input":"a","input":"b"}"#, "input"),
        (r#"{"model":"m","input":"a","encoding_format":"hex"}"#, "encoding_format"),
        (r#"{"model":"m","input":"a","dimensions":"3"}"#, "dimensions"),
        (r#"{"model":"m","input":"a","user":3}"#, "user"),
    ] {
        assert_eq!(request(body).expect_err(body).path, path, "{body}");
    }
}

#[test]
fn a_gemini_upstream_gets_a_batch_of_requests() {
    let read =
        request(r#"{"model":"m","input":["a","b\n"],"dimensions":3,"encoding_format":"base64","user":"u"}"#).unwrap();
    let encoded = write_for(&read, Dialect::Gemini, "embedding-001", false).unwrap();
    let one = |text: &str| json!({"model":"models/embedding-001","content":{"parts":[{"text":text}]},"outputDimensionality":3});
    assert_eq!(serde_json::from_slice::<Value>(&encoded.body).unwrap(), json!({"requests":[one("a"), one("b\n")]}));
    assert_eq!(encoded.dropped, ["user"]);
    for input in ["[1,2]", "[[1]]"] {
        let read = request(&format!(r#"{{"model":"m","input":{input}}}"#)).unwrap();
        assert_eq!(write_for(&read, Dialect::Gemini, "e", false).unwrap_err().path, "input[0]", "{input}");
    }
}

#[test]
fn upstreams_that_do_not_embed_are_named() {
    let read = request(r#"{"model":"m","input":"a"}"#).unwrap();
    for target in [Dialect::Messages, Dialect::Responses] {
        let error = write_for(&read, target, "up", false).unwrap_err();
        assert_eq!(error.to_string(), "model: no upstream of this model embeds");
    }
    assert_eq!(read.turn().unwrap_err().path, "model");
}

#[test]
fn a_chat_upstreams_vectors_pass_and_its_usage_is_read() {
    let body = r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":"up","usage":{"prompt_tokens":4,"total_tokens":4}}"#;
    let (bytes, facts) = plain(&options(Dialect::Chat, ""), Bytes::from_static(body.as_bytes())).unwrap();
    assert_eq!(bytes, body);
    assert_eq!((facts.usage, facts.model.as_deref()), (Some(Usage { input: 4, ..Usage::default() }), Some("up")));
    let fault =
        |body: &'static str| plain(&options(Dialect::Chat, ""), Bytes::from_static(body.as_bytes())).unwrap_err().kind;
    assert_eq!(fault("{}"), FaultKind::MalformedResponse);
    assert_eq!(fault("[]"), FaultKind::MalformedResponse);
    assert_eq!(fault(r#"{"error":{"message":"x","type":"server_error","code":null}}"#), FaultKind::UpstreamInternal);
}

const VECTORS: &str = r#"{"embeddings":[{"values":[0.5,-1.25]},{"values":[3,1e-3],"shape":[2]}]}"#;

#[test]
fn geminis_vectors_come_back_in_openais_form() {
    let asked = r#"{"model":"m","input":["Hello world","Hello"]}"#;
    let (bytes, facts) = plain(&options(Dialect::Gemini, asked), Bytes::from_static(VECTORS.as_bytes())).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&bytes).unwrap(),
        json!({"object":"list","model":"asked","usage":{"prompt_tokens":3,"total_tokens":3},"data":[
            {"object":"embedding","index":0,"embedding":[0.5,-1.25]},
            {"object":"embedding","index":1,"embedding":[3,1e-3]}]})
    );
    // What nobody counted is no fact.
    assert_eq!(facts.usage, None);
    let counted = VECTORS.replacen("{\"emb", "{\"usageMetadata\":{\"promptTokenCount\":9},\"emb", 1);
    let (bytes, facts) = plain(&options(Dialect::Gemini, ""), counted.into()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap()["usage"]["total_tokens"], 9);
    assert_eq!(facts.usage.map(|usage| usage.input), Some(9));
}

#[test]
fn base64_is_the_little_endian_floats() {
    let asked = r#"{"model":"m","encoding_format":"base64","input":["a","b"]}"#;
    let (bytes, _) = plain(&options(Dialect::Gemini, asked), Bytes::from_static(VECTORS.as_bytes())).unwrap();
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    let vector = |at: usize| {
        let bytes = STANDARD.decode(answer["data"][at]["embedding"].as_str().unwrap()).unwrap();
        bytes.chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect::<Vec<f32>>()
    };
    assert_eq!((vector(0), vector(1)), (vec![0.5, -1.25], vec![3.0, 0.001]));
}

#[test]
fn an_answer_that_does_not_fit_the_question_is_malformed() {
    for (asked, body) in [
        (r#"{"model":"m","input":["a","b","c"]}"#, VECTORS),
        (r#"{"model":"m","input":"a"}"#, "{}"),
        (r#"{"model":"m","input":"a"}"#, r#"{"embeddings":[{}]}"#),
        (r#"{"model":"m","input":"a"}"#, r#"{"embeddings":[{"values":["x"]}]}"#),
        (r#"{"model":"m","input":"a"}"#, r#"{"embeddings":[{"values":[1e99]}]}"#),
        (r#"{"model":"m","input":"a"}"#, r#"{"embeddings":[7]}"#),
    ] {
        let fault = plain(&options(Dialect::Gemini, asked), Bytes::from_static(body.as_bytes())).unwrap_err();
        assert_eq!(fault.kind, FaultKind::MalformedResponse, "{body}");
    }
}

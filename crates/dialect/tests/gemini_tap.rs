//! A Gemini answer on its way to a Gemini client: what it says stays, the facts are read, the framing is the client's.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

mod gemini_said;

use gemini_said::{answer, in_form, last, options, parts, run, stream, text};
use serde_json::Value;
use turnkeep_base::{FaultKind, Usage};
use turnkeep_dialect::event::{Class, Finish};
use turnkeep_dialect::gemini::order;
use turnkeep_dialect::reply::{Facts, Piece, plain};
use turnkeep_dialect::request::StreamForm;

fn classes(pieces: &[Piece]) -> Vec<Class> {
    pieces.iter().map(|piece| piece.class).collect()
}

fn sample() -> String {
    let usage = "data: {\"usageMetadata\":{\"promptTokenCount\":10,\"cachedContentTokenCount\":3,\"candidatesTokenCount\":4,\"thoughtsTokenCount\":2,\"totalTokenCount\":16},\"modelVersion\":\"up\",\"responseId\":\"r1\"}\n\n";
    let head = "data: {\"modelVersion\":\"up\",\"responseId\":\"r1\"}\n\n";
    let chunks = stream(&[
        &parts(r#"{"text":"h\u00e9","thought":true}"#),
        &parts(r#"{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"}"#),
        &last(r#"{"text":""}"#, "STOP"),
    ]);
    [head, &chunks, usage].concat()
}

#[test]
fn at_every_split_the_bytes_and_the_facts_are_the_same() {
    let stream = sample();
    let (whole, ended, facts) = run(&options(), &[stream.as_bytes()]);
    assert_eq!((ended, text(&whole)), (Ok(()), stream.clone()));
    use Class::{Answer, Preamble, Terminal};
    assert_eq!(classes(&whole), [Preamble, Answer, Answer, Terminal, Terminal]);
    assert_eq!(facts.usage, Some(Usage::from_inclusive(10, 3, 0, 6, 2)));
    assert_eq!((facts.finish, facts.content_bytes), (Some(Finish::ToolCalls), 10));
    assert_eq!((facts.id.as_deref(), facts.model.as_deref()), (Some("r1"), Some("up")));
    let (array, ..) = run(&in_form(StreamForm::Array), &[stream.as_bytes()]);
    for at in 0..stream.len() {
        let (first, second) = stream.as_bytes().split_at(at);
        assert_eq!(run(&options(), &[first, second]), (whole.clone(), Ok(()), facts.clone()), "split at {at}");
        assert_eq!(run(&in_form(StreamForm::Array), &[first, second]).0, array, "split at {at}");
    }
}

#[test]
fn the_same_stream_is_an_array_for_a_client_that_asked_for_one() {
    let stream = sample();
    let noisy =
        format!(": early\n\n\n{}: late\n\ndata: [DONE]\n\n", stream.replacen("\r\n\r\n", "\r\n\r\n: mid\n\n", 1));
    for stream in [stream, noisy] {
        let (pieces, ended, facts) = run(&in_form(StreamForm::Array), &[stream.as_bytes()]);
        assert_eq!((ended, facts.finish), (Ok(()), Some(Finish::ToolCalls)));
        assert_eq!(order::array(text(&pieces).as_bytes()), Ok(()));
        let elements: Vec<Value> = serde_json::from_str(&text(&pieces)).unwrap();
        assert_eq!(elements.len(), 5);
        assert_eq!(elements[1]["candidates"][0]["content"]["parts"][0]["text"], "hé");
        assert_eq!(elements[4]["usageMetadata"]["totalTokenCount"], 16);
        // Whatever has been written is an element at least: an error can follow it.
        assert!(pieces[0].bytes.starts_with(b"[{"), "{pieces:?}");
        assert_eq!(pieces.last().unwrap().class, Class::Terminal);
    }
}

#[test]
fn a_comment_becomes_a_blank_line_and_a_done_is_left_out_as_googles_clients_read_both_as_json() {
    let end = stream(&[&last(r#"{"text":"a"}"#, "STOP")]);
    let (pieces, ended, _) = run(&options(), &[format!(": hi\n\n{end}: bye\n\ndata: [DONE]\n\n").as_bytes()]);
    assert_eq!((ended, text(&pieces)), (Ok(()), format!("\n{end}\n")));
    assert_eq!(classes(&pieces), [Class::Preamble, Class::Terminal, Class::Terminal]);
}

#[test]
fn whatever_the_model_made_commits_the_answer_and_nothing_else_does() {
    for (parts, class) in [
        (r#"{"text":""}"#, Class::Preamble),
        ("", Class::Preamble),
        (r#"{"text":"x"}"#, Class::Answer),
        (r#"{"text":"x","thought":true}"#, Class::Answer),
        (r#"{"functionCall":{"name":"f"}}"#, Class::Answer),
        (r#"{"inlineData":{"mimeType":"image/png","data":"AA=="}}"#, Class::Answer),
        (r#"{"executableCode":{"code":"1"}}"#, Class::Answer),
        (r#"{"toolCall":{}}"#, Class::Answer),
    ] {
        let (pieces, ..) = run(&options(), &[stream(&[&gemini_said::parts(parts)]).as_bytes()]);
        assert_eq!(classes(&pieces), [class], "{parts}");
    }
    let (pieces, ..) = run(&options(), &[b"data: {\"candidates\":[{\"index\":0}]}\n\n"]);
    assert_eq!(classes(&pieces), [Class::Preamble]);
}

#[test]
fn an_answer_of_several_candidates_is_complete_when_the_last_one_has_finished() {
    let chunk = |index: u64, reason: &str| {
        format!(
            "data: {{\"candidates\":[{{\"index\":{index},\"content\":{{\"parts\":[{{\"text\":\"x\"}}]}}{reason}}}]}}\n\n"
        )
    };
    let stop = ",\"finishReason\":\"STOP\"";
    let begun = [chunk(0, ""), chunk(1, ""), chunk(0, stop)].concat();
    let (pieces, ended, _) = run(&options(), &[begun.as_bytes()]);
    assert_eq!(ended.unwrap_err().kind, FaultKind::StreamTruncated);
    assert_eq!(classes(&pieces), [Class::Answer; 3]);
    let (pieces, ended, facts) =
        run(&options(), &[begun.as_bytes(), chunk(1, ",\"finishReason\":\"SAFETY\"").as_bytes()]);
    assert_eq!((ended, facts.finish), (Ok(()), Some(Finish::Refusal)));
    assert_eq!(classes(&pieces), [Class::Answer, Class::Answer, Class::Answer, Class::Terminal]);
    let many: String = (0..200).map(|index| chunk(index, "")).collect();
    assert_eq!(run(&options(), &[many.as_bytes()]).1.unwrap_err().kind, FaultKind::MalformedResponse);
}

#[test]
fn an_answer_is_complete_by_its_finish_reason_and_not_by_its_end() {
    let (begun, end) = (stream(&[&parts(r#"{"text":"a"}"#)]), stream(&[&last(r#"{"text":"b"}"#, "STOP")]));
    for (stream, complete) in [
        (format!("{begun}{end}"), true),
        (end.clone(), true),
        (end.trim_end().to_owned(), true),
        (begun.clone(), false),
        (format!("{begun}data: [DONE]\n\n"), false),
        (String::new(), false),
        (format!("{begun}{}", &end[..end.len() / 2]), false),
    ] {
        for form in [StreamForm::Events, StreamForm::Array] {
            let (pieces, ended, _) = run(&in_form(form), &[stream.as_bytes()]);
            let kind = ended.map_err(|fault| fault.kind);
            assert_eq!(kind, if complete { Ok(()) } else { Err(FaultKind::StreamTruncated) }, "{stream}");
            assert_eq!(text(&pieces).ends_with(']'), complete && form == StreamForm::Array);
        }
    }
}

#[test]
fn faults_are_told_streamed_and_plain() {
    for (body, kind) in [
        (
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#.to_owned(),
            FaultKind::ModelOverloaded,
        ),
        (r#"{"promptFeedback":{"blockReason":"OTHER"}}"#.to_owned(), FaultKind::PolicyBlocked),
        (answer(r#""finishReason":"MALFORMED_FUNCTION_CALL""#), FaultKind::MalformedResponse),
        ("{".to_owned(), FaultKind::MalformedResponse),
    ] {
        let (pieces, ended, _) = run(&options(), &[format!("data: {body}\n\n").as_bytes()]);
        assert_eq!((pieces, ended.unwrap_err().kind), (vec![], kind), "{body}");
        assert_eq!(plain(&options(), body.clone().into()).unwrap_err().kind, kind, "{body}");
    }
}

#[test]
fn a_whole_answer_stays_as_it_is_and_its_facts_are_read() {
    let body = answer(&last(r#"{"text":"h\u00e9"},{"functionCall":{"name":"f","args":{}}}"#, "STOP"));
    let (bytes, facts) = plain(&options(), body.clone().into()).unwrap();
    assert_eq!(bytes, body);
    let expected = Facts {
        usage: Some(Usage::from_inclusive(9, 0, 0, 5, 0)),
        finish: Some(Finish::ToolCalls),
        model: Some("up".into()),
        id: Some("r1".into()),
        content_bytes: 5,
        ..Facts::default()
    };
    assert_eq!(facts, expected);
    for body in ["{}", r#"{"candidates":[]}"#, "[]"] {
        assert_eq!(plain(&options(), body.into()).unwrap_err().kind, FaultKind::MalformedResponse, "{body}");
    }
    let (unended, ended) = (parts(r#"{"text":"a"}"#), last(r#"{"text":"a"}"#, "STOP"));
    // Every candidate has to be at its end.
    for body in [answer(&unended), answer(&ended).replacen(&ended, &(ended.clone() + "},{" + &unended), 1)] {
        assert_eq!(plain(&options(), body.into()).unwrap_err().kind, FaultKind::StreamTruncated);
    }
}

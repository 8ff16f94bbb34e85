//! Images and files whose bytes are none: refused with their place for every client, whatever the target.

use turnkeep_base::Dialect;
use turnkeep_dialect::request::{self, ClientRequest, InPath, Operation, StreamForm, write_for};

const ALL: [Dialect; 4] = [Dialect::Chat, Dialect::Responses, Dialect::Messages, Dialect::Gemini];

fn read(client: Dialect, body: &str) -> ClientRequest {
    let body = body.to_owned().into();
    match client {
        Dialect::Gemini => {
            let path = InPath { model: "m".into(), stream: false, form: StreamForm::Array };
            request::read_in_path(Operation::Generate, path, body).unwrap()
        }
        Dialect::Chat | Dialect::Responses | Dialect::Messages => {
            request::read(client, Operation::Generate, body).unwrap()
        }
    }
}

/// What a client's turn with one image is: a text, then the image, of this type and with these bytes.
fn with_image(client: Dialect, media_type: &str, data: &str) -> String {
    match client {
        Dialect::Chat => format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"text","text":"t"}},
                {{"type":"image_url","image_url":{{"url":"data:{media_type};base64,{data}"}}}}]}}]}}"#
        ),
        Dialect::Responses => format!(
            r#"{{"model":"m","input":[{{"role":"user","content":[{{"type":"input_text","text":"t"}},
                {{"type":"input_image","image_url":"data:{media_type};base64,{data}"}}]}}]}}"#
        ),
        Dialect::Messages => format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{{"type":"text","text":"t"}},
                {{"type":"image","source":{{"type":"base64","media_type":"{media_type}","data":"{data}"}}}}]}}]}}"#
        ),
        Dialect::Gemini => format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"t"}},
                {{"inlineData":{{"mimeType":"{media_type}","data":"{data}"}}}}]}}]}}"#
        ),
    }
}

fn place(client: Dialect) -> &'static str {
    match client {
        Dialect::Chat | Dialect::Messages => "messages[0].content[1]",
        Dialect::Responses => "input[0].content[1]",
        Dialect::Gemini => "contents[0].parts[1]",
    }
}

fn pairs() -> impl Iterator<Item = (Dialect, Dialect)> {
    ALL.into_iter()
        .flat_map(|client| ALL.into_iter().map(move |target| (client, target)))
        .filter(|(client, target)| client != target)
}

#[test]
fn an_image_whose_bytes_are_not_base64_is_refused_with_its_place() {
    for (client, target) in pairs() {
        for data in ["", "not base64!", "AAAAA", "AA==AA=="] {
            let request = read(client, &with_image(client, "image/png", data));
            let error = write_for(&request, target, "up", false).unwrap_err();
            assert!(error.path.starts_with(place(client)), "{client:?} to {target:?}: {error}");
            assert!(error.message.contains("base64"), "{client:?} to {target:?}: {error}");
        }
        let request = read(client, &with_image(client, "image/png", "AA=="));
        assert!(write_for(&request, target, "up", false).is_ok(), "{client:?} to {target:?}");
    }
}

#[test]
fn an_image_of_a_type_that_is_none_is_refused_with_its_place() {
    // Gemini has one kind of part for images and files.
    for (client, target) in pairs().filter(|(client, _)| *client != Dialect::Gemini) {
        for media_type in ["application/pdf", "text/html", "imagepng"] {
            let request = read(client, &with_image(client, media_type, "AAAA"));
            let error = write_for(&request, target, "up", false).unwrap_err();
            assert!(error.path.starts_with(place(client)), "{client:?} to {target:?}: {error}");
            assert!(error.message.contains("no image's type"), "{client:?} to {target:?}: {error}");
        }
    }
}

#[test]
fn bytes_inside_a_tool_result_and_a_document_are_held_to_the_same() {
    let body = |content: &str| {
        format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"t"}},
                {{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"n","input":{{}}}}]}},
                {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":[{content}]}}]}}]}}"#
        )
    };
    let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"?"}}"#;
    let document = r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"?"}}"#;
    for part in [image, document] {
        let request = read(Dialect::Messages, &body(part));
        for target in [Dialect::Chat, Dialect::Responses, Dialect::Gemini] {
            let error = write_for(&request, target, "up", false).unwrap_err();
            assert_eq!(error.path, "messages[2].content[0].content[0]", "{target:?}: {error}");
        }
    }
}

#[test]
fn a_gemini_clients_alphabet_for_addresses_is_base64_for_every_target() {
    let request = read(Dialect::Gemini, &with_image(Dialect::Gemini, "image/png", "-_8"));
    for target in [Dialect::Chat, Dialect::Responses, Dialect::Messages] {
        let written = write_for(&request, target, "up", false).unwrap();
        let body = String::from_utf8(written.body.to_vec()).unwrap();
        assert!(body.contains("+/8="), "{target:?}: {body}");
    }
}

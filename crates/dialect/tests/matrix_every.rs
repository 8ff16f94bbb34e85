//! Whatever all four dialects can say survives the way from any to any other and back: requests as the turn that is read
//! out of them, answers as what the client has in the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/answers.rs"]
mod answers;
#[path = "support/heard.rs"]
mod heard;
#[path = "support/pairs.rs"]
mod pairs;

use answers::{Say, streamed, whole};
use heard::Heard;
use pairs::{answered, every_pair, options, read_body, streamed as heard_by};
use proptest::prelude::*;
use serde_json::Value;
use turnkeep_dialect::request::encode;
use turnkeep_dialect::translation::model;
use turnkeep_dialect::turn::{At, Body, Image, Message, Part, Role, Tool, ToolChoice, ToolKind, Turn};

/// With a visible character, and with all that JSON must escape.
fn words() -> impl Strategy<Value = String> {
    "[a-z<\"\\\\/\u{1}\u{7f}\u{2028}é日😀\n\t ]{0,12}x[ -~\r\n]{0,6}"
}

fn arguments() -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-z\"é]{1,4}", any::<i64>(), 0..3)
        .prop_map(|map| serde_json::to_string(&map).unwrap())
}

// Requests.

fn part(body: Body<'static>) -> Part<'static> {
    Part { body, at: At::Content { message: 0, part: 0 }, cache: None }
}

fn message(role: Role, bodies: Vec<Body<'static>>) -> Message<'static> {
    Message { role, at: At::Message(0), parts: bodies.into_iter().map(part).collect() }
}

fn user_part() -> impl Strategy<Value = Body<'static>> {
    prop_oneof![
        3 => words().prop_map(|text| Body::Text(text.into())),
        1 => "[A-Za-z0-9+/]{4}".prop_map(|data| Body::Image(Image::Data { media_type: "image/png".into(), data: data.into() })),
    ]
}

fn rounds() -> impl Strategy<Value = Vec<Message<'static>>> {
    let call = ("[a-zA-Z0-9_-]{1,10}", "[a-z]{1,9}", arguments(), words());
    let round =
        (prop::collection::vec(user_part(), 1..3), prop::option::of(words()), prop::collection::vec(call, 0..3));
    (prop::option::of(words()), prop::collection::vec(round, 1..4), words()).prop_map(|(system, rounds, last)| {
        let mut messages: Vec<_> =
            system.into_iter().map(|text| message(Role::System, vec![Body::Text(text.into())])).collect();
        let mut results = Vec::new();
        for (at, (user, said, calls)) in rounds.into_iter().enumerate() {
            messages.push(message(Role::User, std::mem::take(&mut results).into_iter().chain(user).collect()));
            let mut own: Vec<_> = said.map(|text| Body::Text(text.into())).into_iter().collect();
            for (number, (id, name, arguments, text)) in calls.into_iter().enumerate() {
                let id = format!("{id}{at}{number}");
                own.push(Body::ToolCall { id: id.clone().into(), name: name.into(), arguments: arguments.into() });
                let content = vec![part(Body::Text(text.into()))];
                results.push(Body::ToolResult { id: id.into(), content, is_error: false });
            }
            if own.is_empty() {
                own.push(Body::Text("yes".into()));
            }
            messages.push(message(Role::Assistant, own));
        }
        let last = Body::Text(last.into());
        messages.push(message(Role::User, results.into_iter().chain([last]).collect()));
        messages
    })
}

const SCHEMAS: [&str; 2] = [
    r#"{"type":"object","properties":{"title":{"type":"number","maximum":1e400}},"$defs":{"a":{}}}"#,
    r#"{"properties":{"a":{"const":123456789012345678901234567890}},"type":"object","additionalProperties":false}"#,
];

fn turn() -> impl Strategy<Value = Turn<'static>> {
    let choice = prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::None),
        Just(ToolChoice::Any),
        Just(ToolChoice::Named("f0".into())),
    ];
    let tools = prop::collection::vec(prop::sample::select(SCHEMAS.to_vec()), 0..3);
    let numbers = || prop::option::of(prop::sample::select(vec!["0", "0.70", "1.0"]));
    (rounds(), tools, choice, 16u64..1_000_000, numbers(), numbers()).prop_map(
        |(messages, schemas, choice, limit, temperature, top_p)| {
            let tool = |(at, schema): (usize, &'static str)| Tool {
                index: at as u32,
                kind: ToolKind::Function {
                    name: format!("f{at}").into(),
                    description: Some("d".into()),
                    schema: Some(schema),
                    strict: None,
                },
            };
            let tools: Vec<_> = schemas.into_iter().enumerate().map(tool).collect();
            let tool_choice = (!tools.is_empty()).then_some(choice);
            Turn { messages, tools, tool_choice, max_output: Some(limit), temperature, top_p, ..Turn::default() }
        },
    )
}

/// What a turn says, without places and without the bounds between messages of one role.
fn meaning(turn: &Turn<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for said in &turn.messages {
        for part in &said.parts {
            out.push(if let Body::ToolResult { id, content, .. } = &part.body {
                let texts = content.iter().map(|part| format!("{:?}", part.body)).collect::<String>();
                format!("{:?} {id}: {texts}", said.role)
            } else {
                // In Gemini arguments are an object: what they mean stays, and every byte of it.
                format!("{:?} {:?}", said.role, part.body)
            });
        }
    }
    for tool in &turn.tools {
        let ToolKind::Function { name, description, schema, .. } = &tool.kind else { panic!("{tool:?}") };
        out.push(format!("{name} {description:?} {schema:?}"));
    }
    let choice = turn.tool_choice.clone().filter(|_| !turn.tools.is_empty());
    let choice = if turn.tools.is_empty() { None } else { choice.or(Some(ToolChoice::Auto)) };
    out.push(format!("{choice:?} {:?} {:?} {:?}", turn.max_output, turn.temperature, turn.top_p));
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_turn_means_the_same_after_the_way_to_any_dialect_and_back(turn in turn()) {
        for (first, second) in every_pair() {
            let mut body = encode(first, &turn, model(first)).unwrap().body;
            for target in [second, first, second] {
                let from = if target == first { second } else { first };
                let request = read_body(from, &body).unwrap();
                let read = request.turn().unwrap();
                prop_assert_eq!(meaning(&read), meaning(&turn), "{} by way of {}: {}", first, second, String::from_utf8_lossy(&body));
                body = encode(target, &read, model(target)).unwrap().body;
            }
        }
    }
}

// Answers.

fn say() -> impl Strategy<Value = Say> {
    let pieces = prop::collection::vec(words(), 1..4);
    prop_oneof![
        1 => (words(), "[A-Za-z0-9+/]{8}").prop_map(|(text, proof)| Say::Think(text, proof)),
        2 => pieces.prop_map(Say::Text),
        2 => ("[a-z]{1,6}", arguments()).prop_map(|(name, text)| {
            let (a, b) = text.split_at(1);
            Say::Call(String::new(), name, vec![a.into(), b.into()])
        }),
    ]
}

/// Each call with an id of its own.
fn numbered(mut says: Vec<Say>) -> Vec<Say> {
    for (at, say) in says.iter_mut().enumerate() {
        if let Say::Call(id, ..) = say {
            *id = format!("call_{at}");
        }
    }
    says
}

fn said(says: &[Say]) -> (String, String, Vec<(String, String, Value)>) {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for say in says {
        match say {
            Say::Think(more, _) => thinking += more,
            Say::Text(pieces) => text += &pieces.concat(),
            Say::Refuse(_) => {}
            Say::Call(id, name, pieces) => {
                calls.push((id.clone(), name.clone(), serde_json::from_str(&pieces.concat()).unwrap()));
            }
        }
    }
    (text, thinking, calls)
}

fn got(heard: Heard) -> (String, String, Vec<(String, String, Value)>) {
    let parsed = |(id, name, text): (String, String, String)| (id, name, serde_json::from_str(&text).unwrap());
    (heard.text, heard.thinking, heard.calls.into_iter().map(parsed).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_says_the_same_to_every_client_streamed_and_plain(says in prop::collection::vec(say(), 1..6)) {
        let says = numbered(says);
        let wanted = said(&says);
        let end = if wanted.2.is_empty() { "stop" } else { "tools" };
        for (client, upstream) in every_pair() {
            let options = options(client, upstream);
            let datas = heard_by(&options, &streamed(upstream, &says, end));
            let heard = heard::stream(client, &datas);
            prop_assert_eq!(heard.usage, Some((10, 5)), "{} to {}", upstream, client);
            prop_assert_eq!(got(heard), wanted.clone(), "{} to {}", upstream, client);
            let heard = heard::whole(client, &answered(&options, &whole(upstream, &says, end)));
            prop_assert_eq!(heard.usage, Some((10, 5)), "{} to {}, plain", upstream, client);
            prop_assert_eq!(got(heard), wanted.clone(), "{} to {}, plain", upstream, client);
        }
    }
}

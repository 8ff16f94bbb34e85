//! Content that Chat and Messages can carry survives the way from one to the other and back: the canonical turn read from
//! either request is the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use proptest::prelude::*;
use turnkeep_base::Dialect;
use turnkeep_dialect::request::{Operation, encode, read};
use turnkeep_dialect::tool_id::from_messages_safe;
use turnkeep_dialect::turn::{
    At, Body, Image, Message, Output, Part, Reasoning, Role, Text, Tool, ToolChoice, ToolKind, Turn,
};

fn part(body: Body<'static>) -> Part<'static> {
    Part { body, at: At::Content { message: 0, part: 0 }, cache: None }
}

fn message(role: Role, bodies: Vec<Body<'static>>) -> Message<'static> {
    Message { role, at: At::Message(0), parts: bodies.into_iter().map(part).collect() }
}

/// With a visible character, and with all that JSON must escape.
fn text() -> impl Strategy<Value = String> {
    "[a-z<\"\\\\/\u{1}\u{7f}\u{2028}é日😀\n\t ]{0,12}x[ -~\r\n]{0,6}"
}

fn image() -> impl Strategy<Value = Body<'static>> {
    prop_oneof![
        "([A-Za-z0-9+/]{4}){1,4}".prop_map(|data| Image::Data { media_type: "image/webp".into(), data: data.into() }),
        "https://[a-z]{1,9}/[a-z?=&%]{0,9}".prop_map(|url| Image::Url(url.into())),
    ]
    .prop_map(Body::Image)
}

fn said() -> impl Strategy<Value = Body<'static>> {
    text().prop_map(|text| Body::Text(text.into()))
}

/// A call's id, where it does not fit Messages too, and one that looks like a wrapped one; its arguments; its result.
fn call() -> impl Strategy<Value = (String, String, String, Vec<String>)> {
    let arguments = prop::collection::btree_map("[a-z\"é]{1,4}", any::<i64>(), 0..3)
        .prop_map(|map| serde_json::to_string(&map).unwrap());
    (
        "(call_|functions\\.f:|tkid_|)[a-zA-Z0-9.:_ é-]{1,10}",
        "[a-zA-Z0-9_-]{1,12}",
        arguments,
        prop::collection::vec(text(), 0..3),
    )
}

/// What the user says, then what the assistant says and calls; the results begin the user's next message.
fn rounds() -> impl Strategy<Value = Vec<Message<'static>>> {
    let user = prop::collection::vec(prop_oneof![3 => said().boxed(), 1 => image().boxed()], 1..4);
    let round = (user, prop::collection::vec(said(), 0..3), prop::collection::vec(call(), 0..4));
    let system = prop::collection::vec(said(), 0..3);
    (system, prop::collection::vec(round, 1..4), said()).prop_map(|(system, rounds, last)| {
        let mut messages = Vec::new();
        if !system.is_empty() {
            messages.push(message(Role::System, system));
        }
        let mut results = Vec::new();
        for (at, (user, said, calls)) in rounds.into_iter().enumerate() {
            messages.push(message(Role::User, std::mem::take(&mut results).into_iter().chain(user).collect()));
            let mut own = said;
            for (number, (id, name, arguments, texts)) in calls.into_iter().enumerate() {
                let id = format!("{id}{at}{number}");
                own.push(Body::ToolCall { id: id.clone().into(), name: name.into(), arguments: arguments.into() });
                let content = texts.into_iter().map(|text| part(Body::Text(text.into()))).collect();
                results.push(Body::ToolResult { id: id.into(), content, is_error: false });
            }
            if own.is_empty() {
                own.push(Body::Text("yes".into()));
            }
            messages.push(message(Role::Assistant, own));
        }
        messages.push(message(Role::User, results.into_iter().chain([last]).collect()));
        messages
    })
}

const SCHEMAS: [&str; 3] = [
    r#"{"type":"object","properties":{}}"#,
    r#"{ "type":"object", "properties":{"title":{"type":"number","maximum":1e400}},"$defs":{"a":{}} }"#,
    r#"{"properties":{"a":{"const":123456789012345678901234567890}},"type":"object","additionalProperties":false}"#,
];

fn tools() -> impl Strategy<Value = Vec<Tool<'static>>> {
    let tool = (
        "[a-zA-Z0-9_-]{1,20}",
        prop::option::of(text()),
        prop::sample::select(SCHEMAS.to_vec()),
        any::<Option<bool>>(),
    );
    prop::collection::vec(tool, 0..4).prop_map(|tools| {
        let kind = |(name, description, schema, strict): (String, Option<String>, &'static str, Option<bool>)| {
            ToolKind::Function {
                name: name.into(),
                description: description.map(Into::into),
                schema: Some(schema),
                strict,
            }
        };
        tools.into_iter().map(kind).enumerate().map(|(at, kind)| Tool { index: at as u32, kind }).collect()
    })
}

fn turn() -> impl Strategy<Value = Turn<'static>> {
    let choice = prop::option::of(prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::None),
        Just(ToolChoice::Any),
        "[a-z]{1,9}".prop_map(|name| ToolChoice::Named(name.into())),
    ]);
    let numbers = || prop::option::of(prop::sample::select(vec!["0", "0.70", "1e-1", "1.0"]));
    let output = prop_oneof![
        2 => Just(Output::Text),
        1 => prop::sample::select(SCHEMAS.to_vec()).prop_map(|schema| Output::Schema { name: None, schema, strict: None }),
    ];
    let effort = prop::option::of(prop::sample::select(vec!["low", "medium", "high", "max"]));
    let sampling = (numbers(), numbers(), prop::collection::vec(text(), 0..5), 1u64..u64::from(u32::MAX));
    (
        rounds(),
        tools(),
        choice,
        any::<Option<bool>>(),
        sampling,
        output,
        effort,
        prop::option::of(text()),
        any::<bool>(),
    )
        .prop_map(
            |(
                messages,
                tools,
                choice,
                parallel_tools,
                (temperature, top_p, stop, limit),
                output,
                effort,
                user,
                stream,
            )| Turn {
                model: "asked".into(),
                stream,
                messages,
                tool_choice: if tools.is_empty() { None } else { choice },
                tools,
                parallel_tools,
                max_output: Some(limit),
                temperature,
                top_p,
                stop: stop.into_iter().map(Into::into).collect(),
                output,
                reasoning: Reasoning { mode: None, effort: effort.map(Into::into) },
                user: user.map(Into::into),
                ..Turn::default()
            },
        )
}

/// The turn's content: without places, without the bounds between messages of one role, and with defaults said. `wrapped`
/// ids of calls are in the letters of Messages.
fn content(mut turn: Turn<'_>, wrapped: bool) -> Turn<'_> {
    let own = |id: Text<'_>| -> Text<'static> {
        if wrapped { from_messages_safe(&id).into_owned().into() } else { id.into_owned().into() }
    };
    let bare = |read: Part<'_>| -> Part<'static> {
        let body = match read.body {
            Body::Text(text) => Body::Text(text.into_owned().into()),
            Body::Image(Image::Url(url)) => Body::Image(Image::Url(url.into_owned().into())),
            Body::Image(Image::Data { media_type, data }) => {
                Body::Image(Image::Data { media_type: media_type.into_owned().into(), data: data.into_owned().into() })
            }
            Body::ToolCall { id, name, arguments } => {
                Body::ToolCall { id: own(id), name: name.into_owned().into(), arguments: arguments.into_owned().into() }
            }
            Body::ToolResult { id, content, is_error } => {
                let texts = content.into_iter().map(|inner| {
                    let Body::Text(text) = inner.body else { panic!("{:?} in a result", inner.body) };
                    text.into_owned()
                });
                let content = texts.filter(|text| !text.is_empty()).map(|text| part(Body::Text(text.into()))).collect();
                Body::ToolResult { id: own(id), content, is_error }
            }
            other @ (Body::File(_)
            | Body::Thinking { .. }
            | Body::RedactedThinking(_)
            | Body::Refusal(_)
            | Body::Other(_)) => {
                panic!("{other:?} was not sent")
            }
        };
        part(body)
    };
    let mut messages: Vec<Message<'static>> = Vec::new();
    for said in turn.messages.drain(..) {
        let parts: Vec<_> = said.parts.into_iter().map(bare).collect();
        match messages.last_mut().filter(|last| last.role == said.role) {
            Some(last) => last.parts.extend(parts),
            None => messages.push(Message { role: said.role, at: At::Message(0), parts }),
        }
    }
    turn.messages = messages;
    turn.stream_usage = false;
    turn.model = "any".into();
    // Without tools there is nothing to choose; with them the model decides, and it may call several.
    if turn.tools.is_empty() || turn.tool_choice == Some(ToolChoice::None) || turn.parallel_tools == Some(true) {
        turn.parallel_tools = None;
    }
    if !turn.tools.is_empty() {
        turn.tool_choice.get_or_insert(ToolChoice::Auto);
    }
    if let Output::Schema { name, .. } = &mut turn.output {
        *name = None;
    }
    turn
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, ..ProptestConfig::default() })]

    #[test]
    fn a_turn_is_the_same_on_either_side_of_a_translation(turn in turn(), first in prop::sample::select(vec![Dialect::Chat, Dialect::Messages])) {
        let second = if first == Dialect::Chat { Dialect::Messages } else { Dialect::Chat };
        let mut bodies = Vec::new();
        let mut last = encode(first, &turn, "a").unwrap().body;
        // There, back, and there again.
        for target in [second, first, second] {
            let request = read(other_than(target), Operation::Generate, last.clone()).unwrap();
            let encoded = encode(target, &request.turn().unwrap(), "b").unwrap();
            // The cache marks are the gateway's own, which a Messages client would have set.
            let expected = ["cache_control", "response_format.json_schema.name"];
            let named = encoded.dropped.iter().all(|name| expected.contains(&name.as_str()));
            prop_assert!(named, "{:?}", encoded.dropped);
            bodies.push((other_than(target), last));
            last = encoded.body;
        }
        bodies.push((second, last));
        // An id of the turn is a Messages client's to the encoder of Chat, and the other way round.
        let wanted = content(turn, first == Dialect::Chat);
        for (dialect, body) in bodies {
            let request = read(dialect, Operation::Generate, body.clone()).unwrap();
            prop_assert_eq!(&content(request.turn().unwrap(), dialect == Dialect::Messages), &wanted, "{:?}: {}", dialect, String::from_utf8_lossy(&body));
        }
    }
}

/// The dialect that is translated to this one.
fn other_than(target: Dialect) -> Dialect {
    if target == Dialect::Chat { Dialect::Messages } else { Dialect::Chat }
}

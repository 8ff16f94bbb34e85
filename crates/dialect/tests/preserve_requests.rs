//! On a same-dialect route the difference between what the client sent and what the upstream gets is exactly the edit
//! list. The requests are the recorded ones, respelled at random: what a JSON reader does not see must not change.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use turnkeep_base::Dialect;
use turnkeep_dialect::request::{ClientRequest, Operation, read};

/// A recorded request: its dialect, what it wants, its body as it was sent.
type Capture = (Dialect, Operation, String);

fn captures() -> &'static [Capture] {
    static CAPTURES: OnceLock<Vec<Capture>> = OnceLock::new();
    CAPTURES.get_or_init(|| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
        let folders = std::fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path());
        let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        let found: Vec<Capture> = paths.iter().filter_map(|path| capture(&std::fs::read(path).unwrap())).collect();
        assert!(found.len() > 100, "only {} recorded requests", found.len());
        found
    })
}

fn capture(file: &[u8]) -> Option<Capture> {
    let capture: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(file).unwrap();
    let target: String = serde_json::from_str(capture["target"].get()).unwrap();
    let body = capture.get("body")?.get();
    if !body.starts_with('{') {
        return None;
    }
    Some(match target.split('?').next().unwrap() {
        "/v1/chat/completions" => (Dialect::Chat, Operation::Generate, body.to_owned()),
        "/v1/messages" => (Dialect::Messages, Operation::Generate, body.to_owned()),
        "/v1/messages/count_tokens" => (Dialect::Messages, Operation::CountTokens, body.to_owned()),
        _ => return None,
    })
}

/// A JSON text whose spelling is still open.
#[derive(Clone, Debug)]
enum Node {
    /// A number or a word, as it will stand there.
    Word(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Node::Word(value.to_string()),
            Value::String(text) => Node::Text(text.clone()),
            Value::Array(list) => Node::List(list.iter().map(Node::from).collect()),
            Value::Object(map) => Node::Object(map.iter().map(|(key, value)| (key.clone(), value.into())).collect()),
        }
    }
}

/// What is done to a request. Each may be off, so that a failure shrinks to the one that matters.
#[derive(Clone, Debug)]
struct Mutations {
    seed: u64,
    space: bool,
    escapes: bool,
    numbers: bool,
    order: bool,
    unknown: bool,
    duplicates: bool,
    deep: usize,
    /// `stream` and `stream_options`, as JSON texts.
    stream: Option<&'static str>,
    options: Option<&'static str>,
}

fn mutations() -> impl Strategy<Value = Mutations> {
    let streams = [None, Some("true"), Some("false"), Some("null")];
    let options = [
        None,
        Some("null"),
        Some("{}"),
        Some("{ \t}"),
        Some(r#"{"include_usage":true}"#),
        Some(r#"{"include_usage": false }"#),
        Some(r#"{"include_usage":null,"include_obfuscation":false}"#),
        Some(r#"{"include_obfuscation":true,"x":{"include_usage":true}}"#),
        Some(r#"{"x":"}","include\u005fusage":false,"x":[{}]}"#),
    ];
    let switches = (any::<[bool; 6]>(), 0usize..120);
    (any::<u64>(), switches, prop::sample::select(streams.to_vec()), prop::sample::select(options.to_vec())).prop_map(
        |(seed, (on, deep), stream, options)| Mutations {
            seed,
            space: on[0],
            escapes: on[1],
            numbers: on[2],
            order: on[3],
            unknown: on[4],
            duplicates: on[5],
            deep,
            stream,
            options,
        },
    )
}

/// A small generator of random numbers, so that one seed tells a whole spelling.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = self.roll(at + 1);
            list.swap(at, other);
        }
    }
}

/// Numbers that a reader by `f64` or by `i64` would not give back as they are.
const ODD_NUMBERS: &[&str] =
    &["1e3", "1.0", "123456789012345678901234567890", "-0", "-0.0", "0.10", "1E+2", "3.14159265358979323846", "1e-400"];

/// Values of fields that nobody knows, among them what looks like a field that somebody knows.
const UNKNOWN: &[&str] = &[
    r#"{"model":"decoy","stream":true,"stream_options":{"include_usage":false},"messages":[]}"#,
    r#""\"model\":\"decoy\"""#,
    r#"[{"model":{"model":"decoy"}}]"#,
    "123456789012345678901234567890",
    r#""größer 日本 😀 \ud83d\ude00 \u0000 \/""#,
    "null",
    "[]",
    "1.0e+2",
];

fn mutate(node: &mut Node, how: &Mutations, dice: &mut Dice, top: bool) {
    match node {
        Node::Word(word) => {
            let number = word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
            if how.numbers && number {
                // A whole number may be a field that the gateway reads, and it stays the same number.
                *word = match (word.parse::<u64>(), dice.roll(3)) {
                    (Ok(_), 0) => format!("{word}.0"),
                    (Ok(whole), 1) if whole % 10 == 0 => format!("{}e1", whole / 10),
                    (Ok(_), _) => word.clone(),
                    (Err(_), _) => dice.pick(ODD_NUMBERS).to_owned(),
                };
            }
        }
        Node::Text(_) => {}
        Node::List(list) => list.iter_mut().for_each(|item| mutate(item, how, dice, false)),
        Node::Object(fields) => {
            fields.iter_mut().for_each(|(_, value)| mutate(value, how, dice, false));
            if how.unknown && (top || dice.roll(4) == 0) {
                let name = format!("x_{}", dice.roll(1000));
                fields.push((name, Node::Word(dice.pick(UNKNOWN).into())));
                fields.push((format!("ключ {}", dice.roll(9)), Node::Word(dice.pick(ODD_NUMBERS).into())));
            }
            if how.duplicates && (top || dice.roll(4) == 0) {
                for _ in 0..2 {
                    fields.push(("twice".into(), Node::Word(dice.pick(UNKNOWN).into())));
                }
            }
            if how.order {
                dice.shuffle(fields);
            }
        }
    }
}

fn space(how: &Mutations, dice: &mut Dice, out: &mut String) {
    if how.space {
        out.push_str(dice.pick(&["", "", " ", "\n", "\t", "\r\n  ", "      "]));
    }
}

fn spell(node: &Node, how: &Mutations, dice: &mut Dice, out: &mut String) {
    space(how, dice, out);
    match node {
        Node::Word(word) => out.push_str(word),
        Node::Text(text) => spell_text(text, how, dice, out),
        Node::List(list) => {
            out.push('[');
            for (at, item) in list.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                spell(item, how, dice, out);
            }
            space(how, dice, out);
            out.push(']');
        }
        Node::Object(fields) => {
            out.push('{');
            for (at, (key, value)) in fields.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                space(how, dice, out);
                spell_text(key, how, dice, out);
                space(how, dice, out);
                out.push(':');
                spell(value, how, dice, out);
            }
            space(how, dice, out);
            out.push('}');
        }
    }
    space(how, dice, out);
}

fn spell_text(text: &str, how: &Mutations, dice: &mut Dice, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        let must = matches!(letter, '"' | '\\' | '\0'..='\u{1f}');
        if how.escapes && letter == '/' && dice.roll(2) == 0 {
            out.push_str("\\/");
        } else if must || (how.escapes && dice.roll(12) == 0) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let escape = if dice.roll(2) == 0 { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") };
                out.push_str(&escape);
            }
        } else {
            out.push(letter);
        }
    }
    out.push('"');
}

fn set(fields: &mut Vec<(String, Node)>, key: &str, to: Option<&str>) {
    fields.retain(|(known, _)| known != key);
    fields.extend(to.map(|to| (key.to_owned(), Node::Word(to.to_owned()))));
}

/// The fields of a recorded request with the mutations done, before they are spelled.
fn fields(capture: &Capture, how: &Mutations, dice: &mut Dice) -> Vec<(String, Node)> {
    let mut node = Node::from(&serde_json::from_str::<Value>(&capture.2).unwrap());
    let Node::Object(fields) = &mut node else { panic!("a body that is no object") };
    if capture.0 == Dialect::Chat {
        set(fields, "stream_options", how.options);
    }
    if capture.1 == Operation::Generate {
        set(fields, "stream", how.stream);
    }
    if how.deep > 0 {
        let deep = format!("{}1{}", "[{\"a\":".repeat(how.deep / 2), "}]".repeat(how.deep / 2));
        set(fields, "deep", Some(&deep));
    }
    mutate(&mut node, how, dice, true);
    let Node::Object(fields) = node else { panic!("no object any more") };
    fields
}

fn spelled(fields: Vec<(String, Node)>, how: &Mutations, dice: &mut Dice) -> Bytes {
    let mut out = String::new();
    spell(&Node::Object(fields), how, dice, &mut out);
    out.into()
}

/// What the upstream must read, made from what the client's body says.
fn wanted(request: &ClientRequest, mut value: Value, model: &str) -> Value {
    value["model"] = json!(model);
    if request.dialect == Dialect::Chat && value["stream"] == true {
        if !value["stream_options"].is_object() {
            value["stream_options"] = Value::Object(Map::new());
        }
        value["stream_options"]["include_usage"] = json!(true);
    }
    value
}

fn holds(capture: &Capture, body: &Bytes, model: &str) -> Result<(), TestCaseError> {
    let request = match read(capture.0, capture.1, body.clone()) {
        Ok(request) => request,
        Err(error) => return Err(TestCaseError::fail(format!("{error} in {}", String::from_utf8_lossy(body)))),
    };
    let before: Value = serde_json::from_slice(body).unwrap();
    let (edits, output) = (request.edits(model), request.pass_through(model));

    let named: String = serde_json::from_slice(&body[request.spans.model.clone()]).unwrap();
    prop_assert_eq!(&named, &request.model);
    prop_assert_eq!(&before["model"], &request.model);

    // Every edit is at a named place, and none overlaps the next.
    let options = request.spans.stream_options.clone().unwrap_or(request.spans.model.end..request.spans.model.end);
    for (at, edit) in edits.iter().enumerate() {
        let within = edit.span.start >= options.start && edit.span.end <= options.end;
        prop_assert!(edit.span == request.spans.model || within, "{:?} outside {:?}", edit, request.spans);
        prop_assert!(edits[..at].iter().all(|earlier| earlier.span.end <= edit.span.start));
    }
    // By hand, from behind, so that no place moves.
    let mut by_hand = body.to_vec();
    for edit in edits.iter().rev() {
        by_hand.splice(edit.span.clone(), edit.with.iter().copied());
    }
    prop_assert_eq!(&by_hand[..], &output[..]);
    // And the bytes between the edits stand in the output as they stood.
    let (mut from, mut shift) = (0, 0isize);
    for edit in &edits {
        let kept = from..edit.span.start;
        let there = kept.start.wrapping_add_signed(shift)..kept.end.wrapping_add_signed(shift);
        prop_assert_eq!(&output[there], &body[kept]);
        from = edit.span.end;
        shift += edit.with.len() as isize - edit.span.len() as isize;
    }
    prop_assert_eq!(&output[from.wrapping_add_signed(shift)..], &body[from..]);

    let after: Value = serde_json::from_slice(&output).unwrap();
    prop_assert_eq!(&after, &wanted(&request, before, model));

    // What the upstream gets needs no edit any more.
    let again = read(capture.0, capture.1, output).unwrap();
    prop_assert_eq!(&again.model, model);
    prop_assert_eq!(again.edits(model), vec![]);
    prop_assert_eq!(again.stream, request.stream);
    prop_assert_eq!(again.max_output, request.max_output);
    Ok(())
}

#[test]
fn a_recorded_request_changes_by_its_edits_alone() {
    for capture in captures() {
        let body = Bytes::from(capture.2.clone());
        holds(capture, &body, "up \"stream\" / ü").unwrap();
        let request = read(capture.0, capture.1, body.clone()).unwrap();
        let same = request.pass_through(&request.model);
        let asks_anyway = !request.stream || request.usage_wanted || request.dialect == Dialect::Messages;
        assert_eq!(same == body, asks_anyway);
    }
}

#[test]
fn a_key_that_is_written_with_escapes_is_the_same_key() {
    let body =
        r#"{"mod\u0065l" : "a\u0062\ud83d\ude00","str\u0065am":true,"messages":[{"role":"user","content":"x"}]}"#;
    let request = read(Dialect::Chat, Operation::Generate, Bytes::from_static(body.as_bytes())).unwrap();
    assert_eq!(request.model, "ab😀");
    assert_eq!(&body[request.spans.model.clone()], r#""a\u0062\ud83d\ude00""#);
    let wanted = r#"{"mod\u0065l" : "up","stream_options":{"include_usage":true},"str\u0065am":true,"messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(request.pass_through("up"), wanted);
}

/// The fields that the gateway itself acts on.
fn read_keys(capture: &Capture) -> &'static [(&'static str, &'static str)] {
    match capture.0 {
        Dialect::Chat => &[
            ("model", "\"other\""),
            ("messages", r#"[{"role":"user","content":"other"}]"#),
            ("stream", "true"),
            ("stream_options", "{}"),
            ("max_tokens", "1"),
            ("max_completion_tokens", "1"),
            ("n", "1"),
        ],
        Dialect::Messages => &[
            ("model", "\"other\""),
            ("messages", r#"[{"role":"user","content":"other"}]"#),
            ("stream", "true"),
            ("max_tokens", "1"),
        ],
        Dialect::Responses | Dialect::Gemini => panic!("not one of the pair"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn however_a_request_is_spelled_its_edits_are_the_whole_difference(
        at in any::<prop::sample::Index>(), how in mutations(), model in "[a-z0-9\"\\\\/ü😀.:-]{1,12}"
    ) {
        let (capture, mut dice) = (at.get(captures()), Dice(how.seed));
        let body = spelled(fields(capture, &how, &mut dice), &how, &mut dice);
        holds(capture, &body, &model)?;
    }

    #[test]
    fn two_of_a_field_that_the_gateway_reads_are_refused_by_name(
        at in any::<prop::sample::Index>(), how in mutations(), which in any::<prop::sample::Index>(), place in any::<prop::sample::Index>()
    ) {
        let (capture, mut dice) = (at.get(captures()), Dice(how.seed));
        let mut fields = fields(capture, &how, &mut dice);
        let (key, value) = *which.get(read_keys(capture));
        let missing = usize::from(!fields.iter().any(|(known, _)| known == key));
        for _ in 0..=missing {
            fields.insert(place.index(fields.len() + 1), (key.to_owned(), Node::Word(value.to_owned())));
        }
        let body = spelled(fields, &how, &mut dice);
        let error = read(capture.0, capture.1, body).unwrap_err().to_string();
        prop_assert!(error.contains("duplicate") && error.contains(&format!("`{key}`")), "{}", error);
    }
}

#[test]
fn two_of_include_usage_are_refused_by_name() {
    let body = br#"{"model":"a","messages":[{"role":"user","content":"x"}],"stream":true,
        "stream_options":{"include_usage":true,"include\u005fusage":false}}"#;
    let error = read(Dialect::Chat, Operation::Generate, Bytes::from_static(body)).unwrap_err();
    assert_eq!(error.path, "stream_options.include_usage");
    assert!(error.message.contains("duplicate `include_usage`"), "{error}");
}

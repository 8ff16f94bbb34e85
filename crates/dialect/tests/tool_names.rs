//! The names of tools on their way to a target and back.

#![allow(clippy::unwrap_used, reason = "a test's functions, too, end by panicking")]

use proptest::prelude::*;
use std::collections::BTreeMap;
use turnkeep_base::Dialect;
use turnkeep_dialect::tool_names::{ToolNames, sent};
use turnkeep_dialect::turn::{ClientTool, Renamed, Tool, ToolKind, Turn};

fn fits(name: &str, target: Dialect) -> bool {
    let common = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let letters = |byte: u8| common(byte) || (target == Dialect::Gemini && (byte == b'.' || byte == b':'));
    let first = name.as_bytes().first();
    let begins = target != Dialect::Gemini || first.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    (1..=64).contains(&name.len()) && begins && name.bytes().all(letters)
}

fn function(name: &str) -> Tool<'_> {
    Tool { index: 0, kind: ToolKind::Function { name: name.into(), description: None, schema: None, strict: None } }
}

#[test]
fn a_name_that_fits_stays_as_it_is() {
    let longest = "x".repeat(64);
    for target in Dialect::ALL {
        for name in ["get_weather", "mcp__server__read-file", "a", "_x", longest.as_str()] {
            assert_eq!(sent(name, target), name, "{target}");
        }
    }
    assert_eq!(sent("ns.tool:1", Dialect::Gemini), "ns.tool:1");
    assert_eq!(sent("7up", Dialect::Messages), "7up");
}

#[test]
fn a_name_that_does_not_fit_keeps_a_beginning_that_people_can_read() {
    let dotted = sent("functions.Bash:0", Dialect::Messages).into_owned();
    assert!(dotted.starts_with("functions_Bash_0_tk"), "{dotted}");
    let digit = sent("7up", Dialect::Gemini).into_owned();
    assert!(digit.starts_with("tool_7up_tk"), "{digit}");
    let long = "long_".repeat(40);
    assert!(sent(&long, Dialect::Chat).starts_with("long_long_long_"));
}

#[test]
fn names_that_differ_in_a_forbidden_letter_or_behind_the_limit_do_not_meet() {
    let long = "x".repeat(100);
    let (one, other) = (format!("{long}1"), format!("{long}2"));
    let names = ["a.b", "a:b", "a_b", "a b", "a/b", "ä_b", "", one.as_str(), other.as_str()];
    for target in Dialect::ALL {
        let sent: std::collections::BTreeSet<_> = names.iter().map(|name| sent(name, target)).collect();
        assert_eq!(sent.len(), names.len(), "{target}");
    }
}

#[test]
fn a_tool_that_is_named_like_a_made_name_is_not_taken_for_the_tool_it_was_made_of() {
    for target in Dialect::ALL {
        let made = sent("a b", target).into_owned();
        assert_ne!(sent(&made, target), made, "{target}");
        assert!(fits(&sent(&made, target), target));
        let tools = vec![function("a b"), function(&made)];
        let names = ToolNames::of(&Turn { tools, ..Turn::default() }, target);
        assert_eq!(names.name(&sent("a b", target)), "a b");
        assert_eq!(names.name(&sent(&made, target)), made);
    }
}

#[test]
fn the_answer_shows_each_tool_as_its_client_knows_it() {
    let custom = ToolKind::Custom { name: "patch".into(), description: None, format: None };
    let client = ClientTool { name: "read.it".into(), namespace: Some("files".into()), custom: false };
    let turn = Turn {
        tools: vec![
            function("plain"),
            function("with.dot"),
            Tool { index: 2, kind: custom },
            function("files__read.it"),
        ],
        renamed: vec![Renamed { canonical: "files__read.it".into(), client: client.clone() }],
        ..Turn::default()
    };
    let names = ToolNames::of(&turn, Dialect::Messages);
    assert_eq!((names.client("plain"), names.name("plain")), (None, "plain"));
    assert_eq!(names.name(&sent("with.dot", Dialect::Messages)), "with.dot");
    assert!(names.is_custom("patch") && !names.is_custom("plain"));
    assert_eq!(names.client(&sent("files__read.it", Dialect::Messages)), Some(&client));
    assert_eq!(names.name("a tool that nobody declared"), "a tool that nobody declared");
}

proptest! {
    #[test]
    fn every_name_fits_its_target_and_comes_back_as_itself_alone(names in prop::collection::btree_set("[a-c.:_ ä-]{0,8}|.{0,90}", 0..12)) {
        let tools: Vec<_> = names.iter().map(|name| function(name)).collect();
        let turn = Turn { tools, ..Turn::default() };
        for target in Dialect::ALL {
            let shown = ToolNames::of(&turn, target);
            let mut seen = BTreeMap::new();
            for name in &names {
                let sent_as = sent(name, target).into_owned();
                prop_assert!(fits(&sent_as, target), "{} {:?}", target, sent_as);
                prop_assert_eq!(&sent(name, target), &sent_as);
                prop_assert_eq!(shown.name(&sent_as), name);
                prop_assert_eq!(seen.insert(sent_as, name), None);
            }
        }
    }
}

//! Which history goes on in which conversation: tools, edits, branches, repeats, other callers, other words of the client's.

use crate::fake::{Act, Beat, says};
use crate::table::until;
use crate::world::{Ask, With, World, begun, of, of_messages, said, second, with, world};
use std::sync::Arc;
use tokio::sync::Semaphore;
use turnkeep_base::Dialect;
use turnkeep_base::limit::MAX_RECORDED;
use turnkeep_engine::route::Reuse;
use turnkeep_policy::conversations::Handling;

const TOOLS: &str = r#","tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]"#;

fn with_tools(stream: bool, messages: &[&str]) -> Ask {
    Ask { also: TOOLS, ..of_messages(stream, messages.join(",")) }
}

const ASKED: &str = r#"{"role":"user","content":"hi"}"#;
const CALLS: &str = r#"{"role":"assistant","content":null,"tool_calls":[
    {"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},
    {"id":"call_2","type":"function","function":{"name":"look","arguments":"{\"at\":2}"}}]}"#;
const RESULTS: [&str; 2] = [
    r#"{"role":"tool","tool_call_id":"call_1","content":"first"}"#,
    r#"{"role":"tool","tool_call_id":"call_2","content":"second"}"#,
];

fn calls_both() -> Act {
    let calls = [Beat::Call("look", "{\"at\":1}"), Beat::Call("look", "{\"at\":2}")];
    Act::Answer([vec![Beat::Start], calls.to_vec(), vec![Beat::End]].concat())
}

#[tokio::test]
async fn a_lease_goes_on_with_the_results_of_parallel_tools_and_with_text_beside_them() {
    for stream in [true, false] {
        for (text, expected) in [
            (None, vec!["tool: first", "tool: second"]),
            (Some(r#"{"role":"user","content":"and hurry"}"#), vec!["tool: first", "tool: second", "user: and hurry"]),
        ] {
            let world = world();
            world.fake.act([calls_both(), says("done")]);
            let told = world.delivered(&with_tools(stream, &[ASKED])).await;
            assert!(told.body.contains("look"), "{}", told.body);
            let messages: Vec<&str> = [ASKED, CALLS].into_iter().chain(RESULTS).chain(text).collect();
            world.delivered(&with_tools(stream, &messages)).await;
            assert_eq!(world.fake.last().lines, expected);
            assert_eq!((world.size(), world.counts()), (1, [1, 0, 0, 1, 0]));
            let said =
                [vec!["user: hi", r#"assistant calls: look {"at":1}"#, r#"assistant calls: look {"at":2}"#], expected];
            let said: Vec<&str> = said.concat().into_iter().chain(["assistant: done"]).collect();
            assert_eq!(world.fake.transcript(), said);
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn thirty_tool_calls_hit_a_lease_on_every_turn_after_the_first() {
    let world = world();
    let mut messages = vec![ASKED.to_owned()];
    for turn in 0..30 {
        world.fake.act([Act::Answer(vec![Beat::Start, Beat::Call("look", "{}"), Beat::End])]);
        let list: Vec<&str> = messages.iter().map(String::as_str).collect();
        world.delivered(&with_tools(turn % 2 == 0, &list)).await;
        let call = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{turn}","type":"function",
               "function":{{"name":"look","arguments":"{{}}"}}}}]}}"#
        );
        messages.push(call);
        messages.push(format!(r#"{{"role":"tool","tool_call_id":"c{turn}","content":"result {turn}"}}"#));
    }
    assert_eq!((world.size(), world.counts()), (1, [29, 0, 0, 29, 0]));
    assert_eq!(world.fake.transcript().len(), 1 + 30 + 29);
    world.assert_right();
}

#[tokio::test]
async fn an_edited_history_finds_no_lease_and_leaves_the_one_there_is() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        let world = of(handling);
        begun(&world, true).await;
        for edited in [["hello", "one", "more"], ["hi", "two", "more"]] {
            world.delivered(&said(true, &edited)).await;
            assert_eq!(world.fake.last().resume, None);
            assert_eq!(world.fake.last().lines[2], "user: more");
        }
        assert_eq!((world.size(), world.counts()), (3, [0, 2, 0, 0, 0]));
        world.delivered(&second(true)).await;
        assert_eq!(world.fake.last().lines, ["user: more"]);
        world.assert_right();
    }
}

#[tokio::test]
async fn a_branch_goes_on_from_an_immutable_lease_and_begins_anew_from_a_mutable_one() {
    for (handling, resumes) in [(Handling::Mutable, false), (Handling::Immutable, true)] {
        let world = of(handling);
        begun(&world, true).await;
        world.fake.act([says("two"), says("three")]);
        world.delivered(&second(true)).await;
        world.delivered(&said(true, &["hi", "one", "another way"])).await;
        assert_eq!(world.fake.last().resume.is_some(), resumes);
        // Both branches go on from now on.
        for words in [["hi", "one", "more", "two", "a"], ["hi", "one", "another way", "three", "b"]] {
            world.delivered(&said(true, &words)).await;
            assert_eq!(world.fake.last().lines, [format!("user: {}", words[4])]);
        }
        world.assert_right();
    }
}

#[tokio::test]
async fn an_answer_that_is_made_again_goes_on_from_an_immutable_lease_and_begins_anew_from_a_mutable_one() {
    for (handling, resumes) in [(Handling::Mutable, false), (Handling::Immutable, true)] {
        let world = of(handling);
        begun(&world, true).await;
        world.fake.act([says("two"), says("another two")]);
        world.delivered(&second(true)).await;
        world.delivered(&Ask { bypass: true, ..second(true) }).await;
        assert_eq!(world.fake.last().resume.is_some(), resumes);
        world.delivered(&said(true, &["hi", "one", "more", "another two", "go on"])).await;
        assert_eq!(world.fake.last().lines, ["user: go on"]);
        world.assert_right();
    }
}

#[tokio::test]
async fn the_same_answer_twice_leaves_one_lease_and_the_older_handle_is_let_go_of() {
    let world = world();
    begun(&world, true).await;
    world.delivered(&Ask { bypass: true, ..said(true, &["hi"]) }).await;
    assert_eq!(world.size(), 1);
    assert_eq!(world.fake.kept.lock().forgotten, ["h1"]);
    world.delivered(&second(true)).await;
    assert_eq!(world.fake.last().resume.as_deref(), Some("h2"));
    world.assert_right();
}

#[tokio::test]
async fn of_two_turns_from_one_history_at_once_one_holds_the_mutable_lease_and_both_an_immutable_one() {
    for (handling, resumed) in [(Handling::Mutable, 1), (Handling::Immutable, 2)] {
        for same in [true, false] {
            let world = of(handling);
            begun(&world, true).await;
            let gate = Arc::new(Semaphore::new(0));
            let waits = |text| Act::Answer(vec![Beat::Start, Beat::Gate(gate.clone()), Beat::Say(text), Beat::End]);
            world.fake.act([waits("two"), waits(if same { "two" } else { "three" })]);
            let ask = Ask { bypass: true, ..second(true) };
            let (first, other) = (world.start(&ask), world.start(&ask));
            until(|| world.fake.sends() == 3).await;
            gate.add_permits(2);
            let told = [first.told().await.arrives(), other.told().await.arrives()];
            assert!(told.iter().all(|told| told.status == 200));
            world.idle().await;
            let sends: Vec<bool> = world.fake.kept.lock().sends[1..].iter().map(|sent| sent.resume.is_some()).collect();
            assert_eq!(sends.iter().filter(|resumed| **resumed).count(), resumed);
            let left = match (handling, same) {
                (Handling::Mutable, same) => {
                    if same {
                        1
                    } else {
                        2
                    }
                }
                (Handling::Immutable, same) => {
                    if same {
                        2
                    } else {
                        3
                    }
                }
            };
            assert_eq!(world.size(), left, "{handling:?} {same}");
            world.delivered(&said(true, &["hi", "one", "more", "two", "go on"])).await;
            assert_eq!(world.fake.last().lines, ["user: go on"]);
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn another_caller_session_model_system_prompt_or_set_of_tools_finds_no_lease() {
    let world = world();
    begun(&world, true).await;
    let system = format!(r#"{{"role":"system","content":"be brief"}},{}"#, second(true).messages);
    let others = [
        Ask { caller: "another", ..second(true) },
        Ask { session: Some("s-1"), ..second(true) },
        Ask { also: TOOLS, ..second(true) },
        Ask { model: "other", ..second(true) },
        Ask { messages: system, ..second(true) },
    ];
    for other in &others {
        let told = world.delivered(other).await;
        assert_eq!((told.status.as_u16(), world.fake.last().resume), (200, None), "{other:?}");
    }
    assert_eq!(world.counts()[..2], [0, 5]);
    world.delivered(&second(true)).await;
    assert!(world.fake.last().resume.is_some());
    world.assert_right();
}

#[tokio::test]
async fn a_client_that_changes_its_dialect_finds_its_lease() {
    let world = world();
    begun(&world, true).await;
    let ask = Ask { client: Dialect::Messages, ..second(false) };
    let told = world.delivered(&ask).await;
    assert_eq!((told.status.as_u16(), world.fake.last().lines), (200, vec!["user: more".to_owned()]), "{}", told.body);
    world.assert_right();
}

#[tokio::test]
async fn a_shared_key_without_a_user_has_no_lease_and_its_conversations_are_let_go_of() {
    let world = world();
    for words in [&["hi"][..], &["hi", "one", "more"]] {
        world.delivered(&Ask { shared: true, ..said(true, words) }).await;
        assert_eq!(world.fake.last().resume, None);
    }
    assert_eq!((world.size(), world.counts()), (0, [0; 5]), "not even a miss: it could not have gone on");
    assert_eq!(world.fake.kept.lock().forgotten, ["h1", "h2"]);
    world.assert_right();
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_known_again_leaves_no_lease() {
    let long: &'static str = Box::leak("x".repeat(1 << 20).into_boxed_str());
    let parts = MAX_RECORDED / long.len() + 1;
    let says_much = || std::iter::repeat_n([Beat::Say(long), Beat::Pause], parts).flatten();
    let answer = || Act::Answer([Beat::Start].into_iter().chain(says_much()).chain([Beat::End]).collect());
    for handling in [Handling::Mutable, Handling::Immutable] {
        let world = of(handling);
        world.fake.act([answer()]);
        let told = world.delivered(&said(true, &["hi"])).await;
        assert_eq!((told.status.as_u16(), world.size()), (200, 0));
        let forgotten = world.fake.kept.lock().forgotten.len();
        assert_eq!(forgotten, usize::from(handling == Handling::Mutable), "one that was begun");
        world.assert_right();
    }
    let world = world();
    begun(&world, true).await;
    world.fake.act([answer()]);
    world.delivered(&second(true)).await;
    assert_eq!((world.size(), world.counts()), (0, [1, 0, 0, 0, 1]));
    assert_eq!(world.fake.kept.lock().forgotten, ["h1"], "and one that went on");
    world.assert_right();
}

#[tokio::test]
async fn a_first_turn_counts_as_no_missed_lease_and_without_reuse_none_does() {
    let world = world();
    world.delivered(&said(true, &["hi"])).await;
    assert_eq!(world.counts()[..2], [0, 0]);
    world.delivered(&said(true, &["other", "words", "entirely"])).await;
    assert_eq!(world.counts()[..2], [0, 1]);
    let off = with(With { reuse: Reuse::Off, ..With::default() });
    off.delivered(&said(true, &["hi"])).await;
    off.delivered(&second(true)).await;
    assert_eq!((off.counts(), off.size(), off.fake.last().resume), ([0; 5], 0, None));
    off.assert_right();
}

#[tokio::test]
async fn an_answer_from_the_cache_takes_no_lease() {
    let world = world();
    begun(&world, true).await;
    let cached = Ask { cache: true, ..second(true) };
    world.delivered(&cached).await;
    let before = world.counts();
    let told = world.delivered(&cached).await;
    assert_eq!((told.header("x-turnkeep-cache"), world.counts()), ("hit", before));
    world.assert_right();
}

#[tokio::test]
async fn an_idempotent_turn_that_is_repeated_takes_no_second_lease() {
    let world = world();
    begun(&world, true).await;
    let ask = Ask { idempotency: Some("key-1"), ..second(true) };
    world.delivered(&ask).await;
    let (before, sends) = (world.counts(), world.fake.sends());
    let told = world.delivered(&ask).await;
    assert_eq!((told.status.as_u16(), world.counts(), world.fake.sends()), (200, before, sends));
    world.assert_right();
}

/// Both turns of a conversation.
async fn two_turns(world: &World) {
    begun(world, true).await;
    world.delivered(&second(true)).await;
}

#[tokio::test]
async fn what_a_lease_leaves_upstream_holds_each_message_once() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        let world = of(handling);
        two_turns(&world).await;
        let kept = world.fake.kept.lock();
        let longest = kept.transcripts.values().max_by_key(|lines| lines.len()).unwrap();
        assert_eq!(*longest, ["user: hi", "assistant: one", "user: more", "assistant: one"]);
    }
}

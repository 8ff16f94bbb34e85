//! What becomes of a conversation with its turn: the review cases, against a server that really keeps it.

use crate::talk::{POSITION, PROTOCOLS, SEND, START, Setting, Talk, WATCH, on, short};
use turnkeep_lab::{ErrorSpec, Fault, Point, RefusalSpec, Rule};
use turnkeep_upstream::rpc::Protocol;

fn error(code: &str) -> Option<ErrorSpec> {
    Some(ErrorSpec { code: Some(code.into()), ..ErrorSpec::default() })
}

fn second(rule: Rule) -> Rule {
    Rule { nth: Some(2), ..rule }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_goes_on_sends_only_what_is_new() {
    for protocol in PROTOCOLS {
        for stream in [true, false] {
            let mut talk = Talk::new(Setting { protocol, stream, ..Setting::default() }, []).await;
            for (turn, text) in ["first thing", "second thing", "third thing"].into_iter().enumerate() {
                let told = talk.say(text).await;
                assert_eq!(told.status, 200, "{protocol:?} {stream} {text}: {}", told.body);
                assert_eq!(talk.history.len(), 2 * (turn + 1), "{}", told.body);
            }
            assert_eq!(talk.counts(), [2, 0, 0, 2, 0], "{protocol:?} {stream}");
            assert_eq!((talk.pool(), talk.lab.cascade().starts), (1, 1));
            let kept = talk.open().remove(0);
            assert_eq!(kept.said(), ["user: first thing", "user: second thing", "user: third thing"]);
            assert!(kept.turns.iter().all(|turn| turn.shown && !turn.cancelled), "{kept:?}");
            talk.assert_told_once();
            talk.world.assert_settled(3);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_is_refused_keeps_the_lease_and_the_same_fault_after_the_first_event_drops_it() {
    // An overload ends soon: the account is asked once more, in the same conversation.
    let cases =
        [("policy", 451), ("rate", 429), ("quota", 429), ("credential", 502), ("overloaded", 200), ("invalid", 400)];
    for protocol in PROTOCOLS {
        for (reason, status) in cases {
            let refuse = Some(RefusalSpec::new(reason));
            let rule = second(Rule { refuse, ..on(SEND) });
            let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, [rule]).await;
            talk.say("first").await;
            let told = talk.say("second").await;
            assert_eq!(told.status, status, "{protocol:?} {reason}: {}", told.body);
            assert_eq!(talk.pool(), 1, "{protocol:?} {reason}");
            let taken = if status == 200 { vec!["user: first", "user: second"] } else { vec!["user: first"] };
            assert_eq!(talk.open().remove(0).said(), taken, "{protocol:?} {reason}");
            talk.assert_told_once();

            let fail = Some(RefusalSpec::new(reason));
            let rule = second(Rule { fail, text: Some("one two three".into()), ..on(SEND) });
            let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, [rule]).await;
            talk.say("first").await;
            let told = talk.say("second").await;
            assert!(!told.body.contains("[DONE]"), "{protocol:?} {reason}: {}", told.body);
            assert_eq!(talk.pool(), 0, "{protocol:?} {reason}: the turn had begun");
            assert_eq!(talk.counts(), [1, 0, 0, 0, 1], "{protocol:?} {reason}");
            talk.lab.wait_cascade(|counts| counts.closed == 1).await;
            talk.assert_told_once();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_kept_goes_on_with_the_next_turn() {
    let refuse = Some(RefusalSpec::new("policy"));
    let mut talk = Talk::new(Setting::default(), [second(Rule { refuse, ..on(SEND) })]).await;
    talk.say("first").await;
    assert_eq!(talk.say("second").await.status, 451);
    assert_eq!(talk.again().await.status, 200);
    assert_eq!(talk.counts(), [2, 0, 1, 1, 0]);
    assert_eq!(talk.open().remove(0).said(), ["user: first", "user: second"]);
    assert_eq!(talk.lab.cascade().positions, 0, "a refusal in the server's own words proves enough");
    talk.assert_told_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failure_of_the_server_the_lease_is_kept_and_its_position_read_before_the_next_send() {
    for protocol in PROTOCOLS {
        for code in ["internal", "unavailable", "unknown"] {
            let rules = [second(Rule { error: error(code), ..on(SEND) })];
            let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, rules).await;
            talk.say("first").await;
            let mut told = talk.say("second").await;
            if told.status != 200 {
                assert_eq!(talk.pool(), 1, "{protocol:?} {code}");
                told = talk.again().await;
            }
            assert_eq!(told.status, 200, "{protocol:?} {code}: {}", told.body);
            assert_eq!(talk.lab.cascade().positions, 1, "{protocol:?} {code}: read before the send");
            assert_eq!(talk.open().remove(0).said(), ["user: first", "user: second"], "{protocol:?} {code}");
            assert_eq!((talk.pool(), talk.lab.cascade().starts), (1, 1), "{protocol:?} {code}");
            talk.assert_told_once();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_whose_conversation_moved_in_a_failed_send_is_gone_and_the_client_does_not_notice() {
    let rules = [second(Rule { error: error("internal"), takes_anyway: true, ..on(SEND) })];
    let mut talk = Talk::new(Setting::default(), rules).await;
    talk.say("first").await;
    let answer = talk.history.last().unwrap().1.clone();
    let mut told = talk.say("second").await;
    if told.status != 200 {
        told = talk.again().await;
    }
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(talk.lab.cascade().positions, 1);
    let anew = talk.lab.transcripts().pop().unwrap();
    assert_eq!(anew.said(), ["user: first", &format!("assistant: {answer}"), "user: second"], "the full history");
    assert_eq!(talk.pool(), 1);
    talk.assert_told_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_names_the_conversation_ends_its_lease_and_the_full_history_goes_into_a_new_one() {
    for reason in ["conversation", "position", "busy"] {
        let refuse = Some(RefusalSpec::new(reason));
        let mut talk = Talk::new(Setting::default(), [second(Rule { refuse, ..on(SEND) })]).await;
        talk.say("first").await;
        let told = talk.say("second").await;
        assert_eq!(told.status, 200, "{reason}: {}", told.body);
        assert_eq!(talk.lab.cascade().starts, 2, "{reason}");
        assert_eq!(talk.counts(), [1, 0, 0, 0, 1], "{reason}");
        assert_eq!(talk.pool(), 1, "{reason}: the new one");
        assert_eq!(talk.lab.transcripts().pop().unwrap().said().len(), 3, "{reason}");
        talk.assert_told_once();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passes_at_the_server_spoils_the_lease() {
    for protocol in PROTOCOLS {
        let rules = [second(Rule { error: error("deadline_exceeded"), ..on(SEND) })];
        let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, rules).await;
        talk.say("first").await;
        assert_eq!(talk.say("second").await.status, 504, "{protocol:?}");
        assert_eq!((talk.pool(), talk.counts()), (0, [1, 0, 0, 0, 1]), "{protocol:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_spoils_the_lease_and_is_told_to_stop() {
    for at in [Point::BeforeHeaders, Point::AfterWords(1)] {
        let rules = [second(Rule { fault: Some(Fault::Hang), fault_at: Some(at), ..on(WATCH) })];
        let mut talk = Talk::new(Setting { clocks: short(), ..Setting::default() }, rules).await;
        talk.say("first").await;
        talk.say("second").await;
        assert_eq!(talk.counts()[4], 1, "{at:?}: dropped");
        talk.lab.wait_cascade(|counts| counts.closed == 1).await;
        let spoilt = talk.lab.transcripts().remove(0);
        assert!(spoilt.closed && spoilt.turns[1].cancelled, "{at:?}: {spoilt:?}");
        talk.assert_told_once();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_drops_the_lease_and_the_server_stops() {
    for protocol in PROTOCOLS {
        let gate = Rule { gate: Some("there".into()), gate_at: Some(Point::AfterWords(1)), ..on(WATCH) };
        let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, [second(gate)]).await;
        talk.say("first").await;
        talk.history.push(("user", "second".into()));
        let mut asking = talk.begin();
        asking.head().await;
        talk.lab.wait_at_gate("there", 1).await;
        drop(asking);
        talk.world.idle().await;
        assert_eq!((talk.pool(), talk.counts()), (0, [1, 0, 0, 0, 1]), "{protocol:?}");
        talk.lab.wait_cascade(|counts| counts.closed == 1).await;
        let left = talk.lab.transcripts().remove(0);
        assert!(left.closed && left.turns[1].cancelled, "{protocol:?}: {left:?}");
        talk.assert_told_once();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_while_the_send_is_unanswered_drops_the_lease_and_the_server_stops() {
    for protocol in PROTOCOLS {
        let gate = Rule { gate: Some("there".into()), ..on(SEND) };
        let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, [second(gate)]).await;
        talk.say("first").await;
        talk.history.push(("user", "second".into()));
        let asking = talk.begin();
        talk.lab.wait_at_gate("there", 1).await;
        drop(asking);
        talk.world.idle().await;
        assert_eq!((talk.pool(), talk.counts()), (0, [1, 0, 0, 0, 1]), "{protocol:?}");
        talk.lab.wait_cascade(|counts| counts.closed == 1).await;
        talk.assert_told_once();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_started_anew_has_no_lease_of_the_old_one() {
    for protocol in PROTOCOLS {
        let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, []).await;
        talk.say("first").await;
        talk.lab.restart_cascade();
        let told = talk.say("second").await;
        assert_eq!(told.status, 200, "{protocol:?}: {}", told.body);
        assert_eq!(talk.lab.cascade().starts, 2, "{protocol:?}");
        assert_eq!(talk.open().remove(0).said().len(), 3, "{protocol:?}: the full history");
        assert_eq!(talk.pool(), 1, "{protocol:?}");
        let told = talk.say("third").await;
        assert_eq!((told.status.as_u16(), talk.lab.cascade().starts), (200, 2), "{protocol:?}: the new one goes on");
        talk.assert_told_once();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_breaks_is_opened_again_without_a_word_twice_and_the_lease_advances() {
    let faults = [
        (Fault::CloseMidStream, Point::AfterWords(1)),
        (Fault::ResetMidStream, Point::AfterWords(2)),
        (Fault::NoTerminal, Point::AfterWords(2)),
        (Fault::DoneWithoutFinish, Point::BeforeTerminal),
        (Fault::SkipStep, Point::BeforeHeaders),
        (Fault::RepeatSteps, Point::BeforeHeaders),
        (Fault::CloseMidStream, Point::BeforeHeaders),
    ];
    for protocol in PROTOCOLS {
        for (fault, at) in faults {
            let text = Some("one two three four".into());
            let rules =
                [second(Rule { fault: Some(fault), fault_at: Some(at), ..on(WATCH) }), Rule { text, ..on(SEND) }];
            let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, rules).await;
            talk.say("first").await;
            let told = talk.say("second").await;
            let case = format!("{protocol:?} {fault:?}: {}", told.body);
            assert_eq!(told.status, 200, "{case}");
            assert_eq!(talk.history.last().unwrap().1, "one two three four", "{case}");
            let watches = if fault == Fault::RepeatSteps { 2 } else { 3 };
            assert_eq!(talk.lab.cascade().watches, watches, "{case}");
            assert_eq!((talk.pool(), talk.counts()), (1, [1, 0, 0, 1, 0]), "{case}");
            assert_eq!(talk.lab.cascade().cancels, 0, "{case}");
            talk.assert_told_once();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_breaks_again_and_again_truncates_the_stream_and_drops_the_lease() {
    let rules = [Rule { fault: Some(Fault::CloseMidStream), fault_at: Some(Point::AfterPreamble), ..on(WATCH) }];
    let mut talk = Talk::new(Setting::default(), []).await;
    talk.say("first").await;
    talk.lab.set_script(turnkeep_lab::Script::of(rules));
    let told = talk.say("second").await;
    assert_eq!(told.status, 502, "{}", told.body);
    assert!(told.body.contains("stream_truncated"), "{}", told.body);
    assert_eq!((talk.pool(), talk.counts()[4]), (0, 1));
    talk.assert_told_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_are_none_and_errors_in_the_watch_drop_the_lease() {
    let cases = [
        (Fault::BadJson, None, "malformed_response"),
        (Fault::BadSse, None, "malformed_response"),
        (Fault::ErrorInStream, error("internal"), "upstream_internal"),
        (Fault::ErrorInStream, error("permission_denied"), "unclassified"),
    ];
    for protocol in PROTOCOLS {
        for (fault, error, name) in cases.clone() {
            let rule = Rule { fault: Some(fault), fault_at: Some(Point::AfterWords(1)), error, ..on(WATCH) };
            let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, [second(rule)]).await;
            talk.say("first").await;
            let told = talk.say("second").await;
            assert!(told.body.contains(name), "{protocol:?} {fault:?}: {}", told.body);
            assert_eq!((talk.pool(), talk.counts()), (0, [1, 0, 0, 0, 1]), "{protocol:?} {fault:?}");
            talk.lab.wait_cascade(|counts| counts.closed == 1).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_turns_at_once_never_share_a_lease() {
    let gate = Rule { gate: Some("there".into()), nth: Some(2), ..on(SEND) };
    let mut talk = Talk::new(Setting { accounts: &["b"], ..Setting::default() }, [gate]).await;
    talk.say("first").await;
    talk.history.push(("user", "second".into()));
    let one = talk.begin();
    talk.lab.wait_at_gate("there", 1).await;
    let other = talk.begin().told().await.arrives();
    assert_eq!(other.status, 200, "{}", other.body);
    talk.lab.release("there");
    assert_eq!(one.told().await.arrives().status, 200);
    talk.world.idle().await;
    assert_eq!(talk.counts()[..2], [1, 1], "one found it, the other did not");
    assert_eq!(talk.lab.cascade().starts, 2);
    talk.assert_told_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_refused_or_fails_leaves_no_lease_and_blames_by_its_reason() {
    let refused = |reason: &str| Rule { refuse: Some(RefusalSpec::new(reason)), ..on(START) };
    let failed = |code: &str| Rule { error: error(code), ..on(START) };
    let cases = [
        (refused("credential"), 502),
        (refused("rate"), 429),
        (refused("model"), 404),
        (failed("unauthenticated"), 502),
        (failed("resource_exhausted"), 429),
        (failed("unavailable"), 503),
        (failed("deadline_exceeded"), 503),
    ];
    for protocol in [Protocol::Connect, Protocol::Grpc] {
        for (rule, status) in &cases {
            let mut talk = Talk::new(Setting { protocol, ..Setting::default() }, [rule.clone()]).await;
            let told = talk.say("first").await;
            assert_eq!(told.status, *status, "{protocol:?} {:?} {:?}: {}", rule.refuse, rule.error, told.body);
            assert_eq!((talk.pool(), talk.counts()), (0, [0; 5]));
            assert_eq!(talk.lab.cascade().taken, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_cannot_be_read_keeps_the_lease_and_is_read_again() {
    // A deadline of that call is not the turn's.
    for code in ["unavailable", "deadline_exceeded"] {
        let rules = [
            second(Rule { error: error("internal"), ..on(SEND) }),
            Rule { error: error(code), nth: Some(1), ..on(POSITION) },
        ];
        let mut talk = Talk::new(Setting::default(), rules).await;
        talk.say("first").await;
        let mut told = talk.say("second").await;
        for _ in 0..3 {
            if told.status != 200 {
                assert_eq!(talk.pool(), 1, "{code}: {}", told.body);
                told = talk.again().await;
            }
        }
        assert_eq!(told.status, 200, "{code}: {}", told.body);
        assert_eq!(talk.lab.cascade().positions, 1, "{code}: the lab counts those it has answered");
        assert_eq!(talk.open().remove(0).said(), ["user: first", "user: second"], "{code}");
        talk.assert_told_once();
    }
}

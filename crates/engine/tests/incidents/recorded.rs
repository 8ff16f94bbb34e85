//! Traces of real turns that an earlier build wrote: the form has not changed by accident, and the decisions are the same.
//! Where a rule is meant to differ, the trace is recorded anew; where the form is, it gets another number.

use turnkeep_engine::incident;

const RECORDED: [(&str, &str); 3] = [
    ("a failover after a rate limit", include_str!("recorded/a_failover.json")),
    ("a conversation whose turn was refused", include_str!("recorded/a_refused_conversation.json")),
    ("a conversation that was gone", include_str!("recorded/a_gone_conversation.json")),
];

#[test]
fn what_an_earlier_build_recorded_is_read_and_replayed_identically_and_written_the_same() {
    for (name, text) in RECORDED {
        let trace = incident::read(text.as_bytes()).unwrap_or_else(|why| panic!("{name} {why}"));
        let replayed = incident::replay(&trace);
        assert_eq!((replayed.divergence(), replayed.passed_over), (None, 0), "{name}");
        assert!(replayed.lines.len() > 10, "{name}");
        assert_eq!(serde_json::to_string_pretty(&trace).unwrap(), text.trim_end(), "{name}");
    }
}

//! What the types promise: an account's status is written by its one transition function and by nothing else; a lease of a
//! conversation ends once and only as its state allows; a history is committed by a receipt.

#[test]
fn no_status_lease_or_history_is_written_against_its_rules() {
    trybuild::TestCases::new().compile_fail("tests/must_not_compile/*.rs");
}

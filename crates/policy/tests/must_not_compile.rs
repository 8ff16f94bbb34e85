//! What the types promise: an account's status is written by its one transition function and by nothing else.

#[test]
fn nobody_else_can_write_a_status() {
    trybuild::TestCases::new().compile_fail("tests/must_not_compile/*.rs");
}

//! The order that a Responses stream keeps, as a state machine that says what breaks it.

//! The order that a Gemini stream keeps, as a state machine that says what breaks it.

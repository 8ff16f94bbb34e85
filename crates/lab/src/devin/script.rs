//! What a script says of the lab's Devin.

use serde::Deserialize;

/// What becomes of one message to Devin, the prompt of a new session included.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DevinTurn {
    /// Only for messages that contain this text.
    pub contains: Option<String>,
    /// Only so many times.
    pub times: Option<u32>,
    /// What happens, in order.
    pub steps: Vec<DevinStep>,
}

/// Something that happens in a session. What is not given stays as it is.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DevinStep {
    /// It happens when the session has been asked for so many times since the step before it (1 without it; 0: together
    /// with that step).
    pub polls: u32,
    /// And not before so many milliseconds after it.
    pub delay_ms: u64,
    /// And not before this gate is released.
    pub gate: Option<String>,
    /// The session's status; without a `detail` it has none then.
    pub status: Option<String>,
    /// The status' detail.
    pub detail: Option<String>,
    /// Devin says this.
    pub say: Option<String>,
    /// The session has cost so many ACUs more.
    pub acus: f64,
}

impl Default for DevinStep {
    fn default() -> Self {
        DevinStep { polls: 1, delay_ms: 0, gate: None, status: None, detail: None, say: None, acus: 0.0 }
    }
}

impl DevinStep {
    /// The steps of a message that no script speaks of.
    pub(super) fn usual(said: &str) -> Vec<DevinStep> {
        let quoted: String = said.chars().take(200).collect();
        let text = format!("You said: \"{quoted}\". This is the lab's Devin answering.");
        let (running, waits) = (Some("running".to_owned()), Some("waiting_for_user".to_owned()));
        vec![
            DevinStep { status: running.clone(), detail: Some("working".to_owned()), ..DevinStep::default() },
            DevinStep { say: Some(text), acus: 0.25, ..DevinStep::default() },
            DevinStep { polls: 0, status: running, detail: waits, ..DevinStep::default() },
        ]
    }
}

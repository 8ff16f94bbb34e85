//! What is answered when an agent asks whether it may. Never a person: the operator's word in the configuration.

use super::spec::Permissions;
use serde::{Deserialize, Serialize};

/// The parameters of `session/request_permission`.
#[derive(Debug, Deserialize)]
pub(super) struct Params {
    #[serde(rename = "sessionId")]
    pub(super) session: String,
    #[serde(default, rename = "toolCall")]
    pub(super) tool_call: ToolCall,
    #[serde(default)]
    pub(super) options: Vec<Choice>,
}

/// What it wants to do.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ToolCall {
    #[serde(default, rename = "toolCallId")]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) kind: Option<String>,
}

/// One answer that it offers.
#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(rename = "optionId")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) kind: String,
}

/// The answer.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Answer {
    outcome: Outcome,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Outcome {
    Selected {
        #[serde(rename = "optionId")]
        option: String,
    },
    Cancelled,
}

/// The answer to everything that is asked in a turn which is being cancelled.
pub(super) const CANCELLED: Answer = Answer { outcome: Outcome::Cancelled };

/// The kinds of tools that look and change nothing.
const READS: &[&str] = &["read", "search", "think"];

/// The answer by policy. `kind` is the tool's, if it is known: one that is not is no reading.
pub(super) fn answer(policy: Permissions, kind: Option<&str>, options: &[Choice]) -> Answer {
    let allowed = match policy {
        Permissions::Deny => false,
        Permissions::AllowRead => kind.is_some_and(|kind| READS.contains(&kind)),
        Permissions::Allow => true,
    };
    // Never "always", if there is a choice: each is asked for anew.
    let wanted = if allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
    let found = wanted.iter().find_map(|wanted| options.iter().find(|option| option.kind == *wanted));
    match found {
        Some(choice) => Answer { outcome: Outcome::Selected { option: choice.id.clone() } },
        None => CANCELLED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(kinds: &[&str]) -> Vec<Choice> {
        kinds.iter().map(|kind| Choice { id: format!("the {kind}"), kind: (*kind).to_owned() }).collect()
    }

    fn chosen(policy: Permissions, kind: Option<&str>, kinds: &[&str]) -> String {
        serde_json::to_string(&answer(policy, kind, &choices(kinds))).expect("JSON")
    }

    const ALL: &[&str] = &["allow_always", "allow_once", "reject_always", "reject_once"];

    #[test]
    fn the_policy_chooses_and_never_for_always_where_it_need_not() {
        let selected = |kind: &str| format!(r#"{{"outcome":{{"outcome":"selected","optionId":"the {kind}"}}}}"#);
        assert_eq!(chosen(Permissions::Deny, Some("read"), ALL), selected("reject_once"));
        assert_eq!(chosen(Permissions::Allow, Some("execute"), ALL), selected("allow_once"));
        assert_eq!(chosen(Permissions::AllowRead, Some("read"), ALL), selected("allow_once"));
        for kind in [Some("edit"), Some("execute"), Some("fetch"), Some("delete"), Some("of next year"), None] {
            assert_eq!(chosen(Permissions::AllowRead, kind, ALL), selected("reject_once"), "{kind:?}");
        }
        assert_eq!(chosen(Permissions::Allow, None, &["allow_always"]), selected("allow_always"));
    }

    #[test]
    fn without_a_fitting_choice_the_request_is_cancelled() {
        let cancelled = r#"{"outcome":{"outcome":"cancelled"}}"#;
        assert_eq!(chosen(Permissions::Deny, None, &["allow_once"]), cancelled);
        assert_eq!(chosen(Permissions::Allow, None, &[]), cancelled);
    }
}

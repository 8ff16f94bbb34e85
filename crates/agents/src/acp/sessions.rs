//! The agent's answers about itself, its sessions and its turns.

use serde::Deserialize;
use serde_json::Value;
use turnkeep_base::Usage;

/// The one version that is spoken.
pub(super) const VERSION: u64 = 1;

/// The answer to `initialize`.
#[derive(Debug, Deserialize)]
pub(super) struct Initialized {
    #[serde(rename = "protocolVersion")]
    pub(super) version: Value,
    #[serde(default, rename = "agentCapabilities")]
    capabilities: Value,
    #[serde(default, rename = "authMethods")]
    auth_methods: Value,
}

/// What an agent can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Agent {
    /// A session can be gone on with in another process, its history told again.
    pub(super) loads: bool,
    /// The same, without the history.
    pub(super) resumes: bool,
    /// A session can be closed.
    pub(super) closes: bool,
    /// A prompt may hold images.
    pub(super) images: bool,
    /// How it can be logged in.
    pub(super) auth_methods: Vec<AuthMethod>,
}

/// A way to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuthMethod {
    pub(super) id: String,
    /// Without a person: it takes a key from the environment.
    pub(super) by_key: bool,
}

/// Ways to log in that are kept.
const METHODS: usize = 16;

impl Initialized {
    /// What it says of itself; what it does not say, it cannot do.
    pub(super) fn agent(&self) -> Agent {
        let can = |path: &str| match self.capabilities.pointer(path) {
            Some(Value::Bool(can)) => *can,
            Some(Value::Object(_)) => true,
            Some(Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_)) | None => false,
        };
        let methods = self.auth_methods.as_array().map(Vec::as_slice).unwrap_or_default();
        let method = |method: &Value| {
            let id = method.get("id")?.as_str()?.to_owned();
            let typed = method.get("type").and_then(Value::as_str) == Some("env_var");
            let plain = id.to_ascii_lowercase().replace(['-', '_', ' '], "");
            Some(AuthMethod { by_key: typed || plain.contains("apikey"), id })
        };
        Agent {
            loads: can("/loadSession"),
            resumes: can("/sessionCapabilities/resume"),
            closes: can("/sessionCapabilities/close"),
            images: can("/promptCapabilities/image"),
            auth_methods: methods.iter().filter_map(method).take(METHODS).collect(),
        }
    }
}

/// The answer to `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Session {
    #[serde(default, rename = "sessionId")]
    pub(super) id: Option<String>,
    #[serde(default)]
    models: Value,
    #[serde(default, rename = "configOptions")]
    options: Value,
}

/// How a session is told which model to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModelChoice {
    /// `session/set_model`.
    Model,
    /// `session/set_config_option` of this option.
    Option(String),
}

impl Session {
    /// How the model is chosen, if the agent offers it by this name and does not use it already. One that it does not offer
    /// is the operator's own word for whatever the agent uses.
    pub(super) fn choice_of(&self, model: &str) -> Option<ModelChoice> {
        let listed = |list: &Value, field: &str| {
            let of = |entry: &Value| entry.get(field).and_then(Value::as_str) == Some(model);
            list.as_array().is_some_and(|list| list.iter().any(of))
        };
        let options = self.options.as_array().map(Vec::as_slice).unwrap_or_default();
        for option in options {
            let word = |field: &str| option.get(field).and_then(Value::as_str);
            let Some(id) = word("id").filter(|id| word("category") == Some("model") || *id == "model") else {
                continue;
            };
            let values = option.get("options").unwrap_or(&Value::Null);
            let in_groups = values.as_array().is_some_and(|groups| {
                groups.iter().filter_map(|group| group.get("options")).any(|group| listed(group, "value"))
            });
            if (listed(values, "value") || in_groups) && word("currentValue") != Some(model) {
                return Some(ModelChoice::Option(id.to_owned()));
            }
        }
        let current = self.models.get("currentModelId").and_then(Value::as_str);
        let offered = listed(self.models.get("availableModels").unwrap_or(&Value::Null), "modelId");
        (offered && current != Some(model)).then_some(ModelChoice::Model)
    }
}

/// The answer to `session/prompt`: the end of a turn.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PromptEnd {
    #[serde(rename = "stopReason")]
    pub(super) stop_reason: String,
    #[serde(default)]
    pub(super) usage: Value,
}

impl PromptEnd {
    /// The tokens that the turn cost, where the agent tells (an extension). Its counts are disjoint, unless their sum says that
    /// the input already holds the cached tokens.
    pub(super) fn usage(&self) -> Option<Usage> {
        let count = |name: &str| self.usage.get(name).and_then(Value::as_u64);
        let (input, output) = (count("inputTokens")?, count("outputTokens")?);
        let of = |name| count(name).unwrap_or(0);
        let (read, write, thought) = (of("cachedReadTokens"), of("cachedWriteTokens"), of("thoughtTokens"));
        if count("totalTokens") == input.checked_add(output) && read.saturating_add(write) <= input {
            return Some(Usage::from_inclusive(input, read, write, output, thought.min(output)));
        }
        let output = output.saturating_add(thought);
        Some(Usage { input, cache_read: read, cache_write: write, output, reasoning: thought })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_agent_does_not_say_it_cannot_do() {
        let agent = |value: Value| serde_json::from_value::<Initialized>(value).expect("an answer").agent();
        assert_eq!(agent(json!({"protocolVersion": 1})), Agent::default());
        let all = agent(json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true,
            "promptCapabilities": {"image": true}, "sessionCapabilities": {"resume": {}, "close": {}}},
            "authMethods": [{"id": "oauth-personal"}, {"id": "gemini-api-key"}, {"id": "x", "type": "env_var"}, {}]}));
        assert!(all.loads && all.resumes && all.closes && all.images);
        let methods: Vec<_> = all.auth_methods.iter().map(|method| (method.id.as_str(), method.by_key)).collect();
        assert_eq!(methods, [("oauth-personal", false), ("gemini-api-key", true), ("x", true)]);
    }

    #[test]
    fn a_model_is_chosen_where_it_is_offered_and_not_in_use() {
        let session = |value: Value| serde_json::from_value::<Session>(value).expect("an answer");
        let models = session(json!({"sessionId": "s", "models": {"currentModelId": "a",
            "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}}));
        assert_eq!(models.choice_of("a"), None);
        assert_eq!(models.choice_of("b"), Some(ModelChoice::Model));
        assert_eq!(models.choice_of("c"), None);
        let options =
            session(json!({"sessionId": "s", "configOptions": [{"id": "mode"}, {"id": "m", "category": "model",
            "currentValue": "a", "options": [{"value": "a"}, {"options": [{"value": "b"}]}]}]}));
        assert_eq!(options.choice_of("b"), Some(ModelChoice::Option("m".into())));
        assert_eq!(options.choice_of("a"), None);
        assert_eq!(session(json!({"sessionId": "s"})).choice_of("a"), None);
    }

    #[test]
    fn counts_of_tokens_are_disjoint_whichever_way_an_agent_counts() {
        let usage = |usage: Value| PromptEnd { stop_reason: String::new(), usage }.usage();
        let disjoint = json!({"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 90, "thoughtTokens": 2, "totalTokens": 107});
        let inclusive = json!({"inputTokens": 100, "outputTokens": 7, "cachedReadTokens": 90, "thoughtTokens": 2, "totalTokens": 107});
        let expected = Usage { input: 10, cache_read: 90, cache_write: 0, output: 7, reasoning: 2 };
        assert_eq!(usage(disjoint), Some(expected));
        assert_eq!(usage(inclusive), Some(expected));
        assert_eq!(usage(json!({"used": 5})), None);
        assert_eq!(usage(Value::Null), None);
    }
}

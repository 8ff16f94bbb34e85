//! What a configuration may say, and how each mistake is told.

mod callers;
mod defaults;
mod delivery;
mod environment;
mod errors;
mod fetch;
mod kinds;
mod models;
mod references;
mod reload;
mod secrets;
mod startup;
mod tuning;

use super::{Config, ConfigError};
use std::ffi::OsString;
use std::path::Path;

const FILE: &str = "conf/turnkeep.toml";

/// An upstream that is right, for texts that need one.
const UPSTREAM: &str = r#"
[[upstreams]]
name = "openai"
kind = "openai"
base_url = "https://api.openai.com/v1"
[[upstreams.accounts]]
name = "main"
secret = { env = "OPENAI_API_KEY" }
"#;

fn parse(text: &str) -> Config {
    parse_with(text, &[]).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn parse_with(text: &str, variables: &[(&str, &str)]) -> Result<Config, Vec<ConfigError>> {
    let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Config::parse(text, Path::new(FILE), variables).map_err(|errors| errors.errors().to_vec())
}

fn errors(text: &str) -> Vec<ConfigError> {
    parse_with(text, &[]).expect_err("the text is wrong")
}

/// The only mistake of a text, as `line:column key`, and its message.
fn only_error(text: &str) -> (String, String) {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].file, FILE);
    (format!("{}:{} {}", errors[0].line, errors[0].column, errors[0].key), errors[0].message.clone())
}

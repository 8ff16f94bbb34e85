//! The configuration file and the variables that override it.

use std::ffi::OsString;
use std::path::Path;
use turnkeep::config::{Config, ConfigErrors};

/// What every secret in the seeds begins with.
const SECRET: &str = "sk-fuzz-";
/// The line that what follows is variables, each `NAME=value`.
const VARIABLES: &str = "\n--- variables ---\n";

/// A text, and after [`VARIABLES`] the overrides.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (file, variables) = text.split_once(VARIABLES).unwrap_or((text, ""));
    let read = parse(file, variables);
    match (&read, parse(file, variables)) {
        (Ok(one), Ok(again)) => assert_eq!(format!("{one:?}"), format!("{again:?}"), "read twice, two configurations"),
        (Err(one), Err(again)) => assert_eq!(*one, again, "read twice, other errors"),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => assert!(file.is_empty(), "read twice, taken once"),
    }
    match read {
        Ok(config) => {
            assert!(!format!("{config:?}").contains(SECRET), "a secret in what is shown of a configuration");
            for warning in &config.warnings {
                assert!(!warning.message.is_empty() && !warning.to_string().contains(SECRET), "{warning}");
                placed(file, &warning.file, warning.line, warning.column);
            }
        }
        Err(errors) => {
            assert!(!errors.errors().is_empty(), "neither a configuration nor an error");
            let mut last = 0;
            for error in errors.errors() {
                assert!(!error.message.is_empty(), "an error that says nothing");
                assert!(!error.message.contains(SECRET), "a secret in an error: {error}");
                placed(file, &error.file, error.line, error.column);
                if error.file == "turnkeep.toml" {
                    assert!(error.line > 0, "an error without its line: {error}");
                    assert!(last <= error.line, "not in file order: {errors}");
                    last = error.line;
                }
            }
        }
    }
}

fn parse(file: &str, variables: &str) -> Result<Config, ConfigErrors> {
    let variables = variables.lines().filter_map(|line| line.split_once('='));
    Config::parse(
        file,
        Path::new("turnkeep.toml"),
        variables.map(|(name, value)| (OsString::from(name), OsString::from(value))),
    )
}

fn placed(text: &str, named: &str, line: usize, column: usize) {
    if named != "turnkeep.toml" {
        return;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    assert!(line <= lines.len().max(1), "line {line} of {}", lines.len());
    if let Some(text) = line.checked_sub(1).and_then(|at| lines.get(at)) {
        assert!(column >= 1 && column <= text.chars().count() + 2, "column {column} of {:?}", text);
    }
}

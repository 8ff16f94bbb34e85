//! `[telemetry]`: what the gateway says about itself.

use super::read::{Item, Known};

/// `[telemetry]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// What is logged: a level, or directives as in `info,turnkeep_engine=debug`. It was checked.
    pub log: String,
    /// How.
    pub log_format: LogFormat,
}

/// The form of a log line on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A JSON object a line.
    Json,
    /// For people.
    #[default]
    Pretty,
}

impl Default for Telemetry {
    fn default() -> Self {
        Telemetry { log: "info".into(), log_format: LogFormat::default() }
    }
}

const TELEMETRY: Known = Known { table: "[telemetry]", keys: &["log", "log_format", "content"], later: &["otlp"] };

pub(super) fn read(item: Item<'_>) -> Option<Telemetry> {
    let fields = item.table(&TELEMETRY)?;
    let mut telemetry = Telemetry::default();
    if let Some(log) = fields.get("log").and_then(|item| read_log(&item)) {
        telemetry.log = log;
    }
    let formats = [("json", LogFormat::Json), ("pretty", LogFormat::Pretty)];
    if let Some(format) = fields.get("log_format").and_then(|item| item.word(&formats, &[])) {
        telemetry.log_format = format;
    }
    if let Some(item) = fields.get("content")
        && item.boolean() == Some(true)
    {
        item.fail::<()>("\"content = true\" is not in this version; prompts and answers are never logged");
    }
    Some(telemetry)
}

fn read_log(item: &Item<'_>) -> Option<String> {
    let text = item.filled_text()?;
    // A bare word is taken by the filter as a target of that name, so that "debgu" would silently log nothing else.
    let bare_words = text.split(',').map(str::trim).filter(|part| !part.contains(['=', '[', ':']));
    for word in bare_words {
        let known = ["off", "error", "warn", "info", "debug", "trace"];
        if !known.contains(&word.to_lowercase().as_str()) && !word.starts_with("turnkeep") {
            return item.fail(format!(
                "{word:?} is not a level; write off, error, warn, info, debug or trace, or directives as in \
                 \"info,turnkeep_engine=debug\""
            ));
        }
    }
    match tracing_subscriber::EnvFilter::builder().parse(text) {
        Ok(_) => Some(text.to_owned()),
        Err(error) => item.fail(format!("{error}; write a level, or directives as in \"info,turnkeep_engine=debug\"")),
    }
}

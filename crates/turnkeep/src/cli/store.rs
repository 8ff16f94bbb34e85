//! What can be typed about the store: usage, backup, restore, and the rotation of its master key.

use super::ConfigFile;
use clap::Args;
use std::path::PathBuf;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use turnkeep_store::UsageBy;

/// `usage`.
#[derive(Debug, Args)]
pub struct UsageArgs {
    /// What to add up by: caller, model, upstream-model, upstream, account, outcome or label:NAME; several give groups
    /// within groups
    #[arg(long, value_name = "GROUP", default_value = "caller", value_delimiter = ',', value_parser = usage_by)]
    pub by: Vec<UsageBy>,
    /// Since when: so long ago, as in 30m, 12h or 7d, or a date, as in 2026-01-31 or 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = since)]
    pub since: Since,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV
    #[arg(long)]
    pub csv: bool,
    /// Which store.
    #[command(flatten)]
    pub file: ConfigFile,
}

/// A moment, told from now or by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// So many milliseconds ago.
    Ago(u64),
    /// Unix milliseconds.
    At(u64),
}

impl Since {
    /// Unix milliseconds, with this as now.
    pub fn unix_ms(self, now_ms: u64) -> u64 {
        match self {
            Since::Ago(ms) => now_ms.saturating_sub(ms),
            Since::At(ms) => ms,
        }
    }
}

fn usage_by(text: &str) -> Result<UsageBy, String> {
    Ok(match text {
        "caller" => UsageBy::Caller,
        "model" => UsageBy::Model,
        "upstream-model" => UsageBy::UpstreamModel,
        "upstream" => UsageBy::Upstream,
        "account" => UsageBy::Account,
        "outcome" => UsageBy::Outcome,
        _ => match text.strip_prefix("label:") {
            Some(name) if !name.is_empty() => UsageBy::Label(name.to_owned()),
            Some(_) | None => {
                return Err(
                    "it is one of caller, model, upstream-model, upstream, account, outcome and label:NAME".into()
                );
            }
        },
    })
}

fn since(text: &str) -> Result<Since, String> {
    if let Some(ago) = crate::config::parse_duration(text) {
        return Ok(Since::Ago(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)));
    }
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let moment = OffsetDateTime::parse(&whole, &Rfc3339).ok();
    let ms = moment.and_then(|moment| u64::try_from(moment.unix_timestamp()).ok()?.checked_mul(1000));
    ms.map(Since::At).ok_or_else(|| "write how long ago, as in 7d, or a date, as in 2026-01-31 (UTC)".into())
}

/// `backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// Where the copy goes
    #[arg(value_name = "FILE")]
    pub to: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub force: bool,
    /// Which store.
    #[command(flatten)]
    pub file: ConfigFile,
}

/// `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    pub from: PathBuf,
    /// Which store.
    #[command(flatten)]
    pub file: ConfigFile,
}

/// `keys rekey`.
#[derive(Debug, Args)]
pub struct RekeyArgs {
    /// The new master key.
    #[command(flatten)]
    pub new: NewMasterKey,
    /// Which store; its [store] master_key is the old one
    #[command(flatten)]
    pub file: ConfigFile,
}

/// Where the new master key comes from. Never from the command line: others on the machine can read that.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct NewMasterKey {
    /// It is in this environment variable
    #[arg(long, value_name = "NAME")]
    pub new_env: Option<String>,
    /// It is in this file
    #[arg(long, value_name = "PATH")]
    pub new_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_from_now_or_by_its_date() {
        assert_eq!(since("30m"), Ok(Since::Ago(1_800_000)));
        assert_eq!(since("7d").unwrap().unix_ms(8 * 86_400_000), 86_400_000);
        assert_eq!(since("1970-01-02"), Ok(Since::At(86_400_000)));
        assert_eq!(since("1970-01-01T01:00:00+01:00"), Ok(Since::At(0)));
        for wrong in ["yesterday", "2026-13-01", "1960-01-01", "7"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn groups_are_named_and_a_label_has_its_own_name() {
        assert_eq!(usage_by("upstream-model"), Ok(UsageBy::UpstreamModel));
        assert_eq!(usage_by("label:team"), Ok(UsageBy::Label("team".into())));
        assert!(usage_by("label:").is_err() && usage_by("colour").unwrap_err().contains("label:NAME"));
    }
}

//! `turnkeep init`: a first configuration for the providers found in the environment.

use super::Failure;
use crate::cli::InitArgs;
use crate::config::template;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// Writes the file, then says what is in it. A file that is there is replaced only with `--force`.
///
/// # Errors
/// The file is there, or cannot be written.
pub fn run(args: &InitArgs, out: &mut impl Write) -> Result<(), Failure> {
    write(args, |name| std::env::var_os(name).is_some_and(|value| !value.is_empty()), out)
}

fn write(args: &InitArgs, is_set: impl Fn(&str) -> bool, out: &mut impl Write) -> Result<(), Failure> {
    let found = template::find(is_set);
    let path = &args.file.config;
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let mut file = options.open(path).map_err(|error| match error.kind() == ErrorKind::AlreadyExists {
        true => Failure::Operation(format!("{shown} is there already; `--force` replaces it")),
        false => Failure::Operation(format!("{shown} cannot be written: {error}")),
    })?;
    let written = file.write_all(template::template(&found).as_bytes());
    written.map_err(|error| Failure::Operation(format!("{shown} cannot be written: {error}")))?;
    writeln!(out, "wrote {shown}")?;
    for provider in &found {
        writeln!(out, "  upstream {} with the key in {}", provider.name, provider.variable)?;
    }
    if found.is_empty() {
        let names: Vec<&str> = template::PROVIDERS.iter().map(|provider| provider.variable).collect();
        writeln!(out, "  no upstream: none of {} is set", names.join(", "))?;
    }
    writeln!(out, "next: turnkeep check --config {shown}, then turnkeep serve --config {shown}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ConfigFile;

    fn args(folder: &tempfile::TempDir, force: bool) -> InitArgs {
        InitArgs { file: ConfigFile { config: folder.path().join("turnkeep.toml") }, force }
    }

    #[test]
    fn init_writes_a_file_that_passes_check_for_the_providers_it_finds() {
        let folder = tempfile::tempdir().unwrap();
        let args = args(&folder, false);
        let mut out = Vec::new();
        write(&args, |name| name == "ANTHROPIC_API_KEY", &mut out).unwrap();
        let config = crate::config::Config::load(&args.file.config).unwrap();
        assert_eq!(config.upstreams.len(), 1);
        assert_eq!(config.upstreams[0].name, "anthropic");
        let said = String::from_utf8(out).unwrap();
        assert!(said.contains("ANTHROPIC_API_KEY"), "{said}");
    }

    #[test]
    fn init_replaces_a_file_only_when_forced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(args(&folder, false).file.config, "# mine").unwrap();
        let refused = write(&args(&folder, false), |_| false, &mut Vec::new()).unwrap_err();
        assert_eq!(refused.status(), 1);
        assert!(refused.to_string().contains("--force"), "{refused}");
        assert_eq!(std::fs::read_to_string(args(&folder, false).file.config).unwrap(), "# mine");
        write(&args(&folder, true), |_| false, &mut Vec::new()).unwrap();
        assert!(std::fs::read_to_string(args(&folder, false).file.config).unwrap().contains("[server]"));
    }
}

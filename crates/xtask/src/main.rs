//! The project's own chores: `layers` (who may depend on whom), `docs` (pages made from the running build) and `proto` (code
//! made from the published schemas).
//!
//! A binary for developers and the gate; nothing here is shipped, and it depends on no other crate of the workspace, so
//! that it can judge them all.

mod docs;
mod graph;
mod layers;
mod proto;
mod rules;
mod sources;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", about = "Chores of the Turnkeep workspace")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check every crate's dependencies and sources against the layer table
    Layers,
    /// Write the generated pages of docs/
    Docs {
        /// Compare instead of writing; fails when a page is out of date
        #[arg(long)]
        check: bool,
    },
    /// Write the code of crates/proto from the schemas in proto/
    Proto {
        /// Compare instead of writing; fails when the code is out of date
        #[arg(long)]
        check: bool,
        /// Write the schemas' descriptors to this file instead, for peers in other languages
        #[arg(long, conflicts_with = "check")]
        descriptors: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // On one line and without a backtrace, whatever the environment asks for: this is for a person to act on.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = workspace_root()?;
    let said = match Args::parse().chore {
        Chore::Layers => check_layers(&root)?,
        Chore::Docs { check } => docs::run(&root, check)?,
        Chore::Proto { descriptors: Some(file), check: _ } => proto::descriptors(&root, &file)?,
        Chore::Proto { descriptors: None, check } => proto::run(&root, check)?,
    };
    writeln!(std::io::stdout(), "{said}").context("cannot write to stdout")
}

fn check_layers(root: &std::path::Path) -> Result<String> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .exec()
        .context("cargo metadata failed")?;
    let graph = graph::Graph::from_metadata(&metadata);
    let mut broken = layers::check(&graph, rules::CRATES);
    broken.extend(sources::check(root, rules::SOURCES)?);
    if broken.is_empty() {
        return Ok(format!("layers: {} crates keep to the table", graph.members().count()));
    }
    bail!("{} layer rule(s) broken (the table: crates/xtask/src/rules.rs)\n  {}", broken.len(), broken.join("\n  "))
}

/// The folder of the workspace's Cargo.toml: this crate's grandparent, where it was built.
fn workspace_root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    here.ancestors().nth(2).map(PathBuf::from).context("xtask must live two folders below the workspace root")
}

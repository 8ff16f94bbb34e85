//! The binary: parses the command line, runs the command, prints and exits. Results go to standard output, everything
//! else to standard error; the exit status is 0, 1 (it failed) or 2 (the command line or the configuration is wrong).

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use turnkeep::cli::{Cli, Command, KeysTopic};
use turnkeep::commands::{
    Failure, accounts, backup, check, demo, explain, init, keys, lab, rekey, replay, restore, serve, usage, validate,
};
use turnkeep::probe;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&Failure::Operation(format!("no runtime: {error}"))),
    };
    match runtime.block_on(run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "turnkeep: {failure}");
    ExitCode::from(failure.status())
}

async fn run(command: Command) -> Result<(), Failure> {
    let out = &mut std::io::stdout();
    match command {
        Command::Serve(args) => serve::run(&args, out, lab::until_stopped()).await,
        Command::Demo(args) => demo::run(&args, out, lab::until_stopped()).await,
        Command::Init(args) => init::run(&args, out),
        Command::Check(args) => check::run(&args, out, &probe::Live).await,
        Command::Keys { command: KeysTopic::Records(command) } => keys::run(&command, out).await,
        Command::Keys { command: KeysTopic::Rekey(args) } => rekey::run(&args, out),
        Command::Usage(args) => usage::run(&args, out).await,
        Command::Backup(args) => backup::run(&args, out),
        Command::Restore(args) => restore::run(&args, out),
        Command::Accounts { command } => accounts::run(&command, &mut std::io::stdin(), out).await,
        Command::Explain { topic } => explain::run(&topic, out).await,
        Command::Validate(args) => validate::run(&args, &mut std::io::stdin(), out),
        Command::Replay(args) => replay::run(&args, &mut std::io::stdin(), out),
        Command::Lab(args) => lab::run(&args, out, lab::until_stopped()).await,
    }
}

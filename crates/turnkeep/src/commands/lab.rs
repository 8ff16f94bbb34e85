//! `turnkeep lab`: the scriptable upstream as a program of its own.

use super::Failure;
use crate::cli::LabArgs;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use turnkeep_lab::{AgentEnd, AgentLog, Lab, LabOptions, Script};

/// Starts the lab, prints its address as the first line, and runs until `stop` is done.
///
/// # Errors
/// Usage: the script cannot be read. Operation: the address cannot be listened on, or the output not written.
pub async fn run(args: &LabArgs, out: &mut impl Write, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let script = match &args.script {
        None => Script::default(),
        Some(path) => {
            let shown = path.display();
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| Failure::Usage(format!("{shown} cannot be read: {error}")))?;
            Script::parse(&text).map_err(|error| Failure::Usage(format!("{shown}: {error}")))?
        }
    };
    if args.agent {
        return agent(script, args.transcript.as_deref()).await;
    }
    let lab = Lab::start(LabOptions { listen: args.listen, tls: None, script }).await.map_err(Failure::operation)?;
    writeln!(out, "listening on http://{}", lab.addr())?;
    out.flush()?;
    stop.await;
    lab.stop().await;
    Ok(())
}

/// An agent over this process's own input and output.
async fn agent(script: Script, transcript: Option<&Path>) -> Result<(), Failure> {
    let open = |path: &Path| {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map_err(|error| Failure::Usage(format!("{} cannot be written: {error}", path.display())))
    };
    let transcript = transcript.map(open).transpose()?.map(|file| Box::new(file) as AgentLog);
    let input = tokio::io::BufReader::new(tokio::io::stdin());
    match turnkeep_lab::agent(script, transcript, input, tokio::io::stdout()).await.map_err(Failure::operation)? {
        AgentEnd::Closed => Ok(()),
        AgentEnd::Crashed => Err(Failure::operation("the script ends the agent here")),
    }
}

/// Done at Ctrl-C or, on Unix, at a request to terminate.
pub async fn until_stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without a handler there is nothing to wait for but the end of the process.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_line_is_the_address_to_call() {
        let args = LabArgs { listen: ([127, 0, 0, 1], 0).into(), script: None, agent: false, transcript: None };
        let mut out = Vec::new();
        run(&args, &mut out, std::future::ready(())).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        let port = text.trim_end().strip_prefix("listening on http://127.0.0.1:").unwrap();
        assert_ne!(port.parse::<u16>().unwrap(), 0);
    }

    #[tokio::test]
    async fn a_script_with_a_mistake_is_a_usage_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("broken.toml");
        std::fs::write(&script, "[[rule").unwrap();
        let args = LabArgs { listen: ([127, 0, 0, 1], 0).into(), script: Some(script), agent: false, transcript: None };
        let failure = run(&args, &mut Vec::new(), std::future::ready(())).await.unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("broken.toml"), "{failure}");
    }
}

//! What both parts that measure the gateway by itself start: the stub behind it, and a gateway in a folder of its own.

use crate::peer::{KEY, free_port};
use crate::process::{Launch, Pinned};
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Who is measured, and where.
pub struct Setting {
    /// The gateway's binary.
    pub gateway: PathBuf,
    /// The stub.
    pub stub: SocketAddr,
    /// The gateway's core.
    pub core: Option<usize>,
    /// Where folders are made.
    pub scratch: PathBuf,
    /// The length of each load.
    pub window: Duration,
}

/// Starts the stub on this core, and says where it listens.
pub async fn stub(scratch: &Path, core: Option<usize>) -> Result<(Pinned, SocketAddr)> {
    let at = free_port()?;
    let argv = vec![std::env::current_exe()?.into(), "stub".into(), "--listen".into(), at.to_string().into()];
    let launch = Launch { argv, env: Vec::new(), log: scratch.join("stub.log") };
    let mut stub = Pinned::start(&launch, core)?;
    stub.ready(at).await.context("the stub")?;
    Ok((stub, at))
}

/// A running gateway and what it needs to go on running.
pub struct Gateway {
    /// Its process.
    pub process: Pinned,
    /// Where it listens.
    pub addr: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Gateway {
    /// Starts one with the configuration that `configuration` writes for its folder and address, and with these variables
    /// beside those that the configurations name.
    pub async fn start(
        setting: &Setting,
        more: &[(&str, &str)],
        configuration: impl FnOnce(&Path, SocketAddr) -> String,
    ) -> Result<Self> {
        let folder = tempfile::tempdir_in(&setting.scratch)?;
        let addr = free_port()?;
        let config = folder.path().join("turnkeep.toml");
        std::fs::write(&config, configuration(folder.path(), addr))?;
        let master = "5a".repeat(32);
        let own = [
            ("BENCH_KEY", KEY),
            ("BENCH_UPSTREAM_KEY", "upstream-key-0123456789abcdefghijklm"),
            ("BENCH_MASTER_KEY", &master),
        ];
        let env = own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let launch = Launch {
            argv: vec![setting.gateway.clone().into(), "serve".into(), "--config".into(), config.into()],
            env: env.collect(),
            log: folder.path().join("output.log"),
        };
        let mut process = Pinned::start(&launch, setting.core)?;
        process.ready(addr).await?;
        Ok(Gateway { process, addr, _folder: folder })
    }
}

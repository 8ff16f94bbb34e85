//! The real binary as a process of its own, to be signalled and killed.

use crate::support::World;
use crate::support::binary;
use crate::support::client::{Client, request_bytes, turn_bytes};
use crate::support::dialects::{CHAT, request};
use crate::support::world::Plan;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;
use tokio::process::Child;

/// It runs until it is killed or dropped.
pub struct Process {
    child: Child,
    addr: SocketAddr,
}

impl Process {
    /// Of a plan, in a folder.
    pub async fn of(plan: &Plan, folder: &Path) -> Process {
        let (child, addr) = binary::serve(plan, folder, None).await;
        Process { child, addr }
    }

    /// The status of a turn by this key.
    pub async fn turn(&self, key: &str) -> u16 {
        let bearer = format!("Bearer {key}");
        let mut client = Client::tcp(self.addr).await;
        client.write(&turn_bytes(CHAT, &[("authorization", &bearer)], request(CHAT).to_string().as_bytes())).await;
        client.reply().await.status
    }

    /// What the operator's counters say.
    pub async fn counters(&self) -> Value {
        let mut client = Client::tcp(self.addr).await;
        client.write(&request_bytes("GET", "/dashboard/api/connect-metrics", &[], b"")).await;
        client.reply().await.json()
    }

    /// Sends it SIGHUP.
    pub fn hang_up(&self) {
        let id = i32::try_from(self.child.id().expect("it runs")).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::HUP).unwrap();
    }

    /// Kills it without a warning, and starts another gateway of the plan in the folder.
    pub async fn killed_and_followed(mut self, plan: &Plan, folder: TempDir) -> World {
        self.child.kill().await.unwrap();
        World::in_folder(plan, folder).await
    }
}

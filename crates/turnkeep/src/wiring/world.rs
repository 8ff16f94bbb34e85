//! What a gateway takes from outside itself: time, chance, the way out, who starts processes, and, where a program embeds one, its store, its
//! clients and its configurations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use turnkeep_agents::supervise::Launch;
use turnkeep_engine::ports::{Random, WallClock};
use turnkeep_http::Listener;
use turnkeep_store::{Store, SystemClock};
use turnkeep_upstream::Egress;

/// The variable that keeps every connection on this machine, for tests and demonstrations.
pub const EGRESS_VARIABLE: &str = "TURNKEEP_EGRESS";

/// Where this process's connections may lead.
pub fn egress() -> Egress {
    if std::env::var(EGRESS_VARIABLE).is_ok_and(|value| value == "loopback") {
        Egress::Loopback
    } else {
        Egress::Network
    }
}

/// The surroundings of one gateway.
pub struct World {
    /// Wall time.
    pub clock: Arc<dyn WallClock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Where connections may lead.
    pub egress: Egress,
    /// Who starts agents' processes.
    pub launch: Launch,
    /// An open store; `None`: the one that the configuration names is opened.
    pub store: Option<Arc<dyn Store>>,
    /// Where clients come from; `None`: the configuration's addresses.
    pub listeners: Option<Vec<Listener>>,
}

impl World {
    /// This machine's.
    pub fn system() -> World {
        World {
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            egress: egress(),
            launch: Launch::System,
            store: None,
            listeners: None,
        }
    }
}

/// The operating system's randomness.
struct SystemRandom;

impl Random for SystemRandom {
    fn bits(&self) -> u128 {
        let mut bytes = [0u8; 16];
        // Without randomness from the system there are still no two turns with the same id: the time and a counter.
        if getrandom::fill(&mut bytes).is_err() {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            bytes[..8].copy_from_slice(&count.to_le_bytes());
        }
        u128::from_le_bytes(bytes)
    }
}

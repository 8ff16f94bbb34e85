//! What happened in a run, line by line: what two runs of one seed must have in common to the byte.

use parking_lot::Mutex;
use std::fmt::Write as _;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Bytes of lines that are kept; of what comes after only the hash and the number.
const KEPT: usize = 64 << 20;

#[derive(Default)]
struct Lines {
    text: String,
    count: u64,
    hasher: blake3::Hasher,
}

/// The lines so far. Each is a step of the run, after which every invariant is looked at.
pub struct Trace {
    begun: Instant,
    lines: Mutex<Lines>,
    stepped: Arc<Notify>,
}

impl Trace {
    /// An empty one, of a run that begins now.
    pub fn begin() -> Arc<Trace> {
        Arc::new(Trace { begun: Instant::now(), lines: Mutex::default(), stepped: Arc::new(Notify::new()) })
    }

    /// Something has happened.
    pub fn note(&self, what: std::fmt::Arguments<'_>) {
        let ms = self.begun.elapsed().as_micros();
        let mut lines = self.lines.lock();
        let mut line = String::new();
        // A string takes all that is written to it.
        let _ = writeln!(line, "{}.{:03} {what}", ms / 1000, ms % 1000);
        lines.hasher.update(line.as_bytes());
        lines.count += 1;
        if lines.text.len() + line.len() <= KEPT {
            lines.text.push_str(&line);
        }
        drop(lines);
        self.stepped.notify_one();
    }

    /// Waits for the next step, or takes one that has come since.
    pub async fn step(&self) {
        self.stepped.notified().await;
    }

    /// The lines, as far as they are kept.
    pub fn text(&self) -> String {
        self.lines.lock().text.clone()
    }

    /// How many lines there were, and what they hash to.
    pub fn digest(&self) -> (u64, String) {
        let lines = self.lines.lock();
        (lines.count, lines.hasher.finalize().to_hex().to_string())
    }
}

//! Named gates: a reply waits at one until a test releases it. A released gate stays open.

use std::collections::BTreeMap;

use tokio::sync::watch;

#[derive(Debug, Default, Clone)]
struct Gate {
    open: bool,
    arrived: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Gates(watch::Sender<BTreeMap<String, Gate>>);

impl Gates {
    pub(crate) fn release(&self, name: &str) {
        self.0.send_modify(|gates| gates.entry(name.to_owned()).or_default().open = true);
    }

    /// Arrives, and waits until the gate is open.
    pub(crate) async fn pass(&self, name: &str) {
        let mut changes = self.0.subscribe();
        self.0.send_modify(|gates| gates.entry(name.to_owned()).or_default().arrived += 1);
        // The sender lives in self, so the channel cannot close here.
        let _ = changes.wait_for(|gates| gates.get(name).is_some_and(|gate| gate.open)).await;
    }

    /// Whether it is open; one that is not has had a visitor.
    pub(crate) fn is_open_to(&self, name: &str) -> bool {
        let mut open = false;
        self.0.send_modify(|gates| {
            let gate = gates.entry(name.to_owned()).or_default();
            gate.arrived += usize::from(!gate.open);
            open = gate.open;
        });
        open
    }

    /// Waits until so many replies have come to the gate.
    pub(crate) async fn arrived(&self, name: &str, count: usize) {
        let _ = self.0.subscribe().wait_for(|gates| gates.get(name).map_or(0, |gate| gate.arrived) >= count).await;
    }
}

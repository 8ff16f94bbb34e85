//! The open connections, so that a test can end those that are idle: which is what a provider does to a connection that
//! was kept for too long, at the worst moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::socket::{Control, Order};

#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<BTreeMap<u64, Arc<Control>>>);

/// A connection that can be ended from outside, for as long as it lives.
pub(crate) struct Registered {
    all: Arc<Connections>,
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.all.lock().remove(&self.number);
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Control>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(self: &Arc<Self>, number: u64, control: &Arc<Control>) -> Registered {
        self.lock().insert(number, Arc::clone(control));
        Registered { all: Arc::clone(self), number }
    }

    fn tell(&self, which: impl Fn(&Control) -> bool, what: impl Fn(&Control)) -> usize {
        let chosen: Vec<Arc<Control>> = self.lock().values().filter(|control| which(control)).cloned().collect();
        chosen.iter().for_each(|control| what(control));
        chosen.len()
    }

    /// Closes what is idle; the number of those.
    pub(crate) fn close_idle(&self) -> usize {
        self.tell(Control::is_idle, |control| control.close.notify_one())
    }

    /// Resets what is idle; the number of those.
    pub(crate) fn reset_idle(&self) -> usize {
        self.tell(Control::is_idle, |control| {
            control.order(Order::Reset);
            control.close.notify_one();
        })
    }

    /// Says goodbye on every connection; the number of those.
    pub(crate) fn goaway(&self) -> usize {
        self.tell(|_| true, |control| control.goaway.notify_one())
    }
}

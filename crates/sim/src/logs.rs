//! What gateways of a run write to their logs: how each turn ended, and that no secret is in any line.

use crate::watch::Watch;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// What stands at the beginning of every secret of a run.
const SECRETS: [&str; 2] = ["secret-", "key-of-"];

/// The turns whose lines were written, with what they say of their delivery.
pub type Deliveries = Arc<Mutex<BTreeMap<String, String>>>;

struct Lines {
    deliveries: Deliveries,
    watch: Arc<Watch>,
}

/// Reads the lines of this thread from now on, until the guard is dropped. A log that the command line asks for comes first.
pub fn read(watch: Arc<Watch>) -> (Deliveries, Option<DefaultGuard>) {
    let deliveries = Deliveries::default();
    // Scoped ones of earlier runs do not count: only one that the command line has set.
    if !tracing::dispatcher::get_default(|set| set.is::<NoSubscriber>()) {
        return (deliveries, None);
    }
    let lines = Lines { deliveries: deliveries.clone(), watch };
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines));
    (deliveries, Some(guard))
}

#[derive(Default)]
struct Fields {
    text: String,
    turn: Option<String>,
    delivery: Option<String>,
    is_turn: bool,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let shown = format!("{value:?}");
        // A string takes all that is written to it.
        let _ = write!(self.text, "{}={shown} ", field.name());
        match field.name() {
            "turn" => self.turn = Some(shown),
            "delivery" => self.delivery = Some(shown.trim_matches('"').to_owned()),
            "message" => self.is_turn = shown == "turn",
            _ => {}
        }
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if SECRETS.iter().any(|secret| fields.text.contains(secret)) {
            self.watch.broken(17, format_args!("a secret is in the log: {}", fields.text));
        }
        if let (true, Some(turn), Some(delivery)) = (fields.is_turn, fields.turn, fields.delivery) {
            self.deliveries.lock().insert(turn, delivery);
        }
    }
}

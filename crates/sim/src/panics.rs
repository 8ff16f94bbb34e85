//! Panics of a run's tasks: the runtime swallows them with the task, and none may happen.

use std::cell::{Cell, RefCell};
use std::sync::Once;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From now on those of this process are counted, each on its thread: a run has one of its own.
pub fn count() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            COUNT.with(|count| count.set(count.get() + 1));
            LAST.with(|last| *last.borrow_mut() = info.to_string());
            before(info);
        }));
    });
}

/// How many there were on this thread.
pub fn so_far() -> u64 {
    COUNT.with(Cell::get)
}

/// What the last one said.
pub fn last() -> String {
    LAST.with(|last| last.borrow().clone())
}

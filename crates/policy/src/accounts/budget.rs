//! The error budget: three named credential faults within half an hour, without a success between, and the account is
//! out for a while. Spending takes a [`Charge`], which only the blame table makes.

use crate::moment::Moment;
use std::time::Duration;
use turnkeep_base::Charge;

/// The window in which faults add up.
pub const WINDOW: Duration = Duration::from_secs(30 * 60);
/// Faults within the window that flip the account.
pub const LIMIT: usize = 3;

/// The spent part of an account's budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorBudget {
    spent: Vec<Moment>,
}

impl ErrorBudget {
    /// Spends one unit; tells whether the budget is used up by it.
    pub fn charge(&mut self, now: Moment, charge: Charge) -> bool {
        let _the_permission_is_used_up = charge;
        self.spent.retain(|&then| now.since(then) < WINDOW);
        self.spent.push(now);
        self.spent.len() >= LIMIT
    }

    /// A success ends the chain.
    pub fn clear(&mut self) {
        self.spent.clear();
    }

    /// Units spent within the window.
    pub fn used(&self, now: Moment) -> usize {
        self.spent.iter().filter(|&&then| now.since(then) < WINDOW).count()
    }
}

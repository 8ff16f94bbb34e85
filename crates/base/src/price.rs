//! What tokens cost, in whole billionths of a US dollar, so that sums are exact.

use crate::usage::Usage;

/// Billionths of a US dollar.
pub type NanoUsd = u64;

/// The price of one token of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Input that no cache had a part in.
    pub input: NanoUsd,
    /// Output, reasoning included.
    pub output: NanoUsd,
    /// Input read from the provider's cache.
    pub cache_read: NanoUsd,
    /// Input written to the provider's cache.
    pub cache_write: NanoUsd,
}

impl Price {
    /// What these tokens cost. Stops at the largest number instead of going round.
    pub fn cost(&self, usage: &Usage) -> NanoUsd {
        let parts = [
            (self.input, usage.input),
            (self.output, usage.output),
            (self.cache_read, usage.cache_read),
            (self.cache_write, usage.cache_write),
        ];
        parts.into_iter().fold(0, |sum, (price, tokens)| sum.saturating_add(price.saturating_mul(tokens)))
    }
}

/// US dollars as a decimal, exact and without zeros at its end.
pub fn shown_usd(nano: NanoUsd) -> String {
    let (whole, part) = (nano / 1_000_000_000, nano % 1_000_000_000);
    let text = format!("{whole}.{part:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_shown_exactly() {
        let shown = [(0, "0"), (1, "0.000000001"), (1_500_000_000, "1.5"), (20_000_000_000, "20")];
        for (nano, text) in shown {
            assert_eq!(shown_usd(nano), text);
        }
    }

    #[test]
    fn each_kind_of_token_has_its_own_price_and_reasoning_is_paid_once() {
        let price = Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 };
        let usage = Usage { input: 10, cache_read: 100, cache_write: 20, output: 7, reasoning: 5 };
        assert_eq!(price.cost(&usage), 10 * 3_000 + 100 * 300 + 20 * 3_750 + 7 * 15_000);
        assert_eq!(price.cost(&Usage { output: u64::MAX, ..usage }), u64::MAX);
    }
}

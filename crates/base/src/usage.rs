//! Token counts in one arithmetic, whatever the dialect that reported them.

/// Tokens of one answer. The three input counts are disjoint; `output` includes `reasoning`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens neither read from nor written to a prompt cache.
    pub input: u64,
    /// Input tokens read from the provider's prompt cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's prompt cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Of `output`, those spent on reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// All input: fresh, read from and written to the cache.
    pub fn total_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// All tokens.
    pub fn total(&self) -> u64 {
        self.total_input().saturating_add(self.output)
    }

    /// From a dialect whose prompt count includes the cached tokens (OpenAI, Gemini). Never below zero.
    pub fn from_inclusive(prompt: u64, cached: u64, cache_write: u64, output: u64, reasoning: u64) -> Self {
        let input = prompt.saturating_sub(cached).saturating_sub(cache_write);
        Usage { input, cache_read: cached, cache_write, output, reasoning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inclusive_prompt_counts_become_disjoint_and_add_up_again() {
        let usage = Usage::from_inclusive(100, 60, 10, 7, 3);
        assert_eq!(usage, Usage { input: 30, cache_read: 60, cache_write: 10, output: 7, reasoning: 3 });
        assert_eq!((usage.total_input(), usage.total()), (100, 107));
    }

    #[test]
    fn a_prompt_count_below_its_cached_part_does_not_go_negative() {
        assert_eq!(Usage::from_inclusive(5, 9, 0, 1, 0).input, 0);
    }
}

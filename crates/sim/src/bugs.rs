//! The bugs that are put in on purpose, one at a time, to see that they are found: written down from the turn's contract
//! before any of them was tried. Each is a place in the gateway's code that asks `turnkeep_base::seeded::is`, which without
//! the feature `seeded-bugs` is never so.
//!
//! Not among them, as types forbid them: a receipt that nobody has proven, a conversation put back after a send, a commit
//! without a receipt. Bugs that mix callers up are left to the tests of isolation: each key is made in several places.

/// A bug.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub rule: &'static str,
    /// What is to find it.
    pub found_by: FoundBy,
}

/// What finds a bug.
#[derive(Clone, Copy, Debug)]
pub enum FoundBy {
    /// The exploration of the pure machines, or else the simulation, from this seed on.
    Simulation {
        /// One that is known to find what needs much to come together; 0 for what any does.
        from: u64,
    },
    /// A test.
    Test {
        /// Of this package.
        package: &'static str,
        /// Its path in it.
        test: &'static str,
    },
}

const fn bug(name: &'static str, rule: &'static str) -> Bug {
    Bug { name, rule, found_by: FoundBy::Simulation { from: 0 } }
}

const fn rare(name: &'static str, rule: &'static str, from: u64) -> Bug {
    Bug { name, rule, found_by: FoundBy::Simulation { from } }
}

const fn tested(name: &'static str, rule: &'static str, package: &'static str, test: &'static str) -> Bug {
    Bug { name, rule, found_by: FoundBy::Test { package, test } }
}

/// All of them.
pub const BUGS: &[Bug] = &[
    // Blame: one for each row of effects.
    bug("charge-in-the-fallthrough", "a fault that nobody knows is charged to the account"),
    bug("charge-for-the-network", "a reset connection is charged to the account"),
    bug("charge-for-a-rate-limit", "a rate limit is charged to the account's budget"),
    bug("charge-for-the-request", "a request that is invalid is charged to the account"),
    bug("suspend-at-the-first-word", "an account is suspended when that is said once"),
    bug("a-sample-cools-the-account", "a health sample takes the whole account out for a while"),
    bug("an-overload-cools-the-account", "a model's overload cools the whole account"),
    rare("quota-is-not-heeded", "a used-up quota cools nothing", 10),
    bug("retry-after-is-not-heeded", "a declared wait is passed over"),
    bug("a-cooldown-that-shrinks", "a later, shorter cooldown replaces a longer one"),
    bug("a-cooldown-without-end", "a cooldown ends in a year"),
    // Standing.
    bug("errored-at-the-first-charge", "one refusal of the credential takes the account out"),
    bug("success-does-not-clear-the-budget", "refusals add up over successes between them"),
    bug("any-success-revives", "an attempt that was not the try brings an errored account back"),
    bug("half-open-floods", "an errored account is tried by every turn at once"),
    bug("a-try-that-is-never-freed", "a try that ends without a judgement keeps the account out for ever"),
    bug("an-older-secret-counts", "a refusal of the secret before is charged to the one after"),
    // The fifth refusal in a row that says nothing of itself is one, and a second account's disproves it.
    tested(
        "a-charge-is-not-taken-back",
        "what a second account has disproved stays charged",
        "turnkeep-policy",
        "accounts::standing::tests::the_fifth_shell_is_charged_and_taking_it_back_undoes_that_and_the_episode_it_opened",
    ),
    bug("the-breaker-never-closes", "a probe that succeeds leaves the endpoint ejected"),
    bug("the-breaker-is-never-probed", "an ejected endpoint is never tried again"),
    // Slots and the queue.
    bug("a-slot-leaked-on-a-fault", "an attempt that failed keeps its slot"),
    bug("a-slot-leaked-by-a-client-that-left", "an attempt that was interrupted keeps its slot"),
    bug("slots-past-the-limit", "an account gets more attempts than it has slots"),
    rare("a-waiter-is-never-woken", "a slot that comes free wakes nobody who waits", 2),
    // Conversations: one for each cell of the lease's table.
    rare("restore-after-send", "a conversation that a turn was sent into is put back as it was", 6),
    bug("a-forgotten-lease", "a lease that is dropped is not handed back"),
    bug("two-turns-in-one-conversation", "a conversation that is in a turn is lent to another"),
    bug("a-gone-conversation-is-put-back", "a conversation that its upstream does not know is kept"),
    bug("an-older-epoch-is-lent", "the conversation of an account that was replaced is gone on with"),
    rare("the-position-is-not-read-again", "after a failure it is not looked whether the turn had begun", 92),
    // A second rule hides it: what comes back has its position read.
    tested(
        "taken-survives-a-crash",
        "a conversation that was in a turn is there again after a crash",
        "turnkeep-engine",
        "restart::the_row_of_a_lease_is_taken_with_the_entry_before_anything_is_sent",
    ),
    // Streams.
    bug("an-eof-is-an-end", "an answer that breaks off is taken as complete"),
    bug("retry-after-touch", "a turn is sent again although the client has seen something of it"),
    rare("an-error-ends-as-a-stop", "a stream that fails ends as if the model had ended it", 10),
    bug("a-broken-stream-just-ends", "a stream that fails ends without a word"),
    // Closings.
    bug("an-attempt-closed-twice", "an attempt's entry is closed twice"),
    bug("an-attempt-never-closed", "an attempt that failed is not closed"),
    bug("an-interrupted-answer-is-exact", "what a cut answer has cost is told as the provider's own word"),
    rare("a-receipt-for-everything", "a reply whose arrival is not known counts as arrived", 25),
    bug("what-arrived-is-held", "an answer that has arrived is held for the same request"),
    // A second rule hides it: no cut answer is recorded whole.
    tested(
        "half-an-answer-is-kept",
        "an answer that was cut is given to those who joined",
        "turnkeep-policy",
        "settle::tests::only_a_complete_answer_is_published_or_remembered",
    ),
    // Restart.
    bug("cooldowns-end-with-the-process", "a restart forgets cooldowns"),
    bug("the-budget-ends-with-the-process", "a restart forgets what is used of the budget"),
    // Time.
    rare("no-clock-between", "an answer that stalls is waited for without end", 14),
    rare("attempts-without-bound", "a turn is tried for as long as there are accounts", 10),
];
